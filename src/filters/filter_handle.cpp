// filter_handle: calls on many keys in limited steps, and the errors of unsupported operations.
#include <bloomery/filter_handle.hpp>

#include <bloomery/any_filter.hpp>

#include "filters/removal.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace bloomery {
namespace {

[[noreturn]] void refuse(const char* what, const params& p) {
  throw error(errc::incompatible, {what, "", "", p.layout + p.scheme, ""});
}

}  // namespace

capabilities capabilities_of(const params& p) noexcept {
  const family kind = family_of(p);
  capabilities result;
  result.can_insert = result.can_clear = kind != family::static_set;
  result.can_remove = result.counts_copies = kind == family::counting || kind == family::quotient;
  result.can_merge = result.can_insert && p.window().keys() == 0;
  result.has_window = kind == family::sliding_window;
  return result;
}

filter_handle::~filter_handle() = default;

void filter_handle::check_limits() const {
  if (limits_.cancelled && limits_.cancelled()) throw error(errc::unavailable, {"canceled", "", "", "", ""});
  if (limits_.deadline && std::chrono::steady_clock::now() >= *limits_.deadline)
    throw error(errc::unavailable, {"the deadline has passed", "", "", "", ""});
}

// Calls some(first, count) for each run of keys_of_a_call keys; it returns how many keys changed.
template <class Some>
change_result filter_handle::in_calls(key_span keys, Some some) {
  change_result done;
  while (done.keys < keys.size()) {
    const std::size_t count = std::min<std::size_t>(keys_of_a_call, keys.size() - done.keys);
    bool begun = false;
    try {
      check_limits();
      begun = true;
      done.changed += some(static_cast<std::size_t>(done.keys), count);
    } catch (const partial_error& e) {
      const change_result& more = e.done();
      throw partial_error(e, {done.keys + more.keys, done.changed + more.changed}, e.undecided());
    } catch (const error& e) {
      // A server may refuse a command after it has executed others. A filter that was opened for reading accepts no key
      // at all.
      const bool sent = capabilities().is_remote && capabilities().can_insert;
      const bool refused = e.code() == errc::incompatible || e.code() == errc::invalid_argument ||
                           (e.code() == errc::not_permitted && !sent);
      throw partial_error(e, done, begun && !refused ? count : 0);
    }
    done.keys += count;
  }
  return done;
}

change_result filter_handle::insert(key_span keys, std::span<std::uint8_t> is_new) {
  if (!is_new.empty() && is_new.size() != keys.size()) {
    throw error(errc::invalid_argument, {"insert: the output has the wrong size", "is_new", std::to_string(keys.size()),
                                         std::to_string(is_new.size()), ""});
  }
  return in_calls(keys, [&](std::size_t first, std::size_t count) {
    return insert_some(keys.part(first, count), is_new.empty() ? nullptr : is_new.data() + first);
  });
}

any_filter* filter_handle::in_place() noexcept { return nullptr; }

// As for lookups, any_filter inserts a single key ten times as fast as a batch of one key.
bool filter_handle::insert(std::string_view key) {
  check_limits();
  if (any_filter* const filter = in_place()) return filter->insert(key);
  std::uint8_t is_new = 0;
  insert(std::span<const std::string_view>(&key, 1), std::span(&is_new, 1));
  return is_new == 1;
}

bool filter_handle::insert(std::uint64_t key) {
  check_limits();
  if (any_filter* const filter = in_place()) return filter->insert(key);
  std::uint8_t is_new = 0;
  insert(std::span<const std::uint64_t>(&key, 1), std::span(&is_new, 1));
  return is_new == 1;
}

change_result filter_handle::remove(key_span keys, std::span<removal> results) {
  if (!results.empty() && results.size() != keys.size()) {
    throw error(errc::invalid_argument, {"remove: the output has the wrong size", "results",
                                         std::to_string(keys.size()), std::to_string(results.size()), ""});
  }
  return in_calls(keys, [&](std::size_t first, std::size_t count) {
    return remove_some(keys.part(first, count), results.empty() ? nullptr : results.data() + first);
  });
}

void filter_handle::contains(key_span keys, std::span<std::uint64_t> bitmap) {
  const std::size_t words = (keys.size() + 63) / 64;
  if (bitmap.size() < words) {
    throw error(errc::invalid_argument, {"contains: the bitmap is too short", "bitmap",
                                         std::to_string(words) + " words", std::to_string(bitmap.size()), ""});
  }
  static_assert(keys_of_a_call % 64 == 0);  // each call fills whole words
  for (std::size_t first = 0; first < keys.size(); first += keys_of_a_call) {
    check_limits();
    look_up_some(keys.part(first, std::min(keys_of_a_call, keys.size() - first)), bitmap.data() + first / 64);
  }
}

// A local filter looks up a single key ten times as fast as a batch of one key.
bool filter_handle::contains(std::string_view key) {
  check_limits();
  if (const any_filter* const filter = local()) return filter->may_contain(key);
  std::uint64_t answer = 0;
  contains(std::span<const std::string_view>(&key, 1), std::span(&answer, 1));
  return answer != 0;
}

bool filter_handle::contains(std::uint64_t key) {
  check_limits();
  if (const any_filter* const filter = local()) return filter->may_contain(key);
  std::uint64_t answer = 0;
  contains(std::span<const std::uint64_t>(&key, 1), std::span(&answer, 1));
  return answer != 0;
}

// Operations that a kind of filter does not override are unsupported.

key_span filter_handle::prepare(key_span keys, std::vector<key_hash>&) const { return keys; }

std::uint64_t filter_handle::remove_some(key_span, removal*) { refuse_removal(parameters(), ""); }

bool filter_handle::is_overfull() const { return false; }

any_filter filter_handle::copy() { refuse("this kind of filter cannot be copied into memory", parameters()); }

void filter_handle::save(const std::string& path, const create_options& options) { copy().save(path, options); }

void filter_handle::merge(filter_handle&) { refuse("this kind of filter cannot be merged", parameters()); }

void filter_handle::clear() { refuse("this kind of filter cannot be cleared", parameters()); }

void filter_handle::tick(std::uint64_t) {}

void filter_handle::settle() {}

void filter_handle::commit() {}

cell_view filter_handle::cells() const {
  throw error(errc::incompatible, {"the cells of this filter are on servers", "", "a filter in memory or in a file", "",
                                   "copy it into memory first, or call explain() for the cells of a key"});
}

key_explanation filter_handle::explain(key_span) {
  refuse("this kind of filter cannot show the cells of a key", parameters());
}

const any_filter* filter_handle::local() const noexcept { return nullptr; }

}  // namespace bloomery
