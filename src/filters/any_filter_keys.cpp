// Filters chosen at run time: calls on keys and on hashes.
#include "filters/any_filter_body.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery {

bool any_filter::insert(std::string_view key) {
  body_->want(key_kind::bytes);
  body_->want_writable();
  if (!uses_hashes()) return body_->insert_by_scheme(key);
  body& b = *body_;
  if (b.window) return b.insert_one_in_window(b.hash_one(key));
  return b.counted(b.single->insert_bytes(b.data, b.parameters.geometry, b.seed, key), [&] { return b.hash_one(key); });
}

bool any_filter::insert(std::uint64_t key) {
  body_->want(key_kind::u64le);
  body_->want_writable();
  body& b = *body_;
  if (b.window) return b.insert_one_in_window(b.hash_one(key));
  return b.counted(b.single->insert_integer(b.data, b.parameters.geometry, b.seed, key),
                   [&] { return b.hash_one(key); });
}

void any_filter::insert(std::span<const std::string_view> keys, std::span<std::uint8_t> is_new) {
  detail::check_answers("any_filter::insert", keys.size(), is_new.size());
  body_->want(key_kind::bytes);
  body_->want_writable();
  if (uses_hashes()) {
    body_->insert_keys(keys, is_new.empty() ? nullptr : is_new.data());
    return;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool fresh = body_->insert_by_scheme(keys[i]);
    if (!is_new.empty()) is_new[i] = fresh ? 1 : 0;
  }
}

void any_filter::insert(std::span<const std::uint64_t> keys, std::span<std::uint8_t> is_new) {
  detail::check_answers("any_filter::insert", keys.size(), is_new.size());
  body_->want(key_kind::u64le);
  body_->want_writable();
  body_->insert_keys(keys, is_new.empty() ? nullptr : is_new.data());
}

bool any_filter::may_contain(std::string_view key) const {
  const body& b = *body_;
  b.want(key_kind::bytes);
  if (!uses_hashes()) return b.has_by_scheme(key);
  if (b.window) return b.has_one_in_window(b.hash_one(key));
  return b.single->has_bytes(b.data, b.parameters.geometry, b.seed, key);
}

bool any_filter::may_contain(std::uint64_t key) const {
  const body& b = *body_;
  b.want(key_kind::u64le);
  if (b.window) return b.has_one_in_window(b.hash_one(key));
  return b.single->has_integer(b.data, b.parameters.geometry, b.seed, key);
}

void any_filter::may_contain(std::span<const std::string_view> keys, std::span<std::uint64_t> bitmap) const {
  detail::check_bitmap("any_filter::may_contain", keys.size(), bitmap.size());
  body_->want(key_kind::bytes);
  if (uses_hashes()) return body_->look_up_keys(keys, bitmap.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 64 == 0) bitmap[i / 64] = 0;
    bitmap[i / 64] |= std::uint64_t{body_->has_by_scheme(keys[i])} << (i % 64);
  }
}

void any_filter::may_contain(std::span<const std::uint64_t> keys, std::span<std::uint64_t> bitmap) const {
  detail::check_bitmap("any_filter::may_contain", keys.size(), bitmap.size());
  body_->want(key_kind::u64le);
  body_->look_up_keys(keys, bitmap.data());
}

std::uint64_t any_filter::insert_all(std::span<const std::string_view> keys, unsigned threads) {
  body_->want(key_kind::bytes);
  return insert_all_of(keys, threads);
}

std::uint64_t any_filter::insert_all(std::span<const std::uint64_t> keys, unsigned threads) {
  body_->want(key_kind::u64le);
  return insert_all_of(keys, threads);
}

template <class Key>
std::uint64_t any_filter::insert_all_of(std::span<const Key> keys, unsigned threads) {
  body_->want_writable();
  if (!body_->takes_in_bulk(keys.size(), threads)) {
    if (uses_hashes()) return body_->insert_keys(keys, nullptr);
    const std::uint64_t before = size();
    insert(keys);
    return body_->inserted() - before;
  }
  const auto fill = [&](std::size_t first, std::size_t count, std::uint64_t* los) {
    body_->halves(keys.subspan(first, count), los);
  };
  return body_->insert_all(keys.size(), fill, threads);
}

std::uint64_t any_filter::insert_all_hashes(std::span<const key_hash> hashes, unsigned threads) {
  body_->want_hashes();
  body_->want_writable();
  if (!body_->takes_in_bulk(hashes.size(), threads)) {
    return body_->insert_source(key_source::hashes(hashes), nullptr);
  }
  const auto fill = [&](std::size_t first, std::size_t count, std::uint64_t* los) {
    halves_of(key_source::hashes(hashes.subspan(first, count)), los);
  };
  return body_->insert_all(hashes.size(), fill, threads);
}

removal any_filter::remove(std::string_view key) {
  return body_->remove_keys(std::span<const std::string_view>(&key, 1), {}) == 1 ? removal::removed
                                                                                 : removal::not_found;
}

removal any_filter::remove(std::uint64_t key) {
  return body_->remove_keys(std::span<const std::uint64_t>(&key, 1), {}) == 1 ? removal::removed : removal::not_found;
}

std::uint64_t any_filter::remove(std::span<const std::string_view> keys, std::span<removal> results) {
  return body_->remove_keys(keys, results);
}

std::uint64_t any_filter::remove(std::span<const std::uint64_t> keys, std::span<removal> results) {
  return body_->remove_keys(keys, results);
}

std::uint64_t any_filter::remove_hashes(std::span<const key_hash> hashes, std::span<removal> results) {
  body_->want_hashes();
  detail::check_answers("any_filter::remove_hashes", hashes.size(), results.size());
  body_->want_writable();
  if (body_->removals == nullptr) body_->refuse_removal();
  return body_->remove_source(key_source::hashes(hashes), results.empty() ? nullptr : results.data());
}

std::vector<std::uint64_t> any_filter::cells(std::string_view key) const {
  body_->want(key_kind::bytes);
  if (uses_hashes()) return cells(body_->hash_one(key));
  std::vector<std::uint64_t> result(parameters().geometry.probes);
  body_->scheme->positions(key, parameters().geometry, parameters().seed, result.data());
  return result;
}

std::vector<std::uint64_t> any_filter::cells(std::uint64_t key) const {
  body_->want(key_kind::u64le);
  return cells(body_->hash_one(key));
}

std::vector<std::uint64_t> any_filter::cells(key_hash hash) const {
  body_->want_hashes();
  if (family_of(parameters()) == family::sealed) return sealed_cells(parameters(), bytes(), hash.lo);
  std::vector<std::uint64_t> result(parameters().geometry.probes);
  body_->layout->cells(parameters().geometry, hash, result.data());
  return result;
}

bool any_filter::uses_hashes() const noexcept { return body_->layout != nullptr; }

void any_filter::hash(std::span<const std::string_view> keys, std::span<key_hash> hashes) const {
  body_->want_hashes();
  detail::check_buffer("any_filter::hash", keys.size(), hashes.size());
  body_->want(key_kind::bytes);
  body_->hash_keys(keys, hashes.data());
}

void any_filter::hash(std::span<const std::uint64_t> keys, std::span<key_hash> hashes) const {
  body_->want_hashes();
  detail::check_buffer("any_filter::hash", keys.size(), hashes.size());
  body_->want(key_kind::u64le);
  body_->hash_keys(keys, hashes.data());
}

void any_filter::insert_hashes(std::span<const key_hash> hashes, std::span<std::uint8_t> is_new) {
  body_->want_hashes();
  detail::check_answers("any_filter::insert_hashes", hashes.size(), is_new.size());
  body_->want_writable();
  body_->insert_source(key_source::hashes(hashes), is_new.empty() ? nullptr : is_new.data());
}

void any_filter::may_contain_hashes(std::span<const key_hash> hashes, std::span<std::uint64_t> bitmap) const {
  body_->want_hashes();
  detail::check_bitmap("any_filter::may_contain_hashes", hashes.size(), bitmap.size());
  body_->look_up_source(key_source::hashes(hashes), bitmap.data());
}

bool any_filter::uses_halves() const noexcept { return uses_hashes() && body_->layout->bulk != nullptr; }

std::uint64_t any_filter::insert_halves(std::span<const std::uint64_t> los) {
  if (!uses_halves()) {
    throw error(errc::incompatible, {"the filter takes no halves of hashes", "", "a plain layout that reads 64 bits",
                                     parameters().layout + parameters().scheme, hint::insert_whole_hashes});
  }
  body_->want_writable();
  const std::uint64_t before = size();
  const key_source keys = key_source::halves(los);
  if (los.size() < body_->bytes / 4096) {
    body_->insert_source(keys, nullptr);
  } else {  // as many keys as pages: each of them will be changed
    body_->changed_everywhere();
    body_->inserted() += body_->layout->insert(body_->data, parameters().geometry, keys, nullptr);
  }
  return size() - before;
}

}  // namespace bloomery
