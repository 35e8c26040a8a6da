// A part of many keys: views of Python objects or of converted integers, which the part keeps alive.
#pragma once

#include "python/src/batches.hpp"
#include "python/src/keys.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::python {

/// Collects up to keys_of_a_part keys, and hands them over when it is full.
class part {
 public:
  part(key_kind kind, part_of_keys receive);

  /// Adds a key and keeps a reference to its object.
  void add(PyObject* key);

  /// Adds a key whose memory the caller keeps until the next flush().
  void add_view(std::string_view key) {
    views_.push_back(key);
    if (views_.size() == keys_of_a_part) flush();
  }

  /// Adds an integer, in a filter of bytes as its decimal text.
  template <class Integer>
  void add_integer(Integer key) {
    if (kind_ == key_kind::u64le) {
      integers_.push_back(static_cast<std::uint64_t>(key));
      if (integers_.size() == keys_of_a_part) flush();
      return;
    }
    char* const digits = next_digits();
    const char* const end = std::to_chars(digits, digits + most_digits, key).ptr;
    add_view({digits, static_cast<std::size_t>(end - digits)});
  }

  /// Hands over the keys that were added, handles signals, and forgets the keys.
  void flush();

 private:
  char* next_digits();

  key_kind kind_;
  part_of_keys receive_;
  std::vector<std::string_view> views_;
  std::vector<std::uint64_t> integers_;
  std::vector<pybind11::object> owners_;
  std::unique_ptr<char[]> digits_;  // most_digits for each key, made when needed
  std::deque<std::string> texts_;   // of rare keys
};

/// Hands over a part and handles signals, which may throw KeyboardInterrupt.
void hand_over(key_span keys, part_of_keys receive);

/// Hands over `size` integers, the first at `data` and each `stride` bytes after the one before: in place where their
/// form allows it. They may be unaligned.
template <class Integer>
void each_integer(const char* data, std::size_t size, std::ptrdiff_t stride, key_kind kind, part_of_keys receive) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(std::uint64_t) == 0;
  if (kind == key_kind::u64le && sizeof(Integer) == 8 && stride == 8 && is_aligned) {
    const std::span all(reinterpret_cast<const std::uint64_t*>(data), size);
    for (std::size_t first = 0; first < size; first += keys_in_place)
      hand_over(all.subspan(first, std::min(keys_in_place, size - first)), receive);
    return;
  }
  part some(kind, receive);
  for (std::size_t i = 0; i < size; ++i) {
    Integer key;
    std::memcpy(&key, data + static_cast<std::ptrdiff_t>(i) * stride, sizeof key);
    some.add_integer(key);
  }
  some.flush();
}

}  // namespace bloomery::python
