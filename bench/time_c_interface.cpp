// Benchmark of the C interface: batches of its three forms of keys, and single keys, next to the same calls of C++ in
// the same process.
//
//   time_c_interface [KEYS] [ROUNDS]      (default: 1,000,000 and 15)
//
// Prints, for each operation, the medians in nanoseconds of thread CPU time per key, and the median, minimum and
// maximum ratio of the C interface to C++ within a round. The layout is split_block, the FPR 1%, one thread.
#include <bloomery.h>
#include <bloomery/any_filter.hpp>
#include <bloomery/kernel.hpp>

#include "round_robin.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

void check(bloomery_code code) {
  if (code == BLOOMERY_OK) return;
  std::fprintf(stderr, "time_c_interface: %s\n", bloomery_error_text());
  std::exit(1);
}

// Runs both in turns and prints a line. `clear` empties both filters before each run of an insert.
void compare(const char* name, std::size_t keys, int rounds, const std::function<void()>& clear,
             const std::function<void()>& in_cpp, const std::function<void()>& in_c) {
  std::vector<double> cpp, c, ratios;
  for (int round = 0; round < rounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      const bool is_c = (turn + round) % 2 == 1;
      clear();
      const double seconds = bench::seconds_of(bench::thread_seconds, is_c ? in_c : in_cpp);
      (is_c ? c : cpp).push_back(1e9 * seconds / static_cast<double>(keys));
    }
    ratios.push_back(c.back() / cpp.back());
  }
  std::printf("%-24s %8.2f %8.2f   %.2f (%.2f to %.2f)\n", name, bench::median(cpp), bench::median(c),
              bench::median(ratios), *std::min_element(ratios.begin(), ratios.end()),
              *std::max_element(ratios.begin(), ratios.end()));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace bloomery;
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) number = random();
  std::string buffer;
  std::vector<std::int64_t> offsets{0};
  for (const std::uint64_t number : numbers) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
    buffer.append(text, 16);
    offsets.push_back(static_cast<std::int64_t>(buffer.size()));
  }
  std::vector<std::string_view> views;
  std::vector<bloomery_bytes> c_views;
  for (std::size_t i = 0; i < count; ++i) {
    views.emplace_back(buffer.data() + 16 * i, 16);
    c_views.push_back({buffer.data() + 16 * i, 16});
  }
  std::vector<std::uint64_t> bitmap(count / 64 + 1);

  bloomery_params params = BLOOMERY_PARAMS(count, 0.01);
  params.layout = "split_block";
  bloomery_filter *c_texts = nullptr, *c_numbers = nullptr;
  check(bloomery_make(&params, &c_texts));
  params.keys = BLOOMERY_U64;
  check(bloomery_make(&params, &c_numbers));
  any_filter texts(complete({.layout = "split_block", .capacity = count, .target_fpr = 0.01}));
  any_filter integers(
      complete({.layout = "split_block", .keys = key_kind::u64le, .capacity = count, .target_fpr = 0.01}));
  const bloomery_keys of_views = bloomery_keys_of_views(c_views.data(), count);
  const bloomery_keys of_offsets = bloomery_keys_of_offsets64(buffer.data(), buffer.size(), offsets.data(), count);
  const bloomery_keys of_numbers = bloomery_keys_of_u64(numbers.data(), count);

  const auto clear = [&] {
    texts.clear();
    integers.clear();
    check(bloomery_clear(c_texts));
    check(bloomery_clear(c_numbers));
  };
  const auto keep = [] {};
  const auto insert = [&](bloomery_filter* filter, const bloomery_keys& keys) {
    return [&keys, filter] { check(bloomery_insert_many(filter, &keys, nullptr, nullptr)); };
  };
  const auto look_up = [&](bloomery_filter* filter, const bloomery_keys& keys) {
    return [&keys, filter, &bitmap] { check(bloomery_contains_bitmap(filter, &keys, bitmap.data(), bitmap.size())); };
  };

  std::printf("%zu keys, split_block, %.2f bits per key, FPR 1%%, one thread, kernels %s, %d rounds\n", count,
              static_cast<double>(texts.bit_size()) / static_cast<double>(count), kernel_name().c_str(), rounds);
  std::printf("%-24s %8s %8s   ratio (range)\n", "ns per key", "C++", "C");
  compare(
      "insert, integers", count, rounds, clear, [&] { integers.insert(numbers); }, insert(c_numbers, of_numbers));
  compare(
      "insert, views", count, rounds, clear, [&] { texts.insert(views); }, insert(c_texts, of_views));
  compare(
      "insert, offsets", count, rounds, clear, [&] { texts.insert(views); }, insert(c_texts, of_offsets));
  compare(
      "insert, one text each", count, rounds, clear,
      [&] {
        for (const std::string_view view : views) texts.insert(view);
      },
      [&] {
        for (const bloomery_bytes& key : c_views) check(bloomery_insert(c_texts, key.data, key.length, nullptr));
      });
  compare(
      "look up, integers", count, rounds, keep, [&] { integers.may_contain(numbers, bitmap); },
      look_up(c_numbers, of_numbers));
  compare(
      "look up, views", count, rounds, keep, [&] { texts.may_contain(views, bitmap); }, look_up(c_texts, of_views));
  compare(
      "look up, offsets", count, rounds, keep, [&] { texts.may_contain(views, bitmap); }, look_up(c_texts, of_offsets));
  compare(
      "look up, one text each", count, rounds, keep,
      [&] {
        std::uint64_t found = 0;
        for (const std::string_view view : views) found += texts.may_contain(view) ? 1 : 0;
        bench::consume(found);
      },
      [&] {
        std::uint64_t sum = 0;
        for (const bloomery_bytes& key : c_views) {
          int found = 0;
          check(bloomery_contains(c_texts, key.data, key.length, &found));
          sum += static_cast<std::uint64_t>(found);
        }
        bench::consume(sum);
      });
  compare(
      "look up, one integer each", count, rounds, keep,
      [&] {
        std::uint64_t found = 0;
        for (const std::uint64_t number : numbers) found += integers.may_contain(number) ? 1 : 0;
        bench::consume(found);
      },
      [&] {
        std::uint64_t sum = 0;
        for (const std::uint64_t number : numbers) {
          int found = 0;
          check(bloomery_contains_u64(c_numbers, number, &found));
          sum += static_cast<std::uint64_t>(found);
        }
        bench::consume(sum);
      });
  check(bloomery_close(c_texts));
  check(bloomery_close(c_numbers));
}
