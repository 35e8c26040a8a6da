// Validation of requirements.
#include "advice/requirements.hpp"

#include <bloomery/error.hpp>

#include "math/rates.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>

namespace bloomery {
namespace {

template <class... Values>
std::string text(const char* pattern, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, values...);
  return buffer;
}

[[noreturn]] void contradiction(const std::string& one, const std::string& other, const std::string& instead) {
  throw error(errc::invalid_argument,
              {one + " and " + other + " contradict each other", "", "", "", {hint::change_requirements, instead}});
}

void check_sealed(const requirements& w, const demand& d) {
  const std::string sealed = w.never_for != 0 ? "known absent keys" : "sealed";
  if (w.deletes) {
    contradiction(sealed, "deletes",
                  "a static filter never changes: require deletes only, or seal the remaining keys again");
  }
  if (d.has_window()) {
    contradiction(sealed, "a window",
                  "keys of a static filter never expire: leave out one of the two, or seal one filter per period");
  }
  if (d.unbounded || d.range()) {
    contradiction(sealed, "an unknown number of keys",
                  "a static filter is built once from all keys: count them, or use a rebuilding filter and seal it "
                  "when all keys are inserted");
  }
}

void check_window(const requirements& w) {
  if (w.deletes) {
    contradiction("deletes", "a window",
                  "keys either expire or are removed, not both: require deletes only, or a window only");
  }
  if (!w.window.by_time() && (w.keys != 0 || w.most_keys != 0)) {
    contradiction("a window of keys", "a number of keys",
                  "the window already determines the number of keys: leave out the number");
  }
  if (w.grows) {
    contradiction("a window", "growth",
                  "a window has a fixed capacity: give the maximum number of keys per window; more keys only raise the "
                  "false-positive rate");
  }
  if (w.window.by_time() && w.keys == 0 && w.most_keys == 0) {
    contradiction("a window of time", "an unknown number of keys",
                  "give the maximum number of keys in that time, or use a window of keys");
  }
}

}  // namespace

demand demand_of(const requirements& w) {
  rates::check_target_fpr(1, w.rate);
  if (w.most_keys != 0 && w.most_keys < w.keys) {
    throw error(errc::invalid_argument, {"the maximum number of keys is below the minimum", "keys", "",
                                         keys_text(w.keys) + " and at most " + keys_text(w.most_keys), ""});
  }
  demand d{w, false, 0, 0};
  d.w.sealed = w.sealed || w.never_for != 0;
  const std::uint64_t last = w.window.keys();
  d.most = last != 0 ? last : std::max(w.keys, w.most_keys);
  d.fewest = last != 0 ? last : w.keys != 0 ? w.keys : w.most_keys;
  d.unbounded = w.grows || d.most == 0;
  if (w.grows && w.most_keys != 0) {
    contradiction("unlimited growth", "a maximum number of keys", "the range of keys is enough: leave out growth");
  }
  if (d.has_window()) check_window(w);
  if (d.w.sealed) check_sealed(w, d);
  if (w.deletes && d.unbounded) {
    contradiction(
        "deletes", "an unknown number of keys",
        "a filter with removal grows at most up to a known size: give the maximum number of keys present at a time");
  }
  if (d.most == 0) d.most = assumed_keys;
  return d;
}

std::string rate_text(double rate) { return rate < 9.995e-5 ? text("%.3g", rate) : text("%.3g%%", 100 * rate); }

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return text("%.3g %s", value, units[unit]);
}

std::string keys_text(std::uint64_t keys) {
  std::string digits = std::to_string(keys);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits + (keys == 1 ? " key" : " keys");
}

}  // namespace bloomery
