// Construction of static filters, partition by partition, for any structure of a partition (fuse_build.cpp,
// ribbon_build.cpp):
//
//   partition  the hashes are sorted by partition, in place, each thread within its own range
//   build      each partition is built by one thread; if that fails, with another seed, and after 24 seeds with more
//              space
//   verify     every key is looked up in the finished bytes
//
// If a partition fails, it is sorted and duplicates are removed; then construction starts again with the number of
// partitions for the distinct keys. So the bytes depend on the set of keys only.
#pragma once

#include <bloomery/detail/joined_threads.hpp>
#include <bloomery/detail/static_payload.hpp>

#include <bloomery/error.hpp>
#include <bloomery/processors.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::partitioned {

inline constexpr std::uint64_t keys_of_partition = 1'300'000;  // small enough to be processed within the caches
inline constexpr std::uint32_t tries_of_size = 24;             // seeds tried before a partition gets more space
inline constexpr std::uint32_t most_growth = 64;
inline constexpr unsigned most_threads = 256;

constexpr std::uint64_t partitions_for(std::uint64_t keys) {
  return keys / keys_of_partition + (keys % keys_of_partition != 0 || keys == 0 ? 1 : 0);
}

/// Keys spread evenly: `larger` partitions have one key more than `keys`.
struct even_spread {
  std::uint64_t partitions, larger, keys;

  explicit even_spread(std::uint64_t all)
      : partitions(partitions_for(all)), larger(all % partitions), keys(all / partitions) {}
};

/// The seed of an attempt to build a partition.
inline std::uint64_t seed_of(std::uint64_t partition, std::uint32_t growth, std::uint32_t attempt) {
  return mix64((partition << 16 | std::uint64_t{growth} << 8 | attempt) + sealed::multiplier);
}

[[noreturn]] inline void refuse_hashes(std::uint64_t keys) {
  throw error(errc::invalid_argument, {"a static filter cannot be built from these hashes", "hash", "",
                                       std::to_string(keys) + " keys", hint::use_another_hash});
}

/// Writes the head and the table of partitions. @param payload  the beginning of a payload
template <class Partition>
void write_table(std::uint64_t keys, unsigned width, std::span<const Partition> partitions, std::uint8_t* payload) {
  const auto count = static_cast<std::uint32_t>(partitions.size());
  const std::uint32_t stored_width = width;
  std::memcpy(payload, &keys, 8);
  std::memcpy(payload + 8, &count, 4);
  std::memcpy(payload + 12, &stored_width, 4);
  std::memcpy(payload + sealed::header_bytes, partitions.data(), partitions.size_bytes());
}

// ---- threads --------------------------------------------------------------------------------------------------------

// Calls work(0) .. work(threads - 1) in separate threads; rethrows the first exception after all have ended.
template <class Work>
void in_threads(unsigned threads, Work work) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&](unsigned number) {
    try {
      work(number);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    detail::joined_threads others;
    unsigned started = 1;
    try {
      for (; started < threads; ++started) others.start(guarded, started);
    } catch (const std::exception&) {
      // No more threads available: this thread does their work.
    }
    guarded(0);
    for (unsigned late = started; late < threads; ++late) guarded(late);
  }
  if (failure) std::rethrow_exception(failure);
}

// ---- sorting --------------------------------------------------------------------------------------------------------

// Sorts `words` by bucket, in place; afterwards bucket b is ends[b - 1] to ends[b]. [McIlroy, Bostic & McIlroy 1993,
// "Engineering Radix Sort": American flag sort]
template <class BucketOf>
void sort_by_bucket(std::span<std::uint64_t> words, std::span<std::uint64_t> ends, BucketOf bucket_of) {
  std::fill(ends.begin(), ends.end(), 0);
  for (const std::uint64_t word : words) ++ends[bucket_of(word)];
  std::vector<std::uint64_t> next(ends.size());
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < ends.size(); ++b) {
    next[b] = sum;
    sum += ends[b];
    ends[b] = sum;
  }
  for (std::size_t b = 0; b < ends.size(); ++b) {
    while (next[b] < ends[b]) {
      std::uint64_t word = words[next[b]];
      for (std::size_t to; (to = bucket_of(word)) != b;) {
        const std::uint64_t at = next[to]++;
        std::swap(word, words[at]);
        if (at % 8 == 0) __builtin_prefetch(&words[at] + 16, 1);  // harmless beyond the end
      }
      words[next[b]++] = word;
    }
  }
}

inline void sort(std::span<std::uint64_t> words, unsigned shift = 56) {
  constexpr std::size_t few = 256;
  if (words.size() <= few) return std::sort(words.begin(), words.end());
  std::array<std::uint64_t, 256> ends;
  sort_by_bucket(words, ends, [shift](std::uint64_t word) { return static_cast<std::size_t>(word >> shift & 255); });
  if (shift == 0) return;
  std::uint64_t begin = 0;
  for (const std::uint64_t end : ends) {
    sort(words.subspan(begin, end - begin), shift - 8);
    begin = end;
  }
}

// Moves the distinct words to the front; returns their number. Bits above `shift + 8` are equal in all words.
inline std::size_t sort_distinct(std::span<std::uint64_t> words, unsigned shift = 56) {
  sort(words, shift);
  return static_cast<std::size_t>(std::unique(words.begin(), words.end()) - words.begin());
}

// The hashes of a partition: one piece per thread that partitioned hashes.
using pieces = std::vector<std::span<std::uint64_t>>;

inline std::uint64_t size_of(const pieces& some) {
  std::uint64_t size = 0;
  for (const auto& piece : some) size += piece.size();
  return size;
}

// A reusable buffer that grows on demand.
class scratch_buffer {
 public:
  template <class T>
  std::span<T> of(std::uint64_t count) {
    const std::uint64_t bytes = std::max<std::uint64_t>(count, 1) * sizeof(T);
    if (!storage_ || storage_->size() < bytes) {
      storage_.reset();
      storage_.emplace(bytes + bytes / 16);
    }
    return {reinterpret_cast<T*>(storage_->data()), count};
  }

 private:
  std::optional<heap_storage> storage_;
};

// ---- all partitions -------------------------------------------------------------------------------------------------

enum class outcome : std::uint8_t { built, not_tried, fewer_keys, too_small };

/// Builds a payload. A Structure says what a partition is:
///
///   using partition;                                        its descriptor in the payload, with `seed` and `keys`
///   partition sized(std::uint64_t keys, std::uint32_t growth) const;
///   std::uint64_t begin(std::uint64_t partitions) const;    where the first partition may begin, in its own unit
///   std::uint64_t place(partition&, std::uint64_t end) const;         sets `first`; returns the new end
///   std::uint64_t payload_bytes(std::uint64_t end) const;
///   std::uint64_t offset_of(const partition&) const;        its first byte in the payload, once it is placed
///   std::uint64_t bytes_of(const partition&) const;
///   unsigned width() const;                                 bits of a fingerprint
///   using worker;                                           the scratch memory of one thread, with
///     bool build(const Structure&, const partition&, const pieces&, std::uint8_t* payload);
///       Writes the partition, where zeros are, and looks up every key. False: this seed is not usable, and there still
///       are zeros.
///   static constexpr bool finds_copies;                     whether build() fails if a hash is repeated
template <class Structure>
class builder {
 public:
  builder(std::span<std::uint64_t> hash64s, Structure structure, unsigned threads, const build_watch& watch)
      : structure_(structure), watch_(&watch) {
    const std::size_t size = hash64s.size() / threads;
    for (unsigned t = 0; t < threads; ++t) {
      ranges_.push_back({t + 1 == threads ? hash64s.subspan(t * size) : hash64s.subspan(t * size, size), {}});
    }
    threads_.resize(threads);
  }

  static_bytes build() {
    for (;;) {
      partition_hashes();
      for (;;) {
        static_bytes result = attempt();
        const auto count = [&](outcome o) { return std::count(outcomes_.begin(), outcomes_.end(), o); };
        if (static_cast<std::size_t>(count(outcome::built)) == outcomes_.size()) return result;
        if (count(outcome::fewer_keys) > 0) break;
      }
      compact_ranges();
    }
  }

 private:
  using partition = typename Structure::partition;

  // A range of the hashes that one thread partitions, and the ends of the partitions in it.
  struct hash_range {
    std::span<std::uint64_t> hash64s;
    std::vector<std::uint64_t> ends;
  };

  struct one_thread {
    typename Structure::worker worker;
    scratch_buffer distinct;
  };

  void partition_hashes() {
    std::uint64_t keys = 0;
    for (const hash_range& r : ranges_) keys += r.hash64s.size();
    const std::uint64_t count = partitions_for(keys);
    in_threads(static_cast<unsigned>(ranges_.size()), [&](unsigned t) {
      hash_range& r = ranges_[t];
      r.ends.assign(count, r.hash64s.size());
      if (count == 1) return;
      sort_by_bucket(r.hash64s, r.ends, [count](std::uint64_t hash64) { return multiply_high(hash64, count); });
    });
    hash64s_.assign(count, {});
    growth_.assign(count, 0);
    is_distinct_.assign(count, false);
    for (std::uint64_t p = 0; p < count; ++p) {
      for (const hash_range& r : ranges_) {
        const std::uint64_t begin = p == 0 ? 0 : r.ends[p - 1];
        hash64s_[p].push_back(r.hash64s.subspan(begin, r.ends[p] - begin));
      }
    }
  }

  // Tries to build all partitions with the present sizes.
  static_bytes attempt() {
    const std::uint64_t count = hash64s_.size();
    partitions_.clear();
    std::uint64_t keys = 0;
    std::uint64_t end = structure_.begin(count);
    for (std::uint64_t p = 0; p < count; ++p) {
      partition one = structure_.sized(size_of(hash64s_[p]), growth_[p]);
      end = structure_.place(one, end);
      keys += one.keys;
      partitions_.push_back(one);
    }
    outcomes_.assign(count, outcome::not_tried);

    static_bytes result{heap_storage(structure_.payload_bytes(end)), keys};
    std::atomic<std::uint64_t> next_partition{0};
    std::atomic<bool> has_copies{false};
    std::atomic<bool> stop{false};
    std::uint64_t done = 0;
    std::mutex mutex;
    in_threads(static_cast<unsigned>(std::min<std::uint64_t>(threads_.size(), count)), [&](unsigned t) {
      try {
        for (std::uint64_t p; !stop && (p = next_partition++) < count;) {
          outcomes_[p] = build_one(p, threads_[t], result.payload.data(), has_copies);
          if (outcomes_[p] == outcome::fewer_keys) has_copies = true;
          const std::lock_guard lock(mutex);
          if (stop) return;
          done += partitions_[p].keys;
          try {
            if (*watch_) (*watch_)(done);
          } catch (...) {
            stop = true;  // set under the lock, so that no thread calls the watch again
            throw;
          }
        }
      } catch (...) {
        stop = true;
        throw;
      }
    });
    write_table<partition>(result.keys, structure_.width(), partitions_, result.payload.data());
    result.payload.counts().inserted = result.keys;
    return result;
  }

  outcome build_one(std::uint64_t number, one_thread& thread, std::uint8_t* payload,
                    const std::atomic<bool>& has_copies) {
    partition& p = partitions_[number];
    pieces& hash64s = hash64s_[number];
    if (p.keys == 0) return outcome::built;
    // With copies an attempt would fail, and in an oversized partition there probably are copies.
    if (!Structure::finds_copies || has_copies || p.keys > 4 * keys_of_partition) {
      if (make_distinct(number, thread.distinct)) return outcome::fewer_keys;
      if (has_copies) return outcome::built;  // the bytes will be rebuilt
    }
    for (std::uint32_t attempt = 0; attempt < tries_of_size; ++attempt) {
      p.seed = seed_of(number, growth_[number], attempt);
      if (thread.worker.build(structure_, p, hash64s, payload)) return outcome::built;
      if (attempt == 0 && make_distinct(number, thread.distinct)) return outcome::fewer_keys;
    }
    if (++growth_[number] > most_growth) refuse_hashes(p.keys);
    return outcome::too_small;
  }

  // Removes the copies of hashes in a partition and shortens its pieces. True: there were copies.
  bool make_distinct(std::uint64_t number, scratch_buffer& scratch) {
    if (is_distinct_[number] != 0) return false;
    is_distinct_[number] = 1;
    pieces& some = hash64s_[number];
    const std::uint64_t before = size_of(some);
    for (auto& piece : some) piece = piece.first(sort_distinct(piece));
    if (some.size() > 1) {
      const std::span<std::uint64_t> all = scratch.of<std::uint64_t>(size_of(some));
      std::uint64_t* to = all.data();
      for (const auto& piece : some) to = std::copy(piece.begin(), piece.end(), to);
      std::span<std::uint64_t> left = all.first(sort_distinct(all));
      for (auto& piece : some) {
        piece = piece.first(std::min(piece.size(), left.size()));
        std::copy_n(left.begin(), piece.size(), piece.begin());
        left = left.subspan(piece.size());
      }
    }
    return size_of(some) < before;
  }

  // Closes the gaps left by removed copies in each range.
  void compact_ranges() {
    for (std::size_t t = 0; t < ranges_.size(); ++t) {
      std::uint64_t* to = ranges_[t].hash64s.data();
      for (const pieces& some : hash64s_) {
        // std::copy allows overlap when it copies to the left.
        to = std::copy(some[t].begin(), some[t].end(), to);
      }
      ranges_[t].hash64s = ranges_[t].hash64s.first(static_cast<std::size_t>(to - ranges_[t].hash64s.data()));
    }
  }

  std::vector<hash_range> ranges_;
  std::vector<one_thread> threads_;
  std::vector<partition> partitions_;
  std::vector<pieces> hash64s_;            // of each partition
  std::vector<std::uint8_t> is_distinct_;  // likewise: no hash is repeated
  std::vector<outcome> outcomes_;
  std::vector<std::uint32_t> growth_;
  Structure structure_;
  const build_watch* watch_;
};

/// @param threads  0: one per processor; at most one per partition
template <class Structure>
static_bytes build(std::span<std::uint64_t> hash64s, Structure structure, unsigned threads, const build_watch& watch) {
  const std::uint64_t wanted = threads == 0 ? available_processors() : threads;
  const auto number =
      static_cast<unsigned>(std::min<std::uint64_t>({wanted, most_threads, partitions_for(hash64s.size())}));
  return builder<Structure>(hash64s, structure, number, watch).build();
}

}  // namespace bloomery::partitioned
