// The layers of a scalable filter.
//
// A single key is looked up in all layers at once (kernels::kernel_set::layers_have). A batch is processed layer by
// layer, the newest first, by the kernels of `split_block512`, which keep 128 prefetches outstanding; found keys are
// removed from the batch. So a present key reads two layers on average, and an absent key one cache line per layer.
#include <bloomery/detail/scalable_layers.hpp>

#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/sizing.hpp>

#include "kernels/dispatch.hpp"
#include "math/rates.hpp"
#include "platform/machine.hpp"
#include "platform/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace bloomery {
namespace {

constexpr std::size_t equal_layers = 12;
constexpr double parts = 13 * (1 + 0x1p-40);  // so that rounding cannot make the sum of all shares exceed p
constexpr std::uint64_t most_first_keys = std::uint64_t{1} << 40;
constexpr std::size_t most_layers = 64;

// Capacities of the layers: first, first, 2 first, 4 first, ... Capacities that overflow are far beyond any memory.
std::uint64_t capacity_of(std::uint64_t first, std::size_t layer) {
  constexpr std::uint64_t beyond_any = std::uint64_t{1} << 60;
  const std::size_t doublings = layer == 0 ? 0 : layer - 1;
  return doublings < 60 && first <= beyond_any >> doublings ? first << doublings : beyond_any;
}

// The first insert into a huge page waits until the system has allocated and zeroed 2 MiB: 0.2 ms, or 5 ms in a virtual
// machine whose host must allocate them, too. So a new layer uses small pages, with at most 10 us each. When it is
// full, the system may convert them to huge pages in the background. This is only advice, so failures are ignored.
void use_huge_pages([[maybe_unused]] heap_storage& storage, [[maybe_unused]] bool wanted) {
#if defined(MADV_HUGEPAGE)
  constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;  // large storages are aligned to it
  if (storage.size() >= huge_page) madvise(storage.data(), storage.size(), wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
}

// A planned layer, before its memory is allocated.
struct plan {
  scalable_layer facts;
  std::uint64_t most_new = 0;  // number of certainly new keys at which it is full: expected for capacity distinct keys
  double rate = 0;             // exact FPR at capacity
};

plan plan_of(double p, std::uint64_t first, std::size_t layer) {
  plan made;
  made.facts = scalable_layer_at(p, layer, first);
  const auto rate = [&](std::uint64_t keys) {
    return layouts::split_block512::expected_fpr(made.facts.geometry, keys);
  };
  made.rate = rate(made.facts.capacity);
  const auto lost = static_cast<std::uint64_t>(std::ceil(expected_losses(made.facts.capacity, rate)));
  made.most_new = std::max<std::uint64_t>(made.facts.capacity - std::min(lost, made.facts.capacity), 1);
  return made;
}

void check_first(double target_fpr, std::uint64_t first_layer_keys) {
  rates::check_target_fpr(1, target_fpr);
  if (first_layer_keys == 0 || first_layer_keys > most_first_keys) {
    throw error(errc::invalid_argument, {"the capacity of the first layer is out of range", "first_layer_keys",
                                         "1 to 2^40", std::to_string(first_layer_keys), ""});
  }
}

// The plan of layer i of a copy. Throws if a scalable filter has no such layer.
plan plan_of_copy(const layered_filter& copy, std::size_t i) {
  const params& p = copy.parameters().filter;
  const filter_layer& found = copy.layers()[i];
  plan made = plan_of(p.target_fpr, p.capacity, i);
  const scalable_layer& facts = made.facts;
  if (p.layout != layouts::split_block512::name || found.geometry != facts.geometry ||
      found.capacity != facts.capacity) {
    throw error(errc::incompatible,
                {"the size of a layer is not one that this version makes", "layer " + std::to_string(i),
                 std::to_string(facts.geometry.bits) + " bits for " + std::to_string(facts.capacity) + " keys",
                 std::to_string(found.geometry.bits) + " bits for " + std::to_string(found.capacity) + " keys",
                 hint::use_its_version});
  }
  const bool is_newest = i + 1 == copy.layers().size();
  if (found.keys > made.most_new || (!is_newest && found.keys < made.most_new)) {
    throw error(errc::damaged,
                {"the number of keys in a layer is inconsistent with its capacity", "layer " + std::to_string(i),
                 (is_newest ? "at most " : "") + std::to_string(made.most_new), std::to_string(found.keys),
                 hint::restore_file});
  }
  return made;
}

struct layer {
  plan planned;
  heap_storage storage;
  std::uint64_t size = 0;

  explicit layer(const plan& p) : planned(p), storage(p.facts.geometry.bits / 8) {}
  bool full() const { return size >= planned.most_new; }
  double rate_at(std::uint64_t keys) const {
    return layouts::split_block512::expected_fpr(planned.facts.geometry, keys);
  }

  // Estimated distinct keys of this layer, including its own false positives.
  std::uint64_t distinct() const {
    if (full()) return planned.facts.capacity;
    return estimate_distinct(size, [this](std::uint64_t keys) { return rate_at(keys); });
  }
  double rate() const { return full() ? planned.rate : rate_at(distinct()); }
};

// Keys processed together: many compared to 128 outstanding prefetches, few compared to the caches.
constexpr std::size_t batch = 2048;

// A batch lookup: the keys that have not been found in any layer so far.
class search {
 public:
  // Takes the hash64 of up to `batch` keys.
  explicit search(const hash_span& keys) : count_(keys.size()), all_(keys.size()) {
    chosen_kernels().hash64s(kernel_keys(keys), los_);
    std::fill_n(maybe_, words(all_), std::uint64_t{0});
    std::fill_n(found_, words(all_), std::uint64_t{0});
  }

  void ask(const kernels::line_layer& layer, kernels::fetch fetch) {
    if (count_ == 0) return;
    chosen_kernels().split_block512.has({layer.bytes, layer.lines, layouts::split_block512::lanes, fetch},
                                        {los_, count_, 0, kernels::form::hash64s}, answers_);
    std::size_t all_found = 0;
    for (std::size_t word = 0; word < words(count_); ++word) {
      found_[word] |= answers_[word];
      all_found += static_cast<std::size_t>(std::popcount(found_[word]));
    }
    if (8 * all_found > count_) settle();  // otherwise it is cheaper to look them up again
  }

  // Removes found keys from the batch.
  void settle() {
    std::size_t left = 0;
    for (std::size_t word = 0; word < words(count_); ++word) {
      const std::size_t here = std::min<std::size_t>(count_ - 64 * word, 64);
      for (std::size_t bit = 0; bit < here; ++bit) {
        const std::size_t i = 64 * word + bit;
        const std::uint64_t is_found = found_[word] >> bit & 1;
        const std::uint16_t place = moved_ ? places_[i] : static_cast<std::uint16_t>(i);
        maybe_[place / 64] |= is_found << (place % 64);
        los_[left] = los_[i];
        places_[left] = place;
        left += 1 - is_found;
      }
      found_[word] = 0;
    }
    count_ = left;
    moved_ = true;
  }

  // After settle(): the remaining keys and their original positions.
  std::size_t left() const { return count_; }
  const std::uint64_t* hash64s() const { return los_; }
  std::size_t place(std::size_t i) const { return places_[i]; }

  // Writes the answers in the original order of the keys; may be called before or after settle().
  void copy_to(std::uint64_t* bitmap) {
    if (moved_) settle();
    std::copy_n(moved_ ? maybe_ : found_, words(all_), bitmap);
  }

 private:
  static std::size_t words(std::size_t keys) { return (keys + 63) / 64; }

  std::size_t count_;
  std::size_t all_;
  bool moved_ = false;  // whether places_ has the original positions; false: keys are at them
  alignas(64) std::uint64_t los_[batch];
  std::uint64_t answers_[batch / 64];
  std::uint64_t found_[batch / 64];  // of the remaining keys
  std::uint64_t maybe_[batch / 64];  // of all keys
  std::uint16_t places_[batch];
};

}  // namespace

double share_of_layer(double rate, std::size_t layer) noexcept {
  if (layer < equal_layers) return rate / parts;
  return std::ldexp(rate / parts, -static_cast<int>(std::min<std::size_t>(layer - equal_layers + 1, 2000)));
}

scalable_layer scalable_layer_at(double rate, std::size_t layer, std::uint64_t first) {
  scalable_layer made;
  made.capacity = capacity_of(first, layer);
  made.share = share_of_layer(rate, layer);
  made.geometry = layouts::split_block512::geometry_for(made.capacity, made.share);
  return made;
}

double scalable_fpr(double rate, std::uint64_t keys, std::uint64_t first) {
  assert(first != 0);
  long double any = 0;
  for (std::size_t i = 0; keys > 0; ++i) {
    const scalable_layer layer = scalable_layer_at(rate, i, first);
    const std::uint64_t here = std::min(keys, layer.capacity);
    any = rates::either(any, static_cast<long double>(layouts::split_block512::expected_fpr(layer.geometry, here)));
    keys -= here;
  }
  return static_cast<double>(any);
}

struct scalable_layers::impl {
  double rate;
  std::uint64_t first;
  std::vector<layer> layers = {};  // the oldest first
  std::uint64_t older_size = 0;    // keys in all layers but the newest
  std::optional<plan> next = {};   // computed when the newest layer is half full, not during a growth
  bool looked_ahead = false;
  bool (*have)(const kernels::line_layers&, std::uint64_t) noexcept = chosen_kernels().layers_have;
  std::vector<kernels::line_layer> places = {};  // the newest first
  kernels::line_layers all = {};
  kernels::line_layers older = {};

  impl(double p, std::uint64_t first_keys) : rate(p), first(first_keys) {
    layers.reserve(most_layers);
    places.reserve(most_layers);
    layers.emplace_back(plan_of(rate, first, 0));
    arrange();
  }

  layer& newest() { return layers.back(); }
  const layer& newest() const { return layers.back(); }

  // Updates the description of the layers for the kernels.
  void arrange() {
    places.clear();
    for (auto it = layers.rbegin(); it != layers.rend(); ++it) {
      places.push_back({it->storage.data(), it->planned.facts.geometry.bits / layouts::split_block512::block_bits});
    }
    // The oldest layers that together fit into a core's private cache need no prefetching.
    std::size_t far = layers.size();
    for (std::uint64_t near = 0; const layer& l : layers) {
      near += l.storage.size();
      if (near > own_cache_size()) break;
      --far;
    }
    all = {places.data(), places.size(), far};
    older = {places.data() + 1, places.size() - 1, far > 0 ? far - 1 : 0};
  }

  kernels::fetch fetch_of(std::size_t place) const {
    return place < all.far_count ? fetch_for(~std::uint64_t{0}) : kernels::fetch::none;
  }

  // Sizing the next layer takes about a tenth of a millisecond, and allocating it, too: do this in different inserts.
  void look_ahead() {
    looked_ahead = true;
    try {
      next = plan_of(rate, first, layers.size());
    } catch (const error&) {
      next.reset();  // the error is reported when the layer is needed
    }
  }

  bool wants_look_ahead() const { return !looked_ahead && newest().size >= newest().planned.most_new / 2; }

  void grow() {
    if (!next) next = plan_of(rate, first, layers.size());
    const std::uint64_t bytes = next->facts.geometry.bits / 8;
    if (layers.size() == most_layers) {
      throw error(errc::too_large, {"a scalable filter has too many layers", "layers", std::to_string(most_layers),
                                    std::to_string(layers.size() + 1), hint::use_higher_rate});
    }
    check_memory_capacity("a scalable filter's layers", taken() + bytes);
    add(*next);
    next.reset();
    looked_ahead = false;
  }

  void add(const plan& planned) {
    layers.emplace_back(planned);
    use_huge_pages(layers[layers.size() - 2].storage, true);
    use_huge_pages(newest().storage, false);
    older_size += layers[layers.size() - 2].size;
    arrange();
  }

  std::uint64_t taken() const {
    std::uint64_t bytes = 0;
    for (const layer& l : layers) bytes += l.storage.size();
    return bytes;
  }

  bool insert_into_newest(key_hash hash) {
    layer& l = newest();
    const bool is_new = layouts::split_block512::insert_one(l.storage.data(), l.planned.facts.geometry, hash);
    l.size += is_new ? 1 : 0;
    return is_new;
  }

  bool insert(key_hash hash) {
    if (newest().full()) {
      if (have(all, hash.hash64)) return false;
      grow();
      return insert_into_newest(hash);
    }
    if (wants_look_ahead()) look_ahead();
    const kernels::line_layer& place = places.front();
    __builtin_prefetch(place.bytes + layouts::split_block512::block_of(hash.hash64, place.lines) *
                                         (layouts::split_block512::block_bits / 8),
                       1);
    if (older.count > 0 && have(older, hash.hash64)) return false;
    return insert_into_newest(hash);
  }

  void insert(const hash_span& keys, std::uint8_t* is_new) {
    for (std::size_t i = 0; i < keys.size();) {
      if (newest().full() && !any_new(keys, i, is_new)) return;
      if (newest().full()) grow();
      if (wants_look_ahead()) look_ahead();
      i += insert_some(keys.part(i, std::min(batch, keys.size() - i)), is_new == nullptr ? nullptr : is_new + i);
    }
  }

  // Only a new key makes the filter grow: skips present keys from i on, up to the first new one.
  bool any_new(const hash_span& keys, std::size_t& i, std::uint8_t* is_new) const {
    std::uint64_t maybe[batch / 64];
    while (i < keys.size()) {
      const std::size_t count = std::min(batch, keys.size() - i);
      look_up(keys.part(i, count), maybe);
      for (std::size_t k = 0; k < count; ++k, ++i) {
        if ((maybe[k / 64] >> (k % 64) & 1) == 0) return true;
        if (is_new != nullptr) is_new[i] = 0;
      }
    }
    return false;
  }

  // Inserts up to `batch` keys, until the newest layer is full. Returns the number of processed keys, at least one.
  std::size_t insert_some(const hash_span& keys, std::uint8_t* is_new) {
    search unknown(keys);
    for (std::size_t place = 1; place < places.size(); ++place) unknown.ask(places[place], fetch_of(place));
    unknown.settle();
    if (is_new != nullptr) std::fill_n(is_new, keys.size(), std::uint8_t{0});

    std::uint8_t fresh[batch];
    for (std::size_t i = 0; i < unknown.left();) {
      if (newest().full()) return unknown.place(i);
      // At most as many keys as fit if all are new.
      const std::uint64_t room = newest().planned.most_new - newest().size;
      const std::size_t some = std::min<std::uint64_t>(unknown.left() - i, room);
      newest().size += chosen_kernels().split_block512.insert(
          {places[0].bytes, places[0].lines, layouts::split_block512::lanes, fetch_of(0)},
          {unknown.hash64s() + i, some, 0, kernels::form::hash64s}, is_new == nullptr ? nullptr : fresh);
      if (is_new != nullptr) {
        for (std::size_t k = 0; k < some; ++k) is_new[unknown.place(i + k)] = fresh[k];
      }
      i += some;
    }
    return keys.size();
  }

  void look_up(const hash_span& keys, std::uint64_t* bitmap) const {
    for (std::size_t begin = 0; begin < keys.size(); begin += batch) {
      search unknown(keys.part(begin, std::min(batch, keys.size() - begin)));
      for (std::size_t place = 0; place < places.size(); ++place) unknown.ask(places[place], fetch_of(place));
      unknown.copy_to(bitmap + begin / 64);
    }
  }

  // FPR of the layers before `end`, where 0 is the oldest: the blocks of a key in layers of different size are
  // independent, and so are their keys.
  double rate_of_first(std::size_t end) const {
    double none = 0;  // ln of the probability that no layer reports the key
    for (std::size_t i = 0; i < end; ++i) none += std::log1p(-layers[i].rate());
    return 0 - std::expm1(none);  // 0, not -0, for an empty filter
  }
};

scalable_layers::scalable_layers(double target_fpr, std::uint64_t first_layer_keys) {
  check_first(target_fpr, first_layer_keys);
  impl_ = std::make_unique<impl>(target_fpr, first_layer_keys);
}

scalable_layers::scalable_layers(const layered_filter& copy, const std::string& path) try {
  const layered_params& p = copy.parameters();
  if (p.is_shared) {
    throw error(errc::incompatible, {"these layers are not those of a scalable filter", "layers",
                                     "a copy of a scalable filter", "a copy of a shared filter", hint::none});
  }
  check_first(p.filter.target_fpr, p.filter.capacity);
  std::vector<plan> plans;  // all are checked before memory is allocated
  for (std::size_t i = 0; i < copy.layers().size(); ++i) plans.push_back(plan_of_copy(copy, i));
  impl_ = std::make_unique<impl>(p.filter.target_fpr, p.filter.capacity);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (i > 0) impl_->add(plans[i]);
    impl_->newest().size = copy.layers()[i].keys;
    const auto bytes = copy.bytes_of(i);
    std::copy(bytes.begin(), bytes.end(), impl_->newest().storage.data());
  }
} catch (const error& e) {
  if (path.empty()) throw;
  error_text text = e.text();
  text.where = path + ": " + text.where;
  throw error(e.code(), std::move(text));
}

scalable_layers::scalable_layers(scalable_layers&&) noexcept = default;
scalable_layers& scalable_layers::operator=(scalable_layers&&) noexcept = default;
scalable_layers::~scalable_layers() = default;

bool scalable_layers::insert(key_hash hash) { return impl_->insert(hash); }

void scalable_layers::insert(const hash_span& keys, std::uint8_t* is_new) { impl_->insert(keys, is_new); }

bool scalable_layers::may_contain(key_hash hash) const noexcept { return impl_->have(impl_->all, hash.hash64); }

void scalable_layers::may_contain(const hash_span& keys, std::uint64_t* bitmap) const noexcept {
  impl_->look_up(keys, bitmap);
}

void scalable_layers::clear() noexcept {
  impl& b = *impl_;
  b.layers.erase(b.layers.begin() + 1, b.layers.end());
  b.newest().size = 0;
  std::fill_n(b.newest().storage.data(), b.newest().storage.size(), std::uint8_t{0});
  b.older_size = 0;
  b.next.reset();
  b.looked_ahead = false;
  b.arrange();
}

double scalable_layers::target_fpr() const noexcept { return impl_->rate; }

std::uint64_t scalable_layers::insert_count() const noexcept { return impl_->older_size + impl_->newest().size; }

std::uint64_t scalable_layers::byte_size() const noexcept { return impl_->taken(); }

std::vector<scalable_layer> scalable_layers::layers() const {
  std::vector<scalable_layer> all;
  for (const layer& l : impl_->layers) {
    all.push_back(l.planned.facts);
    all.back().size = l.size;
  }
  return all;
}

double scalable_layers::expected_fpr() const { return impl_->rate_of_first(impl_->layers.size()); }

double scalable_layers::current_fpr() const {
  double none = 0;
  for (const layer& l : impl_->layers) {
    const fill_statistics seen =
        measure_fill({.layout = std::string(layout_name()), .geometry = l.planned.facts.geometry},
                     {l.storage.data(), l.storage.size()});
    none += std::log1p(-seen.current_fpr);
  }
  return 0 - std::expm1(none);  // 0, not -0, for an empty filter
}

// Let D distinct keys be inserted while a layer was the newest. R D of them were false positives in the older layers,
// whose FPR is R. The other n = (1 - R) D keys reached the layer, and some were false positives there while it filled.
double scalable_layers::expected_losses() const {
  double lost = 0;
  for (std::size_t i = 0; i < impl_->layers.size(); ++i) {
    const layer& l = impl_->layers[i];
    const double older = impl_->rate_of_first(i);
    const std::uint64_t keys = l.distinct();
    lost += static_cast<double>(keys) * older / (1 - older);
    lost += bloomery::expected_losses(keys, [&](std::uint64_t n) { return l.rate_at(n); });
  }
  return lost;
}

std::string_view scalable_layers::layout_name() noexcept { return layouts::split_block512::name; }

std::vector<std::uint64_t> scalable_layers::cells(std::size_t layer, key_hash hash) const {
  layouts::split_block512::cells of_key(layers()[layer].geometry, hash);
  std::vector<std::uint64_t> result(of_key.count());
  for (std::uint64_t& cell : result) cell = of_key.next();
  return result;
}

std::span<const std::uint8_t> scalable_layers::bytes_of(std::size_t layer) const noexcept {
  const heap_storage& storage = impl_->layers[layer].storage;
  return {storage.data(), storage.size()};
}

}  // namespace bloomery
