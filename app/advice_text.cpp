#include "app/advice_text.hpp"

#include "app/numbers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace bloomery::app {
namespace {

// ---- layouts

// "37%". Near the limit two decimals are shown, so that a share above 25% is never printed as 25%.
std::string percent_more(const layout_judgement& why) {
  const double percent = 100 * why.more;
  return percent < why.preferred_percent + 1 ? fmt::format("{:.2f}%", percent) : fmt::format("{:.0f}%", percent);
}

std::string judgement_text(const layout_judgement& why, const std::string& layout) {
  const std::string own =
      why.than == layout ? "its own size" : fmt::format("{}, {:.2f} bits per key", why.than, why.than_bits_per_key);
  const std::string allowed = why.allowed_percent == 0 ? fmt::format("{} bytes", always_allowed_bytes)
                                                       : fmt::format("{}%", why.allowed_percent);
  const std::string memory = fmt::format("within {} of the least memory ({})", allowed, own);
  switch (why.ground) {
    case layout_ground::slower: return "slower than " + why.than;
    case layout_ground::needs_more: return "needs " + percent_more(why) + " more memory than " + why.than;
    case layout_ground::only_one: return "the only layout " + memory;
    case layout_ground::quickest: return fmt::format("the fastest of {} {}", why.within, memory);
    case layout_ground::impossible:
    case layout_ground::quickest_that_fits: break;
  }
  return {};
}

// ---- structures

std::string bits_text(double bits) { return fmt::format("{:.{}f}", bits, bits < 99.95 ? 2 : bits < 999.5 ? 1 : 0); }

// "plain split_block512", "counting", "quotient7".
std::string kind_text(const option& o) {
  const std::string layout = o.layout();
  return layout.starts_with(name_of(o.take)) ? layout : name_of(o.take) + (" " + layout);
}

// How the layout was chosen, or the purpose of the structure.
std::string means_text(const requirements& wanted, const option& o) {
  const std::string layout = o.layout();
  switch (o.take) {
    case structure::static_set:
      if (wanted.never_for != 0)
        return layout + ": fingerprints of the keys, then one bit for each key that the fingerprints report";
      if (o.layout_why.ground == layout_ground::only_one)
        return layout + ": the shortest fingerprints with a sufficiently low FPR";
      [[fallthrough]];
    case structure::plain:
    case structure::sliding_window:
      return layout + ": " +
             (o.layout_why.ground == layout_ground::quickest_that_fits
                  ? "the fastest layout that fits in " + bytes_text(wanted.memory_bytes)
                  : judgement_text(o.layout_why, layout));
    case structure::counting: return "counting: counters of 4 bits, all counters of a key in one cache line";
    case structure::quotient:
      return layout + ": fingerprints of the keys, in one of two cache lines for each key" +
             (o.doubles ? "; it doubles when it is full" : "");
    case structure::scalable:
      return "growing: each new layer doubles the capacity, and the FPRs of all layers sum to the target; no log on "
             "disk";
    case structure::rebuilding:
      return "logged: the filter is rebuilt from its log at a larger size, so a lookup reads one filter";
  }
  return {};
}

const char* ground_text(ground g) {
  switch (g) {
    case ground::forgets_keys: return "it forgets old keys";
    case ground::keeps_all_keys: return "it does not forget old keys";
    case ground::cannot_remove: return "it cannot remove keys";
    case ground::refuses_keys: return "it refuses keys when it is full, and no key is removed";
    case ground::keys_come_later: return "it cannot take keys later";
    case ground::needs_log: return "it needs a log on disk";
    case ground::reports_absent: return "it may report some of the known absent keys";
    case ground::needs_capacity: return "it needs a capacity, and the number of keys is unknown";
    case ground::number_known: return "the number of keys is known, so a fixed size is enough";
    case ground::smaller_than_growing:
      return "a filter for the maximum number of keys takes less memory than one that grows may take";
    case ground::no_such_fingerprint: return "no fingerprint is long enough for this FPR";
    case ground::static_not_smaller: return "a static filter would not be smaller at this FPR";
    case ground::static_is_smaller: return "the keys do not change, so a static filter can be smaller";
    case ground::reports_no_absent: return "only this kind reports none of the known absent keys";
    case ground::removes_keys: return "it is the smallest kind that can remove keys";
    case ground::forgets_old_keys: return "only this kind forgets old keys";
    case ground::grows: return "the number of keys is unknown";
    case ground::grows_with_log: return "the number of keys is unknown, and a log on disk is allowed";
    case ground::cannot_keep_rate:
    case ground::over_memory:
    case ground::more_bits:
    case ground::less_simple: break;  // explained with figures
  }
  return "";
}

}  // namespace

std::string reason_text(const candidate& c) {
  return c.problem ? std::string(c.problem->what()) : judgement_text(c.why, c.layout);
}

std::string taken_reason(const requirements& wanted, const advice& a) {
  return ground_text(a.taken.why) + (". " + means_text(wanted, a.taken)) +
         (a.needs_secret ? ". The hash is siphash with a secret, because attackers choose keys" : "");
}

std::string passed_reason(const requirements& wanted, const advice& a, const option& passed) {
  const double bits = passed.worst_bits_per_key;
  switch (passed.why) {
    case ground::cannot_keep_rate: return passed.problem->what();
    case ground::over_memory:
      return fmt::format("needs {}, but only {} are allowed", bytes_text(passed.bytes),
                         bytes_text(wanted.memory_bytes));
    case ground::more_bits:
      return fmt::format("{} bits per key in the worst case, {:.3g} times as many", bits_text(bits),
                         bits / a.taken.worst_bits_per_key);
    case ground::less_simple: return bits_text(bits) + " bits per key as well, but it is less simple";
    default: return ground_text(passed.why);
  }
}

std::string phrase_of(const requirements& wanted, what_if change) {
  if (change == what_if::tenth_of_the_rate) return "with an FPR of " + rate_text(wanted.rate / 10);
  return bloomery::phrase_of(change);
}

std::string change_text(const requirements& wanted, const advice& a, const change& c) {
  const option& now = a.taken;
  const option& then = c.then;
  std::string s =
      fmt::format("{}: {}, {} bits per key", phrase_of(wanted, c.what), kind_text(then), bits_text(then.bits_per_key));
  const double share = then.bits_per_key / now.bits_per_key;
  if (share < 0.995) s += fmt::format(" ({:.0f}% less)", 100 * (1 - share));
  if (share > 1.005) {
    s += share < 2 ? fmt::format(" ({:.0f}% more)", 100 * (share - 1)) : fmt::format(" ({:.3g} times as many)", share);
  }
  if (then.worst_bits_per_key != then.bits_per_key || now.worst_bits_per_key != now.bits_per_key) {
    s += ", " + bits_text(then.worst_bits_per_key) + " in the worst case instead of " +
         bits_text(now.worst_bits_per_key);
  }
  if (then.lines != now.lines)
    s += fmt::format(", {} per lookup instead of {}", counted(then.lines, "cache line"), now.lines);
  if (then.take == structure::static_set && now.take != structure::static_set) s += ", FPR " + rate_text(then.rate);
  if (then.disk_bytes != 0 && now.disk_bytes == 0) s += ", and " + bytes_text(then.disk_bytes) + " of disk";
  return s;
}

std::string caution_text(const advice& a, caution c) {
  switch (c) {
    case caution::remove_only_inserted:
      return "Remove only keys that were added. Removing an absent key may remove other keys, which are then reported "
             "absent.";
    case caution::room_for_copies:
      return "A full filter refuses keys. Each copy of a key takes a slot, up to 15 copies. With more than two copies "
             "of many keys, it is full earlier.";
    case caution::removal_helps_attackers:
      return "Removal helps attackers: anyone who can have absent keys removed, such as false positives, makes present "
             "keys disappear, even if the filter has a secret. Do not let others remove keys, and remove only keys "
             "that are known to be present.";
    case caution::false_positives_last:
      return "A false positive that an attacker has found remains one until the filter is built again with another "
             "secret.";
    case caution::memory_bounds_keys:
      return fmt::format("The memory is enough for {} at this FPR.", counted(a.most_keys_in_memory, "key"));
  }
  return {};
}

}  // namespace bloomery::app
