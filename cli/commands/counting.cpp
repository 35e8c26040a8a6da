#include "cli/commands/counting.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/file_edit.hpp>
#include <bloomery/layouts/counting.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace bloomery::cli {

bool is_counting(const std::string& path) {
  const inspection seen = inspect(path);
  return seen.usable && family_of(seen.info.parameters) == family::counting;
}

void check_counting(const making_options& wanted) {
  const bool named = family_of({.layout = wanted.layout}) == family::counting;
  if (!wanted.counting && named) {
    throw error(errc::invalid_argument,
                {"this layout is for keys that are to be removed", "--layout", "one of " + layout_names(),
                 "'" + wanted.layout + "'", "build with --counting instead"});
  }
  if (!wanted.counting) return;
  const auto refuse = [](const char* why, const std::string& found, const char* other) {
    throw error(errc::invalid_argument,
                {why, "--counting", "", found, std::string("leave out --counting or ") + other});
  };
  if (!wanted.layout.empty() && !named) {
    refuse("counters are a layout of their own", "--layout " + wanted.layout, "--layout");
  }
  if (!wanted.scheme.empty()) refuse("a scheme has bits of its own", "--scheme " + wanted.scheme, "--scheme");
  if (wanted.prefer) refuse("there is one layout of counters, and nothing to prefer", "--prefer", "--prefer");
  if (wanted.growing) refuse("a log says what was added, not what was removed", "--grow", "--grow");
  if (wanted.window.milliseconds || wanted.window.keys) {
    refuse("a windowed filter forgets by itself; keys cannot be removed from it", "a window", "--window");
  }
}

void refuse_counting(const std::string& path, const params& p, const char* what, const char* hint) {
  if (family_of(p) != family::counting) return;
  throw error(errc::incompatible, {what, path, "a filter of bits", "a counting filter", hint});
}

std::string those_not_there(std::uint64_t keys, std::uint64_t not_found) {
  if (keys == 1) return "the key was";
  return fmt::format("{} of {} {}", count_text(not_found), counted(keys, "key"), not_found == 1 ? "was" : "were");
}

const char* name_of_cell(const params& p) { return family_of(p) == family::counting ? "counter" : "bit"; }

double unnoticed_by_now(const params& p, std::uint64_t refused, double fpr) {
  return unnoticed_removals(refused, std::max(fpr, p.target_fpr));
}

std::string taint_text(std::uint64_t refused, double unnoticed) {
  if (refused == 0) return "";
  const std::string others = std::isfinite(unnoticed) ? fmt::format("about {:.2g}", unnoticed) : "an unknown number of";
  return fmt::format(
      "tainted: {} {} to be removed that {} not there; {} more such removals probably went unnoticed, each of which "
      "may "
      "have removed other keys",
      counted(refused, "key"), refused == 1 ? "was" : "were", refused == 1 ? "was" : "were", others);
}

}  // namespace bloomery::cli
