// filter_core: the implementation base of filter<>: its members, and the handling of batches, counts and changed pages.
// Read filter.hpp first.
#pragma once

#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/filter_kind.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/key.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sizing.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {
namespace detail {

template <class Key, layout Layout, class Hash, storage Storage>
class filter_core {
 protected:
  using kind = filter_kind<Key, Layout, Hash>;
  static constexpr std::size_t batch = kind::batch;
  static constexpr bool may_be_read_only = storage_with_access<Storage>;

  filter_core(params p, Storage bytes, Hash hash) : params_(std::move(p)), hash_(hash), storage_(std::move(bytes)) {
    if (storage_.size() != bytes_for(params_.geometry.bits)) {
      detail::refuse(errc::invalid_argument, {"the storage has the wrong size", "storage",
                                              std::to_string(bytes_for(params_.geometry.bits)) + " bytes",
                                              std::to_string(storage_.size()), ""});
    }
  }

  std::span<const std::uint8_t> all_bytes() const noexcept { return {storage_.data(), storage_.size()}; }

  static plain_key<Key> plain(const key_view<Key>& key) noexcept { return static_cast<plain_key<Key>>(key); }

  static std::uint64_t at_most(std::uint64_t value, std::uint64_t most) noexcept { return value < most ? value : most; }
  static std::size_t of_a_batch(std::size_t keys) noexcept { return keys < batch ? keys : batch; }

  std::uint64_t insert_counting(std::span<const Key> keys) noexcept {
    std::uint64_t all_new = 0;
    const auto insert = [&](const hash_span& some, std::size_t) { all_new += insert_source(some, nullptr); };
    kind::each_source(hash_, keys, insert, blocks());
    return all_new;
  }

  block_prefetch blocks() const noexcept { return kind::blocks_of(storage_.data(), params_.geometry); }

  // Returns the number of certainly new keys.
  std::uint64_t insert_source(const hash_span& keys, std::uint8_t* is_new) noexcept {
    std::uint64_t all_new = 0;
    if constexpr (!Storage::tracks_changes) {
      all_new = insert_batch<Layout>(storage_.data(), params_.geometry, keys, is_new);
      storage_.counts().inserted += layout_with_removal<Layout> ? keys.size() : all_new;
    } else {
      std::array<std::uint8_t, batch> fresh;
      for (std::size_t first = 0; first < keys.size(); first += batch) {
        const hash_span some = keys.part(first, of_a_batch(keys.size() - first));
        all_new += insert_batch<Layout>(storage_.data(), params_.geometry, some, fresh.data());
        for (std::size_t i = 0; i < some.size(); ++i) {
          if (fresh[i] != 0 || layout_with_removal<Layout>) on_inserted(some.hash(i));
        }
        if (is_new != nullptr) std::memcpy(is_new + first, fresh.data(), some.size());
      }
    }
    return all_new;
  }

  static params matched(const params& file, const Hash& hash, const std::string& path) {
    params own = kind::describe(file.geometry, file.capacity, file.target_fpr, hash);
    detail::check_same_kind(path, difference(file, own));
    Layout::check(own.geometry);
    return own;
  }

  std::uint64_t cells() const noexcept { return params_.geometry.bits / cell_bits_in<Layout>(); }

  // Non-zero cells. In an untrusted file unused bits of the last byte may be set, so the count is limited to all bits.
  std::uint64_t ones() const noexcept {
    if constexpr (layout_with_removal<Layout>)
      return Layout::cells_used(all_bytes());
    else
      return at_most(count_ones(all_bytes()), params_.geometry.bits);
  }

  void on_inserted(key_hash hash) noexcept {
    ++storage_.counts().inserted;
    changed_cells(hash);
  }

  void on_removed(key_hash hash, removal result) noexcept {
    count_removal(storage_.counts(), result);
    if (result == removal::removed) changed_cells(hash);
  }

  void changed_cells(key_hash hash) noexcept {
    if constexpr (Storage::tracks_changes) {
      typename Layout::cells cells(params_.geometry, hash);
      for (std::uint32_t i = 0; i < cells.count(); ++i) storage_.changed(byte_of_cell<Layout>(cells.next()));
    }
  }

  // Writing to a read-only mapping would cause SIGSEGV. Storages without writable() are always writable.
  void want_writable() const noexcept(!may_be_read_only) {
    if constexpr (may_be_read_only) {
      if (!storage_.writable()) [[unlikely]]
        refuse_writing();
    }
  }

  void changed_everywhere() noexcept {
    if constexpr (Storage::tracks_changes) storage_.changed_all();
  }

  // With many probes, computing a rate takes a second, so functions that need many rates skip them.
  bool has_slow_rates() const noexcept { return params_.geometry.probes > layouts::classic::most_chosen_probes; }

  void estimate_count() {
    if constexpr (layout_with_removal<Layout>) {
      storage_.counts().inserted = static_cast<std::uint64_t>(Layout::copies_in(params_.geometry, all_bytes()) + 0.5);
      storage_.counts().is_estimate = true;
      return;
    }
    // If all bits are set, use the number of keys that leaves one bit clear, at least 1.
    const std::uint64_t zeros = params_.geometry.bits - ones();
    const double keys = Layout::keys_from_zeros(params_.geometry, zeros == 0 ? 1 : zeros);
    set_estimated_count(zeros == 0 && keys < 1 ? 1.0 : keys);
  }

  // Never below the present count.
  void set_estimated_count(double keys) {
    const auto rate = [this](std::uint64_t n) {
      return has_slow_rates() ? 0 : Layout::expected_fpr(params_.geometry, n);
    };
    const std::uint64_t estimated = expected_insertions(keys, rate);
    if (storage_.counts().inserted < estimated) storage_.counts().inserted = estimated;
    storage_.counts().is_estimate = true;
  }

  params params_;
  Hash hash_;
  Storage storage_;
};

}  // namespace detail
}  // namespace bloomery
