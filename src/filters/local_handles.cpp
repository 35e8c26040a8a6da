// Handles of filters in memory and in files: one adapter for each way in which a filter changes.
//
//   any_filter         in place: plain, sliding-window, static; with removal in memory
//   file_edit          atomically: with removal in a file
//   rebuilding_filter  writes a log first, and grows by rebuilding
//   scalable_layers    grows by adding layers
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "file/layers_file.hpp"
#include "file/open_file.hpp"
#include "filters/explain.hpp"
#include "filters/facts.hpp"
#include "filters/foreign_layers.hpp"
#include "filters/hash_keys.hpp"
#include "filters/merging.hpp"
#include "filters/removal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace bloomery {
namespace {

// One result per key, or none if the caller needs none.
template <class Answer>
std::span<Answer> answers(key_span keys, Answer* wanted) {
  return {wanted, wanted == nullptr ? 0 : keys.size()};
}

// Fraction of cells in use with this number of distinct keys.
double expected_fill(const params& p, std::uint64_t keys) {
  if (const layout_row* const layout = find_layout(p.layout); slots_of(layout) != nullptr) {
    const auto slots = static_cast<double>(layout->removals->cells(p.geometry));
    return std::min(static_cast<double>(keys) / slots, 1.0);
  }
  const double cells = static_cast<double>(p.geometry.bits) / cell_bits_of(p);
  return -std::expm1(-static_cast<double>(keys) * p.geometry.probes / cells);
}

// Common base of the handles of a single filter of bits.
class handle_of_bits : public filter_handle {
 public:
  explicit handle_of_bits(bool writable) : writable_(writable) {}

  bloomery::capabilities capabilities() const override {
    const params& p = bits().parameters();
    bloomery::capabilities result = capabilities_of(p);
    if (!writable_) result.can_insert = result.can_remove = result.can_merge = result.can_clear = false;
    result.can_look_up = can_hash_keys(p);
    return result;
  }

  const params& parameters() const noexcept override { return bits().parameters(); }

  filter_summary summary() override {
    const any_filter& filter = bits();
    filter_summary result;
    result.insert_count = filter.insert_count();
    result.count_is_estimate = filter.count_is_estimate();
    if (const file_info* from = filter.opened_from(); from != nullptr && !from->clean) result.count_is_estimate = true;
    result.capacity = filter.capacity();
    result.window = filter.window();
    result.is_overfull = is_overfull();
    result.fpr = result.window ? fpr_of_window(*result.window) : filter.expected_fpr();
    if (!capabilities_of(filter.parameters()).can_insert) return result;  // its cells are values, not bits
    result.fill_ratio =
        expected_fill(filter.parameters(), result.window ? result.window->keys_held() : filter.insert_count());
    return result;
  }

  bool is_overfull() const override {
    const any_filter& filter = bits();
    const params& p = filter.parameters();
    if (filter.capacity() == 0 || capabilities().counts_copies) return false;
    if (!capabilities().has_window)
      return filter.insert_count() > filter.capacity() && judge_fpr(p, filter.expected_fpr()).is_broken();
    // Uses the stored counts of the generations: window() would also compute the FPR.
    const keys_by_generation& keys = window_state::of(filter.bytes().data()).keys;
    const std::uint64_t allowed = (filter.capacity() - 1) / window_slices + 1;
    if (*std::max_element(keys.begin(), keys.end()) <= allowed) return false;
    return judge_fpr(p, fpr_of_window(*filter.window())).is_broken();
  }

  filter_facts info(info_depth depth) override { return facts_of(bits(), depth); }

  key_span prepare(key_span keys, std::vector<key_hash>& room) const override { return hashed(bits(), keys, room); }

  key_explanation explain(key_span one_key) override { return explain_key(bits(), one_key); }

  any_filter copy() override { return bits().clone(); }

  void save(const std::string& path, const create_options& options) override { bits().save(path, options); }

  cell_view cells() const override {
    bits().verify();
    return {parameters(), bits().bytes(), bits().epoch()};
  }

  const any_filter* local() const noexcept override { return &bits(); }

 protected:
  virtual const any_filter& bits() const noexcept = 0;

  // The FPR from the counts of the generations, assuming that no key recurs. Only the bits show recurring keys, and
  // reading them takes time, so they are read only if the counts alone break the target FPR.
  double fpr_of_window(const window_facts& now) const {
    const params& p = bits().parameters();
    if (!judge_fpr(p, now.rate).is_broken()) return now.rate;
    return measure_window_fill(p, bits().bytes(), now.epoch).current_fpr;
  }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override {
    bits().may_contain(keys, {bitmap, detail::bitmap_words(keys.size())});
  }

 private:
  bool writable_;
};

// Base of handles that are changed by any_filter's own functions.
class handle_of_any_filter : public handle_of_bits {
 public:
  using handle_of_bits::handle_of_bits;

  void merge(filter_handle& other) override {
    if (other.local() == nullptr) refuse_to_merge_from(other);
    filter().merge(*other.local());
  }

  void clear() override { filter().clear(); }

  void tick(std::uint64_t now) override {
    filter().set_clock([now] { return now; });
  }

  // Copies of one key count once, and saturated counters stay saturated: only the counters show the FPR.
  void settle() override {
    if (!capabilities().counts_copies) return;
    const double fpr = filter().current_fpr();
    settled_ = {fpr, filter().capacity() > 0 && judge_fpr(filter().parameters(), fpr).is_broken()};
  }

  filter_summary summary() override {
    filter_summary result = handle_of_bits::summary();
    if (!capabilities().counts_copies) return result;
    result.refused_removals = filter().counts().refused_removals;
    result.fpr = settled_.fpr.value_or(*result.fpr);
    result.is_overfull = settled_.is_overfull;
    return result;
  }

 protected:
  virtual any_filter& filter() noexcept = 0;

  any_filter* in_place() noexcept final { return &filter(); }

  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    return filter().insert(keys, answers(keys, is_new));
  }

  std::uint64_t remove_some(key_span keys, removal* results) override {
    return filter().remove(keys, answers(keys, results));
  }

 private:
  struct settled_facts {
    std::optional<double> fpr;
    bool is_overfull = false;
  };
  settled_facts settled_;
};

class in_place_handle final : public handle_of_any_filter {
 public:
  /// @param path  path of the file; empty: none
  in_place_handle(any_filter filter, bool writable, std::string path = {})
      : handle_of_any_filter(writable), filter_(std::move(filter)), path_(std::move(path)) {}

  filter_facts info(info_depth depth) override {
    filter_facts facts = facts_of(filter_, depth);
    if (facts.parameters.log_id() != 0 && !path_.empty())
      facts.log = facts_of_log(path_, *filter_.opened_from(), depth);
    return facts;
  }

  void commit() override { filter_.close(); }

 protected:
  const any_filter& bits() const noexcept override { return filter_; }
  any_filter& filter() noexcept override { return filter_; }

 private:
  any_filter filter_;
  std::string path_;
};

class read_only_handle final : public handle_of_bits {
 public:
  read_only_handle(any_filter filter, file_facts file)
      : handle_of_bits(false), filter_(std::move(filter)), file_(std::move(file)) {}

  filter_facts info(info_depth depth) override {
    filter_facts facts = handle_of_bits::info(depth);
    facts.file = file_;
    return facts;
  }

 protected:
  const any_filter& bits() const noexcept override { return filter_; }

  std::uint64_t insert_some(key_span, std::uint8_t*) override { detail::refuse_writing(); }

 private:
  any_filter filter_;
  file_facts file_;
};

class whole_file_handle final : public handle_of_any_filter {
 public:
  whole_file_handle(file_edit edit, std::string path)
      : handle_of_any_filter(true), edit_(std::move(edit)), path_(std::move(path)) {}

  bloomery::capabilities capabilities() const override {
    bloomery::capabilities result = handle_of_any_filter::capabilities();
    result.commits_whole = true;
    return result;
  }

  void commit() override { edit_.commit(); }

 protected:
  // A full filter names its file.
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    try {
      return handle_of_any_filter::insert_some(keys, is_new);
    } catch (const partial_error& e) {
      error_text text = e.text();
      text.where = path_;
      throw partial_error(error(e.code(), std::move(text)), e.done(), e.undecided());
    }
  }

  const any_filter& bits() const noexcept override { return const_cast<file_edit&>(edit_).filter(); }
  any_filter& filter() noexcept override { return edit_.filter(); }

 private:
  file_edit edit_;
  std::string path_;
};

class rebuilding_handle final : public handle_of_bits {
 public:
  rebuilding_handle(rebuilding_filter filter, std::string path)
      : handle_of_bits(true),
        filter_(std::move(filter)),
        hasher_(any_filter_to_hash_with(filter_.parameters())),
        path_(std::move(path)) {}

  bloomery::capabilities capabilities() const override {
    bloomery::capabilities result = handle_of_bits::capabilities();
    result.grows = true;
    result.can_merge = result.can_clear = false;  // the log cannot record either of them
    return result;
  }

  filter_summary summary() override {
    filter_summary result = handle_of_bits::summary();
    result.rebuilds = filter_.rebuilds();
    return result;
  }

  filter_facts info(info_depth depth) override {
    filter_facts facts = facts_of(bits(), depth);
    facts.log = facts_of_log(path_, filter_.parameters(), filter_.log(), depth);
    return facts;
  }

  // Does not use the filter itself, which a rebuild may replace at the same time.
  key_span prepare(key_span keys, std::vector<key_hash>& room) const override { return hashed(hasher_, keys, room); }

  void settle() override { filter_.settle(); }
  void commit() override { filter_.close(); }

 protected:
  const any_filter& bits() const noexcept override { return filter_.view(); }

  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    return filter_.insert(keys, answers(keys, is_new));
  }

 private:
  // Hashes do not depend on the size.
  static any_filter any_filter_to_hash_with(params p) {
    p.geometry = {};
    p.capacity = 1;
    p.target_fpr = 0.5;
    p.extra = {};
    return any_filter(std::move(p));
  }

  rebuilding_filter filter_;
  any_filter hasher_;
  std::string path_;
};

class scalable_handle final : public filter_handle {
 public:
  explicit scalable_handle(params p)
      : layers_(p.target_fpr, p.capacity == 0 ? scalable_layers::usual_first_layer : p.capacity),
        hasher_(hasher_for(std::move(p))) {}

  bloomery::capabilities capabilities() const override {
    bloomery::capabilities result;
    result.can_clear = result.grows = true;
    return result;
  }

  const params& parameters() const noexcept override { return hasher_.parameters(); }

  filter_summary summary() override {
    filter_summary result;
    result.insert_count = layers_.insert_count();
    result.fpr = layers_.expected_fpr();
    return result;
  }

  filter_facts info(info_depth depth) override { return facts_of(layers_, hasher_.parameters(), depth); }

  key_span prepare(key_span keys, std::vector<key_hash>& room) const override { return hashed(hasher_, keys, room); }

  void save(const std::string& path, const create_options& options) override {
    layered_filter(layers_, parameters(), options.metadata).save(path, options);
  }

  void clear() override { layers_.clear(); }

  key_explanation explain(key_span one_key) override {
    if (one_key.empty()) throw error(errc::invalid_argument, {"no key to explain", "keys", "1", "0", hint::none});
    std::vector<key_hash> room;
    key_explanation result;
    result.hash = prepare(one_key.part(0, 1), room).hashes()[0];
    result.maybe_present = layers_.may_contain(*result.hash);
    for (std::size_t layer = layers_.layers().size(); layer-- > 0;) {
      explained_layer& shown = result.layers.emplace_back();
      shown.number = static_cast<std::int64_t>(layer);
      for (const std::uint64_t cell : layers_.cells(layer, *result.hash))
        shown.cells.push_back({cell, test_bit(layers_.bytes_of(layer).data(), cell) ? 1u : 0u});
    }
    return result;
  }

  cell_view cells() const override {
    const std::vector<scalable_layer> list = layers_.layers();
    params first = hasher_.parameters();
    first.geometry = list.front().geometry;
    cell_view result(first, layers_.bytes_of(0));
    for (std::size_t i = 1; i < list.size(); ++i) result.add_layer(layers_.bytes_of(i));
    return result;
  }

 protected:
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    std::vector<key_hash> room;
    const std::uint64_t before = layers_.insert_count();
    layers_.insert(hash_span::hashes(prepare(keys, room).hashes()), is_new);
    return layers_.insert_count() - before;
  }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override {
    std::vector<key_hash> room;
    layers_.may_contain(hash_span::hashes(prepare(keys, room).hashes()), bitmap);
  }

 private:
  // An empty filter with the layers' layout, kind of keys and hash.
  static any_filter hasher_for(params p) {
    p.layout = scalable_layers::layout_name();
    p.capacity = 1;
    return any_filter(std::move(p));
  }

  scalable_layers layers_;
  any_filter hasher_;
};

}  // namespace

std::unique_ptr<filter_handle> make_handle(any_filter filter) {
  const bool writable = filter.is_writable();
  return std::make_unique<in_place_handle>(std::move(filter), writable);
}

std::unique_ptr<filter_handle> make_read_only_handle(any_filter filter, file_facts file) {
  return std::make_unique<read_only_handle>(std::move(filter), std::move(file));
}

std::unique_ptr<filter_handle> make_handle(rebuilding_filter filter, std::string path) {
  return std::make_unique<rebuilding_handle>(std::move(filter), std::move(path));
}

std::unique_ptr<filter_handle> make_scalable_handle(params p) {
  return std::make_unique<scalable_handle>(std::move(p));
}

namespace {

// The format of a file of another system. Without the readers of these formats, a WebAssembly module takes less space.
const file_format* foreign_format([[maybe_unused]] const std::string& path) {
#if defined(__EMSCRIPTEN__)
  return nullptr;
#else
  return recognize_format(path);
#endif
}

format::open_file open_own(const std::string& path, const open_options& options) {
  try {
    return format::open(path, options);
  } catch (const error& e) {
    const file_format* const other = e.code() == errc::not_a_filter ? foreign_format(path) : nullptr;
    if (other == nullptr) throw;
    throw error(errc::incompatible, {"files of other systems are opened for reading only", path, "a file of bloomery",
                                     "format " + std::string(other->name), hint::import_first});
  }
}

}  // namespace

std::unique_ptr<filter_handle> open_filter(const std::string& path, const open_options& options) {
#if defined(__EMSCRIPTEN__)
  // Without the code for writing, a module takes 30 kB less.
  if (options.mode == access::read_write) {
    throw error(errc::incompatible, {"WebAssembly only reads filter files", path, "", "", "open it for reading"});
  }
  constexpr bool writes = false;
#else
  const bool writes = options.mode == access::read_write;
#endif
  if (!writes && format::is_layers_file(path)) return make_handle(layered_filter::open(path, options));
  if (const file_format* const other = writes ? nullptr : foreign_format(path)) {
    if (options.secret)
      throw error(errc::incompatible, {"the filter is not keyed", path, "", "", hint::leave_out_the_secret});
    if (auto layers = open_foreign_layers(path, other->name)) return layers;
    return std::make_unique<in_place_handle>(import_filter(path, other->name), false, path);
  }
  std::optional<format::open_file> file = open_own(path, options);
  const params found = file->parameters();
  if (writes && found.log_id() != 0 && !options.to_remove) {
    file.reset();  // the log has the effective lock
    return std::make_unique<rebuilding_handle>(rebuilding_filter::open(path, options), path);
  }
  if (writes && removals_of(found) != nullptr)
    return std::make_unique<whole_file_handle>(file_edit(path, std::move(*file), options), path);
  return std::make_unique<in_place_handle>(any_filter::open_any(path, options, std::move(*file)), writes, path);
}

}  // namespace bloomery
