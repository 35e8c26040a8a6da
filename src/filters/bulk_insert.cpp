// Partitioned insertion, after the radix-partitioned builds of Schmidt, Bandle & Giceva ("A four-dimensional analysis
// of partitioned approximate filters", VLDB 2021).
//
//   deal    each thread takes its share of the keys and appends hash64 of each to the region of its partition, by way of a
//           buffer of two cache lines that goes to memory past the caches when it is full
//   insert  each partition's keys, of all threads' regions, are inserted by one thread
//
// Dealing stops where a region is full; after the inserting it goes on from there.
#include <bloomery/detail/bulk_insert.hpp>

#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>

#include "kernels/dispatch.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using kernels::scatter_buffer;

constexpr std::size_t batch = 1024;  // keys hashed and dealt together

// One thread alone is quicker without partitions while the last level of cache helps it; and on AMD's processors, which
// have more lines on order, at any size that was measured (100 million keys: 3.6 ns a key, and 4.6 by partitions).
constexpr std::uint64_t worth_it_alone = std::uint64_t{32} << 20;

bool worth_it(std::uint64_t filter_bytes, unsigned threads) {
  if (threads > 1) return filter_bytes > own_cache_size();
  return filter_bytes > worth_it_alone && !is_amd();
}

// Regions smaller than this would have each partition brought into the cache for too few keys.
constexpr std::size_t fewest_in_region = 512;

// Joins what it holds, whatever happens.
struct joined_threads {
  std::vector<std::thread> all;
  ~joined_threads() {
    for (std::thread& one : all) one.join();
  }
};

// Calls work(0) .. work(threads - 1), each in a thread of its own if the system has them. work throws nothing.
template <class Work>
void in_threads(unsigned threads, Work work) {
  joined_threads others;
  unsigned started = 1;
  try {
    others.all.reserve(threads);
    for (; started < threads; ++started) others.all.emplace_back(work, started);
  } catch (const std::exception&) {
    // No more threads to be had: their work is done here.
  }
  work(0u);
  for (unsigned late = started; late < threads; ++late) work(late);
}

struct plan {
  std::uint32_t shift;  // log2 of a partition's blocks
  std::size_t partitions;
  std::size_t region;  // keys of a region, a multiple of scatter_buffer
  unsigned threads;

  std::uint64_t region_bytes() const { return partitions * region * threads * sizeof(std::uint64_t); }
};

// With as many threads as leave their regions large enough, but no more than wanted.
std::optional<plan> plan_for(const bulk_target& target, std::size_t count, unsigned threads) {
  const std::uint64_t filter_bytes = target.geometry.bits / 8;
  const std::uint64_t blocks = target.geometry.bits / target.block_bits;
  if (!worth_it(filter_bytes, threads)) return std::nullopt;
  const std::uint64_t blocks_in_cache = std::max<std::uint64_t>(own_cache_size() / 2 / (target.block_bits / 8), 1);
  plan p{};
  p.shift = static_cast<std::uint32_t>(std::bit_width(blocks_in_cache) - 1);
  p.partitions = static_cast<std::size_t>(((blocks - 1) >> p.shift) + 1);
  // One and a half times the filter and half of what the system has left at most; and no more than all keys need, with
  // some room for chance.
  const std::uint64_t most_bytes = std::min(filter_bytes + filter_bytes / 2, available_memory() / 2);
  for (p.threads = threads; p.threads > 0; --p.threads) {
    const std::uint64_t needed = count + count / 8 + 64 * p.partitions * p.threads;
    const std::uint64_t keys = std::min<std::uint64_t>(most_bytes / sizeof(std::uint64_t), needed);
    p.region = static_cast<std::size_t>(keys / p.partitions / p.threads / scatter_buffer * scatter_buffer);
    if (p.region >= fewest_in_region && worth_it(filter_bytes, p.threads)) return p;
  }
  return std::nullopt;
}

// Partitioned keys of one thread.
class dealer {
 public:
  dealer(dealer&&) noexcept = default;  // vectors and storage keep their addresses when they move
  dealer& operator=(dealer&&) = delete;

  dealer(const bulk_target& target, const plan& p, std::uint64_t* regions)
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

  // Deals keys `next` to `end`; returns where it stopped.
  std::size_t deal(std::size_t next, std::size_t end, const hash64s_of_keys& write_hash64s) {
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

struct share {
  std::size_t next;
  std::size_t end;
  std::uint64_t all_new;
};

// All that partitioned insertion needs, taken before the first key.
struct tools {
  heap_storage regions;
  std::vector<dealer> dealers;
  std::vector<share> shares;

  tools(const bulk_target& target, std::size_t count, const plan& p) : regions(p.region_bytes()) {
    dealers.reserve(p.threads);
    for (unsigned thread = 0; thread < p.threads; ++thread) {
      dealers.emplace_back(target, p,
                           reinterpret_cast<std::uint64_t*>(regions.data()) + thread * p.partitions * p.region);
      shares.push_back(
          {count / p.threads * thread, thread + 1 == p.threads ? count : count / p.threads * (thread + 1), 0});
    }
  }

  std::size_t left() const {
    std::size_t keys = 0;
    for (const share& s : shares) keys += s.end - s.next;
    return keys;
  }
};

std::uint64_t insert_by_partition(const bulk_target& target, const hash64s_of_keys& write_hash64s, const plan& p,
                                  tools& t) {
  std::size_t left = t.left();
  while (left > 0) {
    in_threads(p.threads, [&](unsigned thread) {
      t.shares[thread].next = t.dealers[thread].deal(t.shares[thread].next, t.shares[thread].end, write_hash64s);
    });
    in_threads(p.threads, [&](unsigned thread) {
      std::uint64_t all_new = 0;
      for (std::size_t partition = thread; partition < p.partitions; partition += p.threads) {
        for (dealer& d : t.dealers) all_new += d.insert(target, partition);
      }
      t.shares[thread].all_new += all_new;
    });
    const std::size_t dealt = left - t.left();
    left -= dealt;
    // Keys that are much alike fill one region and leave the others empty: nothing is gained by going on like this.
    if (dealt < p.partitions * p.region * p.threads / 8) break;
  }
  std::uint64_t all_new = 0;
  for (const share& s : t.shares) all_new += s.all_new + insert_in_order(target, s.next, s.end, write_hash64s);
  return all_new;
}

constexpr unsigned most_threads = 256;

unsigned threads_for(unsigned wanted) {
  return std::min(wanted == 0 ? std::max(1u, std::thread::hardware_concurrency()) : wanted, most_threads);
}

}  // namespace

bool bulk_insert_pays(const bulk_target& target, std::size_t count, unsigned threads) {
  return plan_for(target, count, threads_for(threads)).has_value();
}

std::uint64_t bulk_insert(const bulk_target& target, std::size_t count, const hash64s_of_keys& write_hash64s,
                          unsigned threads) {
  const std::optional<plan> p = plan_for(target, count, threads_for(threads));
  if (p) {
    std::optional<tools> taken;
    try {
      taken.emplace(target, count, *p);
    } catch (const error&) {
      // Not as much memory to be had: in order, then.
    } catch (const std::bad_alloc&) {
    }
    if (taken) return insert_by_partition(target, write_hash64s, *p, *taken);
  }
  return insert_in_order(target, 0, count, write_hash64s);
}

}  // namespace bloomery
