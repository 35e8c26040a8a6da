// Filters chosen at run time: calls on keys and on hashes.
#include "filters/any_filter_impl.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery {

bool any_filter::insert(std::string_view key) {
  impl_->want(key_kind::bytes);
  impl_->want_writable();
  if (!uses_hashes()) return impl_->insert_by_scheme(key);
  impl& b = *impl_;
  if (b.window) return b.insert_one_in_window(b.hash_one(key));
  return b.counted(b.single->insert_bytes(b.data, b.parameters.geometry, b.seed, key), [&] { return b.hash_one(key); });
}

bool any_filter::insert(std::uint64_t key) {
  impl_->want(key_kind::u64le);
  impl_->want_writable();
  impl& b = *impl_;
  if (b.window) return b.insert_one_in_window(b.hash_one(key));
  return b.counted(b.single->insert_integer(b.data, b.parameters.geometry, b.seed, key),
                   [&] { return b.hash_one(key); });
}

void any_filter::insert(std::span<const std::string_view> keys, std::span<std::uint8_t> is_new) {
  detail::check_answers("any_filter::insert", keys.size(), is_new.size());
  impl_->want(key_kind::bytes);
  impl_->want_writable();
  if (uses_hashes()) {
    impl_->insert_keys(keys, is_new.empty() ? nullptr : is_new.data());
    return;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool fresh = impl_->insert_by_scheme(keys[i]);
    if (!is_new.empty()) is_new[i] = fresh ? 1 : 0;
  }
}

void any_filter::insert(std::span<const std::uint64_t> keys, std::span<std::uint8_t> is_new) {
  detail::check_answers("any_filter::insert", keys.size(), is_new.size());
  impl_->want(key_kind::u64le);
  impl_->want_writable();
  impl_->insert_keys(keys, is_new.empty() ? nullptr : is_new.data());
}

bool any_filter::may_contain(std::string_view key) const {
  const impl& b = *impl_;
  b.want(key_kind::bytes);
  if (!uses_hashes()) return b.has_by_scheme(key);
  if (b.window) return b.has_one_in_window(b.hash_one(key));
  return b.single->has_bytes(b.data, b.parameters.geometry, b.seed, key);
}

bool any_filter::may_contain(std::uint64_t key) const {
  const impl& b = *impl_;
  b.want(key_kind::u64le);
  if (b.window) return b.has_one_in_window(b.hash_one(key));
  return b.single->has_integer(b.data, b.parameters.geometry, b.seed, key);
}

void any_filter::may_contain(std::span<const std::string_view> keys, std::span<std::uint64_t> bitmap) const {
  detail::check_bitmap("any_filter::may_contain", keys.size(), bitmap.size());
  impl_->want(key_kind::bytes);
  if (uses_hashes()) return impl_->look_up_keys(keys, bitmap.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 64 == 0) bitmap[i / 64] = 0;
    bitmap[i / 64] |= std::uint64_t{impl_->has_by_scheme(keys[i])} << (i % 64);
  }
}

void any_filter::may_contain(std::span<const std::uint64_t> keys, std::span<std::uint64_t> bitmap) const {
  detail::check_bitmap("any_filter::may_contain", keys.size(), bitmap.size());
  impl_->want(key_kind::u64le);
  impl_->look_up_keys(keys, bitmap.data());
}

std::uint64_t any_filter::insert_all(std::span<const std::string_view> keys, unsigned threads) {
  impl_->want(key_kind::bytes);
  return insert_all_of(keys, threads);
}

std::uint64_t any_filter::insert_all(std::span<const std::uint64_t> keys, unsigned threads) {
  impl_->want(key_kind::u64le);
  return insert_all_of(keys, threads);
}

template <class Key>
std::uint64_t any_filter::insert_all_of(std::span<const Key> keys, unsigned threads) {
  impl_->want_writable();
  if (!impl_->takes_in_bulk(keys.size(), threads)) {
    if (uses_hashes()) return impl_->insert_keys(keys, nullptr);
    const std::uint64_t before = size();
    insert(keys);
    return impl_->inserted() - before;
  }
  const auto fill = [&](std::size_t first, std::size_t count, std::uint64_t* hash64s) {
    impl_->hash64s(keys.subspan(first, count), hash64s);
  };
  return impl_->insert_all(keys.size(), fill, threads);
}

std::uint64_t any_filter::insert_all_hashes(std::span<const key_hash> hashes, unsigned threads) {
  impl_->want_hashes();
  impl_->want_writable();
  if (!impl_->takes_in_bulk(hashes.size(), threads)) {
    return impl_->insert_source(hash_span::hashes(hashes), nullptr);
  }
  const auto fill = [&](std::size_t first, std::size_t count, std::uint64_t* hash64s) {
    hash64s_of(hash_span::hashes(hashes.subspan(first, count)), hash64s);
  };
  return impl_->insert_all(hashes.size(), fill, threads);
}

removal any_filter::remove(std::string_view key) {
  return impl_->remove_keys(std::span<const std::string_view>(&key, 1), {}) == 1 ? removal::removed
                                                                                 : removal::not_found;
}

removal any_filter::remove(std::uint64_t key) {
  return impl_->remove_keys(std::span<const std::uint64_t>(&key, 1), {}) == 1 ? removal::removed : removal::not_found;
}

std::uint64_t any_filter::remove(std::span<const std::string_view> keys, std::span<removal> results) {
  return impl_->remove_keys(keys, results);
}

std::uint64_t any_filter::remove(std::span<const std::uint64_t> keys, std::span<removal> results) {
  return impl_->remove_keys(keys, results);
}

std::uint64_t any_filter::remove_hashes(std::span<const key_hash> hashes, std::span<removal> results) {
  impl_->want_hashes();
  detail::check_answers("any_filter::remove_hashes", hashes.size(), results.size());
  impl_->want_writable();
  if (impl_->removals == nullptr) impl_->refuse_removal();
  return impl_->remove_source(hash_span::hashes(hashes), results.empty() ? nullptr : results.data());
}

std::vector<std::uint64_t> any_filter::cells(std::string_view key) const {
  impl_->want(key_kind::bytes);
  if (uses_hashes()) return cells(impl_->hash_one(key));
  std::vector<std::uint64_t> result(parameters().geometry.probes);
  impl_->scheme->positions(key, parameters().geometry, parameters().seed, result.data());
  return result;
}

std::vector<std::uint64_t> any_filter::cells(std::uint64_t key) const {
  impl_->want(key_kind::u64le);
  return cells(impl_->hash_one(key));
}

std::vector<std::uint64_t> any_filter::cells(key_hash hash) const {
  impl_->want_hashes();
  if (family_of(parameters()) == family::sealed) return static_cells(parameters(), bytes(), hash.hash64);
  std::vector<std::uint64_t> result(parameters().geometry.probes);
  impl_->layout->cells(parameters().geometry, hash, result.data());
  return result;
}

bool any_filter::uses_hashes() const noexcept { return impl_->layout != nullptr; }

void any_filter::hash(std::span<const std::string_view> keys, std::span<key_hash> hashes) const {
  impl_->want_hashes();
  detail::check_buffer("any_filter::hash", keys.size(), hashes.size());
  impl_->want(key_kind::bytes);
  impl_->hash_keys(keys, hashes.data());
}

void any_filter::hash(std::span<const std::uint64_t> keys, std::span<key_hash> hashes) const {
  impl_->want_hashes();
  detail::check_buffer("any_filter::hash", keys.size(), hashes.size());
  impl_->want(key_kind::u64le);
  impl_->hash_keys(keys, hashes.data());
}

void any_filter::insert_hashes(std::span<const key_hash> hashes, std::span<std::uint8_t> is_new) {
  impl_->want_hashes();
  detail::check_answers("any_filter::insert_hashes", hashes.size(), is_new.size());
  impl_->want_writable();
  impl_->insert_source(hash_span::hashes(hashes), is_new.empty() ? nullptr : is_new.data());
}

void any_filter::may_contain_hashes(std::span<const key_hash> hashes, std::span<std::uint64_t> bitmap) const {
  impl_->want_hashes();
  detail::check_bitmap("any_filter::may_contain_hashes", hashes.size(), bitmap.size());
  impl_->look_up_source(hash_span::hashes(hashes), bitmap.data());
}

bool any_filter::uses_hash64() const noexcept { return uses_hashes() && impl_->layout->bulk != nullptr; }

std::uint64_t any_filter::insert_hash64s(std::span<const std::uint64_t> hash64s) {
  if (!uses_hash64()) {
    throw error(errc::incompatible, {"the filter takes no halves of hashes", "", "a plain layout that reads 64 bits",
                                     parameters().layout + parameters().scheme, hint::insert_whole_hashes});
  }
  impl_->want_writable();
  const std::uint64_t before = size();
  const hash_span keys = hash_span::hash64s(hash64s);
  if (hash64s.size() < impl_->bytes / 4096) {
    impl_->insert_source(keys, nullptr);
  } else {  // as many keys as pages: each of them will be changed
    impl_->changed_everywhere();
    impl_->inserted() += impl_->layout->insert(impl_->data, parameters().geometry, keys, nullptr);
  }
  return size() - before;
}

}  // namespace bloomery
