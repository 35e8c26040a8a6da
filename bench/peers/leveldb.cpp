// LevelDB's built-in filter as a contestant, through its public interface, which builds a filter from all keys at once.
// An integer is passed as a slice of its 8 bytes.
#include "peer.hpp"

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using leveldb::Slice;

Slice slice_of(const std::uint64_t& key) { return {reinterpret_cast<const char*>(&key), sizeof key}; }
Slice slice_of(const std::string_view& key) { return {key.data(), key.size()}; }

template <class Key>
class subject {
 public:
  subject(std::uint64_t, unsigned bits_per_key)
      : policy_(leveldb::NewBloomFilterPolicy(static_cast<int>(bits_per_key))) {}

  void clear() { filter_.clear(); }
  std::uint64_t bytes() const { return filter_.size(); }

  void prepare(std::span<const Key> keys) {
    slices_ = {};
    slices_.reserve(keys.size());
    for (const Key& key : keys) slices_.push_back(slice_of(key));
  }
  void insert_bulk(std::span<const Key>) {
    policy_->CreateFilter(slices_.data(), static_cast<int>(slices_.size()), &filter_);
  }
  bool has(const Key& key) const { return policy_->KeyMayMatch(slice_of(key), filter_); }

 private:
  std::unique_ptr<const leveldb::FilterPolicy> policy_;
  std::vector<Slice> slices_;
  std::string filter_;
};

}  // namespace

BLOOMERY_PEERS {
  using namespace bench;
  static auto integers = contestant_of<subject<std::uint64_t>, std::uint64_t>("leveldb");
  static auto strings = contestant_of<subject<std::string_view>, std::string_view>("leveldb");
  integers.most_keys = strings.most_keys = 200'000'000;  // it counts in int and copies a slice per key
  *list = {{&integers, 1}, {&strings, 1}};
}
