// Atomic words: setting and reading bits of memory that several threads share. To be fast, one operation handles a pair
// of words, a process with a single thread uses no atomic operations, and each thread has a number.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstddef>
#include <cstdint>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define BLOOMERY_KNOWS_THREADS 1
#endif

#if defined(__SANITIZE_THREAD__)
#define BLOOMERY_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BLOOMERY_UNDER_TSAN 1
#endif
#endif

namespace BLOOMERY_EXPORT bloomery {
namespace detail {

#if defined(BLOOMERY_UNDER_TSAN)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

/// Whether the process certainly has a single thread, so that nothing can run between a read and a write.
inline bool single_threaded() noexcept {
#if defined(BLOOMERY_KNOWS_THREADS)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

/// Threads that have a number of their own at the same time.
inline constexpr std::size_t numbered_threads = 31;

/// A number below numbered_threads that no other running thread has, the same for all calls of a thread; or
/// numbered_threads if all numbers are taken. The next owner of a number sees what the last one wrote.
std::size_t thread_number() noexcept;

/// Whether the processor compares and swaps 16 bytes atomically. All x86-64 processors since 2006 do.
bool swaps_pairs() noexcept;

/// Two words of 64 bits.
struct alignas(16) word_pair {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// Sets the bit of a cell in an array of pairs.
inline void add_cell(word_pair* pairs, std::uint64_t cell) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (cell & 63);
  ((cell & 64) == 0 ? pairs[cell / 128].low : pairs[cell / 128].high) |= bit;
}

/// A view of an array of pairs, aligned to 16 bytes. All operations have relaxed order.
class atomic_words {
 public:
  explicit atomic_words(std::uint8_t* bytes) noexcept : words_(reinterpret_cast<std::uint64_t*>(bytes)) {}

  std::uint64_t load(std::uint64_t word) const noexcept { return __atomic_load_n(words_ + word, __ATOMIC_RELAXED); }

  /// Not 0 if at least one of these bits of a pair is clear.
  std::uint64_t missing(std::uint64_t pair, const word_pair& bits) const noexcept {
    return (bits.low & ~load(2 * pair)) | (bits.high & ~load(2 * pair + 1));
  }

  /// Sets these bits of a pair. Returns whether this call set at least one. Writes nothing if all are set already.
  bool set(std::uint64_t pair, const word_pair& bits) const noexcept {
    if (missing(pair, bits) == 0) return false;
#if defined(__x86_64__) && !defined(BLOOMERY_UNDER_TSAN)
    // One locked operation takes half the time of two, and no branch depends on which word changes.
    static const bool at_once = swaps_pairs();
    if (at_once) [[likely]]
      return set_at_once(pair, bits);
#endif
    const bool low_is_new = set_word(2 * pair, bits.low);
    return set_word(2 * pair + 1, bits.high) || low_is_new;
  }

 private:
  // The compiler's functions, because libc++ lacks std::atomic_ref before version 19.
  static_assert(__atomic_always_lock_free(sizeof(std::uint64_t), nullptr));

  bool set_word(std::uint64_t word, std::uint64_t bits) const noexcept {
    if ((load(word) & bits) == bits) return false;
    return (__atomic_fetch_or(words_ + word, bits, __ATOMIC_RELAXED) & bits) != bits;
  }

#if defined(__x86_64__)
  // Compilers emit this instruction only with -mcx16, which callers need not set.
  bool set_at_once(std::uint64_t pair, const word_pair& bits) const noexcept {
    struct both {
      std::uint64_t low, high;
    };
    auto* const place = reinterpret_cast<both*>(words_ + 2 * pair);
    std::uint64_t low = load(2 * pair);
    std::uint64_t high = load(2 * pair + 1);
    while (((bits.low & ~low) | (bits.high & ~high)) != 0) {
      bool swapped;
      __asm__ __volatile__("lock cmpxchg16b %[place]"
                           : [place] "+m"(*place), "=@ccz"(swapped), "+a"(low), "+d"(high)
                           : "b"(low | bits.low), "c"(high | bits.high));
      if (swapped) return true;
    }
    return false;
  }
#endif

  std::uint64_t* words_;
};

}  // namespace detail
}  // namespace bloomery
