// Radix-partitioned bulk insert, after Schmidt, Bandle & Giceva ("A four-dimensional analysis of partitioned
// approximate filters", VLDB 2021).
//
//   partition  each thread takes a range of the keys and appends the hash64 of each key to the region of its partition,
//              through a write buffer of two cache lines that is written with non-temporal stores
//   insert     each partition is inserted by one thread, from the regions of all threads
//
// Partitioning stops when a region is full and continues after the insertion.
//
// Where partitions do not pay, two threads share the work (insert_by_two.hpp).
#include <bloomery/detail/bulk_insert.hpp>

#include <bloomery/detail/joined_threads.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/memory.hpp>
#include <bloomery/processors.hpp>

#include "filters/insert_by_two.hpp"
#include "kernels/dispatch.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using kernels::scatter_buffer;

constexpr std::size_t batch = 1024;  // keys hashed and partitioned together

// A single thread is faster without partitions while the last-level cache helps. On AMD processors, which support more
// outstanding cache misses, this holds for all measured sizes: in order, a key takes 2.2 ns in a filter of 4 to 15 MB,
// 2.7 ns in 45 MB and 3.3 ns in 150 MB; by partition it takes 4.0 to 4.8 ns of all threads together. Two threads that
// own half of the blocks each take no longer together than one thread in order. More threads would have to share the
// bandwidth of the memory, which partitions use less.
constexpr std::uint64_t worth_it_alone = std::uint64_t{32} << 20;

bool worth_it(std::uint64_t filter_bytes, unsigned threads) {
  if (threads <= 2 && is_amd()) return false;
  return filter_bytes > (threads == 1 ? worth_it_alone : own_cache_size());
}

// Within a core's own cache, one thread is as fast.
bool worth_it_by_two(const bulk_target& target, std::size_t count, unsigned threads) {
  return threads >= 2 && count >= fewest_for_two && target.geometry.bits / 8 > own_cache_size();
}

// The size of all regions together: 1.5 times the filter's size, but no more than this or half the filter's size. More
// takes no less time, because the pages of new memory cost more than another pass over the filter.
constexpr std::uint64_t enough_for_regions = std::uint64_t{64} << 20;

// With smaller regions, each partition would be loaded into the cache for too few keys.
constexpr std::size_t fewest_in_region = 512;

// Calls work(0) .. work(threads - 1), each in its own thread if possible. work must not throw.
template <class Work>
void in_threads(unsigned threads, Work work) {
  detail::joined_threads others;
  unsigned started = 1;
  try {
    for (; started < threads; ++started) others.start(work, started);
  } catch (const std::exception&) {
    // No more threads available: this thread does their work.
  }
  work(0u);
  for (unsigned late = started; late < threads; ++late) work(late);
}

struct plan {
  std::uint32_t shift;  // log2 of the blocks per partition
  std::size_t partitions;
  std::size_t region;  // capacity of a region in keys, a multiple of scatter_buffer
  unsigned threads;

  std::uint64_t region_bytes() const { return partitions * region * threads * sizeof(std::uint64_t); }
};

// Uses the largest number of threads, up to `threads`, for which regions are large enough.
std::optional<plan> best_plan(const bulk_target& target, std::size_t count, unsigned threads) {
  const std::uint64_t filter_bytes = target.geometry.bits / 8;
  const std::uint64_t blocks = target.geometry.bits / target.block_bits;
  if (!worth_it(filter_bytes, threads)) return std::nullopt;
  const std::uint64_t blocks_in_cache = std::max<std::uint64_t>(own_cache_size() / 2 / (target.block_bits / 8), 1);
  plan p{};
  p.shift = static_cast<std::uint32_t>(std::bit_width(blocks_in_cache) - 1);
  p.partitions = static_cast<std::size_t>(((blocks - 1) >> p.shift) + 1);
  // At most half of the available memory, and not more than all keys need, with a margin for uneven partitions.
  const std::uint64_t most_bytes = std::min(
      {filter_bytes + filter_bytes / 2, std::max(enough_for_regions, filter_bytes / 2), available_memory().bytes / 2});
  for (p.threads = threads; p.threads > 0; --p.threads) {
    const std::uint64_t needed = count + count / 8 + 64 * p.partitions * p.threads;
    const std::uint64_t keys = std::min<std::uint64_t>(most_bytes / sizeof(std::uint64_t), needed);
    p.region = static_cast<std::size_t>(keys / p.partitions / p.threads / scatter_buffer * scatter_buffer);
    if (p.region >= fewest_in_region && worth_it(filter_bytes, p.threads)) return p;
  }
  return std::nullopt;
}

// The best plan; none if there is not even enough memory to read the limits of memory, which the system keeps in files.
std::optional<plan> plan_for(const bulk_target& target, std::size_t count, unsigned threads) {
  try {
    return best_plan(target, count, threads);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

// The partitioned keys of one thread.
class partitioner {
 public:
  partitioner(partitioner&&) noexcept = default;  // vectors and storage keep their addresses when moved
  partitioner& operator=(partitioner&&) = delete;

  partitioner(const bulk_target& target, const plan& p, std::uint64_t* regions)
      : buffers_(p.partitions * scatter_buffer * sizeof(std::uint64_t)), used_(p.partitions), filled_(p.partitions) {
    into_ = {target.geometry.bits / target.block_bits,
             p.shift,
             target.blocks_by == block_rule::upper_half,
             reinterpret_cast<std::uint64_t*>(buffers_.data()),
             used_.data(),
             regions,
             filled_.data(),
             p.region};
  }

  // Partitions keys `next` to `end`; returns the first key that did not fit.
  std::size_t partition_keys(std::size_t next, std::size_t end, const hash64s_of_keys& write_hash64s) {
    alignas(64) std::array<std::uint64_t, batch> hash64s;
    const auto scatter = chosen_kernels().scatter;
    while (next < end) {
      const std::size_t count = std::min(batch, end - next);
      write_hash64s(next, count, hash64s.data());
      const std::size_t taken = scatter(into_, hash64s.data(), count);
      next += taken;
      if (taken < count) break;
    }
    return next;
  }

  std::uint64_t insert(const bulk_target& target, std::size_t partition) {
    const auto insert_some = [&](const std::uint64_t* hash64s, std::uint32_t& count) {
      const std::span<const std::uint64_t> some(hash64s, std::exchange(count, 0));
      return target.insert(target.bytes, target.geometry, hash_span::hash64s(some), nullptr);
    };
    return insert_some(into_.regions + partition * into_.region_size, filled_[partition]) +
           insert_some(into_.buffers + partition * scatter_buffer, used_[partition]);
  }

 private:
  heap_storage buffers_;
  std::vector<std::uint32_t> used_;
  std::vector<std::uint32_t> filled_;
  kernels::partitions into_{};
};

std::uint64_t insert_in_order(const bulk_target& target, std::size_t first, std::size_t end,
                              const hash64s_of_keys& write_hash64s) {
  alignas(64) std::array<std::uint64_t, batch> hash64s;
  std::uint64_t all_new = 0;
  for (; first < end; first += batch) {
    const std::size_t some = std::min(batch, end - first);
    write_hash64s(first, some, hash64s.data());
    all_new += target.insert(target.bytes, target.geometry, hash_span::hash64s({hash64s.data(), some}), nullptr);
  }
  return all_new;
}

// The keys of one thread.
struct key_range {
  std::size_t next;
  std::size_t end;
  std::uint64_t all_new;
};

// The scratch buffers of a partitioned insert, allocated before the first key.
struct scratch_buffers {
  heap_storage regions;
  std::vector<partitioner> partitioners;
  std::vector<key_range> ranges;

  scratch_buffers(const bulk_target& target, std::size_t count, const plan& p) : regions(p.region_bytes()) {
    partitioners.reserve(p.threads);
    for (unsigned thread = 0; thread < p.threads; ++thread) {
      partitioners.emplace_back(target, p,
                                reinterpret_cast<std::uint64_t*>(regions.data()) + thread * p.partitions * p.region);
      ranges.push_back(
          {count / p.threads * thread, thread + 1 == p.threads ? count : count / p.threads * (thread + 1), 0});
    }
  }

  std::size_t left() const {
    std::size_t keys = 0;
    for (const key_range& r : ranges) keys += r.end - r.next;
    return keys;
  }
};

std::uint64_t insert_by_partition(const bulk_target& target, const hash64s_of_keys& write_hash64s, const plan& p,
                                  scratch_buffers& scratch) {
  std::size_t left = scratch.left();
  while (left > 0) {
    in_threads(p.threads, [&](unsigned thread) {
      key_range& r = scratch.ranges[thread];
      r.next = scratch.partitioners[thread].partition_keys(r.next, r.end, write_hash64s);
    });
    in_threads(p.threads, [&](unsigned thread) {
      std::uint64_t all_new = 0;
      for (std::size_t partition = thread; partition < p.partitions; partition += p.threads) {
        for (partitioner& from : scratch.partitioners) all_new += from.insert(target, partition);
      }
      scratch.ranges[thread].all_new += all_new;
    });
    const std::size_t partitioned = left - scratch.left();
    left -= partitioned;
    // Skewed hashes fill one region and leave the others empty: then partitioning is not faster.
    if (partitioned < p.partitions * p.region * p.threads / 8) break;
  }
  std::uint64_t all_new = 0;
  for (const key_range& r : scratch.ranges) {
    all_new += r.all_new + insert_in_order(target, r.next, r.end, write_hash64s);
  }
  return all_new;
}

constexpr unsigned most_threads = 256;

unsigned threads_for(unsigned wanted) { return std::min(wanted == 0 ? available_processors() : wanted, most_threads); }

}  // namespace

bool bulk_insert_pays(const bulk_target& target, std::size_t count, unsigned threads) {
  threads = threads_for(threads);
  return worth_it_by_two(target, count, threads) || plan_for(target, count, threads).has_value();
}

std::uint64_t bulk_insert(const bulk_target& target, std::size_t count, const hash64s_of_keys& write_hash64s,
                          unsigned threads) {
  threads = threads_for(threads);
  if (const std::optional<plan> p = plan_for(target, count, threads)) {
    std::optional<scratch_buffers> scratch;
    try {
      scratch.emplace(target, count, *p);
    } catch (const error&) {
      // Not enough memory: insert in order.
    } catch (const std::bad_alloc&) {
    }
    if (scratch) return insert_by_partition(target, write_hash64s, *p, *scratch);
  }
  if (worth_it_by_two(target, count, threads)) {
    if (const auto all_new = insert_by_two(target, count, write_hash64s)) return *all_new;
  }
  return insert_in_order(target, 0, count, write_hash64s);
}

}  // namespace bloomery
