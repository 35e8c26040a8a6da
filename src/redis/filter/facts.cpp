// filter_facts of shared filters and Guava chains.
#include "redis/filter/facts.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/redis/handle.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace bloomery::redis {
namespace {

// Empty for filters without a limit.
std::optional<std::uint64_t> keys_left(const redis_info& now) {
  const params& p = now.parameters.filter;
  if (p.has_window()) return std::nullopt;
  switch (now.parameters.growth) {
    case redis_growth::unlimited: return std::nullopt;
    case redis_growth::to_maximum: return now.parameters.maximum - std::min(now.inserted, now.parameters.maximum);
    case redis_growth::none: break;
  }
  if (p.target_fpr >= 1 || now.rate_now > p.target_fpr) return 0;
  const std::uint64_t limit = keys_within(p, p.target_fpr);
  return limit - std::min(now.inserted, limit);
}

// Adds the facts that require the positions of the bits, from a local copy.
void add_bits(filter_facts& facts, const any_filter& copy) {
  const fill_statistics bits = measure_fill(facts.parameters, copy.bytes());
  facts.fill->cells_set = bits.ones;
  facts.fill->current_fpr = bits.current_fpr;
  facts.fill->is_exact = true;
  facts.expected_fpr = expected_fpr(facts.parameters, facts.distinct_keys);
}

// The facts that follow from the description alone.
filter_facts facts_of(const redis_params& p) {
  filter_facts facts;
  facts.parameters = p.filter;
  facts.parameters.secret.reset();
  facts.bits = p.filter.geometry.bits;
  facts.bytes = bytes_for(facts.bits);
  facts.shared = shared_facts{.shards = p.shards, .grows = p.growth != redis_growth::none};
  if (p.growth == redis_growth::to_maximum) facts.shared->maximum = p.maximum;
  return facts;
}

filter_facts counts_of(const redis_info& now) {
  filter_facts facts = facts_of(now.parameters);
  facts.shared->layers = now.layers;
  facts.shared->lines_per_shard = now.lines;
  facts.shared->epoch = now.epoch;
  facts.bits = now.bits;
  facts.bytes = bytes_for(now.bits);
  facts.distinct_keys = now.inserted;
  if (now.inserted < beyond_counting) facts.insert_count = now.inserted;
  facts.count_is_at_most = !now.is_estimate;
  facts.count_is_estimate = now.is_estimate;
  facts.expires_at = now.expires_at;
  facts.fill = fill_facts{.cells = now.bits / cell_bits_of(facts.parameters),
                          .cells_set = now.ones,
                          .current_fpr = now.rate_now,
                          .is_exact = false};
  return facts;
}

}  // namespace

filter_facts facts_of(const redis_info& now) {
  filter_facts facts = counts_of(now);
  facts.keys_left = keys_left(now);
  return facts;
}

filter_facts facts_of(redis_filter& filter, info_depth depth) {
  const params& p = filter.parameters().filter;
  if (depth == info_depth::counts && p.geometry.bits > most_bits_counted) return facts_of(filter.parameters());
  const redis_info now = filter.info();
  if (depth == info_depth::counts) return counts_of(now);
  filter_facts facts = facts_of(now);
  const bool can_be_sent =
      !facts.shared->grows && !p.has_window() && facts.parameters.geometry.bits <= most_bits_counted;
  if (depth == info_depth::everything && can_be_sent) add_bits(facts, filter.pull());
  return facts;
}

filter_facts facts_of(redis_chain& chain, const params& p, info_depth depth) {
  filter_facts facts;
  facts.parameters = p;
  facts.chain = chain_facts{};
  std::optional<redis_chain_info> now;
  if (depth == info_depth::counts) facts.chain->growths = chain.growths();
  if (depth != info_depth::counts || facts.chain->growths < most_bits_counted / p.geometry.bits) now = chain.info();
  if (now) facts.chain = chain_facts{now->growths, now->ones};
  facts.bits = (facts.chain->growths + 1) * p.geometry.bits;
  facts.bytes = bytes_for(facts.bits);
  if (!now) return facts;
  facts.expires_at = now->expires_at;
  const double most = static_cast<double>(beyond_counting);
  facts.distinct_keys = static_cast<std::uint64_t>(std::llround(std::min(now->keys, most)));
  facts.fill = fill_facts{.cells = facts.bits,
                          .cells_set = std::accumulate(now->ones.begin(), now->ones.end(), std::uint64_t{0}),
                          .current_fpr = now->rate_now,
                          .is_exact = false,
                          .estimated_keys = estimate{now->keys, 0}};
  return facts;
}

}  // namespace bloomery::redis
