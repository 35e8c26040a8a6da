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
    throw error(errc::invalid_argument, {"this layout needs --counting", "--layout", "one of " + layout_names(),
                                         "'" + wanted.layout + "'", "build with --counting instead"});
  }
  if (!wanted.counting) return;
  const auto refuse = [](const char* why, const std::string& found, const char* other) {
    throw error(errc::invalid_argument,
                {why, "--counting", "", found, std::string("leave out --counting or ") + other});
  };
  if (!wanted.layout.empty() && !named) {
    refuse("counting filters have their own layout", "--layout " + wanted.layout, "--layout");
  }
  if (!wanted.scheme.empty()) refuse("a scheme has its own bits", "--scheme " + wanted.scheme, "--scheme");
  if (wanted.prefer) refuse("counting filters have only one layout", "--prefer", "--prefer");
  if (wanted.growing) refuse("a key log does not record removals", "--grow", "--grow");
  if (wanted.window.length) {
    refuse("keys cannot be removed from a sliding-window filter", "a window", "--window");
  }
}

double unnoticed_by_now(const params& p, std::uint64_t refused, double fpr) {
  return unnoticed_removals(refused, std::max(fpr, p.target_fpr));
}

std::string taint_text(std::uint64_t refused, double unnoticed) {
  if (refused == 0) return "";
  const std::string others = std::isfinite(unnoticed) ? fmt::format("about {:.2g}", unnoticed) : "an unknown number of";
  return fmt::format(
      "tainted: {} {} not present and could not be removed; {} more such removals probably went unnoticed, and each of "
      "them may have removed other keys",
      counted(refused, "key"), refused == 1 ? "was" : "were", others);
}

}  // namespace bloomery::cli
