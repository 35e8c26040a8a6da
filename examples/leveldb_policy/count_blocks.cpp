// Block-read benchmark: count_blocks counts the data blocks that LevelDB reads for absent keys without a filter, with
// its own filters, and with bloomery's.
//
//   count_blocks [KEYS [VALUE_BYTES [BITS_PER_KEY]]]      1000000 100 10
//
// The split_block512 filters consist of whole 64-byte lines, so they have more bits than requested. LevelDB's own
// filters are measured with the requested bits, and again with at least as much memory as the split_block512 filters.
#include "database.hpp"
#include "filter_policies.hpp"

#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

namespace {

using namespace leveldb_policy;

double line_rate(std::uint64_t bytes, std::uint64_t keys) {
  return bloomery::layouts::split_block512::expected_fpr({8 * bytes, bloomery::layouts::split_block512::lanes}, keys);
}

// The FPR of k independent probes. LevelDB's probes are steps from one 32-bit hash, with a higher FPR in short filters.
rate_of_filter builtin_rate(int bits_per_key) {
  const auto k = static_cast<std::uint32_t>(std::clamp(static_cast<int>(bits_per_key * 0.69), 1, 30));
  return [k](std::uint64_t bytes, std::uint64_t keys) {
    return bloomery::layouts::classic::expected_fpr({8 * (bytes - 1), k}, keys);
  };
}

struct row {
  filters_made made;
  lookups_done done;
};

row measure(const workload& work, const leveldb::FilterPolicy* writer, const leveldb::FilterPolicy* reader,
            const rate_of_filter& rate) {
  const temporary_folder folder;
  row result;
  result.made = fill(folder.path(), work, writer, rate);
  result.done = look_up(folder.path(), work, reader);
  return result;
}

double bits_per_key(const row& r, const workload& work) {
  return 8 * static_cast<double>(r.made.bytes) / static_cast<double>(work.keys);
}

// The minimum of bits per key at which LevelDB's own filters take at least as much memory; each has a byte for k.
int bits_of_equal_memory(const row& lines, const workload& work) {
  const double extra = 8 * static_cast<double>(lines.made.filters) / static_cast<double>(work.keys);
  return std::max(1, static_cast<int>(std::ceil(bits_per_key(lines, work) - extra)));
}

// Returns false if a key was lost.
bool print(const std::string& name, const row& r, const workload& work, double expected) {
  const auto per_thousand = [](std::uint64_t blocks, std::uint64_t lookups) {
    return 1000 * static_cast<double>(blocks) / static_cast<double>(lookups);
  };
  std::printf("%-26s %10.2f %14llu %14.2f %12.2f %10.0f\n", name.c_str(), bits_per_key(r, work),
              static_cast<unsigned long long>(r.made.bytes),
              per_thousand(r.done.blocks_for_absent, work.absent_lookups), 1000 * expected,
              per_thousand(r.done.blocks_for_present, work.present_lookups));
  if (r.done.lost == 0) return true;
  std::fprintf(stderr, "count_blocks: %s lost %llu keys\n", name.c_str(), static_cast<unsigned long long>(r.done.lost));
  return false;
}

bool run(const workload& work, int bits) {
  const split_block512_policy line(bits);
  const row lines = measure(work, &line, &line, line_rate);

  std::printf("%llu keys of 16 bytes with values of %zu, %.1f keys a filter. Blocks read per 1000 lookups:\n\n",
              static_cast<unsigned long long>(work.keys), work.value_bytes,
              static_cast<double>(work.keys) / static_cast<double>(lines.made.filters));
  std::printf("%-26s %10s %14s %14s %12s %10s\n", "filter", "bits per key", "filter bytes", "absent keys", "by formula",
              "present");

  bool all_found = print("none", measure(work, nullptr, nullptr, {}), work, 1);
  const auto print_builtin = [&](int own_bits, bool read_by_bloomery) {
    const std::unique_ptr<const leveldb::FilterPolicy> own(leveldb::NewBloomFilterPolicy(own_bits));
    const builtin_policy ours(own_bits);
    const leveldb::FilterPolicy* const reader = read_by_bloomery ? &ours : own.get();
    const row r = measure(work, own.get(), reader, builtin_rate(own_bits));
    const std::string name =
        read_by_bloomery ? "  read by bloomery" : "LevelDB's, " + std::to_string(own_bits) + " bits";
    all_found &= print(name, r, work, r.made.rate);
  };
  print_builtin(bits, false);
  print_builtin(bits, true);
  if (const int equal_bits = bits_of_equal_memory(lines, work); equal_bits != bits) print_builtin(equal_bits, false);
  all_found &= print("line, at least " + std::to_string(bits) + " bits", lines, work, lines.made.rate);
  return all_found;
}

}  // namespace

int main(int count, char** words) try {
  workload work;
  int bits = 10;
  if (count > 1) work.keys = std::stoull(words[1]);
  if (count > 2) work.value_bytes = std::stoull(words[2]);
  if (count > 3) bits = std::stoi(words[3]);
  work.absent_lookups = work.keys;
  work.present_lookups = (work.keys + 9) / 10;
  if (count > 4 || work.keys == 0 || bits < 1) {
    std::fprintf(stderr, "usage: count_blocks [KEYS [VALUE_BYTES [BITS_PER_KEY]]], each at least 1\n");
    return 2;
  }
  return run(work, bits) ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "count_blocks: %s\n", e.what());
  return 2;
}
