// Common to the fuzz targets with a mutator of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

/// libFuzzer's mutation of bytes; returns the new size.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace bloomery_fuzz {

/// Random choices that follow from the seed of a mutation.
class choices {
 public:
  explicit choices(unsigned seed) : random_(seed) {}

  bool often(unsigned percent) { return random_() % 100 < percent; }
  std::size_t below(std::size_t end) { return random_() % end; }

 private:
  std::minstd_rand random_;
};

/// Mutates the eight bytes of a field, which plain mutation of a whole file rarely hits.
inline void mutate_field(std::uint8_t* at) {
  std::array<std::uint8_t, 8> field;
  std::copy_n(at, field.size(), field.begin());
  LLVMFuzzerMutate(field.data(), field.size(), field.size());
  std::copy(field.begin(), field.end(), at);
}

template <class T>
T get(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void put(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace bloomery_fuzz
