#include "cli/commands/logged.hpp"

#include "app/signals.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/error_text.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 0.01;

// A note of the library's: warnings are said even if only they are wanted.
logged_filter::on_note sayer(bool quiet) {
  return [quiet](const std::string& text) {
    if (!quiet || text.find(": warning: ") != std::string::npos) say(text);
  };
}

}  // namespace

bool keeps_log(const std::string& path) {
  const inspection seen = inspect(path);
  return seen.usable && seen.info.parameters.log_id != 0;
}

any_filter hasher_for(params p) {
  p.geometry = {};
  p.capacity = 1;
  p.target_rate = 0.5;
  p.log_id = 0;
  return any_filter(std::move(p));
}

logged_filter open_logged(const std::string& path, const std::string& keyfile, bool quiet) {
  return logged_filter::open(path, access::read_write, bloomery::check::payload, wait_for_writer, secret_of(keyfile),
                             sayer(quiet));
}

void check_growing(const making_options& wanted) {
  const auto refuse = [](const char* what, const char* option) {
    throw error(errc::invalid_argument,
                {what, "--grow", "", std::string(option) + " too", std::string("leave out --grow or ") + option});
  };
  if (wanted.bits) refuse("a filter that grows has no size that is given", "-m");
  if (!wanted.scheme.empty()) refuse("a scheme has hashes of its own, and a log keeps others", "--scheme");
  if (wanted.counting) refuse("a log has no removals: counters cannot be made of it", "--counting");
  if (wanted.window.milliseconds) refuse("a log forgets nothing: no window can be made of it", "--window");
  if (wanted.window.keys) refuse("a log forgets nothing: no window can be made of it", "--window-keys");
  growing_params(wanted, default_rate);
}

params growing_params(const making_options& wanted, double rate) {
  params p;
  p.layout = wanted.layout;
  p.hash = wanted.hash;
  p.keys = wanted.keys;
  p.seed = wanted.seed;
  p.capacity = wanted.capacity.value_or(0);
  p.target_rate = wanted.rate.value_or(rate);
  p.secret = secret_of(wanted.secret);
  if (wanted.prefer == preference::memory && p.layout.empty()) p.layout = "blocked_page";
  return logged_filter::completed(std::move(p));
}

exit_status build_growing(const build_options& options) {
  if (options.foldable) {
    throw error(errc::invalid_argument, {"a filter that grows is not halved: rebuild makes it any size", "--grow", "",
                                         "--foldable too", "leave out one of the two"});
  }
  check_growing(options.wanted);
  std::error_code none;
  if (std::filesystem::exists(options.filter, none) && !std::filesystem::is_regular_file(options.filter, none)) {
    throw error(errc::not_permitted, {"a filter that grows is two files beside each other", options.filter,
                                      "a file's name", "a device, pipe or folder", "choose another name"});
  }
  hash_log::check_replaceable(logged_filter::log_path(options.filter));
  // Under another name until it is whole; a kill leaves that.
  const std::string name = fmt::format("{}.{}.new", options.filter, ::getpid());
  const auto remove = [&] {
    for (const std::string& file : {name, logged_filter::log_path(name)}) std::filesystem::remove(file, none);
  };
  const params p = growing_params(options.wanted, default_rate);
  const any_filter hasher = hasher_for(p);
  std::uint64_t keys = 0;
  params made;
  std::uint64_t distinct = 0;
  std::uint64_t log_bytes = 0;
  double rate = 0;
  std::optional<logged_filter> made_here;
  try {
    logged_filter& filter = made_here.emplace(logged_filter::create(name, p, options.note, false));
    if (const auto old = std::filesystem::status(options.filter, none); std::filesystem::exists(old)) {
      // Before there are keys in them: who may not read the old one may not read these.
      for (const std::string& file : {name, logged_filter::log_path(name)}) {
        std::filesystem::permissions(file, old.permissions(), none);
      }
    }
    const pass_options pass{options.common.threads, options.common.progress && !options.common.quiet, "build"};
    const bool whole = for_each_batch(
        hasher, options.inputs, pass, [](key_batch&) {},
        [&](key_batch& batch) {
          filter.record_hashes(batch.hashes);
          keys += batch.keys.size();
          return true;
        });
    if (!whole) throw interrupted();
    rebuild_plan plan;
    if (options.wanted.capacity && filter.log().estimate_distinct() <= *options.wanted.capacity) {
      plan.capacity = options.wanted.capacity;
    }
    filter.rebuild(plan);
    made = filter.parameters();
    distinct = filter.size();
    rate = filter.false_positive_rate();
    log_bytes = filter.log().bytes();
    filter.close();
    logged_filter::move(name, options.filter);
  } catch (...) {
    if (made_here) made_here->abandon();  // closing it would make a filter of all that was read
    remove();
    throw;
  }
  if (options.common.json) {
    output out(STDOUT_FILENO, "standard output");
    out.write(json_line({{"filter", options.filter},
                         {"keys", keys},
                         {"new", distinct},
                         {"capacity", made.capacity},
                         {"bytes", bytes_for(made.geometry.bits)},
                         {"target_rate", made.target_rate},
                         {"rate", rate},
                         {"layout", made.layout},
                         {"scheme", ""},
                         {"bits", made.geometry.bits},
                         {"probes", made.geometry.probes},
                         {"log_bytes", log_bytes}}));
    out.flush();
  } else if (!options.common.quiet) {
    say(fmt::format("{}: {}, {}; has room for {}, and grows by its log, {}", options.filter, counted(keys, "line"),
                    counted(distinct, "key"), size_text(made), bytes_text(log_bytes)));
  }
  return exit_status::found;
}

std::optional<std::uint64_t> old_log_of(const std::string& path) {
  const inspection old = inspect(path);
  if (!old.usable || old.info.parameters.log_id == 0) return std::nullopt;
  return old.info.parameters.log_id;
}

// Only that very log, and only when the filter is another one by now: a kill in between leaves a log that nobody needs.
void remove_old_log(const std::string& path, std::optional<std::uint64_t> id) {
  if (!id || keeps_log(path)) return;
  const std::string log = logged_filter::log_path(path);
  try {
    if (hash_log::open(log).parameters().log_id != *id) return;
  } catch (const error&) {
    return;
  }
  std::error_code none;
  std::filesystem::remove(log, none);
}

log_facts log_facts_of(const std::string& path, const file_info& file, std::uint64_t keys, bool check) {
  log_facts facts;
  const std::string name = logged_filter::log_path(path);
  const auto say_problem = [&](const std::string& problem) {
    facts.damaged = true;
    facts.json["problem"] = problem;
    facts.lines.emplace_back("log", problem);
  };
  const std::uint64_t n = std::max<std::uint64_t>(keys, 1);
  const auto bits_a_key = [&](std::uint64_t bytes) {
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(n);
  };
  const params& p = file.parameters;
  const double grown_bits = static_cast<double>(p.geometry.bits) /
                            static_cast<double>(std::max<std::uint64_t>(p.capacity, 1)) *
                            static_cast<double>(logged_filter::grown_capacity(p.capacity));
  const std::uint64_t meanwhile = file.file_bytes + static_cast<std::uint64_t>(grown_bits / 8);
  facts.json = {{"file", name}};
  try {
    const hash_log log = hash_log::open(name);
    facts.json["keys"] = log.keys();
    facts.json["bytes"] = log.bytes();
    facts.json["generation"] = log.generation();
    facts.lines.emplace_back(
        "log", fmt::format("{}, {} with repetitions", bytes_text(log.bytes()), counted(log.keys(), "key")));
    const params& of_log = log.parameters();
    if (of_log.log_id != p.log_id) {
      say_problem("it is another filter's: no keys can be added");
    } else if (const std::string missing = logged_filter::missing_in(file, log); !missing.empty()) {
      say_problem(missing + "; no keys can be added; see bloomery rebuild --salvage");
    } else if (check) {
      const log_reading seen = log.read(0, [](std::span<const std::uint64_t>) {});
      if (!seen.whole()) say_problem(seen.damage_in_words() + "; see bloomery rebuild --salvage");
      if (seen.torn_bytes > 0) {
        facts.lines.emplace_back("",
                                 "its last record is not whole: being written, or torn by a kill; no key was "
                                 "reported as added that is in it");
      }
      if (seen.whole()) facts.lines.emplace_back("", "all its records match their checksums");
    }
  } catch (const error& e) {
    say_problem(e.code() == errc::not_found ? "missing: no keys can be added" : sentence_of(e));
  }
  facts.json["bits_a_key"] = bits_a_key(file.file_bytes);
  facts.json["bytes_while_growing"] = meanwhile;
  facts.json["bits_a_key_while_growing"] = bits_a_key(meanwhile);
  facts.lines.emplace_back(
      "grows", fmt::format("now {} in memory, {:.3g} bits a key; while growing {}", bytes_text(file.file_bytes),
                           bits_a_key(file.file_bytes), bytes_text(meanwhile)));
  return facts;
}

}  // namespace bloomery::cli
