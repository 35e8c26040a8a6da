// Kinds that keep every key: in memory, in mapped files, for concurrent threads, with each layout, scheme and hash; and
// static filters.
#include "model/file_subject.hpp"

#include <bloomery/concurrent_filter.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/static_filter.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <thread>

namespace bloomery_model {
namespace {

using bloomery::key_kind;
using bloomery::key_span;
using bloomery::params;

contract in_memory(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.can_merge = c.able.can_clear = true;
  c.also = {verb::reopen, verb::copy};
  return c;
}

contract in_a_file(std::string name, key_kind keys) {
  contract c = in_memory(std::move(name), keys);
  c.after_kill = survival::acknowledged;
  c.also = {verb::reopen, verb::copy, verb::kill, verb::replace};
  return c;
}

// ---- concurrent -----------------------------------------------------------------------------------------------------

// A concurrent filter behind the interface: two threads insert the halves of each batch.
template <class Key, class Layout>
class concurrent_handle final : public bloomery::filter_handle {
 public:
  using filter = bloomery::concurrent_filter<Key, Layout>;

  explicit concurrent_handle(std::unique_ptr<filter> f) : filter_(std::move(f)) {}

  filter& inside() { return *filter_; }

  bloomery::capabilities capabilities() const override {
    return {.can_merge = false, .can_clear = false, .has_cells = false};
  }
  const params& parameters() const noexcept override { return filter_->parameters(); }
  bloomery::filter_summary summary() override {
    bloomery::filter_summary result;
    result.insert_count = filter_->insert_count();
    result.capacity = filter_->capacity();
    return result;
  }
  bloomery::filter_facts info(bloomery::info_depth) override {
    bloomery::filter_facts result;
    result.parameters = parameters();
    result.insert_count = filter_->insert_count();
    return result;
  }

 protected:
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    const std::vector<Key> all = keys_of(keys);
    std::vector<std::uint8_t> fresh(all.size());
    const std::size_t half = all.size() / 2;
    std::atomic<int> not_ready{2};
    const auto insert = [&](std::size_t first, std::size_t count) {
      --not_ready;
      while (not_ready > 0) std::this_thread::yield();  // else one ends before the other starts
      filter_->insert(std::span(all).subspan(first, count), std::span(fresh).subspan(first, count));
    };
    std::thread other(insert, 0, half);
    insert(half, all.size() - half);
    other.join();
    if (is_new != nullptr) std::copy(fresh.begin(), fresh.end(), is_new);
    return static_cast<std::uint64_t>(std::count(fresh.begin(), fresh.end(), 1));
  }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override {
    const std::vector<Key> all = keys_of(keys);
    filter_->may_contain(all, {bitmap, (all.size() + 63) / 64});
  }

 private:
  static std::vector<Key> keys_of(key_span keys) {
    if constexpr (std::same_as<Key, std::uint64_t>) {
      if (keys.form() != key_span::form_of_keys::integers) refuse();
      return {keys.integers().begin(), keys.integers().end()};
    } else {
      if (!keys.is_text()) refuse();
      std::vector<Key> all(keys.size());
      for (std::size_t i = 0; i < keys.size(); ++i) all[i] = keys.text(i);
      return all;
    }
  }
  [[noreturn]] static void refuse() {
    throw bloomery::error(bloomery::errc::incompatible, {"keys of the other kind", "", "", "", ""});
  }

  std::unique_ptr<filter> filter_;
};

template <class Key, class Layout>
class concurrent_subject final : public subject {
 public:
  using handle_type = concurrent_handle<Key, Layout>;
  using filter = typename handle_type::filter;

  explicit concurrent_subject(const params& p) {
    handle_ = std::make_unique<handle_type>(std::make_unique<filter>(p.capacity, p.target_fpr));
  }

  void close() override {
    inside().snapshot().save(folder_ / "filter.bloom");
    handle_.reset();
  }
  void open() override {
    handle_ =
        std::make_unique<handle_type>(std::make_unique<filter>(filter::plain_filter::load(folder_ / "filter.bloom")));
  }
  handle_ptr copy() override {
    inside().snapshot().save(folder_ / "copy.bloom");
    return bloomery::open_filter(folder_ / "copy.bloom");
  }
  std::optional<double> exact_rate() override { return inside().snapshot().current_fpr(); }

 private:
  filter& inside() { return static_cast<handle_type&>(handle()).inside(); }

  bloomery_tests::scratch_folder folder_;
};

contract concurrent(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.has_cells = false;
  c.counts = counting_rule::about;  // a key that two threads insert at once may count twice
  c.is_sequential = false;
  c.also = {verb::reopen, verb::copy};
  return c;
}

// ---- static ---------------------------------------------------------------------------------------------------------

// A static filter in a file, which can only be replaced by another one.
template <class Key, class Fingerprint>
class static_subject final : public subject {
 public:
  using filter = bloomery::static_filter<Key, Fingerprint>;

  explicit static_subject(bool in_memory) : in_memory_(in_memory) {
    make({});
    open();
  }

  void close() override {
    handle().commit();
    handle_.reset();
  }
  void open() override {
    handle_ = in_memory_ ? bloomery::make_handle(bloomery::any_filter::load(path())) : bloomery::open_filter(path());
  }
  handle_ptr copy() override {
    handle().local()->save(folder_ / "copy.bloom");
    return bloomery::open_filter(folder_ / "copy.bloom", {.check = bloomery::file_check::payload});
  }
  void replace(key_span keys) override {
    close();
    make(keys);
    open();
  }

 private:
  std::string path() const { return folder_ / "filter.bloom"; }

  // Every third key occurs twice.
  void make(key_span keys) {
    std::vector<Key> all;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if constexpr (std::same_as<Key, std::uint64_t>)
        all.insert(all.end(), i % 3 == 0 ? 2 : 1, keys.integers()[i]);
      else
        all.insert(all.end(), i % 3 == 0 ? 2 : 1, keys.views()[i]);
    }
    filter::build(all).save(path());
  }

  bool in_memory_;
  bloomery_tests::scratch_folder folder_;
};

template <class Key, class Fingerprint>
kind static_kind(std::string name, bool in_memory) {
  contract c;
  c.name = std::move(name);
  c.keys = std::same_as<Key, std::uint64_t> ? key_kind::u64le : key_kind::bytes;
  c.able.can_insert = false;
  c.refusal = bloomery::errc::not_permitted;  // no static filter was ever opened for writing
  c.counts = counting_rule::copies;
  c.target_fpr = std::pow(2.0, -static_cast<double>(bloomery::sealed::width_of<Fingerprint>));
  c.also = {verb::reopen, verb::copy, verb::replace};
  return {c, [in_memory](const setting&) { return std::make_unique<static_subject<Key, Fingerprint>>(in_memory); }};
}

}  // namespace

std::vector<kind> plain_kinds() {
  std::vector<kind> kinds;
  for (const bloomery::layout_facts& layout : bloomery::layouts_of(bloomery::family::plain)) {
    const std::string name(layout.name);
    kinds.push_back(kind_of<heap_subject>(in_memory("Heap_text_" + name, key_kind::bytes), {.layout = name}));
    kinds.push_back(kind_of<heap_subject>(in_memory("Heap_integers_" + name, key_kind::u64le), {.layout = name}));
    kinds.push_back(kind_of<file_subject>(in_a_file("File_text_" + name, key_kind::bytes), {.layout = name}));
    kinds.push_back(kind_of<file_subject>(in_a_file("File_integers_" + name, key_kind::u64le), {.layout = name}));
  }
  kinds.push_back(kind_of<heap_subject>(in_memory("Heap_text_classic_siphash", key_kind::bytes),
                                        {.layout = "classic", .hash = "siphash", .secret = the_secret}));
  kinds.push_back(kind_of<file_subject>(in_a_file("File_integers_line_siphash", key_kind::u64le),
                                        {.layout = "split_block512", .hash = "siphash", .secret = the_secret}));
  kinds.push_back(kind_of<file_subject>(in_a_file("File_text_classic_murmur3", key_kind::bytes),
                                        {.layout = "classic", .hash = "murmur3", .seed = 7}));
  for (const bloomery::scheme& row : bloomery::schemes()) {
    const std::string scheme(row.name);
    contract c = in_a_file("File_" + scheme, key_kind::bytes);
    // Rules of others, which may miss the rate that they are given, pharo by its 16-bit hashes also by much.
    const bool is_pharo = scheme == "pharo";
    c.rate = {.is_exact = false, .factor = is_pharo ? 4.0 : 1.6};
    c.has_quick_summary = !is_pharo;  // its rate takes half a second
    if (is_pharo) c.counts = counting_rule::any;
    kinds.push_back(kind_of<file_subject>(c, {.scheme = scheme}));
    c.name = "Heap_" + scheme;
    c.also = {verb::reopen, verb::copy};
    c.after_kill = survival::not_applicable;
    kinds.push_back(kind_of<heap_subject>(c, {.scheme = scheme}));
  }
  kinds.push_back(kind_of<concurrent_subject<std::string_view, bloomery::layouts::split_block512>>(
      concurrent("Concurrent_text_line", key_kind::bytes), {}));
  kinds.push_back(kind_of<concurrent_subject<std::uint64_t, bloomery::layouts::classic>>(
      concurrent("Concurrent_integers_classic", key_kind::u64le), {}));
  return kinds;
}

std::vector<kind> static_kinds() {
  return {static_kind<std::string_view, std::uint8_t>("Static_text_fuse8_file", false),
          static_kind<std::string_view, bloomery::fingerprint_bits<11>>("Static_text_fuse11_file", false),
          static_kind<std::string_view, bloomery::fingerprint_bits<9, bloomery::static_structure::ribbon>>(
              "Static_text_ribbon9_file", false),
          static_kind<std::uint64_t, std::uint16_t>("Static_integers_fuse16_file", false),
          static_kind<std::uint64_t, std::uint32_t>("Static_integers_fuse32_memory", true)};
}

}  // namespace bloomery_model
