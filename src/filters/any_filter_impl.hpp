// any_filter::impl: layout, hash or scheme, storage and counts of an any_filter, and the common loops over keys.
#pragma once

#include <bloomery/any_filter.hpp>

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/bulk_insert.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/partial_error.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/sizing.hpp>

#include "file/page_check.hpp"
#include "filters/full_filter.hpp"
#include "filters/hash_keys.hpp"
#include "filters/known.hpp"
#include "filters/removal.hpp"
#include "formats/mapped_bits.hpp"
#include "platform/machine.hpp"
#include "registry/static_row.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace bloomery {

/// @throws error incompatible, always
[[noreturn]] void refuse_without_secret(const params& p, const std::string& path);

struct any_filter::impl {
  params parameters;
  const layout_row* layout = nullptr;  // one of layout and scheme is set
  const hash_row* hash = nullptr;
  const bloomery::scheme* scheme = nullptr;
  std::variant<heap_storage, mapped_storage, formats::mapped_bits> storage;
  std::optional<file_info> opened_from;
  const single_key_calls* single = nullptr;
  hash_seed seed;
  std::optional<generations> window;  // of sliding-window filters

  // Address and size of the storage, which no longer moves.
  std::uint8_t* data = nullptr;
  std::uint64_t bytes = 0;
  key_counts* counts = nullptr;
  mapped_storage* mapped = nullptr;
  format::page_check* unverified = nullptr;  // of a file whose pages are verified before their first use; else null
  bool is_read_only = false;                 // a file of another system, which is not changed
  bool is_special = false;  // no functions for single keys, or `unverified`: lookups need more than a call of `single`
  const removal_calls* removals = nullptr;  // of a filter with removal
  std::uint32_t cell_bits = 1;
  static constexpr auto no_keys = static_cast<key_kind>(~0u);
  key_kind takes = no_keys;  // unchanged unless can_hash_keys()
  // The same if inserting a key takes no more than a call of `single` and counting the key: in memory, and neither a
  // counting, static or sliding-window filter nor a scheme.
  key_kind takes_directly = no_keys;
  key_kind finds_directly = no_keys;  // the same for lookups: all but those in a window, in `unverified` or by a scheme

  impl(params p, decltype(storage) s)
      : parameters(std::move(p)),
        layout(find_layout(parameters.layout)),
        hash(find_hash(parameters.hash)),
        scheme(find_scheme(parameters.scheme)),
        storage(std::move(s)),
        seed{mix(parameters.seed), parameters.secret.value_or(secret_key{})} {
    if (can_hash_keys(parameters)) takes = parameters.keys;
    std::visit(
        [this](auto& held) {
          data = held.data();
          bytes = held.size();
          counts = &held.counts();
        },
        storage);
    mapped = std::get_if<mapped_storage>(&storage);
    if (layout != nullptr) removals = layout->removals;
    if (layout != nullptr) cell_bits = layout->cell_bits;
    if (layout != nullptr && layout->window != nullptr)
      window.emplace(parameters);
    else if (layout != nullptr && layout->single != nullptr && hash != nullptr)
      single = &single_key_calls_of(*layout, *hash);
    is_special = layout != nullptr && layout->single == nullptr;
    if (single != nullptr && single->insert_integer != nullptr && removals == nullptr && mapped == nullptr)
      takes_directly = takes;
    if (single != nullptr) finds_directly = takes;
  }

  // From now on, pages are verified before their first use. Pages that determine the positions of cells are verified
  // now.
  void verify_on_use(format::page_check* pages) {
    if (pages == nullptr) return;
    unverified = pages;
    is_special = true;
    finds_directly = no_keys;
    if (window) pages->verify(0, 1);
    if (layout != nullptr && layout->check_bytes != nullptr) {
      pages->verify(0, 1);
      const std::uint64_t one = layout->sealed->partition_bytes;
      const std::uint64_t partitions = std::min(sealed::partitions_in(data), bytes / one);
      pages->verify(0, std::min(bytes, sealed::header_bytes + partitions * one));
    }
  }

  // Verifies the pages of the cells that lookups of these keys read.
  [[gnu::cold, gnu::noinline]] void verify_pages_of(const hash_span& keys) const {
    if (!unverified->wants_pages_of(keys.size())) return;
    std::array<std::uint64_t, max_probes> cells;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const key_hash key = keys.hash(i);
      if (window) {
        unverified->verify(layout->window->block_at(parameters.geometry, key.hash64), layout->block_bits / 8);
      } else if (layout->check_bytes != nullptr) {
        layout->sealed->look_up(sealed::width_in(data), {data, bytes}, key.hash64,
                                [&](std::uint64_t begin, std::uint64_t count) { unverified->verify(begin, count); });
      } else {
        layout->cells(parameters.geometry, key, cells.data());
        for (const std::uint64_t cell : std::span(cells).first(parameters.geometry.probes))
          unverified->verify(cell * cell_bits >> 3, 1);
      }
    }
  }

  std::uint64_t& inserted() { return counts->inserted; }

  void want(key_kind kind) const {
    if (takes != kind) [[unlikely]]
      refuse(kind);
  }

  // Out of line, so that the fast path need not spill registers.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(key_kind kind) const {
    if (takes == no_keys) refuse_without_hash(parameters, "");
    throw error(errc::incompatible,
                {"the keys are of the wrong kind", "", name_of(parameters.keys), name_of(kind), ""});
  }

  // Accepts keys of the filter's kind, or hashes that it can use.
  void want(key_span keys) const {
    switch (keys.form()) {
      case key_span::form_of_keys::views:
      case key_span::form_of_keys::strings: return want(key_kind::bytes);
      case key_span::form_of_keys::integers: return want(key_kind::u64le);
      case key_span::form_of_keys::hashes: return want_hashes();
      case key_span::form_of_keys::hash64s: return want_hash64s();
    }
  }

  void want_hashes() const {
    if (layout == nullptr) [[unlikely]]
      refuse_hashes();
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_hashes() const {
    throw error(errc::incompatible,
                {"the filter accepts no hashes, because its scheme reads the keys themselves", "", "a layout",
                 "scheme " + parameters.scheme, "insert and look up the keys themselves"});
  }

  bool uses_hash64() const { return layout != nullptr && layout->bulk != nullptr; }

  void want_hash64s() const {
    if (uses_hash64()) return;
    throw error(errc::incompatible, {"the filter does not accept hash64s", "", "a plain layout that reads 64 bits",
                                     parameters.layout + parameters.scheme, hint::insert_whole_hashes});
  }

  void want_writable() const {
    if (layout != nullptr && layout->family == family::static_set) [[unlikely]]
      refuse_keys_if_static(parameters, "");
    if (is_read_only || (mapped != nullptr && !mapped->writable())) detail::refuse_writing();
  }

  void make_read_only() {
    is_read_only = true;
    takes_directly = no_keys;
  }

  // Marks the pages of changed cells, which need new checksums at close.
  void changed(std::span<const std::uint64_t> cells) {
    if (mapped == nullptr) return;
    for (const std::uint64_t cell : cells) mapped->changed(cell * cell_bits >> 3);
  }

  void changed_everywhere() {
    if (mapped != nullptr) mapped->changed_all();
  }

  // Marks the pages of new keys in a mapped file. Counting filters: of all keys, because each changes its counters.
  void on_inserted(const hash_span& keys, const std::uint8_t* is_new) {
    if (layout->bulk != nullptr) {  // all cells of a key are in one block, and that in one page
      const bulk_target target = layout->bulk(data, parameters.geometry);
      const std::uint64_t blocks = parameters.geometry.bits / target.block_bits;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (is_new[i] == 0) continue;
        const std::uint64_t hash64 = keys.hash64(i);
        const std::uint64_t block = target.blocks_by == block_rule::upper_half ? ((hash64 >> 32) * blocks) >> 32
                                                                               : multiply_high(hash64, blocks);
        mapped->changed(block * target.block_bits / 8);
      }
      return;
    }
    std::array<std::uint64_t, max_probes> cells;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (is_new[i] == 0 && removals == nullptr) continue;
      layout->cells(parameters.geometry, keys.hash(i), cells.data());
      changed(std::span(cells).first(parameters.geometry.probes));
    }
  }

  // The increase of the count.
  std::uint64_t counted_of(const hash_span& keys, std::uint64_t all_new) const {
    return removals != nullptr ? keys.size() : all_new;
  }

  // Sliding-window filters: a key changes its block, and the count of its generation in the state before the blocks.
  std::uint64_t insert_in_window(const hash_span& keys, std::uint8_t* is_new) {
    return window->each_run(data, keys.size(), [&](std::uint32_t epoch, std::size_t first, std::size_t count) {
      const hash_span some = keys.part(first, count);
      if (mapped != nullptr) {
        mapped->changed(0);
        for (std::size_t i = 0; i < count; ++i) {
          mapped->changed(layout->window->block_at(parameters.geometry, some.hash64(i)));
        }
      }
      return layout->window->insert(data, parameters.geometry, some, epoch,
                                    is_new == nullptr ? nullptr : is_new + first);
    });
  }

  void look_up_source(const hash_span& keys, std::uint64_t* bitmap) const {
    if (!is_special) return layout->may_contain(data, parameters.geometry, keys, bitmap);
    if (unverified != nullptr) verify_pages_of(keys);
    if (!window) return layout->may_contain(data, parameters.geometry, keys, bitmap);
    const auto epoch = static_cast<std::uint32_t>(window->epoch(data));
    layout->window->look_up(data, parameters.geometry, keys, epoch, bitmap);
  }

  // Checks the state of a window's generations, which came from a file. A dirty file may have an active writer.
  void check_window(const file_info& info, bool alone, const std::string& path) const {
    if (window) window->check({data, bytes}, info.clean || alone, path);
  }

  window_facts window_now() const { return facts_of_window(parameters, {data, bytes}, window->epoch(data)); }

  // Whether at least as many keys of a log are inserted as the file has pages. Then nearly all pages change, so all are
  // marked at once.
  bool is_bulk_of_log(const hash_span& keys, const std::uint8_t* is_new) const {
    return keys.form() == hash_span::kind::hash64s && is_new == nullptr && keys.size() >= bytes / 4096;
  }

  // Returns the number of certainly new keys.
  std::uint64_t insert_source(const hash_span& keys, std::uint8_t* is_new) {
    if (window) {
      const std::uint64_t unseen = insert_in_window(keys, is_new);
      inserted() += unseen;
      return unseen;
    }
    if (slots_of(layout) != nullptr) return insert_into_slots(keys, is_new);
    if (mapped == nullptr || is_bulk_of_log(keys, is_new)) {
      changed_everywhere();
      const std::uint64_t all_new = layout->insert(data, parameters.geometry, keys, is_new);
      inserted() += counted_of(keys, all_new);
      return all_new;
    }
    std::uint64_t all_new = 0;
    std::array<std::uint8_t, keys_of_a_batch> fresh;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      const hash_span some = keys.part(first, count);
      const std::uint64_t new_here = layout->insert(data, parameters.geometry, some, fresh.data());
      all_new += new_here;
      inserted() += counted_of(some, new_here);
      if (counted_of(some, new_here) > 0) on_inserted(some, fresh.data());
      if (is_new != nullptr) std::copy_n(fresh.data(), count, is_new + first);
    });
    return all_new;
  }

  // Inserts keys until one has no room in a filter that does not grow. @throws partial_error full
  std::uint64_t insert_into_slots(const hash_span& keys, std::uint8_t* is_new) {
    std::uint64_t all_new = 0;
    std::size_t done = 0;
    for (;;) {
      const std::size_t some = layout->slots->insert(data, parameters.geometry, keys.part(done, keys.size() - done),
                                                     is_new == nullptr ? nullptr : is_new + done, all_new);
      inserted() += some;
      done += some;
      if (done == keys.size()) return all_new;
      if (!grow({done, all_new})) throw partial_error(full_filter(parameters, inserted() + 1), {done, all_new}, 0);
    }
  }

  // Doubles a filter with slots, more than once if keys with many copies have no room otherwise.
  // @throws partial_error too_large, with `done`
  bool grow(change_result done) {
    try {
      const unsigned most = doublings_left(parameters);
      for (unsigned doublings = 1; doublings <= most; ++doublings) {
        if (resize(doublings)) return true;
      }
      return false;
    } catch (const error& e) {
      throw partial_error(e, done, 0);
    }
  }

  // Doubles the blocks of a filter with slots so often, and adds the fingerprints of another one, which has at most as
  // many blocks then. In any_filter.cpp. False: some have no room, and nothing changes. @throws error too_large
  bool resize(unsigned doublings, const impl* other = nullptr);

  // Adds the fingerprints of another filter. In any_filter.cpp. @throws error full, too_large; nothing changes
  void merge_slots(const impl& other);

  std::uint64_t remove_source(const hash_span& keys, removal* results) {
    std::array<removal, keys_of_a_batch> done;
    std::array<std::uint64_t, max_probes> cells;
    std::uint64_t all_removed = 0;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      const hash_span some = keys.part(first, count);
      all_removed += removals->remove(data, parameters.geometry, some, done.data());
      for (std::size_t i = 0; i < count; ++i) {
        count_removal(*counts, done[i]);
        if (mapped == nullptr || done[i] == removal::not_found) continue;
        layout->cells(parameters.geometry, some.hash(i), cells.data());
        changed(std::span(cells).first(parameters.geometry.probes));
      }
      if (results != nullptr) std::copy_n(done.data(), count, results + first);
    });
    return all_removed;
  }

  std::uint64_t remove(key_span keys, std::span<removal> results) {
    detail::check_answers("any_filter::remove", keys.size(), results.size());
    want(keys);
    want_writable();
    if (removals == nullptr) refuse_removal(parameters, "");
    std::uint64_t all_removed = 0;
    each_source(keys, [&](const hash_span& some, std::size_t first) {
      all_removed += remove_source(some, results.empty() ? nullptr : results.data() + first);
    });
    return all_removed;
  }

  // Single keys, in any_filter_keys.cpp.

  // Inserts a key into any filter; see takes_directly.
  [[gnu::noinline]] bool insert_indirectly(std::string_view key);
  [[gnu::noinline]] bool insert_indirectly(std::uint64_t key);

  // Looks up a key in any filter; see finds_directly.
  [[gnu::noinline]] bool find_indirectly(std::string_view key) const;
  [[gnu::noinline]] bool find_indirectly(std::uint64_t key) const;

  // Removes a copy of a key from any filter. Layouts with remove_hash() are not changed in mapped files, so no page is
  // marked as changed.
  template <class Key>
  removal remove_one(const Key& key);

  // For filters without functions for single keys.
  template <class Key>
  bool insert_one_specially(Key key);
  template <class Key>
  bool has_one_specially(Key key) const;

  // Called after one key was inserted. `hash_it` computes its hash if needed.
  template <class HashIt>
  bool counted(bool is_new, HashIt hash_it);

  key_hash hash_one(std::string_view key) const { return hash->of_one_bytes(seed, key); }
  key_hash hash_one(std::uint64_t key) const { return hash->of_one_integer(seed, key); }

  bool insert_by_scheme(std::string_view key) {
    std::array<std::uint64_t, max_probes> cells;
    scheme->positions(key, parameters.geometry, {parameters.seed, parameters.salts()}, cells.data());
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
    scheme->positions(key, parameters.geometry, {parameters.seed, parameters.salts()}, cells.data());
    const auto used = std::span(cells).first(parameters.geometry.probes);
    if (unverified != nullptr && unverified->wants_pages_of(1)) {
      for (const std::uint64_t cell : used) unverified->verify(cell >> 3, 1);
    }
    return std::all_of(used.begin(), used.end(), [&](std::uint64_t cell) { return test_bit(data, cell); });
  }

  // Calls work(source, first) for the keys from `first` on. Hashes are passed unchanged, and so are integers that the
  // kernels hash. Other keys are hashed batch by batch. Requires a layout.
  template <class Work>
  void each_source(key_span keys, Work work) const {
    switch (keys.form()) {
      case key_span::form_of_keys::hashes: return work(hash_span::hashes(keys.hashes()), std::size_t{0});
      case key_span::form_of_keys::hash64s: return work(hash_span::hash64s(keys.hash64s()), std::size_t{0});
      case key_span::form_of_keys::integers:
        if (hash->in_kernels) return work(hash_span::mixed(keys.integers(), seed.seed), std::size_t{0});
        if (hash->is_identity && layout->hash_bits == 64)
          return work(hash_span::hash64s(keys.integers()), std::size_t{0});
        break;
      case key_span::form_of_keys::views:
      case key_span::form_of_keys::strings: break;
    }
    each_hashed(keys, work);
  }

  // Out of line, so that small batches of integers and hashes need not reserve stack for hashes.
  template <class Work>
  [[gnu::noinline]] void each_hashed(key_span keys, Work& work) const {
    std::array<key_hash, keys_of_a_batch> hashes;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      hash_keys(*hash, seed, keys.part(first, count), hashes.data());
      work(hash_span::hashes({hashes.data(), count}), first);
    });
  }

  std::uint64_t insert(key_span keys, std::uint8_t* is_new) {
    std::uint64_t all_new = 0;
    if (layout == nullptr) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const bool fresh = insert_by_scheme(keys.text(i));
        all_new += fresh ? 1 : 0;
        if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
      }
      return all_new;
    }
    const auto insert_some = [&](const hash_span& some, std::size_t first) {
      all_new += insert_source(some, is_new == nullptr ? nullptr : is_new + first);
    };
    if (slots_of(layout) == nullptr) {
      each_source(keys, insert_some);
      return all_new;
    }
    each_source(keys, [&](const hash_span& some, std::size_t first) {
      try {
        insert_some(some, first);
      } catch (const partial_error& e) {
        throw partial_error(e, {first + e.done().keys, all_new + e.done().changed}, 0);
      }
    });
    return all_new;
  }

  // Lookups of text by hash64 alone. Blocks of one cache line at most are prefetched while keys are hashed.
  [[gnu::noinline]] void look_up_text(key_span keys, std::uint64_t* bitmap) const {
    detail::block_prefetch blocks;
    if (layout->block_bits <= cache_line_bits)
      blocks = {data, parameters.geometry.bits / layout->block_bits, layout->block_bits / 8};
    std::array<std::string_view, 128> views;
    std::array<std::uint64_t, views.size()> hash64s;
    for (std::size_t first = 0; first < keys.size(); first += views.size()) {
      const std::size_t count = std::min(views.size(), keys.size() - first);
      for (std::size_t i = 0; i < count; ++i) views[i] = keys.text(first + i);
      hash->hash64_of_bytes(seed, std::span(views).first(count), hash64s.data(), blocks);
      look_up_source(hash_span::hash64s({hash64s.data(), count}), bitmap + first / 64);
    }
  }

  void look_up(key_span keys, std::uint64_t* bitmap) const {
    if (layout != nullptr) {
      if (uses_hash64() && hash->hash64_of_bytes != nullptr && keys.is_text()) return look_up_text(keys, bitmap);
      return each_source(keys,
                         [&](const hash_span& some, std::size_t first) { look_up_source(some, bitmap + first / 64); });
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i % 64 == 0) bitmap[i / 64] = 0;
      bitmap[i / 64] |= std::uint64_t{has_by_scheme(keys.text(i))} << (i % 64);
    }
  }

  // Whether partitioning keys by block may pay. In a file that gets few keys it would mark all pages as changed.
  bool takes_in_bulk(std::size_t count, unsigned threads) const {
    return uses_hash64() && (mapped == nullptr || count >= bytes / 4096) &&
           bulk_insert_pays(layout->bulk(data, parameters.geometry), count, threads);
  }

  std::uint64_t insert_all(std::size_t count, const hash64s_of_keys& fill, unsigned threads) {
    changed_everywhere();
    const std::uint64_t all_new = bulk_insert(layout->bulk(data, parameters.geometry), count, fill, threads);
    inserted() += all_new;
    return all_new;
  }

  // The number of cells counted by ones(): counters, slots, otherwise bits. In a static filter, any cell may be 0.
  std::uint64_t cells() const {
    return removals != nullptr ? removals->cells(parameters.geometry) : parameters.geometry.bits;
  }

  // Non-zero cells. In an untrusted file, unused bits of the last byte may be set, so the count is limited to all bits.
  std::uint64_t ones() const {
    if (window) return measure_fill(parameters, {data, bytes}).ones;
    if (removals != nullptr) return removals->cells_used(parameters.geometry, {data, bytes});
    return std::min(count_ones({data, bytes}), parameters.geometry.bits);
  }
  std::uint64_t zeros() const { return cells() - ones(); }

  // Sliding-window filters use the counts of the generations, because bits do not show which keys are in several.
  estimate estimated_keys() const {
    if (window) return {static_cast<double>(window_now().keys_held()), 0};
    return bloomery::estimated_keys(parameters, ones());
  }

  // With many probes, computing an FPR takes a second, so functions that need many FPRs skip them.
  bool has_slow_rates() const { return parameters.geometry.probes > layouts::classic::most_chosen_probes; }

  // Called after all bytes were read: a filter that may change must be one that insertions have made.
  void check_slots(const std::string& path) const {
    const slot_calls* const slots = slots_of(layout);
    if (slots == nullptr || slots->is_valid(parameters.geometry, {data, bytes})) return;
    throw error(errc::damaged, {"the blocks contradict themselves", path, "an end of each bucket", "a block without",
                                hint::restore_file});
  }

  // Called after opening: checks bytes that are not cells, which have not been checked before.
  void check_bytes(const std::string& path) const {
    if (layout != nullptr && layout->check_bytes != nullptr) layout->check_bytes(parameters, {data, bytes}, path);
  }

  // After a merge, or after a killed writer, the bits show more keys than the count. If all bits are set, uses the
  // number of keys that leaves one bit clear, at least 1.
  void estimate_count() {
    if (window) {  // the generations have their own counts
      inserted() = std::max(inserted(), window_now().keys_held());
      counts->is_estimate = true;
      return;
    }
    if (removals != nullptr) {
      inserted() = static_cast<std::uint64_t>(std::llround(removals->copies_in(parameters.geometry, {data, bytes})));
      counts->is_estimate = true;
      return;
    }
    const std::uint64_t clear = zeros();
    const double keys = bloomery::estimated_keys(parameters, ones() - (clear == 0 ? 1 : 0)).value;
    set_estimated_count(clear == 0 ? std::max(keys, 1.0) : keys);
  }

  // Never below the present count.
  void set_estimated_count(double keys) {
    const auto rate = [this](std::uint64_t n) { return has_slow_rates() ? 0 : bloomery::expected_fpr(parameters, n); };
    inserted() = std::max(inserted(), expected_insertions(keys, rate));
    counts->is_estimate = true;
  }
};

}  // namespace bloomery
