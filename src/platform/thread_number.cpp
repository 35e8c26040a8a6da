// Numbers of threads, and the test for 16-byte compare-and-swap.
#include <bloomery/detail/atomic_words.hpp>

#include <atomic>
#include <bit>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bloomery::detail {
namespace {

constexpr std::size_t none_yet = numbered_threads + 1;

constinit std::atomic<std::uint32_t> taken{0};  // bit i: a running thread has number i
constinit thread_local std::size_t own_number = none_yet;

std::size_t take_number() noexcept {
  std::uint32_t seen = taken.load(std::memory_order_relaxed);
  for (;;) {
    const auto lowest = static_cast<std::size_t>(std::countr_one(seen));
    if (lowest >= numbered_threads) return numbered_threads;
    if (taken.compare_exchange_weak(seen, seen | std::uint32_t{1} << lowest, std::memory_order_acquire)) return lowest;
  }
}

// Returns the number when its thread ends. Destructors that run later use the number of unnumbered threads.
struct number_owner {
  number_owner() noexcept { own_number = take_number(); }
  ~number_owner() {
    if (own_number < numbered_threads) taken.fetch_and(~(std::uint32_t{1} << own_number), std::memory_order_release);
    own_number = numbered_threads;
  }
};

}  // namespace

std::size_t thread_number() noexcept {
  if (own_number == none_yet) [[unlikely]] {
    static thread_local const number_owner owner;
    static_cast<void>(owner);
  }
  return own_number;
}

bool swaps_pairs() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_CMPXCHG16B) != 0;
#else
  return false;
#endif
}

}  // namespace bloomery::detail
