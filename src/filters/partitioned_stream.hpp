// Construction of static filters from hashes in groups on disk (static_stream.hpp), for any structure of a partition.
//
//   read      hashes are read group by group; the groups and the partitions divide the hash space in the same order
//   build     each partition is built by one thread, in memory of its own, as in partitioned_build.hpp
//   place     partitions are placed in order, one after another, and written
#pragma once

#include "filters/partitioned_build.hpp"
#include "filters/static_stream.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace bloomery::partitioned {

/// Bytes for the hashes of a partition, the scratch buffers of a thread that builds it, and the result.
inline constexpr std::uint64_t memory_of_thread = std::uint64_t{80} << 20;

inline std::uint64_t largest_group(const hash_groups& hashes) {
  std::uint64_t largest = 0;
  for (std::uint64_t g = 0; g < hash_groups::count; ++g) largest = std::max(largest, hashes.size_of(g));
  return largest;
}

/// Throws if hashes that have to be in memory at once need more than `memory`.
inline void check_fits(std::uint64_t hashes, std::uint64_t bytes_per_hash, std::uint64_t memory) {
  if (hashes <= memory / bytes_per_hash) return;
  throw error(errc::too_large, {"the hashes of a part of the keys do not fit into the memory",
                                "memory",
                                "at most " + std::to_string(memory / bytes_per_hash) + " hashes for " +
                                    std::to_string(memory) + " bytes",
                                std::to_string(hashes) + " hashes",
                                {hint::use_more_memory, "allow more memory, or use another hash"}});
}

/// Reads the hashes of one partition after another.
class partition_reader {
 public:
  partition_reader(const hash_groups& hashes, std::uint64_t partitions, std::uint64_t memory)
      : hashes_(hashes), partitions_(partitions), memory_(memory) {
    load(0);
  }

  /// Replaces `to` by the hashes of the next partition.
  void next(std::vector<std::uint64_t>& to) {
    to.clear();
    for (;; load(group_ + 1)) {
      if (number_ <= last_) append_to(to);
      if (number_ < last_ || group_ + 1 == hash_groups::count) break;
      if (partition_of(hash_groups::first_of(group_ + 1)) > number_) break;
    }
    ++number_;
  }

 private:
  std::uint64_t partition_of(std::uint64_t hash64) const { return multiply_high(hash64, partitions_); }

  void append_to(std::vector<std::uint64_t>& to) {
    const std::uint64_t bucket = number_ - first_;
    const std::uint64_t begin = bucket == 0 ? 0 : ends_[bucket - 1];
    check_fits(to.size() + ends_[bucket] - begin, bytes_per_key, memory_);
    to.insert(to.end(), group_hashes_.begin() + static_cast<std::ptrdiff_t>(begin),
              group_hashes_.begin() + static_cast<std::ptrdiff_t>(ends_[bucket]));
  }

  void load(std::uint64_t group) {
    group_ = group;
    first_ = partition_of(hash_groups::first_of(group));
    last_ = partition_of(hash_groups::last_of(group));
    check_fits(hashes_.size_of(group), sizeof(std::uint64_t), memory_);
    group_hashes_.resize(hashes_.size_of(group));
    hashes_.read(group, 0, group_hashes_);
    ends_.assign(last_ - first_ + 1, group_hashes_.size());
    if (ends_.size() == 1) return;
    sort_by_bucket(std::span(group_hashes_), ends_,
                   [this](std::uint64_t hash64) { return partition_of(hash64) - first_; });
  }

  static constexpr std::uint64_t bytes_per_key = 48;  // its hash, and the scratch buffers

  const hash_groups& hashes_;
  std::uint64_t partitions_;
  std::uint64_t memory_;
  std::uint64_t number_ = 0;  // of the next partition
  std::uint64_t group_ = 0;   // the group in memory, sorted by partition
  std::uint64_t first_ = 0;   // its partitions
  std::uint64_t last_ = 0;
  std::vector<std::uint64_t> group_hashes_;
  std::vector<std::uint64_t> ends_;  // of each partition in the group
};

template <class Structure>
class streaming_builder {
 public:
  streaming_builder(const stream_source& from, Structure structure, const payload_sink& to)
      : structure_(structure),
        from_(from),
        to_(to),
        reader_(from.hashes, partitions_for(from.keys), from.memory),
        partitions_(partitions_for(from.keys)),
        end_(structure.begin(partitions_.size())) {}

  streamed_payload build(unsigned threads) {
    in_threads(threads, [&](unsigned) {
      try {
        work();
      } catch (...) {
        const std::lock_guard lock(placing_);
        stopped_ = true;
        turn_.notify_all();
        throw;
      }
    });
    std::vector<std::uint8_t> table(sealed::header_bytes + partitions_.size() * sizeof(partition));
    write_table<partition>(keys_, structure_.width(), partitions_, table.data());
    to_(table, 0);
    return {keys_, structure_.payload_bytes(end_)};
  }

 private:
  using partition = typename Structure::partition;

  struct one_thread {
    typename Structure::worker worker;
    std::vector<std::uint64_t> hash64s;
    std::vector<std::uint8_t> bytes;
  };

  void work() {
    one_thread own;
    for (;;) {
      std::uint64_t number = 0;
      {
        const std::lock_guard lock(reading_);
        if (stopped_ || next_ == partitions_.size()) return;
        number = next_++;
        reader_.next(own.hash64s);
      }
      partition p = build_one(number, own);
      if (!place(number, p)) return;
      to_(own.bytes, structure_.offset_of(p));
    }
  }

  // Builds a partition at the beginning of own.bytes.
  partition build_one(std::uint64_t number, one_thread& own) const {
    const pieces some{std::span(own.hash64s)};
    for (std::uint32_t growth = 0; growth <= most_growth; ++growth) {
      partition p = structure_.sized(own.hash64s.size(), growth);
      own.bytes.assign(structure_.bytes_of(p), 0);
      if (p.keys == 0) return p;
      for (std::uint32_t attempt = 0; attempt < tries_of_size; ++attempt) {
        p.seed = seed_of(number, growth, attempt);
        if (own.worker.build(structure_, p, some, own.bytes.data())) return p;
      }
    }
    refuse_hashes(own.hash64s.size());
  }

  // Waits until all earlier partitions are placed, and places this one. False: another thread has failed.
  bool place(std::uint64_t number, partition& p) {
    std::unique_lock lock(placing_);
    turn_.wait(lock, [&] { return stopped_ || placed_ == number; });
    if (stopped_) return false;
    end_ = structure_.place(p, end_);
    partitions_[number] = p;
    keys_ += p.keys;
    ++placed_;
    turn_.notify_all();
    try {
      if (from_.watch) from_.watch(keys_);
    } catch (...) {
      stopped_ = true;  // set under the lock, so that no thread calls the watch again
      throw;
    }
    return true;
  }

  Structure structure_;
  const stream_source& from_;
  const payload_sink& to_;

  std::mutex reading_;
  partition_reader reader_;
  std::uint64_t next_ = 0;  // the next partition to be read

  std::mutex placing_;
  std::condition_variable turn_;
  std::vector<partition> partitions_;
  std::uint64_t end_;  // of the placed partitions, in the unit of the structure
  std::uint64_t placed_ = 0;
  std::uint64_t keys_ = 0;
  std::atomic<bool> stopped_{false};
};

template <class Structure>
streamed_payload stream(const stream_source& from, Structure structure, const payload_sink& to) {
  const std::uint64_t group = largest_group(from.hashes) * sizeof(std::uint64_t);
  const std::uint64_t left = from.memory > group ? from.memory - group : 0;
  const std::uint64_t threads = std::min<std::uint64_t>(
      {from.threads, most_threads, partitions_for(from.keys), std::max<std::uint64_t>(1, left / memory_of_thread)});
  return streaming_builder<Structure>(from, structure, to).build(static_cast<unsigned>(threads));
}

}  // namespace bloomery::partitioned
