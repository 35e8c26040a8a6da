// Operations of the model test, in a form that can be drawn at random, printed, parsed and simplified.
//
// Keys are numbers from 0 to universe - 1; key_maker turns them into text or integers, which differ for each salt.
#pragma once

#include <bloomery/key.hpp>
#include <bloomery/params.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_model {

using key_id = std::uint32_t;

/// Keys that operations name. All of them are looked up after every operation.
inline constexpr key_id universe = 700;

/// The first of the keys that are never inserted.
inline constexpr key_id absent_keys = 1 << 20;

enum class verb : std::uint8_t {
  insert,     ///< keys, in one call; amount & 1: each three times; amount & 2: without answers; amount & 4: by another
              ///< client, of filters on servers; amount & 8: of filters that count copies, the first key 18 times
  remove,     ///< one copy of each key that is in; others are removed if they are certainly absent, and refused; amount
              ///< & 2 and & 4 as in insert; amount & 8: all copies but one of the key that has most
  look_up,    ///< keys, one by one and in one call
  merge,      ///< a filter with these keys; amount & 8: reopened before and after
  copy,       ///< saves it elsewhere and looks keys up in the copy
  reopen,     ///< commits it and opens it again
  kill,       ///< another process inserts the keys and is killed after `amount` batches; form hashes: after
              ///< commit(); an odd first key: what was not synced is lost, where that makes a difference
  tick,       ///< the clock advances by `amount` eighths of a generation
  turn_back,  ///< the clock goes back by as much
  rotate,     ///< begins the generation that is due
  replace,    ///< another filter, with these keys alone, takes its place
  give_up,    ///< a replacement by another filter that is abandoned
  rebuild,    ///< makes it again from its log
  clear,      ///< removes all keys
  fill,       ///< 50 * `amount` keys that are looked up once, of filters that grow
  cancel,     ///< inserts the keys again and again, canceled after `amount` calls; form strings: by a deadline
  refuse,     ///< tries everything that it cannot do
};
inline constexpr std::array<std::string_view, 17> verb_names = {
    "insert", "remove",  "look_up", "merge",   "copy",  "reopen", "kill",   "tick",  "turn_back",
    "rotate", "replace", "give_up", "rebuild", "clear", "fill",   "cancel", "refuse"};

/// How keys are given to the filter.
enum class form : std::uint8_t { plain, strings, hashes };
inline constexpr std::array<std::string_view, 3> form_names = {"plain", "strings", "hashes"};

struct operation {
  verb what = verb::insert;
  key_id first = 0;  ///< the keys are first, first + 1, ..., modulo universe
  key_id count = 0;
  form as = form::plain;
  std::uint32_t amount = 0;

  friend bool operator==(const operation&, const operation&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const operation& o) {
  return out << verb_names[static_cast<std::size_t>(o.what)] << " first=" << o.first << " count=" << o.count
             << " as=" << form_names[static_cast<std::size_t>(o.as)] << " amount=" << o.amount;
}

/// Reads back what operator<< wrote: one operation a line. @throws std::runtime_error
inline std::vector<operation> operations_of(const std::string& text) {
  std::vector<operation> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    operation o;
    std::string word;
    if (!(words >> word)) continue;
    const auto name = std::find(verb_names.begin(), verb_names.end(), word);
    if (name == verb_names.end()) throw std::runtime_error("no such operation: " + word);
    o.what = static_cast<verb>(name - verb_names.begin());
    while (words >> word) {
      const std::size_t sign = word.find('=');
      if (sign == std::string::npos) throw std::runtime_error("no field: " + word);
      const std::string field = word.substr(0, sign);
      const std::string value = word.substr(sign + 1);
      if (field == "as") {
        const auto as = std::find(form_names.begin(), form_names.end(), value);
        if (as == form_names.end()) throw std::runtime_error("no such form of keys: " + value);
        o.as = static_cast<form>(as - form_names.begin());
      } else {
        const auto number = static_cast<std::uint32_t>(std::stoul(value));
        (field == "first" ? o.first : field == "count" ? o.count : o.amount) = number;
      }
    }
    result.push_back(o);
  }
  return result;
}

/// The keys of an operation, in order, and the whole sequence `times` times.
inline std::vector<key_id> ids_of(const operation& o, key_id times = 1) {
  std::vector<key_id> ids(std::size_t{o.count} * times);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = (o.first + static_cast<key_id>(i % o.count)) % universe;
  return ids;
}

/// All keys that operations name.
inline std::vector<key_id> all_keys() { return ids_of({.count = universe}); }

/// The same operation, a step simpler in each way that exists, the largest step first.
inline std::vector<operation> simpler(const operation& o) {
  std::vector<operation> result;
  const auto with = [&](auto change) {
    operation changed = o;
    change(changed);
    if (changed != o) result.push_back(changed);
  };
  with([](operation& c) { c.count = std::min<key_id>(c.count, 1); });
  with([](operation& c) { c.count -= c.count / 2; });
  with([](operation& c) {
    c.first += c.count / 2;
    c.count -= c.count / 2;
  });
  with([](operation& c) { c.count -= c.count > 0 ? 1 : 0; });
  with([](operation& c) { c.as = form::plain; });
  with([](operation& c) { c.amount = 0; });
  with([](operation& c) { c.amount /= 2; });
  with([](operation& c) { c.amount -= c.amount > 0 ? 1 : 0; });
  return result;
}

/// Some keys, in all forms in which a filter takes them.
class key_batch {
 public:
  key_batch(bloomery::key_kind kind, const std::vector<key_id>& ids, std::uint64_t salt) : kind_(kind) {
    if (kind == bloomery::key_kind::u64le) {
      for (const key_id id : ids) integers_.push_back(integer_of(id, salt));
    } else {
      for (const key_id id : ids) strings_.push_back(text_of(id, salt));
      for (const std::string& text : strings_) views_.push_back(text);
    }
  }
  key_batch(const key_batch&) = delete;
  key_batch& operator=(const key_batch&) = delete;

  std::size_t size() const { return kind_ == bloomery::key_kind::u64le ? integers_.size() : strings_.size(); }

  /// The keys, not hashed: form::hashes takes prepare().
  bloomery::key_span span(form as = form::plain) const {
    if (kind_ == bloomery::key_kind::u64le) return integers_;
    if (as == form::strings) return strings_;
    return views_;
  }

  /// Calls call(key) with one key as a filter's calls on single keys take it.
  template <class Call>
  auto with_key(std::size_t i, Call call) const {
    return kind_ == bloomery::key_kind::u64le ? call(integers_[i]) : call(views_[i]);
  }

  static std::uint64_t integer_of(key_id id, std::uint64_t salt) {
    if (id == 0) return 0;
    if (id == 1) return ~std::uint64_t{0};
    std::uint64_t x = (salt << 32 | id) + 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
  }

  static std::string text_of(key_id id, std::uint64_t salt) {
    if (id == 0) return {};
    if (id == 1) return std::string("with\0zero", 9);
    std::string text = std::to_string(integer_of(id, salt));
    if (id % 50 == 2) text.resize(300, 'x');
    return text;
  }

 private:
  bloomery::key_kind kind_;
  std::vector<std::uint64_t> integers_;
  std::vector<std::string> strings_;
  std::vector<std::string_view> views_;
};

}  // namespace bloomery_model
