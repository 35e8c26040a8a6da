// Benchmark of static filters: memory, FPR, build and lookups for several widths of fingerprints, all in one process.
//
//   time_static [KEYS] [ROUNDS]      (default: 10,000,000 and 9)
//
// Prints per width the bits per key, the measured FPR, and medians of the thread CPU time per key in nanoseconds.
// Ratios are those to fuse8 within a round: median, minimum and maximum. The keys are random integers with hash mix.
#include <bloomery/kernel.hpp>
#include <bloomery/static_filter.hpp>

#include "round_robin.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bench {
namespace {

using namespace bloomery;

// Operations with the same keys, for a filter of any type.
struct contestant {
  std::string name;
  double bits_per_key;
  double fpr;
  std::map<std::string, std::function<void()>> passes;
};

struct key_lists {
  std::vector<std::uint64_t> present, absent;
};

key_lists keys_for(std::size_t count) {
  key_lists lists{std::vector<std::uint64_t>(count), std::vector<std::uint64_t>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    lists.present[i] = mix64(i);
    lists.absent[i] = mix64(~i);
  }
  return lists;
}

template <class Fingerprint>
contestant contestant_of(const key_lists& keys) {
  using filter = static_filter<std::uint64_t, Fingerprint>;
  const auto built = std::make_shared<filter>(filter::build(keys.present));
  const auto bitmap = std::make_shared<std::vector<std::uint64_t>>(keys.present.size() / 64 + 1);
  built->may_contain(keys.absent, *bitmap);
  std::uint64_t found = 0;
  for (const std::uint64_t word : *bitmap) found += static_cast<std::uint64_t>(std::popcount(word));
  const auto count = static_cast<double>(keys.present.size());
  contestant c{built->parameters().layout,
               static_cast<double>(built->bit_size()) / count,
               static_cast<double>(found) / count,
               {}};
  c.passes["build, 1 thread"] = [&keys] { consume(filter::build(keys.present, 1).byte_size()); };
  for (const bool present : {true, false}) {
    const std::vector<std::uint64_t>& asked = present ? keys.present : keys.absent;
    const std::string of = present ? ", present" : ", absent";
    c.passes["look up, batch" + of] = [built, bitmap, &asked] { built->may_contain(asked, *bitmap); };
    c.passes["look up, one by one" + of] = [built, &asked] {
      std::uint64_t sum = 0;
      for (const std::uint64_t key : asked) sum += built->may_contain(key) ? 1 : 0;
      consume(sum);
    };
  }
  return c;
}

template <unsigned Width>
using ribbon_bits = fingerprint_bits<Width, static_structure::ribbon>;

void run(std::size_t count, int rounds) {
  const key_lists keys = keys_for(count);
  const std::vector<contestant> all = {
      contestant_of<std::uint8_t>(keys),         contestant_of<fingerprint_bits<7>>(keys),
      contestant_of<fingerprint_bits<10>>(keys), contestant_of<fingerprint_bits<14>>(keys),
      contestant_of<std::uint16_t>(keys),        contestant_of<fingerprint_bits<20>>(keys),
      contestant_of<ribbon_bits<7>>(keys),       contestant_of<ribbon_bits<8>>(keys),
      contestant_of<ribbon_bits<10>>(keys),      contestant_of<ribbon_bits<14>>(keys),
      contestant_of<ribbon_bits<16>>(keys),      contestant_of<ribbon_bits<20>>(keys)};
  std::printf("%zu keys, one thread, kernels %s, %d rounds\n", count, kernel_name().c_str(), rounds);
  for (const contestant& c : all)
    std::printf("%-8s %6.3f bits per key, FPR %.3g%%\n", c.name.c_str(), c.bits_per_key, 100 * c.fpr);
  for (const auto& [operation, unused] : all.front().passes) {
    std::vector<std::vector<double>> times(all.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t turn = 0; turn < all.size(); ++turn) {
        const std::size_t i = (turn + static_cast<std::size_t>(round)) % all.size();
        times[i].push_back(1e9 * seconds_of(thread_seconds, all[i].passes.at(operation)) / static_cast<double>(count));
      }
    }
    std::printf("\n%s\n", operation.c_str());
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<double> ratios;
      for (std::size_t round = 0; round < times[i].size(); ++round)
        ratios.push_back(times[i][round] / times.front()[round]);
      std::printf("%-8s %8.2f ns   %.2f (%.2f to %.2f)\n", all[i].name.c_str(), median(times[i]), median(ratios),
                  *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()));
    }
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000, argc > 2 ? std::atoi(argv[2]) : 9);
}
