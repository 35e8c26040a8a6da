#include "playground/inspect/verdict.hpp"

#include <bloomery/layouts/classic.hpp>

#include <algorithm>
#include <cstdint>

namespace bloomery::playground {
namespace {

// The target FPR; or the FPR at capacity if that is higher, because the size rules of some schemes miss the target
// slightly.
double planned_rate(const params& p) {
  const bool slow = p.geometry.probes > layouts::classic::most_chosen_probes;  // computing such an FPR takes a second
  if (p.scheme.empty() || p.capacity == 0 || slow) return p.target_fpr;
  return std::max(p.target_fpr, expected_fpr(p, p.capacity));
}

}  // namespace

json verdict(const char* level, const char* code, const std::string& text) {
  return {{"level", level}, {"code", code}, {"text", text}};
}

json verdict_of(const filter_facts& f) {
  const params& p = f.parameters;
  if (f.static_keys) return verdict("good", "sealed", "it is sealed: its error stays as it is");
  if (const std::string alarm = alarm_of(f); !alarm.empty()) {
    return verdict("bad", f.consistency->count.deviation() > 0 ? "fuller" : "emptier",
                   alarm + ": somebody chose the keys, or changed the bits, or the count is wrong");
  }
  if (f.fill->cells_set == 0) return verdict("good", "empty", "it is empty");
  if (p.target_fpr <= 0 || p.target_fpr >= 1) return verdict("watch", "no_promise", "it promises nothing");
  const double planned = planned_rate(p);
  const double now = f.fill->current_fpr;
  const double expected = f.expected_fpr.value_or(now);
  // The FPR of one filter is a little above the mean by chance; it is far above only if the filter is too full.
  const bool broken = now > planned * 1.25 || (now > planned * 1.01 && expected > planned * 1.001);
  if (f.window && f.window->has_overfull_generation()) {
    return verdict(broken ? "bad" : "watch", "overfull",
                   "a generation of its window has more keys than it is made for");
  }
  if (broken) return verdict("bad", "broken", "it errs more often than it promises");
  if (now > planned * 1.01) {
    return verdict("watch", "above", "it errs a little more often than it promises, by chance");
  }
  if (planned > p.target_fpr && (now > p.target_fpr * 1.01 || expected > p.target_fpr * 1.001)) {
    return verdict("watch", "scheme", "its scheme errs a little more often than was asked for, even as planned");
  }
  if (f.keys_left == std::uint64_t{0}) return verdict("watch", "full", "it is full, and keeps its promise so far");
  if (f.keys_left && *f.keys_left < std::max<std::uint64_t>(f.distinct_keys, 1) / 10) {
    return verdict("watch", "nearly_full", "it is nearly full");
  }
  return verdict("good", "keeps", "it keeps its promise");
}

}  // namespace bloomery::playground
