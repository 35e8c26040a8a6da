// time_log [KEYS [FOLDER]]: what it costs to grow with a log.
//
// From 100 keys to so many (100 million if not given) at 1 %, in batches of 1000, in a file of the folder (the present
// one if not given). For comparison an any_filter of the size that is right at the end, made in a file there, too.
//
// bits a key   bytes of the filter's file by the keys that are in, from a million keys on (a tenth of all, if that is
//              fewer); while a rebuild is under way, those of both files
// insert       all of it, rebuilds too, by the keys; the right-sized one in the same batches; the same in time of the
//              processor, which other programs disturb less; the longest batch
// look-up      absent keys in batches of 1000, in turns with the right-sized filter: time of the processor, medians, and
//              that of the ratios
#include <bloomery/any_filter.hpp>
#include <bloomery/logged_filter.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

using namespace bloomery;

constexpr std::uint64_t batch = 1000;
constexpr double rate = 0.01;

double seconds_of(auto work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Of all threads.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double processor_seconds_of(auto work) {
  const double begin = processor_seconds();
  work();
  return processor_seconds() - begin;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

std::vector<std::uint64_t> numbers(std::uint64_t first) {
  std::vector<std::uint64_t> keys(batch);
  for (std::uint64_t i = 0; i < batch; ++i) keys[i] = first + i;
  return keys;
}

// 0 if there is none.
double bytes_of(const std::string& path) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(path, missing);
  return missing ? 0 : static_cast<double>(bytes);
}

template <class Filter>
std::uint64_t count_found(const Filter& filter, std::uint64_t first, std::uint64_t batches) {
  std::vector<std::uint64_t> maybe(batch / 64 + 1);
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < batches; ++i) {
    const auto keys = numbers(first + i * batch);
    filter.may_contain(std::span<const std::uint64_t>(keys), maybe);
    for (const std::uint64_t word : maybe) found += static_cast<std::uint64_t>(__builtin_popcountll(word));
  }
  return found;
}

void compare(std::uint64_t keys, const std::string& folder) {
  const std::string path = folder + "/time_log.bloom";
  const std::string right_path = folder + "/time_log.right.bloom";
  logged_filter grown = logged_filter::create(path, {.keys = key_kind::u64le, .capacity = 100, .target_rate = rate});
  const double begin = processor_seconds();
  double longest = 0, insert = 0, at_rest = 0, growing = 0;
  for (std::uint64_t first = 0; first < keys; first += batch) {
    const auto some = numbers(first);
    const double time = seconds_of([&] { grown.insert(std::span<const std::uint64_t>(some)); });
    insert += time;
    longest = std::max(longest, time);
    if (first < std::min<std::uint64_t>(1'000'000, keys / 10)) continue;
    const double bits = 8 / static_cast<double>(first + batch);
    if (first % (16 * batch) != 0) continue;
    const double next = bytes_of(path + ".rebuild");
    at_rest = std::max(at_rest, bits * bytes_of(path));
    if (next > 0) growing = std::max(growing, bits * (bytes_of(path) + next));
  }
  insert += seconds_of([&] { grown.settle(); });
  const double insert_processor = processor_seconds() - begin;
  const double n = static_cast<double>(keys);
  const std::uint64_t asked = std::uint64_t{1} << 60;
  constexpr std::uint64_t batches = 4000;
  std::printf("%llu keys, layout %s, grown in %llu rebuilds, log %.2f bytes a key\n",
              static_cast<unsigned long long>(keys), grown.parameters().layout.c_str(),
              static_cast<unsigned long long>(grown.rebuilds()), static_cast<double>(grown.log().bytes()) / n);
  std::printf("bits a key at rest   %6.2f at most, %.2f at the end\n", at_rest, 8 / n * bytes_of(path));
  std::printf("while growing        %6.2f at most\n", growing);
  std::printf("rate                 %6.3f %%, measured\n",
              100 * static_cast<double>(count_found(grown, asked, batches)) / static_cast<double>(batches * batch));

  any_filter right = any_filter::create(
      right_path,
      {.layout = grown.parameters().layout, .keys = key_kind::u64le, .capacity = keys, .target_rate = rate});
  double right_insert = 0;
  const double right_begin = processor_seconds();
  for (std::uint64_t first = 0; first < keys; first += batch) {
    const auto some = numbers(first);
    right_insert += seconds_of([&] { right.insert(std::span<const std::uint64_t>(some)); });
  }
  const double right_processor = processor_seconds() - right_begin;
  std::printf("insert               %6.1f ns a key, right-sized %.1f: %.2f times; longest batch of %llu %.1f ms\n",
              1e9 * insert / n, 1e9 * right_insert / n, insert / right_insert, static_cast<unsigned long long>(batch),
              1e3 * longest);
  std::printf("  of the processor   %6.1f ns a key, right-sized %.1f: %.2f times\n", 1e9 * insert_processor / n,
              1e9 * right_processor / n, insert_processor / right_processor);
  std::vector<double> ours, rights, ratios;
  std::uint64_t found = 0;
  for (std::uint64_t round = 0; round <= 15; ++round) {
    const std::uint64_t first = asked + (round + 1) * batches * batch;
    const double a = processor_seconds_of([&] { found += count_found(grown, first, batches); });
    const double b = processor_seconds_of([&] { found += count_found(right, first, batches); });
    if (round == 0) continue;  // warming up
    ours.push_back(a);
    rights.push_back(b);
    ratios.push_back(a / b);
  }
  const double asked_keys = static_cast<double>(batches * batch);
  std::printf("look-up              %6.2f ns a key, right-sized %.2f: %.2f times (%llu found)\n",
              1e9 * median(ours) / asked_keys, 1e9 * median(rights) / asked_keys, median(ratios),
              static_cast<unsigned long long>(found));
  grown.abandon();
  right.close();
  for (const std::string& file : {path, path + ".log", right_path}) std::filesystem::remove(file);
}

}  // namespace

int main(int argc, char** argv) try {
  const long long keys = argc > 1 ? std::atoll(argv[1]) : 100'000'000;
  if (keys < 200'000) throw std::runtime_error("usage: time_log [KEYS [FOLDER]], 200000 keys or more");
  compare(static_cast<std::uint64_t>(keys), argc > 2 ? argv[2] : ".");
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_log: %s\n", e.what());
  return 1;
}
