// The threads work in rounds:
//
//   hash    each thread hashes the next keys of its half of the keys, and appends each hash64 to one of two queues: one
//           for the blocks below the middle of the filter, one for the others
//   insert  after a barrier, one thread inserts the keys in the lower queues of both threads, the other one those in
//           the upper queues
//
// No two threads change the same block, so no atomic operations are needed, and keys are inserted in order, which takes
// little more time than with one thread. If hashes are skewed so that most keys are in one half, one thread inserts
// most of them while the other one waits. The queues stay in the caches. They exist twice and are used in turn, so a
// thread may fill one set while the other thread still reads the other set, and a round needs only one barrier.
#include "filters/insert_by_two.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

namespace bloomery {
namespace {

constexpr std::size_t batch = 1024;          // keys hashed together
constexpr std::size_t queue_keys = 1 << 15;  // a round takes about 0.1 ms, so waiting at the barrier matters little

// The largest hash64 of the blocks below the middle.
std::uint64_t last_below_middle(const bulk_target& target) {
  const std::uint64_t blocks = target.geometry.bits / target.block_bits;
  const std::uint64_t middle = blocks / 2;
  // The smallest hash64 with hash64 * blocks >> 64 == middle, or the same with 32 bits.
  if (target.blocks_by == block_rule::upper_half) return ((((middle << 32) + blocks - 1) / blocks) << 32) - 1;
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(((static_cast<wide>(middle) << 64) + blocks - 1) / blocks) - 1;
}

// The keys of one thread that it hashed in a round.
struct queues {
  std::uint64_t* lower;
  std::uint64_t* upper;
  std::size_t lower_size;
  std::size_t upper_size;
};

class two_threads {
 public:
  two_threads(const bulk_target& target, std::size_t count, const hash64s_of_keys& write_hash64s)
      : target_(target),
        write_hash64s_(write_hash64s),
        last_below_middle_(last_below_middle(target)),
        ranges_{{{0, count / 2}, {count / 2, count}}},
        memory_(new std::uint64_t[8 * queue_keys]) {  // not initialized
    std::uint64_t* at = memory_.get();
    for (auto& set : sets_) {
      for (queues& of_thread : set) {
        of_thread = {at, at + queue_keys, 0, 0};
        at += 2 * queue_keys;
      }
    }
  }

  // The work of thread 0 or 1; returns the number of new keys that it inserted.
  std::uint64_t run(std::size_t thread) {
    std::uint64_t all_new = 0;
    for (std::size_t round = 0;; ++round) {
      auto& set = sets_[round % 2];
      fill(set[thread], ranges_[thread]);
      barrier_.arrive_and_wait();
      std::size_t queued = 0;
      for (const queues& from : set) {
        queued += from.lower_size + from.upper_size;
        all_new += thread == 0 ? insert(from.lower, from.lower_size) : insert(from.upper, from.upper_size);
      }
      if (queued == 0) return all_new;  // both threads see the same sizes
    }
  }

 private:
  struct key_range {
    std::size_t next;
    std::size_t end;
  };

  void fill(queues& into, key_range& keys) const {
    alignas(64) std::array<std::uint64_t, batch> hash64s;
    const auto split = chosen_kernels().split;
    into.lower_size = into.upper_size = 0;
    while (keys.next < keys.end && std::max(into.lower_size, into.upper_size) + batch <= queue_keys) {
      const std::size_t count = std::min(batch, keys.end - keys.next);
      write_hash64s_(keys.next, count, hash64s.data());
      const std::size_t lower =
          split(hash64s.data(), count, last_below_middle_, into.lower + into.lower_size, into.upper + into.upper_size);
      into.lower_size += lower;
      into.upper_size += count - lower;
      keys.next += count;
    }
  }

  std::uint64_t insert(const std::uint64_t* hash64s, std::size_t count) const {
    return target_.insert(target_.bytes, target_.geometry, hash_span::hash64s({hash64s, count}), nullptr);
  }

  const bulk_target& target_;
  const hash64s_of_keys& write_hash64s_;
  std::uint64_t last_below_middle_;
  std::array<key_range, 2> ranges_;
  std::unique_ptr<std::uint64_t[]> memory_;
  std::array<std::array<queues, 2>, 2> sets_;  // two sets of the queues of two threads
  std::barrier<> barrier_{2};
};

}  // namespace

std::optional<std::uint64_t> insert_by_two(const bulk_target& target, std::size_t count,
                                           const hash64s_of_keys& write_hash64s) {
  std::uint64_t new_of_other = 0;
  try {
    two_threads both(target, count, write_hash64s);
    std::thread other([&] { new_of_other = both.run(1); });
    const std::uint64_t new_of_this = both.run(0);
    other.join();
    return new_of_this + new_of_other;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace bloomery
