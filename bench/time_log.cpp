// Growth benchmark of rebuilding filters: time_log [KEYS [FOLDER]] grows a filter file with a key log from 100 to KEYS
// keys.
//
// KEYS (default 100 million) are inserted at 1% in batches of 1000, into a file in FOLDER (default: the current one).
// For comparison an any_filter with the final capacity is filled in a file there, too.
//
// bits per key  size of the filter's file per inserted key, from a million keys on (or from a tenth of KEYS if that is
//               less); during a rebuild, the size of both files
// insert        time per key with all rebuilds, also for the right-sized filter; the same in CPU time, on which other
//               programs have less influence; the longest batch
//
// --json FILE also writes the figures that have a target as JSON. time_families measures lookups.
#include "lookups.hpp"
#include "machine_facts.hpp"
#include "round_robin.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace {

using namespace bloomery;

constexpr std::uint64_t batch = 1000;
constexpr double target_fpr = 0.01;

std::vector<std::uint64_t> numbers(std::uint64_t first) {
  std::vector<std::uint64_t> keys(batch);
  for (std::uint64_t i = 0; i < batch; ++i) keys[i] = first + i;
  return keys;
}

// The file size; 0 if the file does not exist.
double bytes_of(const std::string& path) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(path, missing);
  return missing ? 0 : static_cast<double>(bytes);
}

double measured_fpr_of(const rebuilding_filter& filter) {
  constexpr std::uint64_t batches = 4000;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < batches; ++i) {
    const auto absent = numbers((std::uint64_t{1} << 60) + i * batch);
    found += bench::count_batch(filter, std::span<const std::uint64_t>(absent));
  }
  return static_cast<double>(found) / static_cast<double>(batches * batch);
}

void grow(std::uint64_t keys, const std::string& folder, const std::string& json_file) {
  const std::string path = folder + "/time_log.bloom";
  const std::string right_path = folder + "/time_log.right.bloom";
  rebuilding_filter grown =
      rebuilding_filter::create(path, {.keys = key_kind::u64le, .capacity = 100, .target_fpr = target_fpr});
  const double begin = bench::processor_seconds();
  double longest = 0, insert = 0, at_rest = 0, rebuilding = 0;
  for (std::uint64_t first = 0; first < keys; first += batch) {
    const auto some = numbers(first);
    const double time =
        bench::seconds_of(bench::wall_seconds, [&] { grown.insert(std::span<const std::uint64_t>(some)); });
    insert += time;
    longest = std::max(longest, time);
    if (first < std::min<std::uint64_t>(1'000'000, keys / 10)) continue;
    const double bits = 8 / static_cast<double>(first + batch);
    if (first % (16 * batch) != 0) continue;
    const double next = bytes_of(path + ".rebuild");
    at_rest = std::max(at_rest, bits * bytes_of(path));
    if (next > 0) rebuilding = std::max(rebuilding, bits * (bytes_of(path) + next));
  }
  insert += bench::seconds_of(bench::wall_seconds, [&] { grown.settle(); });
  const double insert_processor = bench::processor_seconds() - begin;
  const double n = static_cast<double>(keys);
  const double measured = measured_fpr_of(grown);
  std::printf("%llu keys, layout %s, grown in %llu rebuilds, log %.2f bytes per key\n",
              static_cast<unsigned long long>(keys), grown.parameters().layout.c_str(),
              static_cast<unsigned long long>(grown.rebuilds()), static_cast<double>(grown.log().bytes()) / n);
  std::printf("bits per key at rest %6.2f at most, %.2f at the end\n", at_rest, 8 / n * bytes_of(path));
  std::printf("during a rebuild     %6.2f at most\n", rebuilding);
  std::printf("measured FPR         %6.3f%%\n", 100 * measured);

  any_filter right = any_filter::create(
      right_path,
      {.layout = grown.parameters().layout, .keys = key_kind::u64le, .capacity = keys, .target_fpr = target_fpr});
  double right_insert = 0;
  const double right_begin = bench::processor_seconds();
  for (std::uint64_t first = 0; first < keys; first += batch) {
    const auto some = numbers(first);
    right_insert += bench::seconds_of(bench::wall_seconds, [&] { right.insert(std::span<const std::uint64_t>(some)); });
  }
  const double right_processor = bench::processor_seconds() - right_begin;
  std::printf("insert               %6.1f ns per key, right-sized %.1f, ratio %.2f; longest batch of %llu %.1f ms\n",
              1e9 * insert / n, 1e9 * right_insert / n, insert / right_insert, static_cast<unsigned long long>(batch),
              1e3 * longest);
  std::printf("  CPU time           %6.1f ns per key, right-sized %.1f, ratio %.2f\n", 1e9 * insert_processor / n,
              1e9 * right_processor / n, insert_processor / right_processor);
  bench::write_json(json_file, {{"keys", keys},
                                {"bits_at_rest", at_rest},
                                {"bits_growing", rebuilding},
                                {"rebuilds", grown.rebuilds()},
                                {"rate", grown.expected_fpr()},
                                {"measured", measured},
                                {"insert_ratio", insert_processor / right_processor},
                                {"longest_batch_ms", 1e3 * longest}});
  grown.abandon();
  right.close();
  for (const std::string& file : {path, path + ".log", right_path}) std::filesystem::remove(file);
}

}  // namespace

int main(int argc, char** argv) try {
  std::uint64_t keys = 100'000'000;
  std::string folder = ".", json_file;
  CLI::App app("memory and insert time of a rebuilding filter that grows from 100 keys at 1%");
  app.add_option("KEYS", keys, "keys to insert")->check(CLI::Range(200'000L, 100'000'000'000L))->capture_default_str();
  app.add_option("FOLDER", folder, "folder of the filter files")->capture_default_str();
  app.add_option("--json", json_file, "write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  grow(keys, folder, json_file);
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_log: %s\n", e.what());
  return 1;
}
