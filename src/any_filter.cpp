#include <bloomery/any_filter.hpp>

#include <bloomery/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/sizing.hpp>

#include "tables.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

namespace bloomery {
namespace {

constexpr std::size_t batch = 256;  // a multiple of 64: a batch fills whole words of the answer

// Calls work(first, count) for each batch of `total` keys.
template <class Work>
void in_batches(std::size_t total, Work work) {
  for (std::size_t first = 0; first < total; first += batch) work(first, std::min(batch, total - first));
}

}  // namespace

struct any_filter::body {
  params parameters;
  const layout_row* layout = nullptr;  // one of layout and scheme is set
  const hash_row* hash = nullptr;
  const bloomery::scheme* scheme = nullptr;
  std::variant<heap_storage, mapped_storage> storage;
  std::optional<file_info> opened_from;
  std::uint8_t* data = nullptr;
  std::uint64_t bytes = 0;

  body(params p, std::variant<heap_storage, mapped_storage> s)
      : parameters(std::move(p)),
        layout(find_layout(parameters.layout)),
        hash(find_hash(parameters.hash)),
        scheme(find_scheme(parameters.scheme)),
        storage(std::move(s)) {
    std::visit(
        [this](auto& held) {
          data = held.data();
          bytes = held.size();
        },
        storage);
  }

  std::uint64_t& inserted() {
    return std::visit([](auto& s) -> std::uint64_t& { return s.inserted(); }, storage);
  }

  void want(key_kind kind) const {
    if (parameters.keys == kind) return;
    throw error(errc::incompatible,
                {"keys of another kind than the filter's", "", name_of(parameters.keys), name_of(kind), ""});
  }

  void want_writable() const {
    const auto* mapped = std::get_if<mapped_storage>(&storage);
    if (mapped == nullptr || mapped->writable()) return;
    throw error(errc::not_permitted,
                {"the filter was opened for reading only", "", "", "", "open it with access::read_write"});
  }

  // Pages to be checksummed at close: those with a cell of a key that changed one.
  void changed(std::span<const std::uint64_t> cells) {
    auto* mapped = std::get_if<mapped_storage>(&storage);
    if (mapped == nullptr) return;
    for (const std::uint64_t cell : cells) mapped->changed(cell >> 3);
  }

  void changed_everywhere() {
    if (auto* mapped = std::get_if<mapped_storage>(&storage)) mapped->changed_all();
  }

  void took_new(std::span<const key_hash> hashes, const std::uint8_t* is_new) {
    const auto fresh = static_cast<std::uint64_t>(std::count(is_new, is_new + hashes.size(), std::uint8_t{1}));
    inserted() += fresh;
    if (fresh == 0 || !std::holds_alternative<mapped_storage>(storage)) return;
    std::array<std::uint64_t, max_probes> cells;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (is_new[i] == 0) continue;
      layout->cells(parameters.geometry, hashes[i], cells.data());
      changed(std::span(cells).first(parameters.geometry.probes));
    }
  }

  void insert_hashes(std::span<const key_hash> hashes, std::uint8_t* is_new) {
    std::array<std::uint8_t, batch> fresh;
    in_batches(hashes.size(), [&](std::size_t first, std::size_t count) {
      const auto some = hashes.subspan(first, count);
      layout->insert(data, parameters.geometry, some, fresh.data());
      took_new(some, fresh.data());
      if (is_new != nullptr) std::copy_n(fresh.data(), count, is_new + first);
    });
  }

  bool insert_by_scheme(std::string_view key) {
    std::array<std::uint64_t, max_probes> cells;
    scheme->positions(key, parameters.geometry, parameters.seed, cells.data());
    const auto used = std::span(cells).first(parameters.geometry.probes);
    bool is_new = false;
    for (const std::uint64_t cell : used) is_new |= set_bit(data, cell);
    if (is_new) {
      ++inserted();
      changed(used);
    }
    return is_new;
  }

  bool has_by_scheme(std::string_view key) const {
    std::array<std::uint64_t, max_probes> cells;
    scheme->positions(key, parameters.geometry, parameters.seed, cells.data());
    const auto used = std::span(cells).first(parameters.geometry.probes);
    return std::all_of(used.begin(), used.end(), [&](std::uint64_t cell) { return test_bit(data, cell); });
  }

  void hash_keys(std::span<const std::string_view> keys, key_hash* out) const {
    hash->of_bytes(parameters.seed, keys, out);
  }
  void hash_keys(std::span<const std::uint64_t> keys, key_hash* out) const {
    hash->of_integers(parameters.seed, keys, out);
  }

  template <class Key>
  void insert_keys(std::span<const Key> keys, std::uint8_t* is_new) {
    std::array<key_hash, batch> hashes;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      hash_keys(keys.subspan(first, count), hashes.data());
      insert_hashes({hashes.data(), count}, is_new == nullptr ? nullptr : is_new + first);
    });
  }

  template <class Key>
  void look_up_keys(std::span<const Key> keys, std::uint64_t* bitmap) const {
    std::array<key_hash, batch> hashes;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      hash_keys(keys.subspan(first, count), hashes.data());
      layout->may_contain(data, parameters.geometry, {hashes.data(), count}, bitmap + first / 64);
    });
  }

  // In a stranger's file the last byte's unused bits may be set: never more than all.
  std::uint64_t ones() const { return std::min(count_ones({data, bytes}), parameters.geometry.bits); }
  std::uint64_t zeros() const { return parameters.geometry.bits - ones(); }

  double keys_from_zeros(std::uint64_t clear) const {
    return layout != nullptr ? layout->keys_from_zeros(parameters.geometry, clear)
                             : classic::keys_from_zeros(parameters.geometry, clear);
  }

  double approximate_size() const { return keys_from_zeros(zeros()); }

  // After a merge, or after a writer that was killed, the bits know more than the count. With all bits set there are at
  // least as many keys as leave one clear.
  void estimate_count() {
    const double estimate = keys_from_zeros(std::max<std::uint64_t>(zeros(), 1));
    inserted() = std::max(inserted(), static_cast<std::uint64_t>(std::llround(estimate)));
  }
};

namespace {

// A file may name what only a later version, or another program's own hash, knows.
void check_known(const params& p, const std::string& path) {
  const auto refuse = [&](const char* what, const std::string& name, const std::string& names) {
    throw error(errc::incompatible, {std::string("a filter with a ") + what + " that is not built in", path,
                                     "one of " + names, "'" + name + "'", "open it with the program that made it"});
  };
  if (!p.scheme.empty()) {
    if (find_scheme(p.scheme) == nullptr) refuse("scheme", p.scheme, scheme_names());
  } else {
    if (find_layout(p.layout) == nullptr) refuse("layout", p.layout, layout_names());
    if (find_hash(p.hash) == nullptr) refuse("hash", p.hash, hash_names());
  }
  params without_capacity = p;
  without_capacity.capacity = 0;  // so that no rate is computed, which may take a second for absurd numbers
  try {
    complete(without_capacity);
  } catch (const error& e) {
    throw error(errc::damaged,
                {"the header contradicts itself", path, e.text().expected, e.text().found, e.text().what});
  }
}

}  // namespace

any_filter::any_filter(std::unique_ptr<body> b) noexcept : body_(std::move(b)) {}
any_filter::any_filter(any_filter&&) noexcept = default;
any_filter& any_filter::operator=(any_filter&&) noexcept = default;
any_filter::~any_filter() = default;

any_filter::any_filter(params p) {
  p = complete(std::move(p));
  heap_storage bytes(bytes_for(p.geometry.bits));
  body_ = std::make_unique<body>(std::move(p), std::move(bytes));
}

any_filter any_filter::open(const std::string& path, access mode, check what, const mapped_storage::on_wait& waiting) {
  mapped_storage bytes =
      mapped_storage::open(path, mode, what, waiting, [&](const params& p) { check_known(p, path); });
  const file_info info = bytes.info();
  auto b = std::make_unique<body>(info.parameters, std::move(bytes));
  if (!info.clean && mode == access::read_write) b->estimate_count();
  b->opened_from = info;
  return any_filter(std::move(b));
}

any_filter any_filter::create(const std::string& path, params p, const std::string& metadata, creation how) {
  p = complete(std::move(p));
  mapped_storage bytes = mapped_storage::create(path, p, metadata, how);
  return any_filter(std::make_unique<body>(std::move(p), std::move(bytes)));
}

any_filter any_filter::load(const std::string& path) {
  loaded_file file = load_file(path);
  check_known(file.info.parameters, path);
  auto b = std::make_unique<body>(file.info.parameters, std::move(file.bytes));
  if (!file.info.clean) b->estimate_count();
  b->opened_from = std::move(file.info);
  return any_filter(std::move(b));
}

void any_filter::save(const std::string& path, const std::string& metadata) const {
  save_file(path, parameters(), bytes(), size(), metadata);
}

void any_filter::close() {
  if (!body_) return;
  const std::unique_ptr<body> b = std::move(body_);
  if (auto* mapped = std::get_if<mapped_storage>(&b->storage)) mapped->close();
}

bool any_filter::insert(std::string_view key) {
  std::uint8_t is_new = 0;
  insert(std::span(&key, 1), std::span(&is_new, 1));
  return is_new != 0;
}

bool any_filter::insert(std::uint64_t key) {
  std::uint8_t is_new = 0;
  insert(std::span(&key, 1), std::span(&is_new, 1));
  return is_new != 0;
}

void any_filter::insert(std::span<const std::string_view> keys, std::span<std::uint8_t> is_new) {
  assert(is_new.empty() || is_new.size() == keys.size());
  body_->want(key_kind::bytes);
  body_->want_writable();
  if (uses_hashes()) return body_->insert_keys(keys, is_new.empty() ? nullptr : is_new.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool fresh = body_->insert_by_scheme(keys[i]);
    if (!is_new.empty()) is_new[i] = fresh ? 1 : 0;
  }
}

void any_filter::insert(std::span<const std::uint64_t> keys, std::span<std::uint8_t> is_new) {
  assert(is_new.empty() || is_new.size() == keys.size());
  body_->want(key_kind::u64le);
  body_->want_writable();
  body_->insert_keys(keys, is_new.empty() ? nullptr : is_new.data());
}

bool any_filter::may_contain(std::string_view key) const {
  std::uint64_t answer = 0;
  may_contain(std::span(&key, 1), std::span(&answer, 1));
  return answer != 0;
}

bool any_filter::may_contain(std::uint64_t key) const {
  std::uint64_t answer = 0;
  may_contain(std::span(&key, 1), std::span(&answer, 1));
  return answer != 0;
}

void any_filter::may_contain(std::span<const std::string_view> keys, std::span<std::uint64_t> bitmap) const {
  assert(bitmap.size() >= (keys.size() + 63) / 64);
  body_->want(key_kind::bytes);
  if (uses_hashes()) return body_->look_up_keys(keys, bitmap.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 64 == 0) bitmap[i / 64] = 0;
    bitmap[i / 64] |= std::uint64_t{body_->has_by_scheme(keys[i])} << (i % 64);
  }
}

void any_filter::may_contain(std::span<const std::uint64_t> keys, std::span<std::uint64_t> bitmap) const {
  assert(bitmap.size() >= (keys.size() + 63) / 64);
  body_->want(key_kind::u64le);
  body_->look_up_keys(keys, bitmap.data());
}

bool any_filter::uses_hashes() const noexcept { return body_->layout != nullptr; }

void any_filter::hash(std::span<const std::string_view> keys, std::span<key_hash> hashes) const {
  assert(uses_hashes() && hashes.size() >= keys.size());
  body_->want(key_kind::bytes);
  body_->hash_keys(keys, hashes.data());
}

void any_filter::hash(std::span<const std::uint64_t> keys, std::span<key_hash> hashes) const {
  assert(uses_hashes() && hashes.size() >= keys.size());
  body_->want(key_kind::u64le);
  body_->hash_keys(keys, hashes.data());
}

void any_filter::insert_hashes(std::span<const key_hash> hashes, std::span<std::uint8_t> is_new) {
  assert(uses_hashes() && (is_new.empty() || is_new.size() == hashes.size()));
  body_->want_writable();
  body_->insert_hashes(hashes, is_new.empty() ? nullptr : is_new.data());
}

void any_filter::may_contain_hashes(std::span<const key_hash> hashes, std::span<std::uint64_t> bitmap) const {
  assert(uses_hashes() && bitmap.size() >= (hashes.size() + 63) / 64);
  body_->layout->may_contain(body_->data, body_->parameters.geometry, hashes, bitmap.data());
}

void any_filter::merge(const any_filter& other) {
  const std::string reason = difference(parameters(), other.parameters());
  if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be merged", "", "", reason, ""});
  body_->want_writable();
  for (std::uint64_t i = 0; i < body_->bytes; ++i) body_->data[i] |= other.body_->data[i];
  body_->changed_everywhere();
  body_->estimate_count();
}

bool any_filter::compatible_with(const any_filter& other) const {
  return difference(parameters(), other.parameters()).empty();
}

void any_filter::clear() {
  body_->want_writable();
  std::fill_n(body_->data, body_->bytes, std::uint8_t{0});
  body_->inserted() = 0;
  body_->changed_everywhere();
}

const params& any_filter::parameters() const noexcept { return body_->parameters; }
std::span<const std::uint8_t> any_filter::bytes() const noexcept { return {body_->data, body_->bytes}; }
std::uint64_t any_filter::capacity() const noexcept { return parameters().capacity; }
std::uint64_t any_filter::bit_size() const noexcept { return parameters().geometry.bits; }
std::uint64_t any_filter::byte_size() const noexcept { return body_->bytes; }
std::uint64_t any_filter::size() const noexcept { return body_->inserted(); }

double any_filter::fill_ratio() const noexcept {
  return static_cast<double>(body_->ones()) / static_cast<double>(bit_size());
}

double any_filter::approximate_size() const noexcept { return body_->approximate_size(); }

double any_filter::false_positive_rate(std::uint64_t keys) const {
  return bloomery::false_positive_rate(parameters(), keys);
}

double any_filter::false_positive_rate() const {
  // Rates of very many probes take a second each.
  if (parameters().geometry.probes > classic::most_chosen_probes) return false_positive_rate(size());
  const auto rate = [this](std::uint64_t keys) { return false_positive_rate(keys); };
  return rate(distinct_keys(size(), rate));
}

const file_info* any_filter::opened_from() const noexcept {
  return body_->opened_from ? &*body_->opened_from : nullptr;
}

}  // namespace bloomery
