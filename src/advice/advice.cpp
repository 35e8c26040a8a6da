// advise(): the choice among the options under given requirements, and changes that lead to another choice.
#include <bloomery/advice.hpp>

#include <bloomery/error.hpp>

#include "advice/options.hpp"
#include "advice/requirements.hpp"
#include "math/rates.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace bloomery {
namespace {

// ---- the choice

bool fits(const option& o, const demand& d) {
  return o.possible() && (d.w.memory_bytes == 0 || o.bytes <= d.w.memory_bytes);
}

// The option with the fewest bits per key in its worst case, or null.
option* least_of(std::vector<option>& options, const demand& d) {
  option* least = nullptr;
  for (option& o : options) {
    if (fits(o, d) && (least == nullptr || o.worst_bits_per_key < least->worst_bits_per_key)) least = &o;
  }
  return least;
}

std::optional<option> choice_for(const requirements& w) {
  try {
    const demand d = demand_of(w);
    std::vector<option> options = options_of(d);
    const option* least = least_of(options, d);
    return least == nullptr ? std::nullopt : std::optional<option>(*least);
  } catch (const error&) {
    return std::nullopt;
  }
}

ground why_not(const option& o, const option& taken, const demand& d) {
  if (!fits(o, d)) return ground::over_memory;
  return o.worst_bits_per_key > taken.worst_bits_per_key ? ground::more_bits : ground::less_simple;
}

ground why_taken(const option& taken, const demand& d) {
  switch (taken.take) {
    case structure::plain:
      if (d.w.sealed) {
        return d.w.rate < least_static_rate(d) ? ground::no_such_fingerprint : ground::static_not_smaller;
      }
      return d.range() ? ground::smaller_than_growing : ground::number_known;
    case structure::counting:
    case structure::quotient: return ground::removes_keys;
    case structure::sliding_window: return ground::forgets_old_keys;
    case structure::static_set: return d.w.never_for != 0 ? ground::reports_no_absent : ground::static_is_smaller;
    case structure::scalable: return ground::grows;
    case structure::rebuilding: return ground::grows_with_log;
  }
  return ground::number_known;
}

// "plain split_block512", "counting", "quotient7".
std::string kind_text(const option& o) {
  const std::string layout = o.layout();
  return layout.starts_with(name_of(o.take)) ? layout : name_of(o.take) + (" " + layout);
}

// ---- changes of the requirements

struct question {
  what_if what;
  requirements asked;
  bool for_fewer_bits = false;  // dropped unless it takes fewer bits per key
};

std::vector<question> questions(const demand& d, const option& taken) {
  std::vector<question> all;
  const auto ask = [&](what_if what, auto set, bool for_fewer_bits = false) {
    all.push_back({what, d.w, for_fewer_bits});
    set(all.back().asked);
  };
  const bool grown = taken.take == structure::scalable || taken.take == structure::rebuilding;
  if (d.w.deletes) ask(what_if::without_deletes, [](requirements& w) { w.deletes = false; });
  if (d.has_window()) {
    ask(what_if::nothing_forgotten, [&](requirements& w) {
      w.window = {};
      w.keys = w.most_keys = d.most;
    });
  }
  if (taken.take == structure::scalable && !d.w.log) ask(what_if::with_log, [](requirements& w) { w.log = true; });
  if (grown) {
    const auto known = [&](requirements& w) {
      w.grows = false;
      w.keys = w.most_keys = taken.for_keys;
    };
    ask(taken.for_keys == d.w.keys ? what_if::no_more_keys : what_if::number_known, known);
    ask(
        what_if::sealed_in_the_end,
        [&](requirements& w) {
          known(w);
          w.sealed = true;
        },
        true);
  } else if (d.w.never_for != 0) {
    ask(what_if::absent_reported, [](requirements& w) { w.never_for = 0; });
  } else if (d.w.sealed) {
    ask(what_if::keys_come_later, [](requirements& w) { w.sealed = false; });
  } else if (!d.w.deletes && !d.has_window()) {
    ask(
        what_if::no_keys_later,
        [&](requirements& w) {
          w.keys = w.most_keys = d.most;
          w.sealed = true;
        },
        true);
  }
  if (d.w.prefer == preference::speed)
    ask(
        what_if::prefer_memory, [](requirements& w) { w.prefer = preference::memory; }, true);
  else
    ask(what_if::prefer_speed, [](requirements& w) { w.prefer = preference::speed; });
  if (d.w.memory_bytes != 0) ask(what_if::no_memory_limit, [](requirements& w) { w.memory_bytes = 0; });
  ask(what_if::tenth_of_the_rate, [](requirements& w) { w.rate /= 10; });
  return all;
}

std::vector<change> changes_of(const demand& d, const option& taken) {
  std::vector<change> changes;
  if (taken.take == structure::sliding_window && block_bits_of(taken.parameters) > cache_line_bits) {
    for (const layout_facts& layout : layouts_of(family::sliding_window)) {
      if (layout.block_bits != cache_line_bits) continue;
      const option in_line = sliding_window_option_of(d, layout.name);
      if (fits(in_line, d)) changes.push_back({what_if::one_cache_line, in_line});
    }
  }
  for (const question& q : questions(d, taken)) {
    const std::optional<option> then = choice_for(q.asked);
    if (!then) continue;
    const bool same = then->take == taken.take && then->parameters.layout == taken.parameters.layout &&
                      then->parameters.geometry == taken.parameters.geometry;
    if (same || (q.for_fewer_bits && then->bits_per_key >= taken.bits_per_key)) continue;
    if (q.asked.sealed && !d.w.sealed && then->take != structure::static_set) continue;
    changes.push_back({q.what, *then});
  }
  return changes;
}

// ---- nothing fits

// To two digits.
double rounded_up(double rate) {
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 1);
  return std::ceil(rate / unit) * unit;
}

[[noreturn]] void refuse_memory(const demand& d, std::vector<option> options) {
  const option* least = nullptr;
  for (const option& o : options) {
    if (o.possible() && (least == nullptr || o.bytes < least->bytes)) least = &o;
  }
  if (least == nullptr) {
    const auto tried =
        std::find_if(options.begin(), options.end(), [&](const option& o) { return !inability(o.take, d); });
    throw error(errc::too_large, {std::string("no filter keeps this false-positive rate for this number of keys: ") +
                                      tried->problem->what(),
                                  "", "", "", hint::use_fewer_keys});
  }
  std::string offers;
  const auto offer = [&](const std::string& sentence) { offers += (offers.empty() ? "" : ", or ") + sentence; };
  requirements w = d.w;
  double fails = w.rate;
  double fits_at = 0.5;
  const auto fits_with = [&](double rate) {
    w.rate = rate;
    return choice_for(w).has_value();
  };
  if (fits_at > fails && fits_with(fits_at)) {
    while (fits_at / fails > 1.01) {
      const double middle = std::sqrt(fits_at * fails);
      (fits_with(middle) ? fits_at : fails) = middle;
    }
    offer("with a false-positive rate of " + rate_text(rounded_up(fits_at)));
  }
  w = d.w;
  if (!d.unbounded) {
    const double share = static_cast<double>(w.memory_bytes) / static_cast<double>(least->bytes);
    auto keys = static_cast<std::uint64_t>(static_cast<double>(d.most) * share);
    for (; keys > 0; keys -= keys / 100 + 1) {
      if (w.window.keys() != 0)
        w.window = window_of_keys(keys);
      else
        w.keys = w.most_keys = keys;
      if (choice_for(w)) break;
    }
    if (keys > 0) offer("with at most " + keys_text(keys));
  }
  for (const question& q : questions(d, *least)) {
    if (q.asked.rate != d.w.rate || q.asked.memory_bytes == 0) continue;
    // The requirements have no number of keys, so the change "the number is known" could not name one.
    if (d.unbounded && d.w.keys == 0 && q.asked.keys != 0) continue;
    if (choice_for(q.asked)) offer(phrase_of(q.what));
  }
  throw error(errc::too_large, {"no suitable filter fits the memory limit",
                                "",
                                "at least " + bytes_text(least->bytes) + " (" + kind_text(*least) + ")",
                                bytes_text(d.w.memory_bytes),
                                {hint::use_more_memory, offers.empty() ? "" : "it would fit " + offers}});
}

std::vector<caution> cautions_of(const demand& d, const advice& a) {
  std::vector<caution> cautions;
  if (d.w.deletes) cautions.push_back(caution::remove_only_inserted);
  if (a.taken.take == structure::quotient) cautions.push_back(caution::room_for_copies);
  if (d.w.deletes && d.w.threat) cautions.push_back(caution::removal_helps_attackers);
  if (d.w.threat) cautions.push_back(caution::false_positives_last);
  if (a.most_keys_in_memory != 0) cautions.push_back(caution::memory_bounds_keys);
  return cautions;
}

std::uint64_t keys_in_memory(const demand& d, const option& taken) {
  if (d.w.memory_bytes == 0 || !d.unbounded) return 0;
  if (taken.take == structure::scalable) return scalable_keys_within(d.w.rate, d.w.memory_bytes);
  const double share = static_cast<double>(d.w.memory_bytes) / static_cast<double>(taken.bytes);
  return static_cast<std::uint64_t>(static_cast<double>(taken.for_keys) * share * 0.999);  // sizes are whole blocks
}

}  // namespace

const char* name_of(structure s) noexcept {
  constexpr const char* names[] = {"plain", "counting", "windowed", "sealed", "quotient", "growing", "logged"};
  return names[static_cast<std::size_t>(s)];
}

const char* phrase_of(what_if change) noexcept {
  switch (change) {
    case what_if::without_deletes: return "without deletes";
    case what_if::nothing_forgotten: return "if no key expires";
    case what_if::with_log: return "with a log on disk";
    case what_if::no_more_keys: return "if the number of keys does not grow";
    case what_if::number_known: return "if the number of keys is known";
    case what_if::sealed_in_the_end: return "as a static filter in the end";
    case what_if::keys_come_later: return "if keys may be added later";
    case what_if::no_keys_later: return "if no key is added later";
    case what_if::prefer_memory: return "with less memory preferred to speed";
    case what_if::prefer_speed: return "with speed preferred to memory";
    case what_if::no_memory_limit: return "without a limit on memory";
    case what_if::tenth_of_the_rate: return "with a tenth of the false-positive rate";
    case what_if::one_cache_line: return "with at most one cache line per lookup";
    case what_if::absent_reported: return "if known absent keys may be reported";
  }
  return "";
}

advice advise(const requirements& wanted) {
  const demand d = demand_of(wanted);
  std::vector<option> options = options_of(d);
  const option* least = least_of(options, d);
  if (least == nullptr) refuse_memory(d, options);
  advice a;
  a.taken = *least;
  for (option& o : options) {
    if (o.take == a.taken.take) continue;
    if (o.possible()) o.why = why_not(o, a.taken, d);
    a.passed_over.push_back(std::move(o));
  }
  a.taken.why = why_taken(a.taken, d);
  if (wanted.threat) {
    a.needs_secret = true;
    a.taken.parameters.hash = "siphash";
  }
  a.changes = changes_of(d, a.taken);
  a.most_keys_in_memory = keys_in_memory(d, a.taken);
  a.cautions = cautions_of(d, a);
  return a;
}

}  // namespace bloomery
