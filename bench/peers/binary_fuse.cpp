// The binary fuse filters of the C library xor_singleheader as contestants: static filters with fingerprints of 8 and
// 16 bits. Compiled twice: with default flags (BLOOMERY_PEER_BUILD "portable") and for the processor of this machine
// ("native"). Their keys are integers, and they look up one key per call.
#include "peer.hpp"

#include <binaryfusefilter.h>

#include <new>
#include <vector>

namespace {

struct eight_bits {
  using filter = binary_fuse8_t;
  static constexpr auto allocate = binary_fuse8_allocate;
  static constexpr auto populate = binary_fuse8_populate;
  static constexpr auto free = binary_fuse8_free;
  static constexpr auto bytes = binary_fuse8_size_in_bytes;
  static bool has(std::uint64_t key, const filter& f) { return binary_fuse8_contain(key, &f); }
};

struct sixteen_bits {
  using filter = binary_fuse16_t;
  static constexpr auto allocate = binary_fuse16_allocate;
  static constexpr auto populate = binary_fuse16_populate;
  static constexpr auto free = binary_fuse16_free;
  static constexpr auto bytes = binary_fuse16_size_in_bytes;
  static bool has(std::uint64_t key, const filter& f) { return binary_fuse16_contain(key, &f); }
};

template <class Width>
class subject {
 public:
  subject(std::uint64_t, unsigned) {}
  subject(const subject&) = delete;
  subject& operator=(const subject&) = delete;
  ~subject() { clear(); }

  void clear() { Width::free(&filter_); }
  std::uint64_t bytes() const { return Width::bytes(&filter_); }

  /// Copies the keys, because populate() may change them.
  void prepare(std::span<const std::uint64_t> keys) { keys_ = {keys.begin(), keys.end()}; }
  void build(std::span<const std::uint64_t>, unsigned) {
    clear();
    const auto count = static_cast<std::uint32_t>(keys_.size());
    if (!Width::allocate(count, &filter_) || !Width::populate(keys_.data(), count, &filter_)) throw std::bad_alloc();
  }
  bool has(std::uint64_t key) const { return Width::has(key, filter_); }

 private:
  typename Width::filter filter_{};
  std::vector<std::uint64_t> keys_;
};

template <class Width>
bench::contestant<std::uint64_t> contestant_with(const char* name) {
  auto made = bench::contestant_of<subject<Width>, std::uint64_t>(name);
  made.only_bits = bench::bits_of_fuse;
  made.most_keys = bench::most_keys_of_fuse;
  return made;
}

}  // namespace

BLOOMERY_PEERS {
  static const bench::contestant<std::uint64_t> integers[] = {
      contestant_with<eight_bits>("binary_fuse8 " BLOOMERY_PEER_BUILD),
      contestant_with<sixteen_bits>("binary_fuse16 " BLOOMERY_PEER_BUILD)};
  *list = {integers, {}};
}
