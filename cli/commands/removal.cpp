#include "cli/commands/removal.hpp"

#include "app/numbers.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/counting.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bloomery::cli {

void check_removal(const making_options& wanted) {
  const family kind = family_of({.layout = wanted.layout});
  const bool named = capabilities_of({.layout = wanted.layout}).can_remove;
  const char* const given = wanted.removal_option();
  if (given == nullptr) {
    if (!named) return;
    const char* const needed = kind == family::counting ? "--counting" : "--quotient";
    throw error(errc::invalid_argument,
                {std::string("this layout needs ") + needed, "--layout", "one of " + layout_names(),
                 "'" + wanted.layout + "'", std::string("build with ") + needed + " instead"});
  }
  const auto refuse = [&](const char* why, const std::string& found, const char* other) {
    throw error(errc::invalid_argument, {why, given, "", found, std::string("leave out ") + given + " or " + other});
  };
  if (wanted.counting && wanted.quotient) refuse("these are two kinds of filters", "--quotient", "--quotient");
  if (!wanted.layout.empty() && kind != (wanted.counting ? family::counting : family::quotient)) {
    refuse(wanted.counting ? "counting filters have their own layout" : "quotient filters have their own layouts",
           "--layout " + wanted.layout, "--layout");
  }
  if (!wanted.scheme.empty()) refuse("a scheme has its own bits", "--scheme " + wanted.scheme, "--scheme");
  if (wanted.prefer) {
    refuse(wanted.counting ? "counting filters have only one layout" : "the smallest quotient filter is always taken",
           "--prefer", "--prefer");
  }
  if (wanted.growing && wanted.counting) refuse("a counting filter cannot grow", "--grow", "--grow");
  if (wanted.growing && !wanted.layout.empty())
    refuse("slots become narrower when a filter grows", "--layout " + wanted.layout, "--layout");
  if (wanted.growing && !wanted.capacity)
    throw error(errc::invalid_argument,
                {"a quotient filter grows up to a maximum number of keys", "--grow", "-n, the maximum", "none",
                 "add -n with the most keys that may be present; twice as many take about 1.5 bits more per key"});
  if (wanted.window.length) {
    refuse("keys cannot be removed from a sliding-window filter", "a window", "--window");
  }
  if (wanted.quotient && wanted.bits)
    refuse("the size of a quotient filter follows from its capacity and FPR", "--bits", "--bits");
}

std::string layout_for(const making_options& wanted) {
  if (!wanted.layout.empty() || wanted.removal_option() == nullptr) return wanted.layout;
  if (wanted.counting) return name_of(family::counting);
  return wanted.growing ? "quotient_growing" : name_of(family::quotient);
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
