// The library in memory: keys one at a time and in batches, beside a textbook filter and beside what the machine itself
// takes. bench/run reads the results and makes ratios of them.
//
//   operation/way/subject/layout/key/n         lookup/batch/filter/split_block/u64/1000000
//
//   operation   insert (n keys into an empty filter), lookup (half of the keys are present), hash
//   way         single (a call a key), batch (a call for all), hashes (a batch of keys hashed beforehand)
//   subject     filter, any_filter, textbook, a hash, a kernel (scalar, avx2), or memory: reading a random cache line
//   key         u64, or string: URLs of 41 bytes
//
// All filters have 12 bits a key. Times are a key's, on one thread. 100 million keys need some 5 GB of memory.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/kernel.hpp>

#include "kernels/split_block.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace bloomery;

constexpr std::uint64_t bits_a_key = 12;
constexpr std::uint64_t sizes[] = {10'000, 1'000'000, 100'000'000};
constexpr std::uint64_t most_strings = 1'000'000;

// ---- keys -----------------------------------------------------------------------------------------------------------

template <class Key>
constexpr const char* name_of_key = std::same_as<Key, std::uint64_t> ? "u64" : "string";

// Keys by number, in one piece of memory; key i is the same for every type of filter.
template <class Key>
class key_list;

template <>
class key_list<std::uint64_t> {
 public:
  explicit key_list(std::uint64_t count) { keys_.reserve(count); }
  void add(std::uint64_t number) { keys_.push_back(mix64(number)); }
  std::span<const std::uint64_t> keys() const { return keys_; }

 private:
  std::vector<std::uint64_t> keys_;
};

template <>
class key_list<std::string_view> {
 public:
  explicit key_list(std::uint64_t count) {
    text_.reserve(count * length);
    keys_.reserve(count);
  }
  void add(std::uint64_t number) {
    const char* const begin = text_.data() + text_.size();
    text_ += "https://example.org/";
    for (std::uint64_t bits = mix64(number), digit = 0; digit < 16; ++digit, bits >>= 4) {
      text_ += "0123456789abcdef"[bits & 15];
    }
    text_ += ".html";
    keys_.emplace_back(begin, length);
  }
  std::span<const std::string_view> keys() const { return keys_; }

 private:
  static constexpr std::size_t length = 41;
  std::string text_;
  std::vector<std::string_view> keys_;
};

template <class Key>
struct key_set {
  key_list<Key> present;
  key_list<Key> asked;  // half of them present, in an order that no branch predictor learns

  explicit key_set(std::uint64_t n) : key_set(n, std::clamp<std::uint64_t>(n, 1 << 18, 1 << 24)) {}

 private:
  key_set(std::uint64_t n, std::uint64_t queries) : present(n), asked(queries) {
    for (std::uint64_t i = 0; i < n; ++i) present.add(i);
    for (std::uint64_t i = 0; i < queries; ++i) {
      const key_hash dice = mix{1}(i);
      asked.add((dice.lo & 1) != 0 ? multiply_high(dice.hi, n) : n + i);
    }
  }
};

// What is costly to make is made when first asked for and kept: repetitions are interleaved, so all of it is needed to
// the end.
template <class Made>
Made& kept(std::uint64_t n) {
  static std::map<std::uint64_t, std::unique_ptr<Made>> all;
  std::unique_ptr<Made>& one = all[n];
  if (!one) one = std::make_unique<Made>(n);
  return *one;
}

template <class Key>
std::span<const Key> present_keys(std::uint64_t n) {
  return kept<key_set<Key>>(n).present.keys();
}

template <class Key>
std::span<const Key> asked_keys(std::uint64_t n) {
  return kept<key_set<Key>>(n).asked.keys();
}

// ---- subjects -------------------------------------------------------------------------------------------------------

template <class Layout>
geometry geometry_of(std::uint64_t n) {
  const std::uint64_t bits = n * bits_a_key;
  if constexpr (std::same_as<Layout, split_block>) {
    return {bits / split_block::block_bits * split_block::block_bits, split_block::lanes};
  } else {
    return {bits, classic::best_probes(bits, n)};
  }
}

template <class Layout, class Key>
struct typed : filter<Key, Layout> {
  static constexpr const char* name = "filter";
  explicit typed(std::uint64_t n) : filter<Key, Layout>(geometry_of<Layout>(n), n) {}
};

template <class Layout, class Key>
struct untyped : any_filter {
  static constexpr const char* name = "any_filter";
  explicit untyped(std::uint64_t n)
      : any_filter({.layout = std::string(Layout::name),
                    .keys = std::same_as<Key, std::uint64_t> ? key_kind::u64le : key_kind::bytes,
                    .geometry = geometry_of<Layout>(n),
                    .capacity = n}) {}
};

// What one writes after reading the article: k probes, h1 + i * h2, bits in a vector. It has our hashes, so that the
// ratios are those of layouts and loops.
template <class Layout, class Key>
class textbook {
 public:
  static constexpr const char* name = "textbook";

  explicit textbook(std::uint64_t n) : g_(geometry_of<Layout>(n)), words_(g_.bits / 64 + 1) {}

  void clear() { std::fill(words_.begin(), words_.end(), 0); }

  bool insert(const Key& key) {
    const key_hash hash = hash_(key);
    bool is_new = false;
    for (std::uint32_t i = 0; i < g_.probes; ++i) {
      const std::uint64_t bit = (hash.lo + i * hash.hi) % g_.bits;
      const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
      is_new |= (words_[bit / 64] & mask) == 0;
      words_[bit / 64] |= mask;
    }
    return is_new;
  }

  bool may_contain(const Key& key) const {
    const key_hash hash = hash_(key);
    for (std::uint32_t i = 0; i < g_.probes; ++i) {
      const std::uint64_t bit = (hash.lo + i * hash.hi) % g_.bits;
      if ((words_[bit / 64] >> (bit % 64) & 1) == 0) return false;
    }
    return true;
  }

 private:
  geometry g_;
  typename default_hash<Key>::type hash_;
  std::vector<std::uint64_t> words_;
};

// A subject that has taken n keys.
template <class Subject, class Key>
struct filled {
  Subject subject;
  explicit filled(std::uint64_t n) : subject(n) {
    for (const Key& key : present_keys<Key>(n)) subject.insert(key);
  }
};

// ---- measurements ---------------------------------------------------------------------------------------------------

void count(benchmark::State& state, std::uint64_t keys) {
  state.SetItemsProcessed(static_cast<std::int64_t>(keys) * static_cast<std::int64_t>(state.iterations()));
}

// Processor time of this thread, in seconds, as Google Benchmark takes it where it holds the watch.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Times work() only, not the emptying of the filter before it.
template <class Work>
void time_by_hand(benchmark::State& state, Work work) {
  const double begin = thread_seconds();
  work();
  state.SetIterationTime(thread_seconds() - begin);
}

template <class Subject, class Key>
void insert_single(benchmark::State& state, std::uint64_t n) {
  Subject& subject = kept<Subject>(n);
  const auto keys = present_keys<Key>(n);
  for ([[maybe_unused]] auto _ : state) {
    subject.clear();
    std::uint64_t fresh = 0;
    time_by_hand(state, [&] {
      for (const Key& key : keys) fresh += subject.insert(key) ? 1 : 0;
    });
    benchmark::DoNotOptimize(fresh);
  }
  count(state, keys.size());
}

template <class Subject, class Key>
void insert_in_batch(benchmark::State& state, std::uint64_t n) {
  Subject& subject = kept<Subject>(n);
  const auto keys = present_keys<Key>(n);
  for ([[maybe_unused]] auto _ : state) {
    subject.clear();
    time_by_hand(state, [&] { subject.insert(keys); });
    benchmark::ClobberMemory();
  }
  count(state, keys.size());
}

template <class Subject, class Key>
void look_up_single(benchmark::State& state, std::uint64_t n) {
  const Subject& subject = kept<filled<Subject, Key>>(n).subject;
  const auto keys = asked_keys<Key>(n);
  for ([[maybe_unused]] auto _ : state) {
    std::uint64_t hits = 0;
    for (const Key& key : keys) hits += subject.may_contain(key) ? 1 : 0;
    benchmark::DoNotOptimize(hits);
  }
  count(state, keys.size());
}

template <class Subject, class Key>
void look_up_in_batch(benchmark::State& state, std::uint64_t n) {
  const Subject& subject = kept<filled<Subject, Key>>(n).subject;
  const auto keys = asked_keys<Key>(n);
  std::vector<std::uint64_t> bitmap(keys.size() / 64 + 1);
  for ([[maybe_unused]] auto _ : state) {
    subject.may_contain(keys, bitmap);
    benchmark::DoNotOptimize(bitmap.data());
    benchmark::ClobberMemory();
  }
  count(state, keys.size());
}

template <class Hash, class Key>
void hash_each(benchmark::State& state, std::uint64_t n) {
  const auto keys = asked_keys<Key>(n);
  for ([[maybe_unused]] auto _ : state) {
    std::uint64_t sum = 0;
    for (const Key& key : keys) {
      const key_hash hash = Hash{}(key);
      sum += hash.lo ^ hash.hi;
    }
    benchmark::DoNotOptimize(sum);
  }
  count(state, keys.size());
}

// The same keys for the kernels, hashed.
template <bool present>
struct hashed_keys {
  std::vector<std::uint64_t> halves;
  explicit hashed_keys(std::uint64_t n) {
    for (const std::uint64_t key : present ? present_keys<std::uint64_t>(n) : asked_keys<std::uint64_t>(n)) {
      const key_hash hash = mix{}(key);
      halves.insert(halves.end(), {hash.lo, hash.hi});
    }
  }
  std::size_t size() const { return halves.size() / 2; }
};

struct memory_of_a_filter {
  std::uint64_t blocks;
  heap_storage bytes;
  explicit memory_of_a_filter(std::uint64_t n)
      : blocks(geometry_of<split_block>(n).bits / split_block::block_bits),
        bytes(blocks * split_block::block_bits / 8) {}
};

void insert_by_kernel(benchmark::State& state, std::uint64_t n, const kernels::split_block_kernel& kernel) {
  auto& memory = kept<memory_of_a_filter>(n);
  const auto& hashes = kept<hashed_keys<true>>(n);
  std::vector<std::uint8_t> is_new(hashes.size());
  for ([[maybe_unused]] auto _ : state) {
    std::fill_n(memory.bytes.data(), memory.bytes.size(), std::uint8_t{0});
    time_by_hand(state, [&] {
      kernel.insert(memory.bytes.data(), memory.blocks, hashes.halves.data(), hashes.size(), is_new.data());
    });
    benchmark::ClobberMemory();
  }
  count(state, hashes.size());
}

void look_up_by_kernel(benchmark::State& state, std::uint64_t n, const kernels::split_block_kernel& kernel) {
  const auto bytes = kept<filled<typed<split_block, std::uint64_t>, std::uint64_t>>(n).subject.bytes();
  const auto& hashes = kept<hashed_keys<false>>(n);
  std::vector<std::uint64_t> bitmap(hashes.size() / 64 + 1);
  for ([[maybe_unused]] auto _ : state) {
    kernel.has(bytes.data(), bytes.size() * 8 / split_block::block_bits, hashes.halves.data(), hashes.size(),
               bitmap.data());
    benchmark::DoNotOptimize(bitmap.data());
    benchmark::ClobberMemory();
  }
  count(state, hashes.size());
}

// A word of a random cache line for each key: what any filter of one line a key must take.
void read_lines(benchmark::State& state, std::uint64_t n) {
  const auto bytes = kept<filled<typed<split_block, std::uint64_t>, std::uint64_t>>(n).subject.bytes();
  const auto& hashes = kept<hashed_keys<false>>(n);
  const std::uint64_t lines = bytes.size() / 64;
  for ([[maybe_unused]] auto _ : state) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      sum += bytes[multiply_high(hashes.halves[2 * i], lines) * 64];
    }
    benchmark::DoNotOptimize(sum);
  }
  count(state, hashes.size());
}

// ---- the list -------------------------------------------------------------------------------------------------------

void add(const std::string& name, std::uint64_t n, std::function<void(benchmark::State&, std::uint64_t)> measure) {
  auto* const added = benchmark::RegisterBenchmark((name + "/" + std::to_string(n)).c_str(),
                                                   [measure, n](benchmark::State& state) { measure(state, n); });
  if (name.starts_with("insert/")) added->UseManualTime();
}

template <class Subject, class Layout, class Key>
void add_subject(std::uint64_t n) {
  const auto name = [](const std::string& operation_and_way) {
    return operation_and_way + "/" + Subject::name + "/" + std::string(Layout::name) + "/" + name_of_key<Key>;
  };
  add(name("insert/single"), n, insert_single<Subject, Key>);
  add(name("lookup/single"), n, look_up_single<Subject, Key>);
  if constexpr (requires(Subject s, std::span<const Key> keys) { s.insert(keys); }) {
    add(name("insert/batch"), n, insert_in_batch<Subject, Key>);
    add(name("lookup/batch"), n, look_up_in_batch<Subject, Key>);
  }
}

template <class Key>
void add_subjects(std::uint64_t n) {
  add_subject<typed<split_block, Key>, split_block, Key>(n);
  add_subject<typed<classic, Key>, classic, Key>(n);
  add_subject<untyped<split_block, Key>, split_block, Key>(n);
  add_subject<untyped<classic, Key>, classic, Key>(n);
  add_subject<textbook<classic, Key>, classic, Key>(n);
}

void add_all() {
  for (const std::uint64_t n : sizes) {
    add_subjects<std::uint64_t>(n);
    for (const kernels::split_block_kernel* kernel : kernels::split_block_kernels) {
      if (!kernel->supported()) continue;
      const std::string rest = "/hashes/" + std::string(kernel->name) + "/split_block/u64";
      add("insert" + rest, n, [kernel](auto& state, auto keys) { insert_by_kernel(state, keys, *kernel); });
      add("lookup" + rest, n, [kernel](auto& state, auto keys) { look_up_by_kernel(state, keys, *kernel); });
    }
    add("lookup/hashes/memory/line/u64", n, read_lines);
    add("hash/single/mix/none/u64", n, hash_each<mix, std::uint64_t>);
    if (n > most_strings) continue;
    add_subjects<std::string_view>(n);
    add("hash/single/xxh3/none/string", n, hash_each<xxh3, std::string_view>);
    add("hash/single/murmur3/none/string", n, hash_each<murmur3, std::string_view>);
  }
}

}  // namespace

int main(int argc, char** argv) {
  add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("kernel", kernel_name());
  benchmark::RunSpecifiedBenchmarks();
}
