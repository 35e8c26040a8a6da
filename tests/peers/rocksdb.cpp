// Tables of RocksDB and their filters, by RocksDB itself. Keys are the lines of standard input.
//
//   rocksdb table FILE BITS_PER_KEY FORMAT_VERSION [OPTION...]  writes a table of the keys; options: see table_of()
//   rocksdb get FILE                                            prints 1 or 0 per key, which is between the first and
//                                                               the last one of the table: what its filter reports
//   rocksdb hashes                                              prints length, Hash64 and Hash of some keys
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace rocksdb {

// Internal functions that the library exports.
std::uint64_t Hash64(const char* data, std::size_t size);
std::uint32_t Hash(const char* data, std::size_t size, std::uint32_t seed);

}  // namespace rocksdb

namespace {

namespace fs = std::filesystem;

void require(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::vector<std::string> lines() {
  std::vector<std::string> keys;
  for (std::string line; std::getline(std::cin, line);) keys.push_back(line);
  return keys;
}

// Options of a database whose tables have filters.
rocksdb::Options table_of(double bits_per_key, unsigned version, const std::set<std::string>& options = {}) {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(bits_per_key));
  table.format_version = version;
  const auto has = [&](const char* option) { return options.contains(option); };
  rocksdb::Options result;
  if (has("ribbon")) table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(bits_per_key));
  if (has("partitioned")) {
    table.partition_filters = true;
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  }
  if (has("prefixes")) table.whole_key_filtering = false;
  if (has("prefixes") || has("prefixes_and_keys")) result.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(3));
  if (has("no_checksum")) table.checksum = rocksdb::kNoChecksum;
  if (has("crc32c")) table.checksum = rocksdb::kCRC32c;
  if (has("xxh32")) table.checksum = rocksdb::kxxHash;
  if (has("xxh64")) table.checksum = rocksdb::kxxHash64;
  if (has("xxh3")) table.checksum = rocksdb::kXXH3;
  result.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return result;
}

void write_table(const std::string& path, double bits_per_key, unsigned version, const std::set<std::string>& options) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), table_of(bits_per_key, version, options));
  require(writer.Open(path));
  const std::vector<std::string> keys = lines();
  for (const std::string& key : std::set<std::string>(keys.begin(), keys.end())) require(writer.Put(key, ""));
  require(writer.Finish());
}

void print_answers(const std::string& path) {
  const std::string folder = path + ".database";
  rocksdb::Options options = table_of(10, 5);
  options.create_if_missing = true;
  rocksdb::DB* opened = nullptr;
  require(rocksdb::DB::Open(options, folder, &opened));
  std::unique_ptr<rocksdb::DB> database(opened);
  require(database->IngestExternalFile({path}, {}));
  rocksdb::SetPerfLevel(rocksdb::kEnableCount);
  for (const std::string& key : lines()) {
    rocksdb::get_perf_context()->Reset();
    std::string value;
    database->Get(rocksdb::ReadOptions(), key, &value);
    const std::uint64_t hits = rocksdb::get_perf_context()->bloom_sst_hit_count;
    const std::uint64_t misses = rocksdb::get_perf_context()->bloom_sst_miss_count;
    if (hits + misses != 1) {
      std::fprintf(stderr, "%s: not one lookup in the filter\n", key.c_str());
      std::exit(1);
    }
    std::puts(hits == 1 ? "1" : "0");
  }
  database.reset();
  fs::remove_all(folder);
}

void print_hash(std::size_t size) {
  std::string key;  // byte i of a key of n bytes: 197 i + n + 31 (i / 256)
  for (std::size_t i = 0; i < size; ++i) key += static_cast<char>(197 * i + size + 31 * (i / 256));
  std::printf("%zu %016llx %08x\n", size, static_cast<unsigned long long>(rocksdb::Hash64(key.data(), size)),
              rocksdb::Hash(key.data(), size, 0xBC9F1D34));
}

void print_hashes() {
  for (std::size_t size = 0; size < 300; ++size) print_hash(size);
  for (std::size_t stripes = 5; stripes <= 50; ++stripes) {
    for (const std::size_t size : {64 * stripes - 1, 64 * stripes, 64 * stripes + 1}) print_hash(size);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() >= 4 && words[0] == "table") {
    write_table(words[1], std::atof(words[2].c_str()), static_cast<unsigned>(std::atoi(words[3].c_str())),
                {words.begin() + 4, words.end()});
  } else if (words.size() == 2 && words[0] == "get") {
    print_answers(words[1]);
  } else if (words.size() == 1 && words[0] == "hashes") {
    print_hashes();
  } else {
    return 2;
  }
}
