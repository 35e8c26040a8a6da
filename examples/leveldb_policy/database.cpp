// Measurement databases: counting reads, observing filters, and filling and reading a LevelDB database.
#include "database.hpp"

#include <bloomery/hash.hpp>

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace leveldb_policy {
namespace {

// Key i, present for i < keys and absent otherwise. Keys are distinct, because mix64 is a bijection.
std::string key_of(std::uint64_t i) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(bloomery::mix64(i)));
  return digits;
}

void require(const leveldb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// ---- counting reads -------------------------------------------------------------------------------------------------

class counted_file : public leveldb::RandomAccessFile {
 public:
  counted_file(leveldb::RandomAccessFile* file, std::atomic<std::uint64_t>& reads) : file_(file), reads_(reads) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result, char* scratch) const override {
    ++reads_;
    return file_->Read(offset, n, result, scratch);
  }

 private:
  std::unique_ptr<leveldb::RandomAccessFile> file_;
  std::atomic<std::uint64_t>& reads_;
};

class counting_env : public leveldb::EnvWrapper {
 public:
  counting_env() : EnvWrapper(leveldb::Env::Default()) {}
  leveldb::Status NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** file) override {
    leveldb::Status status = target()->NewRandomAccessFile(path, file);
    if (status.ok()) *file = new counted_file(*file, reads_);
    return status;
  }
  std::uint64_t reads() const { return reads_; }

 private:
  std::atomic<std::uint64_t> reads_{0};
};

// ---- observing filters ----------------------------------------------------------------------------------------------

// A policy that records the filters made by another.
class observed_policy : public leveldb::FilterPolicy {
 public:
  explicit observed_policy(const leveldb::FilterPolicy& policy) : policy_(policy) {}
  const char* Name() const override { return policy_.Name(); }
  void CreateFilter(const leveldb::Slice* keys, int n, std::string* dst) const override {
    const std::size_t before = dst->size();
    policy_.CreateFilter(keys, n, dst);
    ++filters_of_[{dst->size() - before, static_cast<std::uint64_t>(n)}];
  }
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override {
    return policy_.KeyMayMatch(key, filter);
  }

  // Keys are evenly spread, so the probability that an absent key uses a filter is proportional to the filter's keys.
  filters_made made(const rate_of_filter& rate) const {
    filters_made all;
    double keys_in_all = 0;
    for (const auto& [size, count] : filters_of_) {
      const auto& [bytes, keys] = size;
      const double keys_in_these = static_cast<double>(keys * count);
      all.filters += count;
      all.bytes += bytes * count;
      all.rate += keys_in_these * rate(bytes, keys);
      keys_in_all += keys_in_these;
    }
    if (keys_in_all > 0) all.rate /= keys_in_all;
    return all;
  }

 private:
  const leveldb::FilterPolicy& policy_;
  // Number of filters by size and keys. No lock: LevelDB makes filters in one thread, and this is read after closing.
  mutable std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> filters_of_;
};

// ---- opening --------------------------------------------------------------------------------------------------------

// A database with the objects that must outlive it.
class database {
 public:
  database(const std::string& folder, const leveldb::FilterPolicy* policy) : cache_(leveldb::NewLRUCache(0)) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.env = &env_;
    options.filter_policy = policy;
    options.block_cache = cache_.get();                // capacity 0: every block is read from the file
    options.write_buffer_size = std::size_t{1} << 30;  // LevelDB's maximum: all keys go into one table
    options.compression = leveldb::kNoCompression;     // the same blocks with and without snappy
    leveldb::DB* db = nullptr;
    require(leveldb::DB::Open(options, folder, &db));
    db_.reset(db);
  }
  leveldb::DB& db() { return *db_; }
  std::uint64_t reads() const { return env_.reads(); }

 private:
  counting_env env_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
};

std::uint64_t tables_in(const std::string& folder) {
  std::uint64_t tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) tables += entry.path().extension() == ".ldb";
  return tables;
}

}  // namespace

temporary_folder::temporary_folder() : path_(std::filesystem::temp_directory_path() / "leveldb-policy-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot create the directory " + path_);
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

filters_made fill(const std::string& folder, const workload& work, const leveldb::FilterPolicy* policy,
                  const rate_of_filter& rate) {
  std::vector<std::string> keys;
  keys.reserve(work.keys);
  for (std::uint64_t i = 0; i < work.keys; ++i) keys.push_back(key_of(i));
  std::sort(keys.begin(), keys.end());  // LevelDB inserts sorted keys fastest

  std::unique_ptr<observed_policy> observed;
  if (policy != nullptr) observed = std::make_unique<observed_policy>(*policy);
  {
    database base(folder, observed.get());
    const std::string value(work.value_bytes, 'v');
    leveldb::WriteBatch batch;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      batch.Put(keys[i], value);
      if (i % 1000 == 999 || i + 1 == keys.size()) {
        require(base.db().Write({}, &batch));
        batch.Clear();
      }
    }
    base.db().CompactRange(nullptr, nullptr);  // from memory to the table
  }
  if (tables_in(folder) != 1) throw std::runtime_error("too many keys for one table: use fewer keys");
  return observed == nullptr ? filters_made{} : observed->made(rate);
}

lookups_done look_up(const std::string& folder, const workload& work, const leveldb::FilterPolicy* policy) {
  database base(folder, policy);
  lookups_done done;
  std::string value;
  // Opening the table loads its index and filters into memory: all further reads are data blocks.
  require(base.db().Get({}, key_of(0), &value));

  const std::uint64_t first = base.reads();
  for (std::uint64_t i = 0; i < work.absent_lookups; ++i) {
    const leveldb::Status status = base.db().Get({}, key_of(work.keys + i), &value);
    if (status.ok()) throw std::runtime_error("an absent key was found");
    if (!status.IsNotFound()) require(status);
  }
  const std::uint64_t second = base.reads();
  for (std::uint64_t i = 0; i < work.present_lookups; ++i) {
    const leveldb::Status status = base.db().Get({}, key_of(i % work.keys), &value);
    if (!status.ok() && !status.IsNotFound()) require(status);
    done.lost += status.IsNotFound() ? 1 : 0;
  }

  done.blocks_for_absent = second - first;
  done.blocks_for_present = base.reads() - second;
  return done;
}

}  // namespace leveldb_policy
