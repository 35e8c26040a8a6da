// bloomery noisy: splits a set into several copies with an FPR of 50%, so that one lost copy reveals little.
//
//   $ bloomery noisy split --copies 5 -o members members.txt
//   $ bloomery noisy check members < names.txt
//
// Each copy is a filter of 1.44 bits per key with its own secret, for a different party. The FPR of i copies together
// is 0.5^i. J copies have the same total size as one filter with an FPR of 0.5^J. [M. Ceglowski, "Using Bloom Filters",
// perl.com 2004]
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/screen.hpp"
#include "cli/io/hash_spool.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"

#include <bloomery/detail/key_file.hpp>
#include <bloomery/detail/new_file.hpp>
#include <bloomery/error.hpp>
#include <bloomery/secret.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

struct noisy_split_options {
  std::uint64_t copies = 5;
  std::string prefix;
  std::optional<std::uint64_t> capacity;
  input_options inputs;
  common_options common;
};

struct noisy_check_options {
  std::vector<std::string> copies;
  input_options inputs;
  bool invert = false;
  bool count = false;
  common_options common;
};

constexpr double rate_of_a_copy = 0.5;
constexpr std::uint64_t most_copies = 64;

std::string name_of_copy(const std::string& prefix, std::uint64_t i) { return fmt::format("{}.{}", prefix, i); }
std::string filter_of(const std::string& copy) { return copy + ".bloom"; }
std::string key_of(const std::string& copy) { return copy + ".key"; }

// A file that exists only while the copies are renamed to their final names.
std::string mark_of(const std::string& prefix) { return prefix + ".unfinished"; }

bool exists(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

// The copies that these names stand for: all copies of a prefix, or one copy. Without duplicates, in order.
std::vector<std::string> copies_named(const std::vector<std::string>& names) {
  std::vector<std::string> copies;
  const auto take = [&](const std::string& copy) {
    if (std::find(copies.begin(), copies.end(), copy) == copies.end()) copies.push_back(copy);
    return true;
  };
  for (std::string name : names) {
    if (name.ends_with(".bloom")) name.resize(name.size() - std::string(".bloom").size());
    if (exists(mark_of(name))) {
      throw error(errc::damaged,
                  {"these copies are incomplete, because the run that creates them is active or was killed", name, "",
                   "", "wait, or run 'bloomery noisy split' again"});
    }
    bool some = false;
    std::uint64_t last = 0;
    for (std::uint64_t i = 1; i <= most_copies; ++i) {
      if (!exists(filter_of(name_of_copy(name, i)))) continue;
      some = take(name_of_copy(name, i));
      if (i != last + 1) {
        say(fmt::format("{}: note: copy {} is missing; without it there are more false positives", name, last + 1));
      }
      last = i;
    }
    if (!some && exists(filter_of(name))) some = take(name);
    if (!some) {
      throw error(errc::not_found, {"no copies with this name", name, filter_of(name_of_copy(name, 1)) + " and so on",
                                    "none", "give the PREFIX of 'noisy split -o PREFIX'"});
    }
  }
  return copies;
}

// Opens a copy with its key. Errors have a hint that suits this command.
any_filter open_copy(const std::string& name) {
  if (!exists(key_of(name))) {
    throw error(errc::not_found, {"the secret key of this copy is missing", filter_of(name), key_of(name), "none",
                                  "restore it, or name other copies: PREFIX.1 PREFIX.3"});
  }
  try {
    return open_filter(filter_of(name), key_of(name));
  } catch (const error& e) {
    if (e.text().hint.code != hint::give_the_secret) throw;
    error_text text = e.text();
    text.hint = "restore the key of this copy as " + key_of(name);  // this command has no --secret
    throw error(e.code(), std::move(text));
  }
}

// The FPR of a copy is 50% only if it has as many distinct keys as its capacity.
void warn_if_wrong_size(const std::string& prefix, const any_filter& copy, std::uint64_t capacity) {
  const estimate keys = copy.estimated_keys();
  const bool full = !std::isfinite(keys.value);
  const auto made_for = static_cast<double>(capacity);
  const bool fewer = !full && keys.value + 3 * keys.sigma < 0.9 * made_for;
  const bool more = full || keys.value - 3 * keys.sigma > 1.1 * made_for;
  if (!fewer && !more) return;
  say(fmt::format(
      "{}: warning: {} distinct keys than the capacity of {}, so the copies have {}; create them again with {}", prefix,
      fewer ? "fewer" : "more", count_text(capacity), fewer ? "a lower FPR and reveal more" : "a higher FPR",
      full ? "a larger --capacity" : fmt::format("--capacity {}", std::max<long long>(std::llround(keys.value), 1))));
}

// All copies are in memory at once and are written to one disk.
void check_size(const std::string& prefix, std::uint64_t bytes_each, std::uint64_t copies) {
  const std::uint64_t bytes = bytes_each > ~std::uint64_t{0} / copies ? ~std::uint64_t{0} : bytes_each * copies;
  const std::uint64_t memory =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > memory) {
    throw error(errc::too_large, {"not enough memory for all copies", "--copies", "at most " + bytes_text(memory),
                                  bytes_text(bytes), "use fewer keys or fewer copies"});
  }
  check_room(filter_of(name_of_copy(prefix, 1)), bytes);
}

// Removes the copies of a run that was killed while it renamed them.
void remove_unfinished(const std::string& prefix) {
  if (!exists(mark_of(prefix))) return;
  detail::unfinished_mark mark(mark_of(prefix));
  std::uint64_t copies = 0;
  const std::string& text = mark.text();
  std::from_chars(text.data(), text.data() + text.size(), copies);
  std::error_code none;
  for (std::uint64_t i = 1; i <= std::min(copies, most_copies); ++i) {
    std::filesystem::remove(filter_of(name_of_copy(prefix, i)), none);
    std::filesystem::remove(key_of(name_of_copy(prefix, i)), none);
  }
  mark.remove();
}

// Writes both files of each copy: all of them or none. All files are complete before the first one is renamed, and a
// kill during the renaming leaves the mark.
void write_copies(const std::string& prefix, const std::vector<std::unique_ptr<filter_handle>>& copies,
                  const std::vector<secret_key>& secrets) {
  std::vector<std::pair<std::string, detail::new_file>> files;
  const auto add = [&](const std::string& path, std::string_view bytes, std::uint32_t mode) {
    detail::new_file& file = files.emplace_back(path, detail::new_file(path, false, mode)).second;
    file.write(bytes);
    file.sync();
  };
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const std::string name = name_of_copy(prefix, i + 1);
    const std::vector<std::uint8_t> bytes = copies[i]->local()->to_bytes();
    add(key_of(name), detail::key_file_text(secrets[i]), 0600);
    add(filter_of(name), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0666);
  }
  detail::unfinished_mark mark(mark_of(prefix));
  std::size_t published = 0;
  const auto undo = [&](std::size_t count) {
    std::error_code none;
    for (std::size_t i = 0; i < std::min(count, files.size()); ++i) std::filesystem::remove(files[i].first, none);
    std::filesystem::remove(mark_of(prefix), none);
  };
  try {
    mark.write(fmt::format("{}\n", copies.size()));
    for (auto& [path, file] : files) {
      file.publish(published + 1 == files.size());  // the last one syncs the directory with all names
      ++published;
    }
    mark.remove();
  } catch (const error& e) {
    // publish() may fail after the file got its name, unless another process has taken the name.
    undo(published + (e.code() == errc::already_exists ? 0 : 1));
    throw;
  } catch (...) {
    undo(published);
    throw;
  }
}

// The exact number of distinct keys: with a larger capacity, copies would have a lower FPR and reveal more. Input that
// can be read only once is copied to a temporary file.
std::uint64_t distinct_keys_of(input_options& inputs, const common_options& common,
                               std::optional<temporary_file>& text) {
  if (!name_standard_input(inputs) || !can_reread(inputs)) {
    text.emplace(spool_text(inputs));
    inputs.files = {text->path()};
  }
  hash_spool spool;
  for_each_hash({.layout = "classic", .target_fpr = rate_of_a_copy}, inputs,
                {common.threads, common.progress && !common.quiet, "count"},
                [&](std::span<const key_hash> hashes) { spool.append(hashes); });
  return std::max<std::uint64_t>(spool.count_distinct(), 1);
}

exit_status noisy_split(const noisy_split_options& options) {
  if (options.copies < 1 || options.copies > most_copies) {
    throw error(errc::invalid_argument,
                {"invalid number of copies", "--copies", "1 to 64", count_text(options.copies), ""});
  }
  remove_unfinished(options.prefix);
  for (std::uint64_t i = 1; i <= options.copies; ++i) {
    for (const std::string& path :
         {filter_of(name_of_copy(options.prefix, i)), key_of(name_of_copy(options.prefix, i))}) {
      if (exists(path)) {
        throw error(errc::already_exists, {"a copy with this name exists already", path, "", "",
                                           "choose another PREFIX, or remove the old copies"});
      }
    }
  }
  input_options inputs = options.inputs;
  std::optional<temporary_file> text;
  making_options wanted;
  wanted.layout = "classic";
  wanted.capacity = options.capacity ? *options.capacity : distinct_keys_of(inputs, options.common, text);
  check_target_fpr(wanted);

  std::vector<std::unique_ptr<filter_handle>> copies;
  std::vector<secret_key> secrets;
  for (std::uint64_t i = 0; i < options.copies; ++i) {
    secrets.push_back(random_secret());
    params p = params_for(wanted, *wanted.capacity, rate_of_a_copy);
    if (i == 0) check_size(options.prefix, bytes_for(p.geometry.bits), options.copies);
    p.hash = "siphash";
    p.secret = secrets.back();
    copies.push_back(make_handle(any_filter(p)));
  }
  std::uint64_t lines = 0;
  std::vector<key_hash> hashes;
  const pass_options pass{options.common.threads, options.common.progress && !options.common.quiet, "split"};
  const bool whole = for_each_batch(
      *copies.front(), inputs, pass, [](key_batch&) {},
      [&](key_batch& batch) {
        lines += batch.keys.size();
        copies.front()->insert(batch.prepared);
        for (std::size_t i = 1; i < copies.size(); ++i) copies[i]->insert(copies[i]->prepare(batch.keys, hashes));
        return true;
      });
  if (!whole) throw interrupted();

  write_copies(options.prefix, copies, secrets);
  const std::uint64_t bytes = copies.front()->local()->byte_size();
  double together = 1;
  nlohmann::ordered_json rates = nlohmann::ordered_json::array();
  for (const auto& copy : copies) {
    rates.push_back(copy->local()->current_fpr());
    together *= copy->local()->current_fpr();
  }
  const double rate = copies.front()->local()->current_fpr();
  if (options.common.json) {
    output out(STDOUT_FILENO, "standard output");
    out.write(json_line({{"prefix", options.prefix},
                         {"copies", options.copies},
                         {"keys", lines},
                         {"capacity", *wanted.capacity},
                         {"bytes_each", bytes},
                         {"rates", rates},
                         {"rate_together", together}}));
    out.flush();
  }
  if (!options.common.quiet) {
    const std::string last = options.copies == 1 ? "" : fmt::format(" to {}.{}", options.prefix, options.copies);
    say(fmt::format("{}.1{}: {}, {} each, {} in total; the secret of each .bloom file is in its .key file",
                    options.prefix, last, counted(lines, "line"), bytes_text(bytes),
                    bytes_text(bytes * options.copies)));
    say(fmt::format("FPR of one copy: {}", rate_text(rate)));
    if (options.copies > 1) say(fmt::format("FPR of all {} copies together: {}", options.copies, rate_text(together)));
    say("note: each copy rules out about half of all absent keys with certainty, for anyone who can try all possible "
        "keys; this is not differential privacy");
  }
  warn_if_wrong_size(options.prefix, *copies.front()->local(), *wanted.capacity);
  return exit_status::found;
}

exit_status noisy_check(const noisy_check_options& options) {
  const std::vector<std::string> names = copies_named(options.copies);
  std::vector<std::unique_ptr<filter_handle>> copies;
  for (const std::string& name : names) copies.push_back(make_handle(open_copy(name)));
  const input_options& inputs = options.inputs;
  for (const std::string& name : names) check_output(inputs, filter_of(name));
  double rate = 1;
  for (const auto& copy : copies) rate *= copy->local()->current_fpr();
  const auto ask_all = [&](key_batch& batch) {
    batch.maybe.resize((batch.keys.size() + 63) / 64);
    copies.front()->contains(batch.prepared, batch.maybe);
    // Each copy hashes with its own secret.
    std::vector<key_hash> hashes;
    std::vector<std::uint64_t> maybe(batch.maybe.size());
    for (std::size_t i = 1; i < copies.size(); ++i) {
      copies[i]->contains(copies[i]->prepare(batch.keys, hashes), maybe);
      for (std::size_t word = 0; word < maybe.size(); ++word) batch.maybe[word] &= maybe[word];
    }
  };
  const lookup_pass ask = [&](const input_options& from, const pass_options& pass,
                              const std::function<bool(key_batch&)>& finish) {
    return for_each_batch(*copies.front(), from, pass, ask_all, finish);
  };
  return screen(ask, {options.invert, options.count, inputs, options.common}, {{"copies", names}, {"rate", rate}});
}

}  // namespace

void add_noisy(command_line& line) {
  command& c = line.root.subcommand("noisy", "split a set into noisy copies for private sharing");
  command& s = c.subcommand("split", "create noisy copies of a set, each with a secret and a 50% false-positive rate");
  auto& split = line.options_of(s, noisy_split);
  parsed(s, "--copies", split.copies, parse_count, "N",
         "number of copies; default: 5; together they have an FPR of 0.5^N");
  s.option("-o,--output", split.prefix, "PREFIX", "create the files PREFIX.1.bloom, PREFIX.1.key, PREFIX.2.bloom, ...")
      .required()
      .file();
  parsed(s, "-n,--capacity", split.capacity, parse_count, "N",
         "expected number of distinct keys; default: count them first");
  add_inputs(line, s, split.inputs);
  add_common(s, split.common, "print only errors and warnings");
  s.example("bloomery noisy split --copies 5 -o members members.txt");
  command& k = c.subcommand("check", "print the lines whose keys may be in all of the given copies");
  auto& check_them = line.options_of(k, noisy_check);
  k.positional("PREFIX", check_them.copies, "PREFIX for all its copies, or PREFIX.1 PREFIX.3 for some of them")
      .required()
      .file();
  k.option("-i,--input", check_them.inputs.files, "FILE", "file with one key per line (repeatable); default: stdin")
      .file();
  add_key_shape(line, k, check_them.inputs);
  k.flag("-v,--invert", check_them.invert, "print the lines whose keys are certainly absent instead");
  k.flag("-c,--count", check_them.count, "print only the number of selected lines");
  add_common(k, check_them.common, "print nothing; stop at the first selected line");
  k.example("bloomery noisy check members < names.txt");
  k.footer("Exit status: 0 if a line was selected, 1 if none was, 2 on error.");
}

}  // namespace bloomery::cli
