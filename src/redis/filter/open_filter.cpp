#include <bloomery/redis_handle.hpp>

#include <bloomery/error.hpp>

#include "filters/removal.hpp"
#include "redis/filter/facts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace bloomery::redis {
namespace {

using form = key_span::form_of_keys;

// Servers take whole keys: a shared filter hashes them itself, with the hash its description names.
[[noreturn]] void refuse_hashes() {
  throw error(errc::incompatible,
              {"a filter on servers takes keys and not hashes", "", "text or integers", "hashes", ""});
}

// call(span) with the keys as views or integers.
template <class Call>
void with_span(key_span keys, Call call) {
  switch (keys.form()) {
    case form::views: return call(keys.views());
    case form::integers: return call(keys.integers());
    case form::hashes: refuse_hashes();
    case form::strings: break;
  }
  std::vector<std::string_view> views;
  for (std::size_t i = 0; i < keys.size(); ++i) views.push_back(keys.text(i));
  call(std::span<const std::string_view>(views));
}

std::span<std::uint64_t> words(key_span keys, std::uint64_t* bitmap) { return {bitmap, (keys.size() + 63) / 64}; }

// Answers for each key, in the caller's room if it wants them.
template <class Answer>
std::span<Answer> room_for(key_span keys, Answer* wanted, std::vector<Answer>& own) {
  if (wanted != nullptr) return {wanted, keys.size()};
  own.resize(keys.size());
  return own;
}

class shared_handle final : public filter_handle {
 public:
  explicit shared_handle(redis_filter filter) : filter_(std::move(filter)) {}

  redis_filter& filter() noexcept { return filter_; }

  bloomery::capabilities capabilities() const override {
    const redis_params& p = filter_.parameters();
    bloomery::capabilities result;
    result.counts_copies = result.can_remove = family_of(p.filter) == family::counting;
    result.can_clear = true;
    result.has_window = p.filter.window_milliseconds != 0;
    result.grows = p.growth != redis_growth::none;
    result.can_merge = !result.counts_copies && !result.has_window && !result.grows;
    result.is_remote = true;
    result.lookups_in_parallel = false;
    return result;
  }

  const params& parameters() const noexcept override { return filter_.parameters().filter; }

  // Servers count bits in some tens of milliseconds for each 64 MiB: of larger filters nothing is told.
  filter_summary summary() override {
    const redis_params& p = filter_.parameters();
    filter_summary result;
    result.capacity = p.growth == redis_growth::none         ? p.filter.capacity
                      : p.growth == redis_growth::to_maximum ? p.maximum
                                                             : 0;
    if (p.filter.geometry.bits > most_bits_counted) return result;
    const redis_info now = filter_.info();
    if (now.inserted < beyond_counting) result.insert_count = now.inserted;
    result.count_is_estimate = now.is_estimate;
    result.fpr = now.rate_now;
    result.is_overfull = p.growth == redis_growth::none && now.rate_now > 1.01 * p.filter.target_fpr;
    return result;
  }

  filter_facts info(info_depth depth) override { return facts_of(filter_, depth); }

  void merge(filter_handle& other) override {
    if (other.local() != nullptr) return filter_.merge(*other.local());
    auto* const shared = dynamic_cast<shared_handle*>(&other);
    if (shared == nullptr) return filter_handle::merge(other);
    filter_.merge(shared->filter_);
  }

  void clear() override { filter_.clear(); }

  key_explanation explain(key_span one_key) override {
    key_explanation result;
    with_span(one_key.part(0, 1), [&](auto some) { result = filter_.explain(some[0]); });
    return result;
  }

 protected:
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    std::vector<std::uint8_t> own;
    const std::span<std::uint8_t> fresh = room_for(keys, is_new, own);
    with_span(keys, [&](auto some) { filter_.insert(some, fresh); });
    return std::accumulate(fresh.begin(), fresh.end(), std::uint64_t{0});
  }

  std::uint64_t remove_some(key_span keys, removal* results) override {
    std::vector<removal> own;
    const std::span<removal> done = room_for(keys, results, own);
    with_span(keys, [&](auto some) { filter_.remove(some, done); });
    return static_cast<std::uint64_t>(std::count(done.begin(), done.end(), removal::removed));
  }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override {
    with_span(keys, [&](auto some) { filter_.may_contain(some, words(keys, bitmap)); });
  }

 private:
  redis_filter filter_;
};

class chain_handle final : public filter_handle {
 public:
  explicit chain_handle(redis_chain chain) : chain_(std::move(chain)) {
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
  void clear() override { chain_.reset(); }

 protected:
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override {
    std::vector<std::uint8_t> own;
    const std::span<std::uint8_t> fresh = room_for(keys, is_new, own);
    with_text(keys, [&](std::span<const std::string_view> some) { chain_.insert(some, fresh); });
    return std::accumulate(fresh.begin(), fresh.end(), std::uint64_t{0});
  }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override {
    with_text(keys, [&](std::span<const std::string_view> some) { chain_.may_contain(some, words(keys, bitmap)); });
  }

 private:
  template <class Call>
  static void with_text(key_span keys, Call call) {
    with_span(keys, [&](auto some) {
      if constexpr (std::same_as<decltype(some), std::span<const std::string_view>>)
        call(some);
      else
        throw error(errc::incompatible, {"the keys of a Guava chain are text", "", "text", "integers", ""});
    });
  }

  redis_chain chain_;
  params parameters_;
};

void refuse_what_no_chain_has(const open_options& options, const redis_address& address) {
  const auto refuse = [&](const char* what) { throw error(errc::incompatible, {what, address.text(), "", "", ""}); };
  if (options.secret) refuse("a Guava chain is not keyed: it takes no secret");
  if (options.wait_replicas != 0) refuse("inserts into a Guava chain do not wait for replicas");
  if (options.to_remove) refuse("keys cannot be removed from a Guava chain");
}

redis_options of_shared(const open_options& options) {
  redis_options result;
  result.connection = options.connection;
  result.secret = options.secret;
  result.wait_replicas = options.wait_replicas;
  result.local_copy = options.local_copy;
  result.notes = options.notes;
  return result;
}

}  // namespace

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
  const auto open_chain = [&] {
    redis_chain chain = redis_chain::open(address, options.chain, options.connection);
    refuse_what_no_chain_has(options, address);
    return make_handle(std::move(chain));
  };
  if (options.guava_chain) return open_chain();
  try {
    redis_filter filter = redis_filter::open(address, of_shared(options));
    if (options.to_remove && family_of(filter.parameters().filter) != family::counting)
      refuse_removal(filter.parameters().filter, address.text());
    return make_handle(std::move(filter));
  } catch (const error& no_filter) {
    if (no_filter.code() != errc::not_found) throw;
    try {
      return open_chain();
    } catch (const error& no_chain) {
      // Whoever may not look for a chain is told that there is no filter.
      if (no_chain.code() != errc::not_found && no_chain.code() != errc::not_permitted) throw;
    }
    throw;  // there is neither
  }
}

}  // namespace bloomery::redis
