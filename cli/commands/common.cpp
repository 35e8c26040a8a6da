#include "cli/commands/common.hpp"

#include "app/base64.hpp"
#include "app/layout_choice.hpp"
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/removal.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/text/color.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/sizing.hpp>

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace bloomery::cli {

std::string printable(const std::string& text) {
  std::string shown;
  const auto byte_at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  // U+0080 to U+009F, two bytes each in UTF-8, are control characters too.
  const auto starts_control = [&](std::size_t i) { return byte_at(i) == 0xC2 && byte_at(i + 1) >> 5 == 0b100; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (byte_at(i) < 0x20 || byte_at(i) == 0x7F || starts_control(i) || (i > 0 && starts_control(i - 1)))
      shown += fmt::format("\\x{:02X}", byte_at(i));
    else
      shown += text[i];
  }
  return shown;
}

namespace {

std::string harmless(const std::string& text) { return printable(without_passwords(text)); }

// "warning: " at the start or after the name of a file is colored.
std::string with_painted_warning(const std::string& text) {
  constexpr std::string_view word = "warning:";
  const std::size_t after_name = text.find(": warning: ");
  const std::size_t at = text.starts_with(word) ? 0 : after_name == std::string::npos ? after_name : after_name + 2;
  if (at == std::string::npos) return text;
  return text.substr(0, at) + painted(word, tone::warning, STDERR_FILENO) + text.substr(at + word.size());
}

// The salt; if it is not UTF-8, {"base64": ...}.
nlohmann::ordered_json salt_json(const std::string& salt) {
  nlohmann::ordered_json text = salt;
  try {
    static_cast<void>(text.dump());
    return text;
  } catch (const nlohmann::ordered_json::type_error&) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(salt.data());
    return {{"base64", base64_of({bytes, salt.size()}, base64_standard)}};
  }
}

}  // namespace

std::string salts_text(std::span<const std::string> salts) {
  std::string text = fmt::format("{} drawn:", salts.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(2, salts.size()); ++i) {
    const nlohmann::ordered_json salt = salt_json(salts[i]);
    text += (i == 0 ? " " : ", ") +
            (salt.is_string() ? printable(salts[i]) : "base64 " + salt["base64"].get<std::string>());
  }
  return text + (salts.size() > 2 ? ", ..." : "");
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

nlohmann::ordered_json salts_json(std::span<const std::string> salts) {
  if (salts.empty()) return nullptr;
  auto list = nlohmann::ordered_json::array();
  for (const std::string& salt : salts) list.push_back(salt_json(salt));
  return list;
}

void say(const std::string& text) {
  std::fputs(("bloomery: " + with_painted_warning(harmless(text)) + "\n").c_str(), stderr);
}

void say_error(const std::string& text) {
  std::fputs((painted("bloomery:", tone::error, STDERR_FILENO) + " " + harmless(text) + "\n").c_str(), stderr);
}

std::string json_line(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void say_if_dirty(const std::string& path, const file_info& info) {
  if (info.clean) return;
  say(path +
      ": note: not closed cleanly (a writer is active or was killed); no key is lost, but the key count is estimated, "
      "and pages cannot be verified");
}

void wait_for_writer(const std::string& path) {
  if (stop_signal() != 0) throw interrupted();
  static bool said = false;
  if (!std::exchange(said, true)) say(path + ": waiting for another process that is writing to this file");
}

void check_locks(const std::string& path) {
  if (redis_address::is_one(path) || has_locks(path)) return;
  if (!no_lock()) throw error(errc::io, {"this file system does not support locks", path, "", "", hint::allow_no_lock});
  static bool said = false;
  if (!std::exchange(said, true)) {
    say(path +
        ": warning: this file system does not support locks; two writers at the same time would damage the filter");
  }
}

std::optional<secret_key> secret_of(const std::string& keyfile) {
  if (keyfile.empty()) return std::nullopt;
  static std::map<std::string, secret_key> known;
  if (const auto found = known.find(keyfile); found != known.end()) return found->second;
  bool readable_by_others = false;
  const secret_key key = read_secret(keyfile, &readable_by_others);
  if (readable_by_others) say(keyfile + ": warning: other users can read this key; run chmod 600 on it");
  known.emplace(keyfile, key);
  return key;
}

any_filter open_filter(const std::string& path, const std::string& keyfile, access mode, file_check what,
                       const callback<void(const std::string&)>& waiting) {
  return any_filter::open(
      path, {.mode = mode, .check = what, .waiting = waiting, .secret = secret_of(keyfile), .no_lock = no_lock()});
}

std::string kind_text(const params& p) { return p.scheme.empty() ? p.layout : "scheme " + p.scheme; }

std::string size_text(const params& p) {
  if (p.capacity == 0) {
    return fmt::format("capacity unknown: {} ({})", bytes_text(bytes_for(p.geometry.bits)), kind_text(p));
  }
  const unsigned doublings = doublings_left(p);
  const std::uint64_t bits = p.geometry.bits << doublings;
  const std::string now = bytes_text(bytes_for(p.geometry.bits));
  return fmt::format("capacity {}{} at {}: {} ({}, {:.4g} bits per key)", counted(p.capacity, "key"), window_text(p),
                     rate_text(p.target_fpr), doublings == 0 ? now : now + " now, up to " + bytes_text(bytes_for(bits)),
                     kind_text(p), static_cast<double>(bits) / static_cast<double>(p.capacity));
}

std::string uncertainty_text(const fill_facts& fill) {
  const double factor = fill.uncertainty;
  if (factor == 1) return "";
  if (factor < 2) return fmt::format(", within {:.2g}%", 100 * (factor - 1));
  return fmt::format(", within a factor of {:.2g}", factor);
}

params params_for(const making_options& wanted, std::uint64_t capacity, double default_rate) {
  if (wants_window(wanted)) return window_params(wanted, capacity, default_rate);
  params p;
  p.layout = layout_for(wanted);
  p.scheme = wanted.scheme;
  p.hash = wanted.hash;
  p.keys = wanted.keys;
  p.seed = wanted.seed;
  p.capacity = capacity;
  p.secret = secret_of(wanted.secret);
  if (!p.scheme.empty() && p.seed != 0) {
    throw error(errc::invalid_argument,
                {"a scheme has its own hashes", "--seed", "", "", "leave out --seed or --scheme"});
  }
  if (!wanted.bits) {
    if (wanted.probes) {
      throw error(errc::invalid_argument, {"a number of probes requires a number of bits", "--probes", "", "",
                                           "add --bits, or leave out --probes"});
    }
    p.target_fpr = wanted.rate.value_or(default_rate);
    return complete(p, wanted.prefer.value_or(preference::speed));
  }
  if (wanted.rate) {
    throw error(errc::invalid_argument,
                {"size and false-positive rate exclude each other", "--bits", "", "", "give --bits or --rate"});
  }
  return sized_by_bits(std::move(p), wanted);
}

namespace {

// Refuses options that cannot be combined with --secret.
void check_secret(const making_options& wanted) {
  if (wanted.secret.empty()) {
    if (wanted.hash != siphash::name) return;
    throw error(errc::invalid_argument, {"the hash siphash needs a secret key", "--hash", "", "",
                                         "add --secret KEYFILE; 'bloomery keygen' creates one"});
  }
  const auto refuse = [](const char* why, const std::string& found, const std::string& other) {
    throw error(errc::invalid_argument, {why, "--secret", "", found, "leave out --secret or " + other});
  };
  if (!wanted.scheme.empty()) refuse("a scheme has its own hashes", "--scheme " + wanted.scheme, "--scheme");
  if (!wanted.hash.empty() && wanted.hash != siphash::name) {
    refuse("only the hash siphash has a secret", "--hash " + wanted.hash, "--hash");
  }
  if (wanted.seed != 0)
    refuse("a secret takes the place of the seed", "--seed " + std::to_string(wanted.seed), "--seed");
  secret_of(wanted.secret);
}

}  // namespace

void check_target_fpr(const making_options& wanted) {
  check_window(wanted);
  if (wanted.capacity && *wanted.capacity == 0) {
    throw error(errc::invalid_argument, {"the capacity is 0", "--capacity", "1 or more", "0", ""});
  }
  if (wanted.bits && *wanted.bits == 0) {
    throw error(errc::invalid_argument, {"the size is 0", "--bits", "1 or more", "0", ""});
  }
  if (wanted.probes && (*wanted.probes == 0 || *wanted.probes > max_probes)) {
    throw error(errc::invalid_argument,
                {"invalid number of probes", "--probes", "1 to 255", std::to_string(*wanted.probes), ""});
  }
  if (wanted.prefer && !(wanted.layout.empty() && wanted.scheme.empty())) {
    const char* named = wanted.layout.empty() ? "--scheme" : "--layout";
    throw error(errc::invalid_argument,
                {"a layout or scheme is already given", "--prefer", "",
                 std::string(named) + " " + (wanted.layout.empty() ? wanted.scheme : wanted.layout),
                 std::string("leave out --prefer or ") + named});
  }
  check_secret(wanted);
  check_removal(wanted);
}

namespace {

bool is_an_input(const std::string& path, const input_options& inputs) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return false;
  const std::vector<std::string> names = inputs.files.empty() ? std::vector<std::string>{"-"} : inputs.files;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::filesystem::equivalent(path, name == "-" ? "/proc/self/fd/0" : name, none);
  });
}

}  // namespace

void check_not_an_input(const std::string& path, const std::string& option, const input_options& inputs) {
  if (!is_an_input(path, inputs)) return;
  throw error(errc::invalid_argument,
              {"the output would replace the input " + path, option, "", "", "choose another name"});
}

void check_not_the_key(const std::string& path, const std::string& option, const std::string& keyfile) {
  std::error_code none;
  if (keyfile.empty() || !std::filesystem::is_regular_file(path, none)) return;
  if (!std::filesystem::equivalent(path, keyfile, none)) return;
  throw error(errc::invalid_argument,
              {"the output would replace the secret key " + path, option, "", "", "choose another name"});
}

std::optional<file_info> replaced_filter(const std::string& path, const std::string& option) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) == 0) return std::nullopt;
  inspection old = inspect(path);
  if (old.usable) return std::move(old.info);
  if (recognize_format(path) != nullptr) return std::nullopt;  // a filter of another system
  throw error(errc::already_exists,
              {"the output would replace a file that is not a filter: " + path, option,
               "a new name, or that of a filter", "another file", "choose another name, or remove it"});
}

file_version check_replaceable(const std::string& path, const std::string& option) {
  const file_version version = version_of(path);
  const std::optional<file_info> old = replaced_filter(path, option);
  if (!old || old->parameters.log_id() == 0) return version;
  throw error(errc::already_exists,
              {"the output would replace a filter with a key log: " + path, option,
               "a new name, or that of a filter without a log", "",
               "choose another name, or remove it and its log " + rebuilding_filter::log_path(path)});
}

void refuse_unless_plain(const params& p, const std::string& path, const std::string& what, const char* hint) {
  const capabilities can = capabilities_of(p);
  if (can.can_insert && !can.counts_copies && !can.has_window) return;
  const std::string kind = can.counts_copies ? name_of(family_of(p)) : can.has_window ? "sliding-window" : "static";
  throw error(errc::incompatible,
              {what + " is not possible for " + kind + " filters", path, "a plain filter", p.layout, hint});
}

void check_room(const std::string& path, std::uint64_t bytes) {
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) return;  // a pipe needs no disk space
  const std::string parent = std::filesystem::path(path).parent_path().string();
  struct statvfs status {};
  if (::statvfs(parent.empty() ? "." : parent.c_str(), &status) != 0) return;  // saving will report the problem
  const std::uint64_t room = std::uint64_t{status.f_bavail} * status.f_frsize;
  if (bytes <= room || !std::filesystem::is_directory(parent.empty() ? "." : parent)) return;
  throw error(errc::too_large, {"not enough disk space", path, bytes_text(bytes), bytes_text(room) + " free",
                                "use fewer keys, a higher false-positive rate, or another disk"});
}

void check_output(const input_options& inputs, const std::string& filter) {
  const std::string standard_output = "/proc/self/fd/1";
  std::error_code none;
  const auto is_output = [&](const std::string& path) {
    return std::filesystem::equivalent(standard_output, path, none);
  };
  const bool is_filter = !filter.empty() && (is_output(filter) || is_output(rebuilding_filter::log_path(filter)));
  if (!is_filter && !is_an_input(standard_output, inputs)) return;
  throw error(errc::invalid_argument,
              {is_filter ? "the output is the file of the filter" : "the output is also an input", "standard output",
               "", "", "write to another file"});
}

temporary_file spool_text(const input_options& inputs) {
  if (inputs.has_header() && inputs.files.size() > 1) {
    throw error(errc::invalid_argument, {"several CSV files with headers must be read twice, and one of them is a pipe",
                                         "INPUT", "files", "", "write the pipe to a file first"});
  }
  temporary_file text;
  input_options raw = inputs;  // a header is an ordinary first record here
  raw.header = false;
  for (field_range& range : raw.fields) range.name.clear();
  raw.time = {};
  reader source(raw);
  for (chunk piece; source.next(piece);) {
    text.append(piece.text());
    if (piece.text().back() != inputs.line_end()) text.append(std::string(1, inputs.line_end()));
  }
  if (stop_signal() != 0) throw interrupted();
  text.rewind();
  return text;
}

double losses_between(const params& p, std::uint64_t from, std::uint64_t to) {
  const auto rate = [&](std::uint64_t keys) { return expected_fpr(p, from + keys); };
  return to > from ? expected_losses(to - from, rate) : 0;
}

void check_compatible(const std::string& path_a, const params& a, const std::string& path_b, const params& b) {
  const std::string reason = difference(a, b);
  if (reason.empty()) return;
  // The filters differ only in size: the larger one may be halved to the smaller.
  params resized = a;
  resized.geometry.bits = b.geometry.bits;
  const std::uint64_t large = std::max(a.geometry.bits, b.geometry.bits);
  const std::uint64_t small = std::min(a.geometry.bits, b.geometry.bits);
  std::string hint = "filters must have the same kind, size, hash and secret";
  params rehashed = a;
  rehashed.hash = b.hash;
  if (difference(rehashed, b).empty()) {
    hint = fmt::format("build one of them again with the hash of the other: --hash {} or --hash {}", a.hash, b.hash);
  }
  if (difference(resized, b).empty() && large % small == 0 && std::has_single_bit(large / small)) {
    hint = fmt::format("'bloomery fold {} --times {} -o NAME' makes the sizes equal",
                       a.geometry.bits > b.geometry.bits ? path_a : path_b, std::countr_zero(large / small));
  }
  throw error(errc::incompatible, {"these filters cannot be combined", path_a + " and " + path_b, "", reason, hint});
}

nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

error in_filter(const error& e, const std::string& name) {
  error_text text = e.text();
  if (text.where.empty()) text.where = name;
  return {e.code(), std::move(text)};
}

std::string keys_text(const estimate& keys, const std::string& noun) {
  const auto whole = [](double x) { return static_cast<std::uint64_t>(std::llround(std::min(x, 0x1p62))); };
  const std::uint64_t margin = whole(std::ceil(keys.margin()));
  if (margin == 0) return counted(whole(keys.value), noun);
  return fmt::format("{} +- {} {}s", count_text(whole(keys.value)), count_text(margin), noun);
}

std::string distance_text(const fill_check& count) {
  const double deviations = std::abs(count.deviation());
  return std::isfinite(deviations) ? fmt::format("by {:.3g} standard deviations", deviations) : "far beyond chance";
}

std::string rate_with_interval(const measured_rate& m) {
  const interval i = m.within();
  // All three numbers in the unit of the largest.
  const auto text = [&](double rate) {
    return i.high >= 1e-4 && rate < 1e-4 ? fmt::format("{:.3g}%", rate * 100) : rate_text(rate);
  };
  return fmt::format("{} ({} to {}): {} of {} absent keys", text(m.rate()), text(i.low), text(i.high),
                     count_text(m.hits), count_text(m.queries));
}

std::uint64_t queries_of_scheme(const params& p, std::uint64_t usual) {
  constexpr std::uint32_t usual_probes = 8;
  return std::max<std::uint64_t>(usual * usual_probes / std::max(p.geometry.probes, usual_probes), 1);
}

nlohmann::ordered_json json_of(const measured_rate& m) {
  const interval i = m.within();
  return {{"queries", m.queries}, {"hits", m.hits}, {"rate", m.rate()}, {"low", i.low}, {"high", i.high}};
}

std::uint64_t counted_of_estimate(const params& p, double keys) {
  if (p.geometry.probes > layouts::classic::most_chosen_probes)
    return static_cast<std::uint64_t>(std::min(keys, 0x1p62));
  return expected_insertions(keys, [&](std::uint64_t n) { return expected_fpr(p, n); });
}

}  // namespace bloomery::cli
