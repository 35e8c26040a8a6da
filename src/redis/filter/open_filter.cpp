// Handles of shared filters and Guava chains, and open_filter() for addresses.
#include <bloomery/redis/handle.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/error.hpp>

#include "filters/merging.hpp"
#include "filters/removal.hpp"
#include "redis/filter/facts.hpp"

#include <utility>

namespace bloomery::redis {
namespace {

// One result per key, or none if the caller needs none.
template <class Answer>
std::span<Answer> answers(key_span keys, Answer* wanted) {
  return {wanted, wanted == nullptr ? 0 : keys.size()};
}

std::span<std::uint64_t> words(key_span keys, std::uint64_t* bitmap) {
  return {bitmap, detail::bitmap_words(keys.size())};
}

// The maximum number of keys; 0 without a limit.
std::uint64_t capacity_of(const redis_params& p) {
  switch (p.growth) {
    case redis_growth::none: return p.filter.capacity;
    case redis_growth::to_maximum: return p.maximum;
    case redis_growth::unlimited: break;
  }
  return 0;
}

// Removes the capabilities that a handle opened for reading lacks.
void remove_changes(bloomery::capabilities& can) {
  can.can_insert = can.can_remove = can.can_merge = can.can_clear = false;
}

class shared_handle final : public filter_handle {
 public:
  explicit shared_handle(redis_filter filter, bool writable = true) : filter_(std::move(filter)), writable_(writable) {}

  redis_filter& filter() noexcept { return filter_; }

  bloomery::capabilities capabilities() const override {
    const redis_params& p = filter_.parameters();
    bloomery::capabilities result = capabilities_of(p.filter);
    result.has_window = p.filter.has_window();  // its generations are layers of a plain layout
    result.grows = p.growth != redis_growth::none;
    result.can_merge = !result.counts_copies && !result.has_window && !result.grows;
    result.is_remote = true;
    result.lookups_in_parallel = false;
    if (!writable_) remove_changes(result);
    return result;
  }

  const params& parameters() const noexcept override { return filter_.parameters().filter; }

  // Servers count bits in tens of milliseconds per 64 MiB; for larger filters nothing is reported.
  filter_summary summary() override {
    const redis_params& p = filter_.parameters();
    if (p.filter.geometry.bits <= most_bits_counted) return summary_of(filter_.info());
    filter_summary result;
    result.capacity = capacity_of(p);
    return result;
  }

  filter_facts info(info_depth depth) override { return facts_of(filter_, depth); }

  any_filter copy() override { return filter_.pull(); }

  void merge(filter_handle& other) override {
    want_writable();
    if (other.local() != nullptr) return filter_.merge(*other.local());
    auto* const shared = dynamic_cast<shared_handle*>(&other);
    if (shared == nullptr) refuse_to_merge_from(other);
    filter_.merge(shared->filter_);
  }

  void clear() override {
    want_writable();
    filter_.clear();
  }

  key_explanation explain(key_span one_key) override { return filter_.explain(one_key); }

 protected:
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    want_writable();
    return filter_.insert(keys, answers(keys, is_new));
  }

  std::uint64_t remove_some(key_span keys, removal* results) override {
    want_writable();
    return filter_.remove(keys, answers(keys, results));
  }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override { filter_.may_contain(keys, words(keys, bitmap)); }

 private:
  void want_writable() const {
    if (!writable_) detail::refuse_writing();
  }

  redis_filter filter_;
  bool writable_;
};

class chain_handle final : public filter_handle {
 public:
  explicit chain_handle(redis_chain chain, bool writable = true) : chain_(std::move(chain)), writable_(writable) {
    parameters_.scheme = "guava";
    parameters_.geometry = chain_.geometry();
    parameters_.capacity = chain_.parameters().capacity;
    parameters_.target_fpr = chain_.parameters().target_fpr;
  }

  bloomery::capabilities capabilities() const override {
    bloomery::capabilities result;
    result.can_clear = true;
    result.grows = true;
    result.is_remote = true;
    result.lookups_in_parallel = false;
    result.has_cells = false;
    if (!writable_) remove_changes(result);
    return result;
  }

  const params& parameters() const noexcept override { return parameters_; }

  filter_summary summary() override {
    filter_summary result;
    result.growths = chain_.growths();
    if (*result.growths < most_bits_counted / chain_.geometry().bits) result.fpr = chain_.info().rate_now;
    return result;
  }

  filter_facts info(info_depth depth) override { return facts_of(chain_, parameters_, depth); }
  void clear() override {
    want_writable();
    chain_.reset();
  }

 protected:
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    want_writable();
    return chain_.insert(keys, answers(keys, is_new));
  }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override { chain_.may_contain(keys, words(keys, bitmap)); }

 private:
  void want_writable() const {
    if (!writable_) detail::refuse_writing();
  }

  redis_chain chain_;
  params parameters_;
  bool writable_;
};

void refuse_what_no_chain_has(const open_options& options, const redis_address& address) {
  const auto refuse = [&](const char* what) { throw error(errc::incompatible, {what, address.text(), "", "", ""}); };
  if (options.secret) refuse("a Guava chain is not keyed");
  if (options.wait_replicas != 0) refuse("inserts into a Guava chain do not wait for replicas");
  if (options.to_remove) refuse("keys cannot be removed from a Guava chain");
  if (options.on_damage != redis_damage::error) refuse("a Guava chain has no shards, so no shard can be lost");
}

redis_options of_shared(const open_options& options) {
  redis_options result;
  result.connection = options.connection;
  result.secret = options.secret;
  result.wait_replicas = options.wait_replicas;
  result.local_copy = options.local_copy;
  result.on_damage = options.on_damage;
  result.notes = options.notes;
  return result;
}

}  // namespace

filter_summary summary_of(const redis_info& now) {
  const redis_params& p = now.parameters;
  filter_summary result;
  result.capacity = capacity_of(p);
  if (now.inserted < beyond_counting) result.insert_count = now.inserted;
  result.count_is_estimate = now.is_estimate;
  result.fpr = now.rate_now;
  result.is_overfull = judge_fpr(p.filter, now.rate_now).is_broken();
  return result;
}

redis_filter* shared_filter_of(filter_handle& filter) noexcept {
  auto* const shared = dynamic_cast<shared_handle*>(&filter);
  return shared == nullptr ? nullptr : &shared->filter();
}

std::unique_ptr<filter_handle> make_handle(redis_filter filter) {
  return std::make_unique<shared_handle>(std::move(filter));
}

std::unique_ptr<filter_handle> make_handle(redis_chain chain) {
  return std::make_unique<chain_handle>(std::move(chain));
}

std::unique_ptr<filter_handle> open_filter(const std::string& name, const open_options& options) {
  if (!redis_address::is_one(name)) return bloomery::open_filter(name, options);
  const redis_address address = redis_address::parse(name);
  const bool writable = options.mode == access::read_write;
  const auto open_chain = [&]() -> std::unique_ptr<filter_handle> {
    redis_chain chain = redis_chain::open(address, options.chain, options.connection);
    refuse_what_no_chain_has(options, address);
    return std::make_unique<chain_handle>(std::move(chain), writable);
  };
  if (options.guava_chain) return open_chain();
  try {
    redis_filter filter = redis_filter::open(address, of_shared(options));
    if (options.to_remove && !capabilities_of(filter.parameters().filter).can_remove)
      refuse_removal(filter.parameters().filter, address.text());
    return std::make_unique<shared_handle>(std::move(filter), writable);
  } catch (const error& no_filter) {
    if (no_filter.code() != errc::not_found) throw;
    try {
      return open_chain();
    } catch (const error& no_chain) {
      // Without permission to look for a chain, report that there is no filter.
      if (no_chain.code() != errc::not_found && no_chain.code() != errc::not_permitted) throw;
    }
    throw;  // neither exists
  }
}

}  // namespace bloomery::redis
