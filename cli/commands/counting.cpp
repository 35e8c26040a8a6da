#include "cli/commands/counting.hpp"

#include "app/numbers.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layouts/counting.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bloomery::cli {

void check_counting(const making_options& wanted) {
  const bool named = capabilities_of({.layout = wanted.layout}).can_remove;
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
  if (wanted.window.length) {
    refuse("a windowed filter forgets by itself; keys cannot be removed from it", "a window", "--window");
  }
}

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
