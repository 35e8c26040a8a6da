#include "playground/inspect/verdict.hpp"

#include <bloomery/judgement.hpp>

#include <algorithm>
#include <cstdint>

namespace bloomery::playground {

json verdict(const char* level, const char* code, const std::string& text) {
  return {{"level", level}, {"code", code}, {"text", text}};
}

json verdict_of(const filter_facts& f) {
  const params& p = f.parameters;
  if (f.static_keys) return verdict("good", "sealed", "the filter is static, so its FPR does not change");
  if (const std::string alarm = alarm_of(f); !alarm.empty()) {
    return verdict("bad", f.consistency->count.deviation() > 0 ? "fuller" : "emptier",
                   alarm + ": the keys were chosen to collide, the bits were changed, or the count is wrong");
  }
  if (f.fill->cells_set == 0) return verdict("good", "empty", "the filter is empty");
  const fpr_judgement judgement = judge_fpr(f);
  if (judgement.verdict == fpr_verdict::no_target)
    return verdict("watch", "no_promise", "the filter has no target FPR");
  if (f.window && f.window->has_overfull_generation()) {
    return verdict(judgement.is_broken() ? "bad" : "watch", "overfull",
                   "the window receives more keys than its capacity");
  }
  if (judgement.is_broken()) return verdict("bad", "broken", "the FPR is above its target");
  if (judgement.verdict == fpr_verdict::within_chance) {
    const fpr_judgement size = judge_size(p);
    if (size.fpr > p.target_fpr)
      return verdict("watch", "scheme", "the FPR is slightly above its target, by the size rule of the scheme");
    return verdict("watch", "above", "the FPR is slightly above its target, within chance");
  }
  if (f.keys_left == std::uint64_t{0})
    return verdict("watch", "full", "the filter is full, and its FPR is within the target");
  if (f.keys_left && *f.keys_left < std::max<std::uint64_t>(f.distinct_keys, 1) / 10) {
    return verdict("watch", "nearly_full", "the filter is nearly full");
  }
  return verdict("good", "keeps", "the FPR is within its target");
}

}  // namespace bloomery::playground
