#include <bloomery/any_filter.hpp>

#include <bloomery/bits.hpp>
#include <bloomery/bulk_insert.hpp>
#include <bloomery/census.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/error.hpp>
#include <bloomery/fuse.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/sizing.hpp>

#include "registry/fuse_row.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <algorithm>
#include <array>
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

[[noreturn]] void refuse_without_secret(const params& p, const std::string& path) {
  throw error(errc::incompatible,
              {"the filter is keyed with a secret", path, "the key with check value " + key_check_text(p.key_check), "",
               hint::give_the_secret});
}

}  // namespace

struct any_filter::body {
  params parameters;
  const layout_row* layout = nullptr;  // one of layout and scheme is set
  const hash_row* hash = nullptr;
  const bloomery::scheme* scheme = nullptr;
  std::variant<heap_storage, mapped_storage> storage;
  std::optional<file_info> opened_from;
  const single_key_calls* single = nullptr;
  hash_seed seed;
  std::optional<generations> window;  // of a filter that forgets

  // The storage, looked into once: it does not move any more.
  std::uint8_t* data = nullptr;
  std::uint64_t bytes = 0;
  key_counts* counts = nullptr;
  mapped_storage* mapped = nullptr;
  const removal_calls* removals = nullptr;  // of a counting filter
  std::uint32_t cell_bits = 1;
  static constexpr auto no_keys = static_cast<key_kind>(~0u);
  key_kind takes = no_keys;  // without the filter's secret it stays so

  body(params p, std::variant<heap_storage, mapped_storage> s)
      : parameters(std::move(p)),
        layout(find_layout(parameters.layout)),
        hash(find_hash(parameters.hash)),
        scheme(find_scheme(parameters.scheme)),
        storage(std::move(s)),
        seed{mix(parameters.seed), parameters.secret.value_or(secret_key{})} {
    if (parameters.key_check == 0 || parameters.secret) takes = parameters.keys;
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
    else if (layout != nullptr && hash != nullptr)
      single = &single_key_calls_of(*layout, *hash);
  }

  std::uint64_t& inserted() { return counts->inserted; }

  void want(key_kind kind) const {
    if (takes != kind) [[unlikely]]
      refuse(kind);
  }

  // Apart, so that a call on one key saves no registers for it.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(key_kind kind) const {
    if (takes == no_keys) refuse_without_secret(parameters, "");
    throw error(errc::incompatible,
                {"keys of another kind than the filter's", "", name_of(parameters.keys), name_of(kind), ""});
  }

  void want_hashes() const {
    if (layout == nullptr) [[unlikely]]
      refuse_hashes();
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_hashes() const {
    throw error(errc::incompatible, {"the filter takes no hashes: its scheme reads the keys themselves", "", "a layout",
                                     "scheme " + parameters.scheme, "use the calls that take keys"});
  }

  void want_writable() const {
    refuse_keys_if_sealed(parameters, "");
    if (mapped != nullptr && !mapped->writable()) detail::refuse_writing();
  }

  // Pages to be checksummed at close: those with a cell of a key that changed one.
  void changed(std::span<const std::uint64_t> cells) {
    if (mapped == nullptr) return;
    for (const std::uint64_t cell : cells) mapped->changed(cell * cell_bits >> 3);
  }

  void changed_everywhere() {
    if (mapped != nullptr) mapped->changed_all();
  }

  // Marks the pages of new keys, in a mapped file; of all keys, where each counts.
  void took_new(const key_source& keys, const std::uint8_t* is_new) {
    if (layout->bulk != nullptr) {  // all cells of a key are in one block, and that in one page
      const bulk_target target = layout->bulk(data, parameters.geometry);
      const std::uint64_t blocks = parameters.geometry.bits / target.block_bits;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (is_new[i] == 0) continue;
        const std::uint64_t lo = keys.hash(i).lo;
        const std::uint64_t block =
            target.blocks_by == block_rule::upper_half ? ((lo >> 32) * blocks) >> 32 : multiply_high(lo, blocks);
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

  // What the count goes up by.
  std::uint64_t counted_of(const key_source& keys, std::uint64_t all_new) const {
    return removals != nullptr ? keys.size() : all_new;
  }

  // Into a filter that forgets: a key changes its block, and the count of its generation at the front.
  std::uint64_t insert_in_window(const key_source& keys, std::uint8_t* is_new) {
    return window->each_run(data, keys.size(), [&](std::uint32_t epoch, std::size_t first, std::size_t count) {
      const key_source some = keys.part(first, count);
      if (mapped != nullptr) {
        mapped->changed(0);
        for (std::size_t i = 0; i < count; ++i) {
          mapped->changed(layout->window->block_at(parameters.geometry, some.hash(i).lo));
        }
      }
      return layout->window->insert(data, parameters.geometry, some, epoch,
                                    is_new == nullptr ? nullptr : is_new + first);
    });
  }

  void look_up_source(const key_source& keys, std::uint64_t* bitmap) const {
    if (!window) return layout->may_contain(data, parameters.geometry, keys, bitmap);
    const auto epoch = static_cast<std::uint32_t>(window->epoch(data));
    layout->window->look_up(data, parameters.geometry, keys, epoch, bitmap);
  }

  bool insert_one_in_window(key_hash key) {
    const std::uint64_t unseen = insert_in_window(key_source::hashes({&key, 1}), nullptr);
    inserted() += unseen;
    return unseen != 0;
  }

  bool has_one_in_window(key_hash key) const {
    std::uint64_t answer = 0;
    look_up_source(key_source::hashes({&key, 1}), &answer);
    return answer != 0;
  }

  // Whether the state of a window's generations, which came from a file, can be. A writer may be at a dirty one.
  void check_window(const file_info& info, bool alone, const std::string& path) const {
    if (window) window->check({data, bytes}, info.clean || alone, path);
  }

  window_facts window_now() const { return facts_of_window(parameters, {data, bytes}, window->epoch(data)); }

  // Returns how many were certainly new.
  std::uint64_t insert_source(const key_source& keys, std::uint8_t* is_new) {
    if (window) {
      const std::uint64_t unseen = insert_in_window(keys, is_new);
      inserted() += unseen;
      return unseen;
    }
    if (mapped == nullptr) {
      const std::uint64_t all_new = layout->insert(data, parameters.geometry, keys, is_new);
      inserted() += counted_of(keys, all_new);
      return all_new;
    }
    std::uint64_t all_new = 0;
    std::array<std::uint8_t, batch> fresh;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      const key_source some = keys.part(first, count);
      const std::uint64_t new_here = layout->insert(data, parameters.geometry, some, fresh.data());
      all_new += new_here;
      inserted() += counted_of(some, new_here);
      if (counted_of(some, new_here) > 0) took_new(some, fresh.data());
      if (is_new != nullptr) std::copy_n(fresh.data(), count, is_new + first);
    });
    return all_new;
  }

  [[noreturn]] void refuse_removal() const {
    throw error(errc::incompatible,
                {"keys cannot be removed from this filter: its bits belong to many keys at once", "", "layout counting",
                 parameters.layout + parameters.scheme, hint::make_counting_filter});
  }

  std::uint64_t remove_source(const key_source& keys, removal* results) {
    std::array<removal, batch> done;
    std::array<std::uint64_t, max_probes> cells;
    std::uint64_t all_removed = 0;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      const key_source some = keys.part(first, count);
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

  template <class Key>
  std::uint64_t remove_keys(std::span<const Key> keys, std::span<removal> results) {
    detail::check_answers("any_filter::remove", keys.size(), results.size());
    want(std::same_as<Key, std::uint64_t> ? key_kind::u64le : key_kind::bytes);
    want_writable();
    if (removals == nullptr) refuse_removal();
    std::uint64_t all_removed = 0;
    each_source(keys, [&](const key_source& some, std::size_t first) {
      all_removed += remove_source(some, results.empty() ? nullptr : results.data() + first);
    });
    return all_removed;
  }

  // After the insertion of one key: `hash_it` tells its hash, if somebody wants to know.
  template <class HashIt>
  bool counted(bool is_new, HashIt hash_it) {
    if (!is_new && removals == nullptr) return false;
    ++inserted();
    if (mapped != nullptr) {
      const key_hash key = hash_it();
      const std::uint8_t fresh = 1;
      took_new(key_source::hashes({&key, 1}), &fresh);
    }
    return is_new;
  }

  template <class Key>
  key_hash hash_one(Key key) const {
    key_hash result;
    hash_keys(std::span<const Key>(&key, 1), &result);
    return result;
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

  void hash_keys(std::span<const std::string_view> keys, key_hash* out) const { hash->of_bytes(seed, keys, out); }
  void hash_keys(std::span<const std::uint64_t> keys, key_hash* out) const { hash->of_integers(seed, keys, out); }

  // Calls work(source, first) for keys from `first` on: integers as they are if the kernels hash them, others hashed
  // batch by batch.
  template <class Key, class Work>
  void each_source(std::span<const Key> keys, Work work) const {
    if constexpr (std::same_as<Key, std::uint64_t>) {
      if (hash->in_kernels) return work(key_source::mixed(keys, seed.seed), std::size_t{0});
    }
    std::array<key_hash, batch> hashes;
    in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
      hash_keys(keys.subspan(first, count), hashes.data());
      work(key_source::hashes({hashes.data(), count}), first);
    });
  }

  template <class Key>
  std::uint64_t insert_keys(std::span<const Key> keys, std::uint8_t* is_new) {
    std::uint64_t all_new = 0;
    each_source(keys, [&](const key_source& some, std::size_t first) {
      all_new += insert_source(some, is_new == nullptr ? nullptr : is_new + first);
    });
    return all_new;
  }

  template <class Key>
  void look_up_keys(std::span<const Key> keys, std::uint64_t* bitmap) const {
    each_source(keys, [&](const key_source& some, std::size_t first) { look_up_source(some, bitmap + first / 64); });
  }

  // Writes lo of keys to los, for bulk insertion.
  template <class Key>
  void halves(std::span<const Key> keys, std::uint64_t* los) const {
    each_source(keys, [&](const key_source& some, std::size_t first) { halves_of(some, los + first); });
  }

  // Whether sorting keys by block may pay: a file that gets few keys would have all its pages marked as changed.
  bool takes_in_bulk(std::size_t count, unsigned threads) const {
    return layout != nullptr && layout->bulk != nullptr && (mapped == nullptr || count >= bytes / 4096) &&
           bulk_insert_pays(layout->bulk(data, parameters.geometry), count, threads);
  }

  std::uint64_t insert_all(std::size_t count, const halves_of_keys& fill, unsigned threads) {
    changed_everywhere();
    const std::uint64_t all_new = bulk_insert(layout->bulk(data, parameters.geometry), count, fill, threads);
    inserted() += all_new;
    return all_new;
  }

  // What ones() counts: counters, and elsewhere bits. A sealed filter's cells are values, and any of them may be 0.
  std::uint64_t cells() const {
    return removals != nullptr ? parameters.geometry.bits / cell_bits : parameters.geometry.bits;
  }

  // Cells that are not 0. In a stranger's file the last byte's unused bits may be set: never more than all.
  std::uint64_t ones() const {
    if (window) return layout->take_census(parameters.geometry, {data, bytes}).ones;
    if (removals != nullptr) return removals->cells_used({data, bytes});
    return std::min(count_ones({data, bytes}), parameters.geometry.bits);
  }
  std::uint64_t zeros() const { return cells() - ones(); }

  // Of a filter that forgets the counts of its generations: what its bits tell of keys that are in several is unknown.
  estimate estimated_keys() const {
    if (window) return {static_cast<double>(window_now().keys_held()), 0};
    return bloomery::estimated_keys(parameters, ones());
  }

  // Rates of very many probes take a second each: what needs many of them does without.
  bool has_slow_rates() const { return parameters.geometry.probes > classic::most_chosen_probes; }

  // After opening: bytes of which not all are a filter have not been looked at before.
  void check_bytes(const std::string& path) const {
    if (layout != nullptr && layout->check_bytes != nullptr) layout->check_bytes(parameters, {data, bytes}, path);
  }

  // After a merge, or after a writer that was killed, the bits know more than the count. With all bits set there are at
  // least as many keys as leave one clear, and one.
  void estimate_count() {
    if (window) {  // its generations have counted on
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

  // At least as many as were counted.
  void set_estimated_count(double keys) {
    const auto rate = [this](std::uint64_t n) {
      return has_slow_rates() ? 0 : bloomery::false_positive_rate(parameters, n);
    };
    inserted() = std::max(inserted(), certainly_new_keys(keys, rate));
    counts->is_estimate = true;
  }
};

// A file may name what only a later version, or another program's own hash, knows.
void check_known(const params& p, const std::string& path) {
  const auto refuse = [&](const char* what, const std::string& name, const std::string& names) {
    throw error(errc::incompatible, {std::string("a filter with a ") + what + " that is not built in", path,
                                     "one of " + names, "'" + name + "'", hint::use_its_program});
  };
  if (!p.scheme.empty()) {
    if (find_scheme(p.scheme) == nullptr) refuse("scheme", p.scheme, scheme_names());
  } else {
    if (find_layout(p.layout) == nullptr) refuse("layout", p.layout, layout_names());
    if (find_hash(p.hash) == nullptr) refuse("hash", p.hash, hash_names());
  }
  params without_capacity = p;
  without_capacity.capacity = 0;  // so that no rate is computed, which may take a second for absurd numbers
  if (p.key_check != 0) {
    without_capacity.secret = secret_key{};  // any will do: whether it is the right one is not the header's affair
    without_capacity.key_check = 0;
  }
  try {
    complete(without_capacity);
  } catch (const error& e) {
    throw error(errc::damaged, {"the header contradicts itself: " + e.text().what, path, e.text().expected,
                                e.text().found, hint::restore_file});
  }
}

namespace {

// A file's params, with the secret that the caller has for them.
params unlocked(params p, const std::optional<secret_key>& secret, const std::string& path, bool facts_only = false) {
  check_known(p, path);
  if (p.key_check != 0 && !secret && !facts_only) refuse_without_secret(p, path);
  if (p.key_check == 0 && secret) {
    throw error(errc::incompatible,
                {"the filter is not keyed: it has no secret", path, "", "", hint::leave_out_the_secret});
  }
  if (secret && key_check(*secret) != p.key_check) {
    throw error(errc::incompatible, {"the filter is keyed with another secret", path,
                                     "the key with check value " + key_check_text(p.key_check),
                                     key_check_text(key_check(*secret)), hint::give_the_secret});
  }
  p.secret = secret;
  return p;
}

}  // namespace

any_filter::any_filter(std::unique_ptr<body> b) noexcept : body_(std::move(b)) {}
any_filter::any_filter(any_filter&&) noexcept = default;
any_filter& any_filter::operator=(any_filter&&) noexcept = default;
any_filter::~any_filter() = default;

any_filter::any_filter(params p) {
  p = complete(std::move(p));
  refuse_empty_if_sealed(p);
  heap_storage bytes(bytes_for(p.geometry.bits));
  body_ = std::make_unique<body>(std::move(p), std::move(bytes));
}

any_filter::any_filter(params p, heap_storage bytes) {
  p = complete(std::move(p));
  const family kind = family_of(p);
  if (bytes.size() != bytes_for(p.geometry.bits) || (kind != family::plain && kind != family::counting)) {
    throw error(errc::incompatible, {"the bytes do not match the parameters", "",
                                     std::to_string(bytes_for(p.geometry.bits)), std::to_string(bytes.size()), ""});
  }
  body_ = std::make_unique<body>(std::move(p), std::move(bytes));
  body_->estimate_count();
}

any_filter any_filter::open(const std::string& path, access mode, check what, const mapped_storage::on_wait& waiting,
                            const std::optional<secret_key>& secret) {
  return open_any(path, mode, what, waiting, secret, [&](const params& found) {
    if (mode == access::read_write) refuse_log(found, path);
  });
}

any_filter any_filter::open_any(const std::string& path, access mode, check what,
                                const mapped_storage::on_wait& waiting, const std::optional<secret_key>& secret,
                                const mapped_storage::on_header& suits, bool facts_only) {
  params p;
  mapped_storage bytes = mapped_storage::open(path, mode, what, waiting, [&](const params& found) {
    p = unlocked(found, secret, path, facts_only);
    if (mode == access::read_write) refuse_keys_if_sealed(p, path);
    if (suits) suits(found);
  });
  const file_info info = bytes.info();
  auto b = std::make_unique<body>(std::move(p), std::move(bytes));
  b->check_window(info, mode == access::read_write, path);
  b->check_bytes(path);
  if (!info.clean && mode == access::read_write) b->estimate_count();
  b->opened_from = info;
  return any_filter(std::move(b));
}

any_filter any_filter::create(const std::string& path, params p, const std::string& metadata, creation how) {
  p = complete(std::move(p));
  refuse_empty_if_sealed(p);
  mapped_storage bytes = mapped_storage::create(path, p, metadata, how);
  return any_filter(std::make_unique<body>(std::move(p), std::move(bytes)));
}

any_filter any_filter::load(const std::string& path, const std::optional<secret_key>& secret) {
  return loaded(load_file(path), secret, path);
}

any_filter any_filter::from_bytes(std::span<const std::uint8_t> file, const std::optional<secret_key>& secret) {
  return loaded(load_bytes(file), secret, "");
}

std::vector<std::uint8_t> any_filter::to_bytes(const std::string& metadata) const {
  return file_bytes(parameters(), bytes(), *body_->counts, metadata);
}

any_filter any_filter::clone() const {
  heap_storage copy(body_->bytes);
  std::copy_n(body_->data, body_->bytes, copy.data());
  copy.counts() = *body_->counts;
  copy.counts().logged = copy.counts().log_generation = 0;
  params alone = parameters();
  alone.log_id = 0;
  auto b = std::make_unique<body>(std::move(alone), std::move(copy));
  b->window = body_->window;
  return any_filter(std::move(b));
}

any_filter any_filter::loaded(loaded_file file, const std::optional<secret_key>& secret, const std::string& path) {
  auto b = std::make_unique<body>(unlocked(file.info.parameters, secret, path), std::move(file.bytes));
  b->check_window(file.info, false, path);
  b->check_bytes(path);
  if (!file.info.clean) b->estimate_count();
  b->opened_from = std::move(file.info);
  return any_filter(std::move(b));
}

void any_filter::save(const std::string& path, const std::string& metadata) const {
  save_file(path, parameters(), bytes(), *body_->counts, metadata);
}

mapped_storage* any_filter::mapped() noexcept { return body_->mapped; }

void any_filter::close() {
  if (!body_) return;
  const std::unique_ptr<body> b = std::move(body_);
  if (auto* mapped = std::get_if<mapped_storage>(&b->storage)) mapped->close();
}

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

void any_filter::merge(const any_filter& other) {
  const std::string reason = difference(parameters(), other.parameters());
  if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be merged", "", "", reason, ""});
  body_->want_writable();
  if (body_->window) {
    merge_windows(parameters(), {body_->data, body_->bytes}, other.bytes());
    body_->inserted() += other.body_->counts->inserted;
    body_->counts->is_estimate = true;
    return body_->changed_everywhere();
  }
  if (body_->removals != nullptr) {
    body_->removals->merge({body_->data, body_->bytes}, other.bytes());
    *body_->counts = sum_of_counts(*body_->counts, *other.body_->counts);
    return body_->changed_everywhere();
  }
  unite_bits({body_->data, body_->bytes}, other.bytes());
  body_->changed_everywhere();
  body_->estimate_count();
}

void any_filter::intersect(const any_filter& other) {
  const std::string reason = difference(parameters(), other.parameters());
  if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be intersected", "", "", reason, ""});
  if (body_->removals != nullptr) {
    throw error(errc::incompatible,
                {"counting filters cannot be intersected: counters do not tell which copies are in both", "",
                 "filters of bits", parameters().layout, hint::intersect_plain_filters});
  }
  if (body_->window) {
    throw error(errc::incompatible,
                {"sliding-window filters cannot be intersected: both may hold a key in different generations", "", "",
                 parameters().layout, hint::none});
  }
  body_->want_writable();
  const estimate keys = estimate_overlap(parameters(), count_shared(bytes(), other.bytes())).keys_both;
  intersect_bits({body_->data, body_->bytes}, other.bytes());
  body_->changed_everywhere();
  body_->inserted() = 0;
  if (std::isfinite(keys.sigma))
    body_->set_estimated_count(keys.value);
  else
    body_->estimate_count();  // together they are full, which tells nothing of what they share
}

bool any_filter::compatible_with(const any_filter& other) const {
  return difference(parameters(), other.parameters()).empty() && parameters().window_keys == 0;
}

any_filter& any_filter::operator|=(const any_filter& other) {
  merge(other);
  return *this;
}

any_filter& any_filter::operator&=(const any_filter& other) {
  intersect(other);
  return *this;
}

bool any_filter::operator==(const any_filter& other) const {
  const auto that_matters = [](params p) {
    p.capacity = p.log_id = 0;
    p.target_rate = 0;
    p.secret.reset();  // its check value is compared
    return p;
  };
  return that_matters(parameters()) == that_matters(other.parameters()) &&
         std::equal(body_->data, body_->data + body_->bytes, other.body_->data, other.body_->data + other.body_->bytes);
}

void any_filter::clear() {
  body_->want_writable();
  std::fill_n(body_->data, body_->bytes, std::uint8_t{0});
  body_->inserted() = 0;
  body_->counts->is_estimate = false;
  body_->counts->refused_removals = 0;
  body_->changed_everywhere();
}

bool any_filter::is_writable() const noexcept {
  return family_of(parameters()) != family::sealed && (body_->mapped == nullptr || body_->mapped->writable());
}

const params& any_filter::parameters() const noexcept { return body_->parameters; }
std::span<const std::uint8_t> any_filter::bytes() const noexcept { return {body_->data, body_->bytes}; }
std::uint64_t any_filter::capacity() const noexcept { return parameters().capacity; }
std::uint64_t any_filter::bit_size() const noexcept { return parameters().geometry.bits; }
std::uint64_t any_filter::byte_size() const noexcept { return body_->bytes; }
std::uint64_t any_filter::size() const noexcept { return body_->inserted(); }
std::optional<window_facts> any_filter::window() const {
  return body_->window ? std::optional(body_->window_now()) : std::nullopt;
}
void any_filter::set_clock(window_clock clock) {
  if (body_->window) body_->window->set_clock(std::move(clock));
}
bool any_filter::count_is_estimate() const noexcept { return body_->counts->is_estimate; }
const key_counts& any_filter::counts() const noexcept { return *body_->counts; }
bool any_filter::tainted() const noexcept { return body_->counts->refused_removals > 0; }

double any_filter::fill_ratio() const noexcept {
  std::uint64_t cells = body_->cells();
  if (body_->window) {
    const occupancy lane = body_->layout->window->lane(parameters().geometry);
    cells = lane.blocks * lane.block_bits * window_lanes;
  }
  return static_cast<double>(body_->ones()) / static_cast<double>(cells);
}

estimate any_filter::estimated_keys() const { return body_->estimated_keys(); }

double any_filter::certified_rate() const { return take_census(parameters(), bytes()).certified_rate; }

double any_filter::approximate_size() const noexcept { return body_->estimated_keys().value; }

double any_filter::false_positive_rate(std::uint64_t keys) const {
  return bloomery::false_positive_rate(parameters(), keys);
}

double any_filter::false_positive_rate() const {
  if (body_->window) return body_->window_now().rate;
  if (body_->has_slow_rates() || body_->removals != nullptr) return false_positive_rate(size());
  const auto rate = [this](std::uint64_t keys) { return false_positive_rate(keys); };
  return rate(distinct_keys(size(), rate));
}

const file_info* any_filter::opened_from() const noexcept {
  return body_->opened_from ? &*body_->opened_from : nullptr;
}

}  // namespace bloomery
