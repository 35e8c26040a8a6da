// any_filter: inserts, lookups and removals of keys and hashes.
#include "filters/any_filter_impl.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery {

// ---- single keys ----

template <class Key>
bool any_filter::impl::insert_one_specially(Key key) {
  bool is_new = false;
  if (layout->insert_hash != nullptr && layout->insert_hash(data, parameters.geometry, hash_one(key).hash64, is_new)) {
    ++inserted();
    return is_new;
  }
  const key_hash hashed = hash_one(key);  // of a filter without this function, or one without room: it grows or throws
  return insert_source(hash_span::hashes({&hashed, 1}), nullptr) != 0;
}

template <class HashIt>
bool any_filter::impl::counted(bool is_new, HashIt hash_it) {
  if (!is_new && removals == nullptr) return false;
  ++inserted();
  if (mapped != nullptr) {
    const key_hash key = hash_it();
    const std::uint8_t fresh = 1;
    on_inserted(hash_span::hashes({&key, 1}), &fresh);
  }
  return is_new;
}

bool any_filter::impl::insert_indirectly(std::string_view key) {
  want(key_kind::bytes);
  want_writable();
  if (layout == nullptr) return insert_by_scheme(key);
  if (single == nullptr) return insert_one_specially(key);
  return counted(single->insert_bytes(data, parameters.geometry, seed, key), [&] { return hash_one(key); });
}

bool any_filter::impl::insert_indirectly(std::uint64_t key) {
  want(key_kind::u64le);
  want_writable();
  if (single == nullptr) return insert_one_specially(key);
  return counted(single->insert_integer(data, parameters.geometry, seed, key), [&] { return hash_one(key); });
}

template <class Key>
bool any_filter::impl::has_one_specially(Key key) const {
  if (layout->has_hash != nullptr && unverified == nullptr)
    return layout->has_hash(data, parameters.geometry, hash_one(key).hash64);
  const key_hash hashed = hash_one(key);
  std::uint64_t answer = 0;
  look_up_source(hash_span::hashes({&hashed, 1}), &answer);
  return answer != 0;
}

bool any_filter::impl::find_indirectly(std::string_view key) const {
  want(key_kind::bytes);
  if (layout == nullptr) return has_by_scheme(key);
  if (is_special) return has_one_specially(key);
  return single->has_bytes(data, parameters.geometry, seed, key);
}

bool any_filter::impl::find_indirectly(std::uint64_t key) const {
  want(key_kind::u64le);
  if (is_special) return has_one_specially(key);
  return single->has_integer(data, parameters.geometry, seed, key);
}

template <class Key>
removal any_filter::impl::remove_one(const Key& key) {
  const key_span one{std::span(&key, 1)};
  if (layout == nullptr || layout->remove_hash == nullptr)
    return remove(one, {}) == 1 ? removal::removed : removal::not_found;
  want(one);
  want_writable();
  const bool is_there = layout->remove_hash(data, parameters.geometry, hash_one(key).hash64);
  const removal result = is_there ? removal::removed : removal::not_found;
  count_removal(*counts, result);
  return result;
}

bool any_filter::insert(std::string_view key) {
  impl& b = *impl_;
  if (b.takes_directly != key_kind::bytes) return b.insert_indirectly(key);
  const bool is_new = b.single->insert_bytes(b.data, b.parameters.geometry, b.seed, key);
  b.inserted() += is_new ? 1 : 0;
  return is_new;
}

bool any_filter::insert(std::uint64_t key) {
  impl& b = *impl_;
  if (b.takes_directly != key_kind::u64le) return b.insert_indirectly(key);
  const bool is_new = b.single->insert_integer(b.data, b.parameters.geometry, b.seed, key);
  b.inserted() += is_new ? 1 : 0;
  return is_new;
}

std::uint64_t any_filter::insert(key_span keys, std::span<std::uint8_t> is_new) {
  detail::check_answers("any_filter::insert", keys.size(), is_new.size());
  impl_->want(keys);
  impl_->want_writable();
  return impl_->insert(keys, is_new.empty() ? nullptr : is_new.data());
}

bool any_filter::may_contain(std::string_view key) const {
  const impl& b = *impl_;
  if (b.finds_directly != key_kind::bytes) return b.find_indirectly(key);
  return b.single->has_bytes(b.data, b.parameters.geometry, b.seed, key);
}

bool any_filter::may_contain(std::uint64_t key) const {
  const impl& b = *impl_;
  if (b.finds_directly != key_kind::u64le) return b.find_indirectly(key);
  return b.single->has_integer(b.data, b.parameters.geometry, b.seed, key);
}

void any_filter::may_contain(key_span keys, std::span<std::uint64_t> bitmap) const {
  detail::check_bitmap("any_filter::may_contain", keys.size(), bitmap.size());
  impl_->want(keys);
  impl_->look_up(keys, bitmap.data());
}

std::uint64_t any_filter::insert_all(key_span keys, unsigned threads) {
  const impl& b = *impl_;
  b.want(keys);
  b.want_writable();
  if (!b.takes_in_bulk(keys.size(), threads)) return impl_->insert(keys, nullptr);
  const auto fill = [&](std::size_t first, std::size_t count, std::uint64_t* hash64s) {
    b.each_source(keys.part(first, count),
                  [&](const hash_span& some, std::size_t at) { hash64s_of(some, hash64s + at); });
  };
  return impl_->insert_all(keys.size(), fill, threads);
}

removal any_filter::remove(std::string_view key) { return impl_->remove_one(key); }

removal any_filter::remove(std::uint64_t key) { return impl_->remove_one(key); }

std::uint64_t any_filter::remove(key_span keys, std::span<removal> results) { return impl_->remove(keys, results); }

std::vector<std::uint64_t> any_filter::cells(std::string_view key) const {
  impl_->want(key_kind::bytes);
  if (uses_hashes()) return cells(impl_->hash_one(key));
  std::vector<std::uint64_t> result(parameters().geometry.probes);
  const params& p = parameters();
  impl_->scheme->positions(key, p.geometry, {p.seed, p.salts()}, result.data());
  return result;
}

std::vector<std::uint64_t> any_filter::cells(std::uint64_t key) const {
  impl_->want(key_kind::u64le);
  return cells(impl_->hash_one(key));
}

std::vector<std::uint64_t> any_filter::cells(key_hash hash) const {
  impl_->want_hashes();
  if (const static_calls* const calls = impl_->layout->sealed) {
    std::vector<std::uint64_t> cells;
    const auto verified = [this](std::uint64_t begin, std::uint64_t count) {
      if (impl_->unverified != nullptr) impl_->unverified->verify(begin, count);
    };
    for (const auto& one : calls->look_up(sealed::width_in(bytes().data()), bytes(), hash.hash64, verified).cells)
      cells.push_back(one.number);
    return cells;
  }
  std::vector<std::uint64_t> result(parameters().geometry.probes);
  impl_->layout->cells(parameters().geometry, hash, result.data());
  return result;
}

bool any_filter::uses_hashes() const noexcept { return impl_->layout != nullptr; }

void any_filter::hash(key_span keys, std::span<key_hash> hashes) const {
  impl_->want_hashes();
  detail::check_buffer("any_filter::hash", keys.size(), hashes.size());
  impl_->want(keys);
  const bool are_hashes = keys.form() == key_span::form_of_keys::hashes;
  if (!are_hashes && keys.form() != key_span::form_of_keys::hash64s)
    return hash_keys(*impl_->hash, impl_->seed, keys, hashes.data());
  for (std::size_t i = 0; i < keys.size(); ++i)
    hashes[i] = are_hashes ? keys.hashes()[i] : key_hash{keys.hash64s()[i], 0};
}

bool any_filter::uses_hash64() const noexcept { return impl_->uses_hash64(); }

}  // namespace bloomery
