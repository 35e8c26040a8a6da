// Keys: single ones, and many in any form.
#include "c/keys.hpp"

#include "c/boundary.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>

namespace bloomery::c {
namespace {

// Keys of a step: their views take 64 KiB, which stays in a core's private cache. A multiple of 64. A server gets more
// keys per exchange.
constexpr std::size_t keys_of_a_step = 4096;
static_assert(filter_handle::keys_of_a_call % keys_of_a_step == 0);

[[noreturn]] void refuse_key(const char* what, std::size_t i, const std::string& expected, const std::string& found) {
  throw error(errc::invalid_argument, {what, "key " + std::to_string(i), expected, found, hint::none});
}

template <class Offset>
void views_by_offsets(const bloomery_keys& keys, std::size_t first, std::span<std::string_view> views) {
  const auto* const offsets = &wanted(static_cast<const Offset*>(keys.offsets), "keys.offsets");
  const auto* const data = static_cast<const char*>(keys.data);
  if (keys.data_size != 0) wanted(data, "keys.data");
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Offset begin = offsets[first + i];
    const Offset end = offsets[first + i + 1];
    if (begin < 0 || end < begin) {
      refuse_key("the offset of its end is smaller than that of its start, or an offset is negative", first + i,
                 std::to_string(begin) + " or more", std::to_string(end));
    }
    if (static_cast<std::uint64_t>(end) > keys.data_size) {
      refuse_key("the offset of its end exceeds the data", first + i, std::to_string(keys.data_size) + " or less",
                 std::to_string(end));
    }
    views[i] = {data + begin, static_cast<std::size_t>(end - begin)};
  }
}

std::string_view text_of(const void* key, std::size_t length) {
  if (length == 0) return "";
  return {&wanted(static_cast<const char*>(key), "key"), length};
}

// Calls work(part, first) for each part of the keys.
template <class Work>
void in_steps(const filter_handle& handle, const bloomery_keys& keys, Work work) {
  if (keys.form == BLOOMERY_INTEGERS) return work(integers_of(keys), std::size_t{0});
  const std::size_t step = handle.capabilities().is_remote ? filter_handle::keys_of_a_call : keys_of_a_step;
  std::vector<std::string_view> views(std::min(step, keys.count));
  for (std::size_t first = 0; first < keys.count; first += step) {
    const std::span part(views.data(), std::min(step, keys.count - first));
    views_of(keys, first, part);
    work(key_span(part), first);
  }
}

// Calls change(part, first), which returns a change_result, for each part of the keys, and reports all results, also if
// one fails.
template <class Change>
void change_in_steps(const filter_handle& handle, const bloomery_keys& keys, bloomery_change* done, Change change) {
  bloomery_change sum = {0, 0, 0};
  const auto report = [&] {
    if (done != nullptr) *done = sum;
  };
  try {
    in_steps(handle, keys, [&](key_span part, std::size_t first) {
      const change_result result = change(part, first);
      sum.keys += result.keys;
      sum.changed += result.changed;
    });
  } catch (const partial_error& e) {
    sum.keys += e.done().keys;
    sum.changed += e.done().changed;
    sum.undecided = e.undecided();
    report();
    throw;
  } catch (...) {
    report();
    throw;
  }
  report();
}

std::span<std::uint8_t> part_of(std::uint8_t* answers, std::size_t first, std::size_t count) {
  if (answers == nullptr) return {};
  return {answers + first, count};
}

template <class Key>
void insert_one(const bloomery_filter* filter, const Key& key, int* is_new) {
  const bool result = handle_of(filter).insert(key);
  if (is_new != nullptr) *is_new = result ? 1 : 0;
}

void remove_one(const bloomery_filter* filter, key_span key, int* removed) {
  const change_result result = handle_of(filter).remove(key);
  if (removed != nullptr) *removed = static_cast<int>(result.changed);
}

}  // namespace

key_span integers_of(const bloomery_keys& keys) {
  if (keys.count == 0) return {};
  return std::span(&wanted(static_cast<const std::uint64_t*>(keys.data), "keys.data"), keys.count);
}

void views_of(const bloomery_keys& keys, std::size_t first, std::span<std::string_view> views) {
  switch (keys.form) {
    case BLOOMERY_OFFSETS32: return views_by_offsets<std::int32_t>(keys, first, views);
    case BLOOMERY_OFFSETS64: return views_by_offsets<std::int64_t>(keys, first, views);
    case BLOOMERY_VIEWS: break;
    default:
      throw error(errc::invalid_argument,
                  {"unknown form of keys", "keys.form", "a bloomery_form", std::to_string(keys.form), hint::none});
  }
  const auto* const given = &wanted(static_cast<const bloomery_bytes*>(keys.data), "keys.data");
  for (std::size_t i = 0; i < views.size(); ++i) {
    const bloomery_bytes& key = given[first + i];
    if (key.data == nullptr && key.length != 0) refuse_key("null pointer", first + i, "", "");
    views[i] = {static_cast<const char*>(key.data), key.length};
  }
}

std::vector<std::string_view> views_of(const bloomery_keys& keys) {
  std::vector<std::string_view> views;
  if (keys.form == BLOOMERY_INTEGERS || keys.count == 0) return views;
  views.resize(keys.count);
  views_of(keys, 0, views);
  return views;
}

}  // namespace bloomery::c

using namespace bloomery;
using namespace bloomery::c;

extern "C" {

bloomery_code bloomery_insert(bloomery_filter* filter, const void* key, size_t length, int* is_new) {
  return guarded([&] { insert_one(filter, text_of(key, length), is_new); });
}

bloomery_code bloomery_insert_u64(bloomery_filter* filter, uint64_t key, int* is_new) {
  return guarded([&] { insert_one(filter, std::uint64_t{key}, is_new); });
}

bloomery_code bloomery_contains(const bloomery_filter* filter, const void* key, size_t length, int* found) {
  return guarded([&] {
    wanted(found, "found");
    *found = handle_of(filter).contains(text_of(key, length)) ? 1 : 0;
  });
}

bloomery_code bloomery_contains_u64(const bloomery_filter* filter, uint64_t key, int* found) {
  return guarded([&] {
    wanted(found, "found");
    *found = handle_of(filter).contains(std::uint64_t{key}) ? 1 : 0;
  });
}

bloomery_code bloomery_remove(bloomery_filter* filter, const void* key, size_t length, int* removed) {
  return guarded([&] {
    const std::string_view text = text_of(key, length);
    remove_one(filter, std::span(&text, 1), removed);
  });
}

bloomery_code bloomery_remove_u64(bloomery_filter* filter, uint64_t key, int* removed) {
  return guarded([&] { remove_one(filter, std::span<const std::uint64_t>(&key, 1), removed); });
}

bloomery_code bloomery_insert_many(bloomery_filter* filter, const bloomery_keys* keys, uint8_t* is_new,
                                   bloomery_change* done) {
  return guarded([&] {
    filter_handle& handle = handle_of(filter);
    change_in_steps(handle, wanted(keys, "keys"), done, [&](key_span part, std::size_t first) {
      return handle.insert(part, part_of(is_new, first, part.size()));
    });
  });
}

bloomery_code bloomery_insert_all(bloomery_filter* filter, const bloomery_keys* keys, unsigned threads,
                                  uint64_t* changed) {
  return guarded([&] {
    filter_handle& handle = handle_of(filter);
    const std::vector<std::string_view> views = views_of(wanted(keys, "keys"));
    const bool integers = keys->form == BLOOMERY_INTEGERS;
    const std::uint64_t result = handle.insert_all(integers ? integers_of(*keys) : key_span(views), threads);
    if (changed != nullptr) *changed = result;
  });
}

bloomery_code bloomery_contains_bitmap(const bloomery_filter* filter, const bloomery_keys* keys, uint64_t* bitmap,
                                       size_t words) {
  return guarded([&] {
    filter_handle& handle = handle_of(filter);
    const std::size_t needed = wanted(keys, "keys").count / 64 + (keys->count % 64 != 0 ? 1 : 0);
    if (words < needed) {
      throw error(errc::invalid_argument, {"the bitmap is too short", "words", std::to_string(needed) + " or more",
                                           std::to_string(words), hint::none});
    }
    if (needed != 0) wanted(bitmap, "bitmap");
    in_steps(handle, *keys, [&](key_span part, std::size_t first) {
      handle.contains(part, {bitmap + first / 64, (part.size() + 63) / 64});
    });
  });
}

bloomery_code bloomery_contains_many(const bloomery_filter* filter, const bloomery_keys* keys, uint8_t* found,
                                     uint64_t* count) {
  return guarded([&] {
    filter_handle& handle = handle_of(filter);
    std::uint64_t ones = 0;
    std::array<std::uint64_t, keys_of_a_step / 64> bitmap;
    in_steps(handle, wanted(keys, "keys"), [&](key_span part, std::size_t first) {
      for (std::size_t done = 0; done < part.size(); done += keys_of_a_step) {
        const key_span some = part.part(done, std::min(keys_of_a_step, part.size() - done));
        handle.contains(some, bitmap);
        for (std::size_t word = 0; 64 * word < some.size(); ++word)
          ones += static_cast<std::uint64_t>(std::popcount(bitmap[word]));
        if (found == nullptr) continue;
        for (std::size_t i = 0; i < some.size(); ++i)
          found[first + done + i] = static_cast<std::uint8_t>(bitmap[i / 64] >> i % 64 & 1);
      }
    });
    if (count != nullptr) *count = ones;
  });
}

bloomery_code bloomery_remove_many(bloomery_filter* filter, const bloomery_keys* keys, uint8_t* removed,
                                   bloomery_change* done) {
  return guarded([&] {
    filter_handle& handle = handle_of(filter);
    std::vector<removal> results;
    change_in_steps(handle, wanted(keys, "keys"), done, [&](key_span part, std::size_t first) {
      if (removed == nullptr) return handle.remove(part);
      results.assign(part.size(), removal::not_found);
      const change_result result = handle.remove(part, results);
      for (std::size_t i = 0; i < part.size(); ++i) removed[first + i] = results[i] == removal::removed ? 1 : 0;
      return result;
    });
  });
}

}  // extern "C"
