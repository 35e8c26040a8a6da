#include "cli/commands/logged.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/error_text.hpp"

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
rebuilding_filter::on_note sayer(bool quiet) {
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
  p.target_fpr = 0.5;
  p.log_id = 0;
  return any_filter(std::move(p));
}

rebuilding_filter open_logged(const std::string& path, const std::string& keyfile, bool quiet) {
  return rebuilding_filter::open(path, access::read_write, file_check::payload, wait_for_writer, secret_of(keyfile),
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
  p.target_fpr = wanted.rate.value_or(rate);
  p.secret = secret_of(wanted.secret);
  if (wanted.prefer == preference::memory && p.layout.empty()) p.layout = "blocked_page";
  return rebuilding_filter::completed(std::move(p));
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
  key_log::check_replaceable(rebuilding_filter::log_path(options.filter));
  // Under another name until it is whole; a kill leaves that.
  const std::string name = fmt::format("{}.{}.new", options.filter, ::getpid());
  const auto remove = [&] {
    for (const std::string& file : {name, rebuilding_filter::log_path(name)}) std::filesystem::remove(file, none);
  };
  const params p = growing_params(options.wanted, default_rate);
  const any_filter hasher = hasher_for(p);
  std::uint64_t keys = 0;
  params made;
  std::uint64_t distinct = 0;
  std::uint64_t log_bytes = 0;
  double rate = 0;
  std::optional<rebuilding_filter> made_here;
  try {
    rebuilding_filter& filter = made_here.emplace(rebuilding_filter::create(name, p, options.note, false));
    if (const auto old = std::filesystem::status(options.filter, none); std::filesystem::exists(old)) {
      // Before there are keys in them: who may not read the old one may not read these.
      for (const std::string& file : {name, rebuilding_filter::log_path(name)}) {
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
    rate = filter.expected_fpr();
    log_bytes = filter.log().bytes();
    filter.close();
    rebuilding_filter::move(name, options.filter);
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
                         {"target_rate", made.target_fpr},
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
  const std::string log = rebuilding_filter::log_path(path);
  try {
    if (key_log::open(log).parameters().log_id != *id) return;
  } catch (const error&) {
    return;
  }
  std::error_code none;
  std::filesystem::remove(log, none);
}

}  // namespace bloomery::cli
