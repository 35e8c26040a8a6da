// What commands say alike; declared in commands.hpp.
#include "commands.hpp"
#include "layout_choice.hpp"
#include "numbers.hpp"
#include "signals.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/sizing.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace bloomery::cli {

std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      shown += fmt::format("\\x{:02X}", byte);
    else
      shown += c;
  }
  return shown;
}

void say(const std::string& text) { std::fputs(("bloomery: " + printable(text) + "\n").c_str(), stderr); }

std::string json_line(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void say_if_dirty(const std::string& path, const file_info& info) {
  if (info.clean) return;
  say(path +
      ": note: not closed cleanly (a writer is at work, or was killed); its keys are all there, its count of keys "
      "is estimated");
}

void wait_for_writer(const std::string& path) {
  if (stop_signal() != 0) throw interrupted();
  static bool said = false;
  if (!std::exchange(said, true)) say(path + ": waiting for another process that is writing it");
}

std::string kind_text(const params& p) { return p.scheme.empty() ? p.layout : "scheme " + p.scheme; }

std::string size_text(const params& p) {
  const double bits_a_key = static_cast<double>(p.geometry.bits) / static_cast<double>(p.capacity);
  return fmt::format("{} at {}: {} ({}, {:.4g} bits a key)", counted(p.capacity, "key"), rate_text(p.target_rate),
                     bytes_text(bytes_for(p.geometry.bits)), kind_text(p), bits_a_key);
}

params params_for(const making_options& wanted, std::uint64_t capacity, double default_rate) {
  params p;
  p.layout = wanted.layout;
  p.scheme = wanted.scheme;
  p.hash = wanted.hash;
  p.keys = wanted.keys;
  p.seed = wanted.seed;
  p.capacity = capacity;
  if (!p.scheme.empty() && p.seed != 0) {
    throw error(errc::invalid_argument,
                {"a scheme has hashes of its own", "--seed", "", "", "leave out --seed or --scheme"});
  }
  if (!wanted.bits) {
    if (wanted.probes) {
      throw error(errc::invalid_argument,
                  {"a number of probes needs a number of bits here", "-k", "", "", "add -m, or leave -k out"});
    }
    p.target_rate = wanted.rate.value_or(default_rate);
    return complete(p, wanted.prefer.value_or(preference::speed));
  }
  if (wanted.rate) {
    throw error(errc::invalid_argument,
                {"size and error rate cannot both be chosen", "-m", "", "", "give -m or -p; the other follows"});
  }
  if (!p.scheme.empty()) {
    p.geometry = {*wanted.bits, wanted.probes ? static_cast<std::uint32_t>(*wanted.probes)
                                              : classic::best_probes(*wanted.bits, capacity)};
    return complete(p);
  }
  if (p.layout.empty()) {
    making_options sized = wanted;
    sized.capacity = capacity;
    p.layout = chosen_of(plan_layouts(sized)).p.layout;
  }
  p.geometry = geometry_within(p.layout, *wanted.bits, wanted.probes, capacity);
  return complete(p);
}

void check_promise(const making_options& wanted) {
  if (wanted.capacity && *wanted.capacity == 0) {
    throw error(errc::invalid_argument, {"a filter is made for at least one key", "-n", "1 or more", "0", ""});
  }
  if (wanted.bits && *wanted.bits == 0) {
    throw error(errc::invalid_argument, {"a filter has at least one bit", "-m", "1 or more", "0", ""});
  }
  if (wanted.probes && (*wanted.probes == 0 || *wanted.probes > max_probes)) {
    throw error(errc::invalid_argument, {"probes of a filter", "-k", "1 to 255", std::to_string(*wanted.probes), ""});
  }
  if (wanted.prefer && !(wanted.layout.empty() && wanted.scheme.empty())) {
    const char* named = wanted.layout.empty() ? "--scheme" : "--layout";
    throw error(errc::invalid_argument,
                {"a preference is for choosing a layout, and one is named", "--prefer", "",
                 std::string(named) + " " + (wanted.layout.empty() ? wanted.scheme : wanted.layout),
                 std::string("leave out --prefer or ") + named});
  }
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

void check_output(const input_options& inputs, const std::string& filter) {
  const std::string standard_output = "/proc/self/fd/1";
  std::error_code none;
  const bool is_filter = !filter.empty() && std::filesystem::equivalent(standard_output, filter, none);
  if (!is_filter && !is_an_input(standard_output, inputs)) return;
  throw error(errc::invalid_argument,
              {is_filter ? "the output is the filter's own file" : "an input is also the output", "standard output", "",
               "", "send it to another file"});
}

temporary_file spool_text(const input_options& inputs) {
  temporary_file text;
  reader source(inputs);
  for (chunk piece; source.next(piece);) {
    text.append(piece.text());
    if (piece.text().back() != inputs.line_end()) text.append(std::string(1, inputs.line_end()));
  }
  if (stop_signal() != 0) throw interrupted();
  text.rewind();
  return text;
}

double losses_between(const params& p, std::uint64_t from, std::uint64_t to) {
  const auto rate = [&](std::uint64_t keys) { return false_positive_rate(p, from + keys); };
  return to > from ? expected_losses(to - from, rate) : 0;
}

std::uint64_t distinct_keys(const params& p, std::uint64_t counted) {
  if (p.geometry.probes > classic::most_chosen_probes) return counted;  // such rates take a second each
  return bloomery::distinct_keys(counted, [&](std::uint64_t keys) { return false_positive_rate(p, keys); });
}

std::uint64_t keys_within(const params& p, double rate) {
  std::uint64_t within = 0;
  std::uint64_t beyond = std::max<std::uint64_t>(p.capacity, 1);  // a good guess
  while (beyond < (std::uint64_t{1} << 62) && false_positive_rate(p, beyond) <= rate) {
    within = beyond;
    beyond *= 2;
  }
  while (beyond - within > 1) {
    const std::uint64_t middle = within + (beyond - within) / 2;
    (false_positive_rate(p, middle) <= rate ? within : beyond) = middle;
  }
  return within;
}

}  // namespace bloomery::cli
