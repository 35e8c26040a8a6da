// any_filter: inserts, lookups and removals of keys and hashes.
#include "filters/any_filter_impl.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery {

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

removal any_filter::remove(std::string_view key) {
  const std::span<const std::string_view> one(&key, 1);
  return impl_->remove(one, {}) == 1 ? removal::removed : removal::not_found;
}

removal any_filter::remove(std::uint64_t key) {
  const std::span<const std::uint64_t> one(&key, 1);
  return impl_->remove(one, {}) == 1 ? removal::removed : removal::not_found;
}

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
