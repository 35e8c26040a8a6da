// Bloom filters inside LevelDB: two classes of its interface FilterPolicy.
//
// A LevelDB table has a filter for every 2 KiB of the file in which data blocks begin, so one for the keys of one or a
// few blocks. LevelDB looks a key up in the filter before it reads the block.
//
//   split_block512_policy  filters of bloomery's layout `split_block512`; only this policy reads tables with them
//   builtin_policy         byte-compatible with LevelDB's own NewBloomFilterPolicy(), in both directions
#pragma once

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <string>

namespace leveldb_policy {

/// Filters of 64-byte cache lines, with keys hashed by xxh3. A filter consists only of its lines; their number follows
/// from its length.
///
///   lines = max(1, ceil(n * bits_per_key / 512))     n keys
///
/// So a filter has up to 511 bits more than requested; README.md describes the effect on small blocks.
class split_block512_policy : public leveldb::FilterPolicy {
 public:
  /// @param bits_per_key  at least 1
  explicit split_block512_policy(int bits_per_key);

  const char* Name() const override;
  void CreateFilter(const leveldb::Slice* keys, int n, std::string* dst) const override;

  /// True for bytes that are not a filter of this policy: a damaged filter may cost a read, but never loses a key.
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override;

 private:
  int bits_per_key_;
};

/// Filters identical to LevelDB's own, under the same name: for existing databases, and for programs that read tables
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

  /// Like LevelDB: false for less than two bytes, true for a k above 30, which is reserved.
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override;

 private:
  int bits_per_key_;
};

}  // namespace leveldb_policy
