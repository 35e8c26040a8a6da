// LevelDB's Bloom filters, by LevelDB itself. Keys are the lines of standard input.
//
//   leveldb filter FILE BITS_PER_KEY        writes what CreateFilter makes of the keys
//   leveldb match FILE                      prints 1 or 0 per key: KeyMayMatch
//   leveldb table FILE BITS_PER_KEY METHOD  writes a table of the keys; METHOD: none or snappy
//   leveldb get FILE                        prints 1 or 0 per key: whether a lookup in a database with this table alone
//                                           finds the key in the filter of its data block
//   leveldb database FOLDER ORDER           makes a database of one table of the keys; ORDER: bytewise or reverse, a
//                                           comparator of this program
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines() {
  std::vector<std::string> keys;
  for (std::string line; std::getline(std::cin, line);) keys.push_back(line);
  return keys;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// The built-in policy, which notes the answer of its last lookup.
class noting_policy : public leveldb::FilterPolicy {
 public:
  explicit noting_policy(int bits_per_key) : policy_(leveldb::NewBloomFilterPolicy(bits_per_key)) {}

  const char* Name() const override { return policy_->Name(); }
  void CreateFilter(const leveldb::Slice* keys, int n, std::string* to) const override {
    policy_->CreateFilter(keys, n, to);
  }
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override {
    return matched = policy_->KeyMayMatch(key, filter);
  }

  mutable bool matched = false;

 private:
  std::unique_ptr<const leveldb::FilterPolicy> policy_;
};

void check(const leveldb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// A database in a new folder, removed at the end.
class database {
 public:
  database(int bits_per_key, bool compressed) : policy(bits_per_key) {
    char name[] = "/tmp/leveldb.XXXXXX";
    if (mkdtemp(name) == nullptr) std::exit(1);
    folder = name;
    options.create_if_missing = true;
    options.filter_policy = &policy;
    options.block_size = 1024;
    options.compression = compressed ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  }
  ~database() {
    db.reset();
    fs::remove_all(folder);
  }

  void open() {
    leveldb::DB* opened = nullptr;
    check(leveldb::DB::Open(options, folder.string(), &opened));
    db.reset(opened);
  }

  // The only table.
  fs::path table() const {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".ldb") return entry.path();
    }
    return {};
  }

  noting_policy policy;
  leveldb::Options options;
  fs::path folder;
  std::unique_ptr<leveldb::DB> db;
};

int write_table(const std::string& path, int bits_per_key, bool compressed) {
  database data(bits_per_key, compressed);
  data.open();
  leveldb::WriteBatch batch;
  for (const std::string& key : lines()) batch.Put(key, "value");
  check(data.db->Write({}, &batch));
  data.db->CompactRange(nullptr, nullptr);
  data.db.reset();
  fs::copy_file(data.table(), path, fs::copy_options::overwrite_existing);
  return 0;
}

// LevelDB's RepairDB makes a database of a table.
int get(const std::string& path) {
  database data(10, false);
  fs::copy_file(path, data.folder / "000005.ldb");
  check(leveldb::RepairDB(data.folder.string(), data.options));
  data.open();
  for (const std::string& key : lines()) {
    std::string value;
    data.policy.matched = false;
    const leveldb::Status status = data.db->Get({}, key, &value);
    if (!status.IsNotFound()) check(status);
    std::puts(data.policy.matched ? "1" : "0");
  }
  return 0;
}

// Orders keys by their bytes, the last one first.
class reverse_order : public leveldb::Comparator {
 public:
  int Compare(const leveldb::Slice& a, const leveldb::Slice& b) const override { return b.compare(a); }
  const char* Name() const override { return "reverse"; }
  void FindShortestSeparator(std::string*, const leveldb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

int make_database(const std::string& folder, bool reverse) {
  const std::unique_ptr<const leveldb::FilterPolicy> policy(leveldb::NewBloomFilterPolicy(10));
  const reverse_order order;
  leveldb::Options options;
  options.create_if_missing = true;
  options.filter_policy = policy.get();
  options.block_size = 1024;
  if (reverse) options.comparator = &order;
  leveldb::DB* opened = nullptr;
  check(leveldb::DB::Open(options, folder, &opened));
  const std::unique_ptr<leveldb::DB> data(opened);
  leveldb::WriteBatch batch;
  for (const std::string& key : lines()) batch.Put(key, "value");
  check(data->Write({}, &batch));
  data->CompactRange(nullptr, nullptr);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string work = count > 2 ? arguments[1] : "";
  const std::string path = count > 2 ? arguments[2] : "";
  const int bits_per_key = count > 3 ? std::atoi(arguments[3]) : 10;
  if (work == "table" && count == 5) return write_table(path, bits_per_key, std::string(arguments[4]) == "snappy");
  if (work == "get") return get(path);
  if (work == "database" && count == 4) return make_database(path, std::string(arguments[3]) == "reverse");
  const std::unique_ptr<const leveldb::FilterPolicy> policy(leveldb::NewBloomFilterPolicy(bits_per_key));
  if (work == "filter" && count == 4) {
    const std::vector<std::string> keys = lines();
    const std::vector<leveldb::Slice> slices(keys.begin(), keys.end());
    std::string filter;
    policy->CreateFilter(slices.data(), static_cast<int>(slices.size()), &filter);
    std::ofstream(path, std::ios::binary) << filter;
    return 0;
  }
  if (work != "match") return 2;
  const std::string filter = content_of(path);
  for (const std::string& key : lines()) std::puts(policy->KeyMayMatch(key, filter) ? "1" : "0");
  return 0;
}
