// A table of RocksDB with a Bloom filter, by RocksDB itself. Keys are the lines of standard input.
//
//   rocksdb FILE BITS_PER_KEY FORMAT_VERSION
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>

int main(int count, char** arguments) {
  if (count != 4) return 2;
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(std::atof(arguments[2])));
  table.format_version = static_cast<std::uint32_t>(std::atoi(arguments[3]));
  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  rocksdb::Status status = writer.Open(arguments[1]);
  std::set<std::string> keys;
  for (std::string line; std::getline(std::cin, line);) keys.insert(line);
  for (const std::string& key : keys) {
    if (status.ok()) status = writer.Put(key, "");
  }
  if (status.ok()) status = writer.Finish();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
