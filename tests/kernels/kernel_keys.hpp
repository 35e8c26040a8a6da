// Keys for tests of kernels, in each form that kernels take: random keys, repeated keys and edge cases of the
// arithmetic.
#pragma once

#include <bloomery/hash.hpp>

#include "kernels/kernels.hpp"
#include "support/fenced.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace bloomery_tests {

inline constexpr bloomery::kernels::form forms[] = {bloomery::kernels::form::hashes, bloomery::kernels::form::hash64s,
                                                    bloomery::kernels::form::mixed};
inline constexpr bloomery::kernels::fetch fetches[] = {
    bloomery::kernels::fetch::none, bloomery::kernels::fetch::first_level, bloomery::kernels::fetch::second_level};
inline constexpr std::size_t counts[] = {0, 1, 2, 7, 8, 9, 15, 16, 63, 64, 65, 127, 128, 129, 191, 192, 193, 256, 997};
inline constexpr std::uint64_t whitening = 0xFEDCBA9876543210;

// Corners of the arithmetic: no bit, all bits, each one alone and each one missing.
inline std::vector<std::uint64_t> extreme_words() {
  std::vector<std::uint64_t> words = {0, ~std::uint64_t{0}, 0xFFFFFFFF, 0xFFFFFFFF00000000};
  for (unsigned bit = 0; bit < 64; ++bit) {
    words.push_back(std::uint64_t{1} << bit);
    words.push_back(~(std::uint64_t{1} << bit));
  }
  return words;
}

// Random words, some of them repeated, some extreme.
inline std::vector<std::uint64_t> key_words(std::size_t count, std::uint64_t seed) {
  static const std::vector<std::uint64_t> extreme = extreme_words();
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> words(count);
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = i % 7 == 5 ? words[i - 3] : i % 5 == 0 ? extreme[random() % extreme.size()] : random();
  }
  return words;
}

// Keys in the form that a kernel takes, directly before an unreadable page, and aligned to a word only.
class form_of_keys {
 public:
  form_of_keys(bloomery::kernels::form form, const std::vector<std::uint64_t>& words)
      : form_(form), count_(words.size()), words_(form == bloomery::kernels::form::hashes ? 2 * count_ : count_) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (form == bloomery::kernels::form::hashes) {
        words_[2 * i] = words[i];
        words_[2 * i + 1] = ~words[i] * 3;  // no kernel may read this
      } else {
        words_[i] = words[i];
      }
    }
  }

  bloomery::kernels::keys keys() const { return {words_.data(), count_, whitening, form_}; }
  std::size_t size() const { return count_; }
  bloomery::key_hash hash(std::size_t i) const {
    if (form_ == bloomery::kernels::form::hashes) return {words_[2 * i], words_[2 * i + 1]};
    return {form_ == bloomery::kernels::form::hash64s ? words_[i] : bloomery::mix64(words_[i] ^ whitening), 0};
  }

 private:
  bloomery::kernels::form form_;
  std::size_t count_;
  fenced<std::uint64_t> words_;
};

}  // namespace bloomery_tests
