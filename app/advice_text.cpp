#include "app/advice_text.hpp"

#include "app/numbers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace bloomery::app {
namespace {

// ---- layouts

// "37 %", but never a rounded 25 % where 25 % is the limit.
std::string percent_more(const layout_judgement& why) {
  const double percent = 100 * why.more;
  return percent < why.preferred_percent + 1 ? fmt::format("{:.2f} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string judgement_text(const layout_judgement& why, const std::string& layout) {
  const std::string own =
      why.than == layout ? "its own" : fmt::format("{}, {:.2f} bits a key", why.than, why.than_bits_per_key);
  const std::string allowed = why.allowed_percent == 0 ? fmt::format("{} bytes", always_allowed_bytes)
                                                       : fmt::format("{} %", why.allowed_percent);
  const std::string memory = fmt::format("within {} of the least memory ({})", allowed, own);
  switch (why.ground) {
    case layout_ground::slower: return "slower than " + why.than;
    case layout_ground::needs_more: return "needs " + percent_more(why) + " more memory than " + why.than;
    case layout_ground::only_one: return "the only one " + memory;
    case layout_ground::quickest: return fmt::format("the quickest of {} {}", why.within, memory);
    case layout_ground::impossible:
    case layout_ground::quickest_that_fits: break;
  }
  return {};
}

// ---- structures

std::string bits_text(double bits) { return fmt::format("{:.{}f}", bits, bits < 99.95 ? 2 : bits < 999.5 ? 1 : 0); }

// "plain line", "counting".
std::string kind_text(const option& o) {
  const std::string& layout = o.parameters.layout;
  return name_of(o.take) + (layout == name_of(o.take) ? "" : " " + layout);
}

// How the layout was chosen, or the purpose of the structure.
std::string means_text(const requirements& wanted, const option& o) {
  const std::string& layout = o.parameters.layout;
  switch (o.take) {
    case structure::plain:
    case structure::sliding_window:
      return layout + ": " +
             (o.layout_why.ground == layout_ground::quickest_that_fits
                  ? "the quickest that fits " + bytes_text(wanted.memory_bytes)
                  : judgement_text(o.layout_why, layout));
    case structure::counting: return "counting: counters of 4 bits, all of a key in one cache line";
    case structure::static_set: return layout + ": the shortest fingerprints that err so rarely";
    case structure::scalable: return "growing: layers that double, and rates that sum to what is asked; no disk";
    case structure::rebuilding:
      return "logged: rebuilt from its log at the size it needs, so that a lookup has one filter to ask";
  }
  return {};
}

const char* ground_text(ground g) {
  switch (g) {
    case ground::forgets_keys: return "it forgets what is long ago";
    case ground::keeps_all_keys: return "it forgets nothing";
    case ground::cannot_remove: return "no key can be taken out of it";
    case ground::keys_come_later: return "keys may come later";
    case ground::needs_log: return "it needs a log on disk";
    case ground::needs_capacity: return "it is made for a number of keys, and nobody knows it";
    case ground::number_known: return "the number of keys is known, so a fixed size is enough";
    case ground::smaller_than_growing:
      return "made for the most keys, it takes less with the fewest in than one that grows may take";
    case ground::no_such_fingerprint: return "no fingerprint errs so rarely";
    case ground::static_not_smaller: return "sealed it would not be smaller at this rate";
    case ground::static_is_smaller: return "no key comes or goes later, so it can be smaller";
    case ground::removes_keys: return "it alone can take keys out";
    case ground::forgets_old_keys: return "it alone forgets what is long ago";
    case ground::grows: return "nobody needs to know how many keys come";
    case ground::grows_with_log: return "nobody needs to know how many keys come, and there is a disk";
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
         (a.needs_secret ? ". siphash with a secret, for others choose keys" : "");
}

std::string passed_reason(const requirements& wanted, const advice& a, const option& passed) {
  const double bits = passed.worst_bits_per_key;
  switch (passed.why) {
    case ground::cannot_keep_rate: return passed.problem->what();
    case ground::over_memory:
      return fmt::format("needs {}, and only {} are allowed", bytes_text(passed.bytes),
                         bytes_text(wanted.memory_bytes));
    case ground::more_bits:
      return fmt::format("{} bits a key at worst, {:.3g} times as many", bits_text(bits),
                         bits / a.taken.worst_bits_per_key);
    case ground::less_simple: return bits_text(bits) + " bits a key too, and it is less simple";
    default: return ground_text(passed.why);
  }
}

std::string phrase_of(const requirements& wanted, what_if change) {
  if (change == what_if::tenth_of_the_rate) return "with an error of " + rate_text(wanted.rate / 10);
  return bloomery::phrase_of(change);
}

std::string change_text(const requirements& wanted, const advice& a, const change& c) {
  const option& now = a.taken;
  const option& then = c.then;
  std::string s =
      fmt::format("{}: {}, {} bits a key", phrase_of(wanted, c.what), kind_text(then), bits_text(then.bits_per_key));
  const double share = then.bits_per_key / now.bits_per_key;
  if (share < 0.995) s += fmt::format(" ({:.0f} % less)", 100 * (1 - share));
  if (share > 1.005) {
    s += share < 2 ? fmt::format(" ({:.0f} % more)", 100 * (share - 1)) : fmt::format(" ({:.3g} times as many)", share);
  }
  if (then.worst_bits_per_key != then.bits_per_key || now.worst_bits_per_key != now.bits_per_key) {
    s += ", at worst " + bits_text(then.worst_bits_per_key) + " instead of " + bits_text(now.worst_bits_per_key);
  }
  if (then.lines != now.lines)
    s += fmt::format(", {} a lookup instead of {}", counted(then.lines, "cache line"), now.lines);
  if (then.take == structure::static_set && now.take != structure::static_set) s += ", error " + rate_text(then.rate);
  if (then.disk_bytes != 0 && now.disk_bytes == 0) s += ", and " + bytes_text(then.disk_bytes) + " of disk";
  return s;
}

std::string caution_text(const advice& a, caution c) {
  switch (c) {
    case caution::remove_only_inserted:
      return "Remove only what was added: taking out a key that never was in may take parts of others with it, and "
             "those "
             "are then denied.";
    case caution::removal_helps_attackers:
      return "Deletes make adversaries much stronger: who can have keys removed that were not added, false alarms "
             "among "
             "them, makes present keys vanish, with a secret too. Let nobody but yourself remove keys, and only keys "
             "that you know are in.";
    case caution::false_positives_last:
      return "A false alarm that was found stays one until the filter is made anew with another secret.";
    case caution::memory_bounds_keys:
      return fmt::format("The memory holds {} at this rate. More will not fit.", counted(a.most_keys_in_memory, "key"));
  }
  return {};
}

}  // namespace bloomery::app
