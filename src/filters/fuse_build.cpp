// Construction of fuse filters, partition by partition:
//
//   partition  the hashes are sorted by partition, in place, each thread within its own range
//   sort       a partition's hashes are mixed with its seed and sorted by their first cell, so that the next steps
//              access memory sequentially
//   count      for each cell, count its keys and compute the exclusive or of their indices
//   peel       remove a key that is alone in a cell, which may leave other cells with one key; if keys remain, repeat
//              with another seed
//   assign     in reverse order, set the cell of each key so that its three cells yield its fingerprint
//   verify     look up every key in the finished bytes
//
// A repeated hash can never be peeled. If a partition fails, it is sorted and duplicates are removed; then construction
// starts again with the number of partitions for the distinct keys. So the bytes depend on the set of keys only.
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/joined_threads.hpp>

#include <bloomery/error.hpp>
#include <bloomery/processors.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

constexpr std::uint64_t keys_of_partition = 1'300'000;  // small enough to be processed within the caches
constexpr std::uint32_t tries_of_size = 24;             // seeds tried before a partition gets more cells
constexpr std::uint32_t most_growth = 64;

// ---- sizes ----------------------------------------------------------------------------------------------------------

std::uint64_t partitions_for(std::uint64_t keys) {
  return keys / keys_of_partition + (keys % keys_of_partition != 0 || keys == 0 ? 1 : 0);
}

// Segments of 2^floor(log(n) / log(3.33) + 2.25) cells, and 0.875 + 0.25 max(1, ln 10^6 / ln n) cells per key [Graf &
// Lemire 2022, section 4]; each step of `growth` adds a thirtieth.
fuse_partition sized(std::uint64_t keys, std::uint32_t growth) {
  fuse_partition p;
  p.keys = keys;
  if (keys == 0) return p;
  const double log_keys = std::log(static_cast<double>(keys));
  const auto log_segment = static_cast<unsigned>(std::floor(log_keys / std::log(3.33) + 2.25));
  p.segment = std::uint32_t{1} << std::min(log_segment, 18u);
  const double factor = keys == 1 ? 1 : 0.875 + 0.25 * std::max(1.0, std::log(1e6) / log_keys);
  const auto cells = static_cast<std::uint64_t>(std::llround(static_cast<double>(keys) * factor));
  std::uint64_t segments = std::max<std::uint64_t>(3, (cells + p.segment - 1) / p.segment);
  segments += growth * (1 + segments / 30);
  const std::uint64_t starts = (segments - 2) * p.segment;
  if (starts > 0xF0000000) {
    throw error(errc::too_large, {"the hashes of a static filter's keys are too similar", "hash", "",
                                  std::to_string(keys) + " keys in one partition", hint::use_another_hash});
  }
  p.starts = static_cast<std::uint32_t>(starts);
  return p;
}

std::uint64_t seed_of(std::uint64_t partition, std::uint32_t growth, std::uint32_t attempt) {
  return mix64((partition << 16 | growth << 8 | attempt) + fuse::multiplier);
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

void sort(std::span<std::uint64_t> words, unsigned shift = 56) {
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

// Moves the distinct words to the front; returns their number.
std::size_t sort_distinct(std::span<std::uint64_t> words) {
  sort(words);
  return static_cast<std::size_t>(std::unique(words.begin(), words.end()) - words.begin());
}

// ---- one partition --------------------------------------------------------------------------------------------------

// The hashes of a partition: one piece per thread that partitioned hashes.
using pieces = std::vector<std::span<std::uint64_t>>;

std::uint64_t size_of(const pieces& some) {
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

// Builds partitions with the scratch buffers of one thread.
class partition_builder {
 public:
  // Removes duplicate hashes and shortens the pieces. True: there were duplicates.
  bool make_distinct(pieces& some) {
    const std::uint64_t before = size_of(some);
    for (auto& piece : some) piece = piece.first(sort_distinct(piece));
    if (some.size() > 1) {
      const std::span<std::uint64_t> all = hashes_.of<std::uint64_t>(size_of(some));
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

  // Writes the cells of distinct hashes, which must be zeros before. False: this seed is not usable.
  template <fuse_fingerprint F>
  bool build(const fuse_partition& p, const pieces& some, F* cells) {
    // 24 bits for an index and 8 bits for a count; only partitions with many copies or skewed hashes need more.
    return p.keys <= (std::uint64_t{1} << 24) ? build_by<std::uint32_t>(p, some, cells)
                                              : build_by<std::uint64_t>(p, some, cells);
  }

 private:
  static constexpr std::size_t ahead = 64;  // prefetch distance in cells of the queue, in three steps

  // A word per cell: the exclusive or of the indices of its keys, and their number in the upper 8 bits.
  template <class Word>
  static constexpr unsigned number_bits = 8 * sizeof(Word) - 8;

  template <class Word, fuse_fingerprint F>
  bool build_by(const fuse_partition& p, const pieces& some, F* cells) {
    constexpr Word one = Word{1} << number_bits<Word>;
    const std::span<std::uint64_t> hashes = sorted(p, some);
    const auto offsets_of = [&](std::uint64_t h) { return fuse::offsets(h, p.starts, p.segment, 8 * sizeof(F)); };

    const std::span<Word> counts = counts_.of<Word>(p.cells());
    std::fill(counts.begin(), counts.end(), Word{0});
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const fuse::offsets at = offsets_of(hashes[i]);
      for (const std::uint32_t cell : {at.first, at.second, at.third}) {
        counts[cell] = (counts[cell] ^ static_cast<Word>(i)) + one;
      }
    }

    // The keys in the order of peeling, and the cell from which each was peeled. A cell has exactly one key at most
    // once. The data of later cells is prefetched.
    const std::span<std::uint64_t> peeled = peeled_.of<std::uint64_t>(p.keys);
    const std::span<std::uint8_t> peeled_by = peeled_by_.of<std::uint8_t>(p.keys);
    const std::span<std::uint32_t> single = single_.of<std::uint32_t>(p.cells() + 3);
    std::size_t done = 0;
    std::size_t waiting = 0;
    std::uint64_t counted = 0;
    for (std::uint32_t cell = 0; cell < counts.size(); ++cell) {
      const Word count = counts[cell] >> number_bits<Word>;
      counted += count;
      single[waiting] = cell;
      waiting += count == 1 ? 1 : 0;
    }
    if (counted != 3 * hashes.size()) return false;  // a count overflowed, for example by 256 copies of a key
    for (std::size_t next = 0; next < waiting; ++next) {
      if (next + ahead < waiting) __builtin_prefetch(&counts[single[next + ahead]], 1);
      if (next + ahead / 2 < waiting) __builtin_prefetch(&hashes[counts[single[next + ahead / 2]] & (one - 1)]);
      if (const std::size_t soon = next + ahead / 4; soon < waiting) {
        const fuse::offsets at = offsets_of(hashes[counts[single[soon]] & (one - 1)]);  // of key 0 if it is empty now
        __builtin_prefetch(&counts[at.first], 1);
        __builtin_prefetch(&counts[at.second], 1);
        __builtin_prefetch(&counts[at.third], 1);
      }
      const std::uint32_t from = single[next];
      const Word word = counts[from];
      if (word >> number_bits<Word> != 1) continue;  // its key was peeled from another cell
      const Word number = word & (one - 1);
      const std::uint64_t hash = hashes[number];
      const fuse::offsets at = offsets_of(hash);
      peeled[done] = hash;
      peeled_by[done++] = static_cast<std::uint8_t>((from == at.second ? 1 : 0) + (from == at.third ? 2 : 0));
      for (const std::uint32_t cell : {at.first, at.second, at.third}) {
        const Word left = (counts[cell] ^ number) - one;
        counts[cell] = left;
        single[waiting] = cell;
        waiting += left >> number_bits<Word> == 1 ? 1 : 0;
      }
    }
    if (done < hashes.size()) return false;

    while (done-- > 0) {
      const fuse::offsets at = offsets_of(peeled[done]);
      const std::uint32_t of[] = {at.first, at.second, at.third};
      cells[of[peeled_by[done]]] =
          static_cast<F>(at.fingerprint ^ cells[at.first] ^ cells[at.second] ^ cells[at.third]);
    }
    return true;
  }

  // The hashes of a partition sorted by their upper bits, and thus approximately by their first cells.
  std::span<std::uint64_t> sorted(const fuse_partition& p, const pieces& some) {
    const std::span<std::uint64_t> result = hashes_.of<std::uint64_t>(p.keys);
    const unsigned bits = std::min<unsigned>(static_cast<unsigned>(std::bit_width(p.keys >> 12)), 11);
    if (bits == 0) {
      std::uint64_t* to = result.data();
      for (const auto& piece : some) {
        for (const std::uint64_t hash64 : piece) *to++ = mix64(hash64 ^ p.seed);
      }
      return result;
    }
    next_.assign(std::size_t{1} << bits, 0);
    for (const auto& piece : some) {
      for (const std::uint64_t hash64 : piece) ++next_[mix64(hash64 ^ p.seed) >> (64 - bits)];
    }
    std::uint64_t sum = 0;
    for (std::uint64_t& next : next_) sum += std::exchange(next, sum);
    for (const auto& piece : some) {
      for (const std::uint64_t hash64 : piece) {
        const std::uint64_t h = mix64(hash64 ^ p.seed);
        result[next_[h >> (64 - bits)]++] = h;
      }
    }
    return result;
  }

  scratch_buffer hashes_, counts_, peeled_, peeled_by_, single_;
  std::vector<std::uint64_t> next_;
};

// ---- all partitions -------------------------------------------------------------------------------------------------

// A range of the hashes that one thread partitions, and the ends of the partitions in it.
struct hash_range {
  std::span<std::uint64_t> hash64s;
  std::vector<std::uint64_t> ends;
};

enum class outcome : std::uint8_t { built, not_tried, fewer_keys, too_small };

struct plan {
  std::vector<fuse_partition> partitions;
  std::vector<pieces> hash64s;
  std::vector<outcome> outcomes;
  std::vector<std::uint32_t> growth;
};

template <fuse_fingerprint F>
class builder {
 public:
  builder(std::span<std::uint64_t> hash64s, unsigned threads, const fuse_watch& watch) : watch_(&watch) {
    const std::size_t size = hash64s.size() / threads;
    for (unsigned t = 0; t < threads; ++t) {
      ranges_.push_back({t + 1 == threads ? hash64s.subspan(t * size) : hash64s.subspan(t * size, size), {}});
    }
    builders_.resize(threads);
  }

  fuse_bytes build() {
    for (;;) {
      partition_hashes();
      for (;;) {
        fuse_bytes result = attempt();
        const auto count = [&](outcome o) { return std::count(plan_.outcomes.begin(), plan_.outcomes.end(), o); };
        if (static_cast<std::size_t>(count(outcome::built)) == plan_.outcomes.size()) return result;
        if (count(outcome::fewer_keys) > 0) break;
      }
      compact_ranges();
    }
  }

 private:
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
    plan_ = {};
    plan_.hash64s.resize(count);
    plan_.growth.resize(count);
    for (std::uint64_t p = 0; p < count; ++p) {
      for (const hash_range& r : ranges_) {
        const std::uint64_t begin = p == 0 ? 0 : r.ends[p - 1];
        plan_.hash64s[p].push_back(r.hash64s.subspan(begin, r.ends[p] - begin));
      }
    }
  }

  // Tries to build all partitions with the present sizes.
  fuse_bytes attempt() {
    const std::uint64_t count = plan_.hash64s.size();
    plan_.partitions.clear();
    std::uint64_t keys = 0;
    std::uint64_t next = fuse::cells_at(count) / sizeof(F);
    for (std::uint64_t p = 0; p < count; ++p) {
      fuse_partition one = sized(size_of(plan_.hash64s[p]), plan_.growth[p]);
      one.first = next;
      next += one.cells();
      keys += one.keys;
      plan_.partitions.push_back(one);
    }
    plan_.outcomes.assign(count, outcome::not_tried);

    fuse_bytes result{heap_storage((next * sizeof(F) + 63) / 64 * 64), keys};
    std::atomic<std::uint64_t> next_partition{0};
    std::atomic<bool> has_copies{false};
    std::atomic<bool> stop{false};
    std::uint64_t done = 0;
    std::mutex mutex;
    in_threads(static_cast<unsigned>(std::min<std::uint64_t>(builders_.size(), count)), [&](unsigned t) {
      try {
        for (std::uint64_t p; !stop && (p = next_partition++) < count;) {
          plan_.outcomes[p] = build_one(p, builders_[t], result.payload.data(), has_copies);
          if (plan_.outcomes[p] == outcome::fewer_keys) has_copies = true;
          const std::lock_guard lock(mutex);
          if (stop) return;
          done += plan_.partitions[p].keys;
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
    write_table(result);
    return result;
  }

  outcome build_one(std::uint64_t number, partition_builder& one, std::uint8_t* payload,
                    const std::atomic<bool>& has_copies) {
    fuse_partition& p = plan_.partitions[number];
    pieces& hash64s = plan_.hash64s[number];
    if (p.keys == 0) return outcome::built;
    // With copies an attempt would fail, and in an oversized partition there probably are copies.
    if (has_copies || p.keys > 4 * keys_of_partition) {
      if (one.make_distinct(hash64s)) return outcome::fewer_keys;
      if (has_copies) return outcome::built;  // the bytes will be rebuilt
    }
    F* const cells = reinterpret_cast<F*>(payload) + p.first;
    for (std::uint32_t attempt = 0; attempt < tries_of_size; ++attempt) {
      p.seed = seed_of(number, plan_.growth[number], attempt);
      if (one.build(p, hash64s, cells)) {
        if (all_there(p, hash64s, cells)) return outcome::built;
        std::fill_n(cells, p.cells(), F{0});
      }
      if (attempt == 0 && one.make_distinct(hash64s)) return outcome::fewer_keys;
    }
    if (++plan_.growth[number] > most_growth) {
      throw error(errc::invalid_argument, {"a static filter cannot be built from these hashes", "hash", "",
                                           std::to_string(p.keys) + " keys", hint::use_another_hash});
    }
    return outcome::too_small;
  }

  static bool all_there(const fuse_partition& p, const pieces& hash64s, const F* cells) {
    for (const auto& piece : hash64s) {
      bool there = true;
      for (const std::uint64_t hash64 : piece) {
        const fuse::offsets at(mix64(hash64 ^ p.seed), p.starts, p.segment, 8 * sizeof(F));
        there &= (cells[at.first] ^ cells[at.second] ^ cells[at.third]) == static_cast<F>(at.fingerprint);
      }
      if (!there) return false;
    }
    return true;
  }

  // Closes the gaps left by removed copies in each range.
  void compact_ranges() {
    for (std::size_t t = 0; t < ranges_.size(); ++t) {
      std::uint64_t* to = ranges_[t].hash64s.data();
      for (const pieces& some : plan_.hash64s) {
        // std::copy allows overlap when it copies to the left.
        to = std::copy(some[t].begin(), some[t].end(), to);
      }
      ranges_[t].hash64s = ranges_[t].hash64s.first(static_cast<std::size_t>(to - ranges_[t].hash64s.data()));
    }
  }

  void write_table(fuse_bytes& result) const {
    std::uint8_t* const payload = result.payload.data();
    const auto count = static_cast<std::uint32_t>(plan_.partitions.size());
    const std::uint32_t width = 8 * sizeof(F);
    std::memcpy(payload, &result.keys, 8);
    std::memcpy(payload + 8, &count, 4);
    std::memcpy(payload + 12, &width, 4);
    std::memcpy(payload + fuse::header_bytes, plan_.partitions.data(), count * fuse::partition_bytes);
    result.payload.counts().inserted = result.keys;
  }

  std::vector<hash_range> ranges_;
  std::vector<partition_builder> builders_;
  plan plan_;
  const fuse_watch* watch_;
};

constexpr unsigned most_threads = 256;

// At most one thread per partition.
unsigned threads_for(unsigned wanted, std::uint64_t keys) {
  const unsigned threads = wanted == 0 ? available_processors() : wanted;
  return static_cast<unsigned>(std::min<std::uint64_t>({threads, most_threads, partitions_for(keys)}));
}

}  // namespace

geometry fuse_geometry(unsigned width, std::uint64_t keys) {
  const std::uint64_t partitions = partitions_for(keys);
  const std::uint64_t larger = keys % partitions;
  const std::uint64_t cells =
      larger * sized(keys / partitions + 1, 0).cells() + (partitions - larger) * sized(keys / partitions, 0).cells();
  const std::uint64_t bytes = fuse::cells_at(partitions) + cells * (width / 8);
  return {8 * ((bytes + 63) / 64 * 64), fuse::probes};
}

fuse_bytes fuse_build(std::span<std::uint64_t> hash64s, unsigned width, unsigned threads, const fuse_watch& watch) {
  fuse_layout_name(width);  // throws
  threads = threads_for(threads, hash64s.size());
  if (width == 8) return builder<std::uint8_t>(hash64s, threads, watch).build();
  if (width == 16) return builder<std::uint16_t>(hash64s, threads, watch).build();
  return builder<std::uint32_t>(hash64s, threads, watch).build();
}

}  // namespace bloomery
