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
  if (f.static_keys) return verdict("good", "sealed", "it is sealed: its error stays as it is");
  if (const std::string alarm = alarm_of(f); !alarm.empty()) {
    return verdict("bad", f.consistency->count.deviation() > 0 ? "fuller" : "emptier",
                   alarm + ": somebody chose the keys, or changed the bits, or the count is wrong");
  }
  if (f.fill->cells_set == 0) return verdict("good", "empty", "it is empty");
  const fpr_judgement judgement = judge_fpr(f);
  if (judgement.verdict == fpr_verdict::no_target) return verdict("watch", "no_promise", "it has no target FPR");
  if (f.window && f.window->has_overfull_generation()) {
    return verdict(judgement.is_broken() ? "bad" : "watch", "overfull",
                   "more keys come in its window than its capacity");
  }
  if (judgement.is_broken()) return verdict("bad", "broken", "it breaks its target FPR");
  if (judgement.verdict == fpr_verdict::within_chance) {
    const fpr_judgement size = judge_size(p);
    if (size.fpr > p.target_fpr)
      return verdict("watch", "scheme", "its FPR is a little above the target, by the size rule of its scheme");
    return verdict("watch", "above", "its FPR is a little above the target, by chance");
  }
  if (f.keys_left == std::uint64_t{0}) return verdict("watch", "full", "it is full, and keeps its target FPR");
  if (f.keys_left && *f.keys_left < std::max<std::uint64_t>(f.distinct_keys, 1) / 10) {
    return verdict("watch", "nearly_full", "it is nearly full");
  }
  return verdict("good", "keeps", "it keeps its target FPR");
}

}  // namespace bloomery::playground
