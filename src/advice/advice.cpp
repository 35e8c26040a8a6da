#include <bloomery/advice.hpp>

#include <bloomery/choice.hpp>
#include <bloomery/error.hpp>
#include <bloomery/fuse.hpp>
#include <bloomery/growing_layers.hpp>
#include <bloomery/layouts/line.hpp>
#include <bloomery/logged_filter.hpp>

#include "math/rates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

namespace bloomery {
namespace {

// ---- numbers in sentences

template <class... Values>
std::string text(const char* pattern, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, values...);
  return buffer;
}

std::string bits_text(double bits) { return text(bits < 99.95 ? "%.2f" : bits < 999.5 ? "%.1f" : "%.0f", bits); }

std::string rate_text(double rate) { return rate < 9.995e-5 ? text("%.3g", rate) : text("%.3g %%", 100 * rate); }

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

// ---- what is asked

// The same with what follows from it.
struct demand {
  requirements w;
  bool unbounded;        // nobody knows how many keys come
  std::uint64_t fewest;  // distinct keys, of a window those in it; 0 if unbounded and not known
  std::uint64_t most;    // what figures are for

  bool windowed() const { return w.window_keys != 0 || w.window_milliseconds != 0; }
  bool range() const { return !unbounded && fewest != most; }
};

[[noreturn]] void contradiction(const std::string& one, const std::string& other, const std::string& instead) {
  throw error(errc::invalid_argument,
              {one + " and " + other + " contradict each other", "", "", "", {hint::change_requirements, instead}});
}

void check_sealed(const requirements& w, const demand& d) {
  if (w.deletes) {
    contradiction("sealed", "deletes",
                  "a sealed filter never changes: ask for deletes alone, or seal the keys that are left anew");
  }
  if (d.windowed()) {
    contradiction("sealed", "a window", "a sealed filter never forgets: leave out one of the two, or seal each period");
  }
  if (d.unbounded || d.range()) {
    contradiction("sealed", "an unknown number of keys",
                  "a sealed filter is made of all its keys at once: count them, or let it grow with a log and seal it "
                  "when no more come");
  }
}

void check_window(const requirements& w) {
  if (w.window_keys != 0 && w.window_milliseconds != 0) {
    contradiction("a window of time", "a window of keys", "take one of the two");
  }
  if (w.deletes) {
    contradiction("deletes", "a window",
                  "keys go by their age or by name, not both: ask for deletes alone, or let the window forget them");
  }
  if (w.window_keys != 0 && (w.keys != 0 || w.most_keys != 0)) {
    contradiction("a window of keys", "a number of keys", "the window says how many it holds: leave out the number");
  }
  if (w.grows) {
    contradiction("a window", "growth",
                  "a window has room for so many keys: say the most that come in it; more only raise the error");
  }
  if (w.window_milliseconds != 0 && w.keys == 0 && w.most_keys == 0) {
    contradiction("a window of time", "an unknown number of keys",
                  "say how many keys come in that time at most, or take a window of so many keys");
  }
}

demand demand_of(const requirements& w) {
  rates::check_promise(1, w.rate);
  if (w.most_keys != 0 && w.most_keys < w.keys) {
    throw error(errc::invalid_argument, {"the most keys are fewer than the fewest", "keys", "",
                                         keys_text(w.keys) + " and at most " + keys_text(w.most_keys), ""});
  }
  demand d{w, false, 0, 0};
  d.most = w.window_keys != 0 ? w.window_keys : std::max(w.keys, w.most_keys);
  d.fewest = w.window_keys != 0 ? w.window_keys : w.keys != 0 ? w.keys : w.most_keys;
  d.unbounded = w.grows || d.most == 0;
  if (w.grows && w.most_keys != 0) {
    contradiction("growth without bound", "a most number of keys", "a range of keys is enough: leave growth out");
  }
  if (d.windowed()) check_window(w);
  if (w.sealed) check_sealed(w, d);
  if (w.deletes && d.unbounded) {
    contradiction("deletes", "an unknown number of keys",
                  "counters cannot grow: say the most keys that are in at once");
  }
  if (d.most == 0) d.most = assumed_keys;
  return d;
}

// ---- the structures

// Cache lines that a lookup may touch. A block is aligned to its size. Of a window's block that of the stamp, too.
std::uint32_t lines_of(const params& p) {
  const std::uint32_t most = p.geometry.probes + (family_of(p) == family::windowed ? 1 : 0);
  const std::uint64_t block = block_bits_of(p);
  return block == 0 ? most : std::min(most, std::max(1u, static_cast<std::uint32_t>(block / 512)));
}

params params_of(const demand& d, std::string layout, std::uint64_t keys) {
  params p;
  p.layout = std::move(layout);
  p.keys = d.w.kind;
  p.capacity = keys;
  p.target_rate = d.w.rate;
  return p;
}

// A filter of one piece, for the most keys.
option of_params(const demand& d, structure take, params p, std::string reason) {
  option o;
  o.take = take;
  o.for_keys = d.most;
  o.bits_a_key = static_cast<double>(p.geometry.bits) / static_cast<double>(d.most);
  o.worst_bits_a_key = static_cast<double>(p.geometry.bits) / static_cast<double>(d.fewest != 0 ? d.fewest : d.most);
  o.bytes = bytes_for(p.geometry.bits);
  o.rate = false_positive_rate(p, d.most);
  o.lines = lines_of(p);
  o.reason = std::move(reason);
  o.parameters = std::move(p);
  return o;
}

// A layout of several, the quickest first, by the rule of choice.hpp; with a limit on memory, the quickest that fits if
// the one by the rule does not.
option best_of(const demand& d, structure take, const std::vector<params>& all) {
  std::vector<candidate> candidates;
  for (const params& p : all) {
    candidate c{p.layout};
    c.geometry = p.geometry;
    c.bits_a_key = static_cast<double>(p.geometry.bits) / static_cast<double>(d.most);
    candidates.push_back(std::move(c));
  }
  judge(candidates, d.w.prefer);
  const auto fits = [&](const candidate& c) {
    return d.w.memory_bytes == 0 || bytes_for(c.geometry.bits) <= d.w.memory_bytes;
  };
  auto chosen = std::find_if(candidates.begin(), candidates.end(), [](const candidate& c) { return c.chosen; });
  std::string reason = chosen->layout + ": " + chosen->reason;
  if (!fits(*chosen)) {
    chosen = std::find_if(candidates.begin(), candidates.end(), fits);
    if (chosen == candidates.end()) {
      chosen = std::min_element(candidates.begin(), candidates.end(), [](const candidate& a, const candidate& b) {
        return a.geometry.bits < b.geometry.bits;
      });
    }
    reason = chosen->layout + ": the quickest that fits " + bytes_text(d.w.memory_bytes);
  }
  return of_params(d, take, all[static_cast<std::size_t>(chosen - candidates.begin())], std::move(reason));
}

option plain_option(const demand& d) {
  std::vector<params> all;
  std::string problem;
  for (const candidate& c : layout_candidates(d.most, d.w.rate, d.w.prefer)) {
    problem = c.reason;
    if (!c.possible()) continue;
    params p = params_of(d, c.layout, d.most);
    p.geometry = c.geometry;
    all.push_back(complete(std::move(p)));
  }
  if (all.empty()) throw error(errc::too_large, {problem, "", "", "", ""});
  return best_of(d, structure::plain, all);
}

option counting_option(const demand& d) {
  return of_params(d, structure::counting, complete(params_of(d, "counting", d.most)),
                   "counting: counters of 4 bits, all of a key in one cache line");
}

params window_params(const demand& d, const char* layout) {
  params p = params_of(d, layout, d.most);
  p.window_keys = d.w.window_keys;
  p.window_milliseconds = d.w.window_milliseconds;
  return complete(std::move(p));
}

option windowed_option(const demand& d) {
  return best_of(d, structure::windowed, {window_params(d, "window_line"), window_params(d, "window")});
}

constexpr unsigned fuse_widths[] = {8, 16, 32};

double least_fuse_rate(const demand& d) { return fuse_rate(*std::rbegin(fuse_widths), d.most); }

option sealed_option(const demand& d) {
  for (const unsigned width : fuse_widths) {
    if (fuse_rate(width, d.most) > d.w.rate) continue;
    params p = params_of(d, std::string(fuse_layout_name(width)), d.most);
    p.geometry = fuse_geometry(width, d.most);
    p.target_rate = 0;  // it follows from the width
    const std::string name = p.layout;
    return of_params(d, structure::sealed, complete(std::move(p)),
                     name + ": the shortest fingerprints that err so rarely");
  }
  throw error(errc::too_large, {"no fingerprint is so long", "", "", "", ""});
}

// The layers of a growing filter, as many as are asked about.
class layers {
 public:
  explicit layers(double rate) : rate_(rate) {}

  const growing_layer& at(std::size_t i) {
    while (known_.size() <= i) {
      known_.push_back(layer_of_growing(rate_, known_.size(), growing_layers::usual_first_layer));
    }
    return known_[i];
  }

  std::uint64_t keys(std::size_t count) {
    return sum(count, [](const growing_layer& l) { return l.capacity; });
  }
  std::uint64_t bits(std::size_t count) {
    return sum(count, [](const growing_layer& l) { return l.geometry.bits; });
  }

  /// How many layers so many keys fill.
  std::size_t count_for(std::uint64_t keys_in) {
    std::size_t count = 1;
    while (keys(count) < keys_in) ++count;
    return count;
  }

  /// Of all moments with `fewest` to `most` keys in, just after it grew or with the fewest.
  double worst_bits_a_key(std::uint64_t fewest, std::uint64_t most) {
    double worst = 0;
    for (std::size_t count = count_for(fewest); count <= count_for(most); ++count) {
      const std::uint64_t in = std::max(fewest, count == 1 ? 1 : keys(count - 1) + 1);
      worst = std::max(worst, static_cast<double>(bits(count)) / static_cast<double>(in));
    }
    return worst;
  }

  /// Keys of as many layers as fit.
  std::uint64_t keys_within(std::uint64_t bytes) {
    std::size_t count = 0;
    try {
      while (bytes_for(bits(count + 1)) <= bytes) ++count;
    } catch (const error& e) {
      if (e.code() != errc::too_large) throw;
    }
    return keys(count);
  }

 private:
  template <class Value>
  std::uint64_t sum(std::size_t count, Value value) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < count; ++i) all += value(at(i));
    return all;
  }

  double rate_;
  std::vector<growing_layer> known_ = {};
};

option growing_option(const demand& d) {
  layers all(d.w.rate);
  option o;
  o.take = structure::growing;
  o.for_keys = d.most;
  if (d.unbounded && d.w.keys == 0 && d.w.memory_bytes != 0) {
    o.for_keys = std::clamp<std::uint64_t>(all.keys_within(d.w.memory_bytes), 1, d.most);
  }
  const std::size_t count = all.count_for(o.for_keys);
  // From the first layer's keys on, if nobody knows a number: with one key in, any filter is absurd.
  const std::uint64_t fewest = d.fewest != 0 ? d.fewest : std::min(o.for_keys, all.keys(1));
  o.bits_a_key = static_cast<double>(all.bits(count)) / static_cast<double>(all.keys(count));
  // Who goes on growing meets the next worst moment soon enough.
  const bool limited = d.w.keys == 0 && d.w.memory_bytes != 0;
  const std::uint64_t most = d.unbounded && !limited ? std::max(assumed_keys, o.for_keys) : o.for_keys;
  o.worst_bits_a_key = all.worst_bits_a_key(fewest, std::max(fewest, most));
  o.bytes = bytes_for(all.bits(count));
  o.rate = rate_of_growing(d.w.rate, o.for_keys, growing_layers::usual_first_layer);
  o.lines = static_cast<std::uint32_t>(count);
  params first = params_of(d, std::string(line::name), all.at(0).capacity);
  first.geometry = all.at(0).geometry;
  first.target_rate = all.at(0).share;
  o.parameters = complete(std::move(first));
  o.reason = "growing: layers that double, and rates that sum to what is asked; no disk";
  return o;
}

// At its worst, while it is made anew, the old filter and the new one are both there.
option logged_option(const demand& d) {
  const auto made_for = [&](std::uint64_t keys) { return logged_filter::completed(params_of(d, "", keys)); };
  const auto at = [&](std::uint64_t keys) {
    option o;
    o.take = structure::logged;
    o.for_keys = keys;
    o.parameters = made_for(logged_filter::grown_capacity(keys));
    const auto outgrown = static_cast<std::uint64_t>(static_cast<double>(keys) / logged_filter::nearly_full);
    const std::uint64_t old = made_for(std::max<std::uint64_t>(outgrown, 1)).geometry.bits;
    const std::uint64_t now = o.parameters.geometry.bits;
    o.bits_a_key = static_cast<double>(now) / static_cast<double>(keys);
    o.worst_bits_a_key = static_cast<double>(now + old) / static_cast<double>(keys);
    o.bytes = bytes_for(now) + bytes_for(old);
    return o;
  };
  option o = at(d.most);
  if (d.unbounded && d.w.keys == 0 && d.w.memory_bytes != 0 && o.bytes > d.w.memory_bytes) {
    const double bits = 8 * static_cast<double>(d.w.memory_bytes);
    auto keys = std::max<std::uint64_t>(static_cast<std::uint64_t>(bits / o.worst_bits_a_key), 1);
    for (o = at(keys); o.bytes > d.w.memory_bytes && keys > 1; o = at(keys)) keys -= keys / 100 + 1;
  }
  if (d.fewest != 0 && d.fewest < o.for_keys)
    o.worst_bits_a_key = std::max(o.worst_bits_a_key, at(d.fewest).worst_bits_a_key);
  o.disk_bytes = 8 * o.for_keys;
  o.rate = false_positive_rate(o.parameters, o.parameters.capacity);
  o.lines = lines_of(o.parameters);
  o.reason = "logged: rebuilt from its log at the size it needs, so that a lookup has one filter to ask";
  return o;
}

// ---- the choice

struct maker {
  structure take;
  option (*make)(const demand& d);
};

// The simplest first: of two that take the same memory, the first is taken.
constexpr maker makers[] = {{structure::plain, plain_option},       {structure::sealed, sealed_option},
                            {structure::logged, logged_option},     {structure::growing, growing_option},
                            {structure::windowed, windowed_option}, {structure::counting, counting_option}};

// Why the structure cannot do what is asked; empty if it can.
std::string inability(structure take, const demand& d) {
  if (take == structure::windowed && !d.windowed()) return "it forgets what is long ago";
  if (take != structure::windowed && d.windowed()) return "it forgets nothing";
  if (take != structure::counting && d.w.deletes) return "no key can be taken out of it";
  if (take == structure::sealed && !d.w.sealed) return "keys may come later";
  if (take == structure::logged && !d.w.log) return "it needs a log on disk";
  if (d.unbounded && take != structure::growing && take != structure::logged) {
    return "it is made for a number of keys, and nobody knows it";
  }
  return {};
}

std::vector<option> options_of(const demand& d) {
  std::vector<option> options;
  for (const maker& m : makers) {
    option o;
    o.take = m.take;
    o.reason = inability(m.take, d);
    if (o.reason.empty()) {
      try {
        o = m.make(d);
      } catch (const error& e) {
        if (e.code() != errc::too_large) throw;
        o.reason = e.what();
      }
    }
    options.push_back(std::move(o));
  }
  return options;
}

bool fits(const option& o, const demand& d) {
  return o.possible() && (d.w.memory_bytes == 0 || o.bytes <= d.w.memory_bytes);
}

// The one that takes the fewest bits a key at its worst, or null.
option* least_of(std::vector<option>& options, const demand& d) {
  option* least = nullptr;
  for (option& o : options) {
    if (fits(o, d) && (least == nullptr || o.worst_bits_a_key < least->worst_bits_a_key)) least = &o;
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

std::string why_not(const option& o, const option& taken, const demand& d) {
  if (!fits(o, d))
    return "needs " + bytes_text(o.bytes) + ", and only " + bytes_text(d.w.memory_bytes) + " are allowed";
  const std::string bits = bits_text(o.worst_bits_a_key) + " bits a key";
  const std::string more = o.worst_bits_a_key > taken.worst_bits_a_key
                               ? text(" at worst, %.3g times as many", o.worst_bits_a_key / taken.worst_bits_a_key)
                               : " too, and it is less simple";
  return bits + more;
}

std::string reason_of(const option& taken, const demand& d) {
  switch (taken.take) {
    case structure::plain:
      if (d.w.sealed && d.w.rate < least_fuse_rate(d)) return "no fingerprint errs so rarely. " + taken.reason;
      if (d.w.sealed) return "sealed it would not be smaller at this rate. " + taken.reason;
      if (!d.range()) return "the number of keys is known, so a fixed size is enough. " + taken.reason;
      return "made for the most keys, it takes less with the fewest in than one that grows may take. " + taken.reason;
    case structure::counting: return "it alone can take keys out. " + taken.reason;
    case structure::windowed: return "it alone forgets what is long ago. " + taken.reason;
    case structure::sealed: return "no key comes or goes later, so it can be smaller. " + taken.reason;
    case structure::growing: return "nobody needs to know how many keys come. " + taken.reason;
    case structure::logged: return "nobody needs to know how many keys come, and there is a disk. " + taken.reason;
  }
  return {};
}

// "plain line", "counting".
std::string kind_text(const option& o) {
  const std::string& layout = o.parameters.layout;
  return name_of(o.take) + (layout == name_of(o.take) ? "" : " " + layout);
}

// ---- what would change it

std::string difference_of(const option& now, const option& then) {
  std::string s = kind_text(then) + ", " + bits_text(then.bits_a_key) + " bits a key";
  const double share = then.bits_a_key / now.bits_a_key;
  if (share < 0.995) s += text(" (%.0f %% less)", 100 * (1 - share));
  if (share > 1.005) s += share < 2 ? text(" (%.0f %% more)", 100 * (share - 1)) : text(" (%.3g times as many)", share);
  if (then.worst_bits_a_key != then.bits_a_key || now.worst_bits_a_key != now.bits_a_key) {
    s += ", at worst " + bits_text(then.worst_bits_a_key) + " instead of " + bits_text(now.worst_bits_a_key);
  }
  if (then.lines != now.lines)
    s += text(then.lines == 1 ? ", %u cache line a lookup instead of %u" : ", %u cache lines a lookup instead of %u",
              then.lines, now.lines);
  if (then.take == structure::sealed && now.take != structure::sealed) s += ", error " + rate_text(then.rate);
  if (then.disk_bytes != 0 && now.disk_bytes == 0) s += ", and " + bytes_text(then.disk_bytes) + " of disk";
  return s;
}

struct what_if {
  std::string what;
  requirements asked;
  bool for_fewer_bits = false;  // it is not worth a word if it does not bring them
};

std::vector<what_if> questions(const demand& d, const option& taken) {
  std::vector<what_if> all;
  const auto ask = [&](const std::string& what, auto set, bool for_fewer_bits = false) {
    all.push_back({what, d.w, for_fewer_bits});
    set(all.back().asked);
  };
  const bool grown = taken.take == structure::growing || taken.take == structure::logged;
  if (d.w.deletes) ask("without deletes", [](requirements& w) { w.deletes = false; });
  if (d.windowed()) {
    ask("if nothing is to be forgotten", [&](requirements& w) {
      w.window_keys = w.window_milliseconds = 0;
      w.keys = w.most_keys = d.most;
    });
  }
  if (taken.take == structure::growing && !d.w.log) ask("with a log on disk", [](requirements& w) { w.log = true; });
  if (grown) {
    const auto known = [&](requirements& w) {
      w.grows = false;
      w.keys = w.most_keys = taken.for_keys;
    };
    ask(taken.for_keys == d.w.keys ? "if no more keys come" : "if the number of keys is known", known);
    ask(
        "sealed in the end",
        [&](requirements& w) {
          known(w);
          w.sealed = true;
        },
        true);
  } else if (d.w.sealed) {
    ask("if keys may come later", [](requirements& w) { w.sealed = false; });
  } else if (!d.w.deletes && !d.windowed()) {
    ask(
        "if no key comes later",
        [&](requirements& w) {
          w.keys = w.most_keys = d.most;
          w.sealed = true;
        },
        true);
  }
  if (d.w.prefer == preference::speed)
    ask(
        "with less memory preferred to speed", [](requirements& w) { w.prefer = preference::memory; }, true);
  else
    ask("with speed preferred to memory", [](requirements& w) { w.prefer = preference::speed; });
  if (d.w.memory_bytes != 0) ask("without a limit on memory", [](requirements& w) { w.memory_bytes = 0; });
  ask("with an error of " + rate_text(d.w.rate / 10), [](requirements& w) { w.rate /= 10; });
  return all;
}

change change_to(const option& now, const option& then, const std::string& what) {
  return {what,
          then.take,
          then.parameters.layout,
          then.bits_a_key,
          then.worst_bits_a_key,
          what + ": " + difference_of(now, then)};
}

std::vector<change> changes_of(const demand& d, const option& taken) {
  std::vector<change> changes;
  if (taken.parameters.layout == "window") {
    const option line = of_params(d, structure::windowed, window_params(d, "window_line"), "");
    if (fits(line, d)) changes.push_back(change_to(taken, line, "where one cache line is all it may touch"));
  }
  for (const what_if& question : questions(d, taken)) {
    const std::optional<option> then = choice_for(question.asked);
    if (!then) continue;
    const bool same = then->take == taken.take && then->parameters.layout == taken.parameters.layout &&
                      then->parameters.geometry == taken.parameters.geometry;
    if (same || (question.for_fewer_bits && then->bits_a_key >= taken.bits_a_key)) continue;
    if (question.asked.sealed && !d.w.sealed && then->take != structure::sealed) continue;
    changes.push_back(change_to(taken, *then, question.what));
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
        std::find_if(options.begin(), options.end(), [&](const option& o) { return inability(o.take, d).empty(); });
    throw error(errc::too_large,
                {"no filter of so many keys keeps this rate: " + tried->reason, "", "", "", hint::use_fewer_keys});
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
    offer("with an error of " + rate_text(rounded_up(fits_at)));
  }
  w = d.w;
  if (!d.unbounded) {
    const double share = static_cast<double>(w.memory_bytes) / static_cast<double>(least->bytes);
    auto keys = static_cast<std::uint64_t>(static_cast<double>(d.most) * share);
    for (; keys > 0; keys -= keys / 100 + 1) {
      (w.window_keys != 0 ? w.window_keys : w.keys) = keys;
      if (w.window_keys == 0) w.most_keys = keys;
      if (choice_for(w)) break;
    }
    if (keys > 0) offer("with at most " + keys_text(keys));
  }
  for (const what_if& question : questions(d, *least)) {
    if (question.asked.rate != d.w.rate || question.asked.memory_bytes == 0) continue;
    // Nobody asked for a number: whichever it is that fits, "the number is known" does not name it.
    if (d.unbounded && d.w.keys == 0 && question.asked.keys != 0) continue;
    if (choice_for(question.asked)) offer(question.what);
  }
  throw error(errc::too_large, {"nothing that does this fits the memory",
                                "",
                                "at least " + bytes_text(least->bytes) + " (" + kind_text(*least) + ")",
                                bytes_text(d.w.memory_bytes),
                                {hint::use_more_memory, offers.empty() ? "" : "it would fit " + offers}});
}

std::vector<std::string> warnings_of(const demand& d, const advice& a) {
  std::vector<std::string> warnings;
  if (d.w.deletes) {
    warnings.push_back(
        "Remove only what was added: taking out a key that never was in may take parts of others with it, and those "
        "are "
        "then denied.");
  }
  if (d.w.deletes && d.w.threat) {
    warnings.push_back(
        "Deletes make adversaries much stronger: who can have keys removed that were not added, false alarms among "
        "them, makes present keys vanish, with a secret too. Let nobody but yourself remove keys, and only keys that "
        "you "
        "know are in.");
  }
  if (d.w.threat) {
    warnings.push_back("A false alarm that was found stays one until the filter is made anew with another secret.");
  }
  if (a.most_keys_in_memory != 0) {
    warnings.push_back("The memory holds " + keys_text(a.most_keys_in_memory) + " at this rate. More will not fit.");
  }
  return warnings;
}

std::uint64_t keys_in_memory(const demand& d, const option& taken) {
  if (d.w.memory_bytes == 0 || !d.unbounded) return 0;
  if (taken.take == structure::growing) return layers(d.w.rate).keys_within(d.w.memory_bytes);
  const double share = static_cast<double>(d.w.memory_bytes) / static_cast<double>(taken.bytes);
  return static_cast<std::uint64_t>(static_cast<double>(taken.for_keys) * share * 0.999);  // sizes are whole blocks
}

}  // namespace

const char* name_of(structure s) noexcept {
  constexpr const char* names[] = {"plain", "counting", "windowed", "sealed", "growing", "logged"};
  return names[static_cast<std::size_t>(s)];
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
    if (o.possible()) o.reason = why_not(o, a.taken, d);
    a.passed_over.push_back(std::move(o));
  }
  a.taken.reason = reason_of(a.taken, d);
  if (wanted.threat) {
    a.needs_secret = true;
    a.taken.parameters.hash = "siphash";
    a.taken.reason += ". siphash with a secret, for others choose keys";
  }
  a.changes = changes_of(d, a.taken);
  a.most_keys_in_memory = keys_in_memory(d, a.taken);
  a.warnings = warnings_of(d, a);
  return a;
}

}  // namespace bloomery
