// The state of dedup --grow: a filter that keeps a log, in the shape that dedup wants of a filter.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/key_hash.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace bloomery::cli {

/// A filter to hash with: hashes do not depend on the size.
inline any_filter hasher_for(params p) {
  p.geometry = {};
  p.capacity = 1;
  p.target_fpr = 0.5;
  p.log_id = 0;
  return any_filter(std::move(p));
}

class logged_state {
 public:
  explicit logged_state(rebuilding_filter filter)
      : filter_(std::move(filter)), hasher_(hasher_for(filter_.parameters())), rate_(filter_.expected_fpr()) {}

  void may_contain(std::span<const key_hash> hashes, std::span<std::uint64_t> bitmap) const {
    filter_.may_contain(hashes, bitmap);
  }

  /// Keys that were all looked up in the filter as it is, and found absent: for each of them, rate / (1 - rate) more
  /// came that were not.
  void insert(std::span<const key_hash> hashes) {
    if (rate_ < 1) expected_losses_ += rate_ / (1 - rate_) * static_cast<double>(hashes.size());
    filter_.insert(hashes);
    rate_ = filter_.expected_fpr();
  }

  void close() { filter_.close(); }
  std::uint64_t insert_count() const { return filter_.insert_count(); }

  any_filter& hasher() { return hasher_; }
  const rebuilding_filter& filter() const { return filter_; }
  double expected_losses() const { return expected_losses_; }
  double rate() const { return rate_; }

 private:
  rebuilding_filter filter_;
  any_filter hasher_;
  double expected_losses_ = 0;
  double rate_;
};

}  // namespace bloomery::cli
