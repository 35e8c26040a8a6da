// Bloom filters inside LevelDB: two classes of its interface FilterPolicy.
//
// A table of LevelDB has a filter of its own for every 2 KiB of the file in which data blocks begin, so one for the
// keys of a block or of a few. Before a block is read for a key, its filter is asked.
//
//   line_policy     filters of bloomery's layout `split_block512`; tables with them are read with this policy only
//   builtin_policy  the very bytes of LevelDB's own NewBloomFilterPolicy(): each reads what the other wrote
#pragma once

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <string>

namespace leveldb_policy {

/// Filters of whole lines of 64 bytes, keys hashed by xxh3. A filter is nothing but its lines: their number follows
/// from its length.
///
///   lines = max(1, ceil(n * bits_per_key / 512))     n keys
///
/// So a filter has at least the bits asked for and up to 511 more; see README.md for what that means to small blocks.
class line_policy : public leveldb::FilterPolicy {
 public:
  /// @param bits_per_key  at least 1
  explicit line_policy(int bits_per_key);

  const char* Name() const override;
  void CreateFilter(const leveldb::Slice* keys, int n, std::string* dst) const override;

  /// True for bytes that are no filter of this policy: a damaged filter may cost a read, never a key.
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override;

 private:
  int bits_per_key_;
};

/// LevelDB's own filters, bit for bit, under their own name: for databases that exist, and for those who read tables
/// without LevelDB. [leveldb 1.23, util/bloom.cc]
///
///   | ceil(max(64, n * bits_per_key) / 8) bytes of bits | k: 1 byte |         k = bits_per_key * 0.69, 1 .. 30
///
///   h = hash(key);  step = h rotated right by 17;   k times:  bit h % bits;  h += step  (mod 2^32)
class builtin_policy : public leveldb::FilterPolicy {
 public:
  /// @param bits_per_key  at least 1
  explicit builtin_policy(int bits_per_key);

  const char* Name() const override;
  void CreateFilter(const leveldb::Slice* keys, int n, std::string* dst) const override;

  /// As LevelDB itself: false for less than two bytes, true for a k above 30, which is reserved.
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override;

 private:
  int bits_per_key_;
};

}  // namespace leveldb_policy
