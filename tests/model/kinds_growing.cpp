// Kinds that take more keys than their first capacity: scalable filters, which add layers, and rebuilding filters,
// which keep a key log.
#include "model/file_subject.hpp"

#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/scalable_filter.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace bloomery_model {
namespace {

using bloomery::key_kind;
using bloomery::params;

class scalable_subject final : public subject {
 public:
  explicit scalable_subject(const params& p) { handle_ = bloomery::make_scalable_handle(p); }
};

contract scalable(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.can_clear = c.able.grows = true;
  c.rate = {.is_exact = false, .factor = 1};
  return c;
}

// A scalable filter that inserts and looks up keys one at a time.
class singly_handle final : public bloomery::filter_handle {
 public:
  explicit singly_handle(bloomery::scalable_filter<std::uint64_t> filter) : filter_(std::move(filter)) {
    params_.keys = key_kind::u64le;
    params_.layout = bloomery::scalable_layers::layout_name();
  }

  void save(const std::string& path, const bloomery::create_options& options) override { filter_.save(path, options); }

  bloomery::capabilities capabilities() const override {
    return {.can_merge = false, .can_clear = true, .grows = true, .has_cells = false};
  }
  const params& parameters() const noexcept override { return params_; }
  bloomery::filter_summary summary() override {
    bloomery::filter_summary result;
    result.insert_count = filter_.insert_count();
    return result;
  }
  bloomery::filter_facts info(bloomery::info_depth) override { return {}; }
  void clear() override { filter_.clear(); }

 protected:
  std::uint64_t insert_some(bloomery::key_span keys, std::uint8_t* is_new) override {
    std::uint64_t all_new = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool fresh = filter_.insert(integers_of(keys)[i]);
      all_new += fresh ? 1 : 0;
      if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
    }
    return all_new;
  }
  void look_up_some(bloomery::key_span keys, std::uint64_t* bitmap) override {
    std::fill_n(bitmap, (keys.size() + 63) / 64, 0);
    for (std::size_t i = 0; i < keys.size(); ++i)
      bitmap[i / 64] |= std::uint64_t{filter_.may_contain(integers_of(keys)[i])} << i % 64;
  }

 private:
  static std::span<const std::uint64_t> integers_of(bloomery::key_span keys) {
    if (keys.form() == bloomery::key_span::form_of_keys::integers) return keys.integers();
    throw bloomery::error(bloomery::errc::incompatible, {"keys of the other kind", "", "", "", ""});
  }

  bloomery::scalable_filter<std::uint64_t> filter_;
  params params_;
};

// Reopened by saving and loading all its layers.
class singly_subject final : public subject {
 public:
  explicit singly_subject(const params& p) {
    hold(bloomery::scalable_filter<std::uint64_t>(p.target_fpr, {}, p.capacity));
  }

  void close() override { filter().save(folder_ / "filter.layers", {}); }
  void open() override { hold(bloomery::scalable_filter<std::uint64_t>::load(folder_ / "filter.layers")); }
  handle_ptr copy() override {
    filter().save(folder_ / "copy.layers", {});
    return bloomery::open_filter(folder_ / "copy.layers");
  }

 private:
  singly_handle& filter() { return static_cast<singly_handle&>(handle()); }
  void hold(bloomery::scalable_filter<std::uint64_t> filter) {
    handle_ = std::make_unique<singly_handle>(std::move(filter));
  }

  bloomery_tests::scratch_folder folder_;
};

contract singly(std::string name) {
  contract c = scalable(std::move(name), key_kind::u64le);
  c.able.has_cells = false;
  c.also = {verb::reopen, verb::copy};
  return c;
}

class rebuilding_subject : public subject {
 public:
  /// @param crowd  number of further keys, besides those of the operations
  explicit rebuilding_subject(params p, std::uint64_t crowd = 0) : params_(std::move(p)), crowd_(crowd) {
    make({});
    open();
  }

  void close() override {
    handle().commit();
    handle_.reset();
    synced_ = bloomery_tests::read_file(path());
  }
  // The log, which is written first, is ahead of the filter and ends with a torn record.
  void lose_unsynced() override {
    bloomery_tests::write_file(path(), synced_);
    bloomery_tests::bytes log = bloomery_tests::read_file(path() + ".log");
    log.insert(log.end(), 20, 0x6c);
    bloomery_tests::write_file(path() + ".log", log);
  }
  handle_ptr open_writer() override {
    return bloomery::open_filter(
        path(),
        {.mode = bloomery::access::read_write, .check = bloomery::file_check::payload, .secret = params_.secret});
  }
  handle_ptr copy() override {
    handle().settle();
    handle().local()->save(folder_ / "copy.bloom");
    return bloomery::open_filter(folder_ / "copy.bloom", {.secret = params_.secret});
  }
  void replace(bloomery::key_span keys) override {
    close();
    make(keys);
    open();
  }
  void rebuild() override {
    close();
    {
      bloomery::rebuilding_filter filter =
          bloomery::rebuilding_filter::open(path(), {.mode = bloomery::access::read_write, .secret = params_.secret});
      filter.rebuild();
      filter.close();
    }
    open();
  }

 private:
  std::string path() const { return folder_ / "filter.bloom"; }

  void make(bloomery::key_span keys) {
    bloomery::rebuilding_filter fresh = bloomery::rebuilding_filter::create(path(), params_);
    std::vector<std::uint64_t> crowd(static_cast<std::size_t>(crowd_));
    std::iota(crowd.begin(), crowd.end(), std::uint64_t{1} << 40);
    if (crowd_ > 0) fresh.insert(crowd);
    // The second half of the keys goes to the log only: close() rebuilds the filter from it.
    const std::size_t half = keys.size() / 2;
    if (!keys.empty()) insert_keys(fresh, keys.part(0, half));
    std::vector<bloomery::key_hash> hashes(keys.size() - half);
    if (params_.keys == key_kind::u64le && !keys.empty())
      fresh.view().hash(keys.part(half, hashes.size()).integers(), hashes);
    else if (!keys.empty())
      fresh.view().hash(keys.part(half, hashes.size()).views(), hashes);
    if (!hashes.empty()) fresh.record(hashes);
    fresh.close();
  }

  params params_;
  std::uint64_t crowd_;
  bloomery_tests::bytes synced_;  // the filter as of the last close()
  bloomery_tests::scratch_folder folder_;
};

// A rebuilding filter that is almost full, and large enough for a rebuild in another thread.
class crowded_subject final : public rebuilding_subject {
 public:
  explicit crowded_subject(params p) : rebuilding_subject(std::move(p), 64'200) {}
};

contract rebuilding(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.grows = true;
  c.after_kill = survival::acknowledged;
  c.counts = counting_rule::about;  // a rebuild counts again
  c.is_steady = false;              // nor does a false positive outlive it
  c.also = {verb::reopen, verb::copy, verb::kill, verb::replace, verb::rebuild};
  return c;
}

contract crowded(std::string name) {
  contract c = rebuilding(std::move(name), key_kind::u64le);
  c.counts = counting_rule::any;
  c.is_exact_when_empty = false;
  return c;
}

}  // namespace

std::vector<kind> growing_kinds() {
  return {
      kind_of<singly_subject>(singly("Scalable_integers_singly"), {}),
      kind_of<scalable_subject>(scalable("Scalable_text", key_kind::bytes), {}),
      kind_of<scalable_subject>(scalable("Scalable_integers", key_kind::u64le), {}),
      kind_of<scalable_subject>(scalable("Scalable_text_siphash", key_kind::bytes),
                                {.hash = "siphash", .secret = the_secret}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_text_line", key_kind::bytes), {.layout = "split_block512"}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_integers_page", key_kind::u64le),
                                  {.layout = "blocked_page", .seed = 7}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_text_split_block_siphash", key_kind::bytes),
                                  {.layout = "split_block", .hash = "siphash", .secret = the_secret}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_integers_blocked", key_kind::u64le), {.layout = "blocked"}),
      kind_of<crowded_subject>(crowded("Rebuilding_in_the_background"),
                               {.layout = "split_block512", .capacity = 66'000}, false),
  };
}

}  // namespace bloomery_model
