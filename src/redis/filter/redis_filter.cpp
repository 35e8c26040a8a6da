// Public API of redis_filter: hashes keys and delegates the rest to impl.
#include <bloomery/redis.hpp>

#include <bloomery/detail/checks.hpp>
#include <bloomery/error.hpp>

#include "filters/hash_keys.hpp"
#include "redis/filter/impl.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace bloomery {

void redis_filter::impl::hash(key_span keys, key_hash* hashes) const {
  const bool integers = keys.form() == key_span::form_of_keys::integers;
  if (!integers && !keys.is_text()) {
    throw error(errc::incompatible,
                {"a filter on servers accepts keys, not hashes", where(), "text or integers", "hashes", ""});
  }
  const key_kind kind = description.parameters.filter.keys;
  if ((kind == key_kind::u64le) != integers) {
    throw error(errc::incompatible, {"the keys are of the wrong kind", where(), name_of(kind),
                                     name_of(integers ? key_kind::u64le : key_kind::bytes), ""});
  }
  hash_keys(*hasher, seed, keys, hashes);
}

void redis_filter::impl::hash(key_span keys, std::vector<std::uint64_t>& hash64s) const {
  std::array<key_hash, keys_of_a_batch> hashes;
  hash64s.resize(keys.size());
  in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
    hash(keys.part(first, count), hashes.data());
    for (std::size_t i = 0; i < count; ++i) hash64s[first + i] = hashes[i].hash64;
  });
}

namespace {

constexpr std::size_t part_keys = 16'384;  // keys processed together

// Calls work(first, count) for parts of the keys, so that no call needs memory for all.
template <class Work>
void in_parts(std::size_t total, Work work) {
  for (std::size_t first = 0; first < total; first += part_keys) work(first, std::min(part_keys, total - first));
}

}  // namespace

redis_filter::redis_filter(std::unique_ptr<impl> b) noexcept : impl_(std::move(b)) {}
redis_filter::redis_filter(redis_filter&&) noexcept = default;
redis_filter& redis_filter::operator=(redis_filter&&) noexcept = default;
redis_filter::~redis_filter() = default;

const redis_params& redis_filter::parameters() const noexcept { return impl_->description.parameters; }

std::uint64_t redis_filter::insert(key_span keys, std::span<std::uint8_t> is_new) {
  impl& b = *impl_;
  detail::check_answers("redis_filter::insert", keys.size(), is_new.size());
  b.router.forget_writes();
  b.router.forget_answers();
  b.sent_twice = 0;
  std::vector<std::uint64_t> hash64s;
  std::vector<std::uint8_t> fresh;
  std::size_t again = 0;  // number of leading keys of this call that must be inserted again
  const auto insert_part = [&](std::size_t first, std::size_t count) {
    redis::begin_again([&] {
      b.hash(keys.part(first, count), hash64s);
      fresh.resize(count);
      if (b.is_repairing()) {
        b.insert_into_lost(hash64s, fresh.data());
      } else {
        b.insert(hash64s, fresh.data());
      }
      b.confirm(redis::access::write);
    });
  };
  std::uint64_t all_new = 0;
  std::uint64_t epoch = b.description.epoch;
  in_parts(keys.size(), [&](std::size_t first, std::size_t count) {
    insert_part(first, count);
    all_new += static_cast<std::uint64_t>(std::count(fresh.begin(), fresh.end(), std::uint8_t{1}));
    if (!is_new.empty()) std::copy(fresh.begin(), fresh.end(), is_new.begin() + static_cast<std::ptrdiff_t>(first));
    // Earlier keys of this call went to a filter that was replaced in the meantime.
    if (std::exchange(epoch, b.description.epoch) != b.description.epoch) again = first;
  });
  for (int attempt = 0;; ++attempt) {
    // A server that crashed may have lost keys that it had acknowledged.
    const bool is_broken = b.router.has_lost_answers() && !b.description.counts();
    if (is_broken) again = keys.size();
    b.note_doubts();
    if (again == 0) break;
    if (attempt == redis::most_beginnings) {
      throw error(errc::unavailable,
                  {"the filter was replaced, or its connections were lost, again and again while keys "
                   "were inserted",
                   b.where(), "", "", hint::try_again});
    }
    // The results of the first insertion are kept.
    const std::uint64_t groups_before = b.router.groups_run();
    b.router.forget_answers();
    in_parts(std::exchange(again, 0), [&](std::size_t first, std::size_t count) {
      insert_part(first, count);
      if (std::exchange(epoch, b.description.epoch) != b.description.epoch) again = keys.size();
    });
    if (is_broken) b.router.counters().resent_groups += b.router.groups_run() - groups_before;
  }
  const unsigned replicas = b.options.wait_replicas;
  if (replicas == 0 || keys.empty()) return all_new;
  const unsigned have = b.router.wait_for_replicas(replicas, b.options.connection.time);
  if (have >= replicas) return all_new;
  throw error(errc::unavailable, {"the keys are inserted, but not on the required number of replicas", b.where(),
                                  std::to_string(replicas), std::to_string(have),
                                  error_hint(hint::insert_again, "insert them again when the replicas are available")});
}

bool redis_filter::insert(std::string_view key) { return insert(std::span<const std::string_view>(&key, 1)) == 1; }
bool redis_filter::insert(std::uint64_t key) { return insert(std::span<const std::uint64_t>(&key, 1)) == 1; }

redis_counters redis_filter::counters() const noexcept { return impl_->router.counters(); }

void redis_filter::may_contain(key_span keys, std::span<std::uint64_t> bitmap) {
  impl& b = *impl_;
  detail::check_bitmap("redis_filter::may_contain", keys.size(), bitmap.size());
  std::fill(bitmap.begin(), bitmap.end(), std::uint64_t{0});
  std::vector<std::uint64_t> hash64s;
  std::vector<std::uint8_t> found;
  in_parts(keys.size(), [&](std::size_t first, std::size_t count) {
    redis::begin_again([&] {
      b.hash(keys.part(first, count), hash64s);
      found.resize(count);
      b.look_up(hash64s, found.data());
      b.confirm(redis::access::look_up);
    });
    for (std::size_t i = 0; i < count; ++i) {
      bitmap[(first + i) / 64] |= std::uint64_t{found[i]} << (first + i) % 64;
    }
  });
}

bool redis_filter::may_contain(std::string_view key) {
  std::uint64_t answer = 0;
  may_contain(std::span<const std::string_view>(&key, 1), std::span(&answer, 1));
  return answer != 0;
}

bool redis_filter::may_contain(std::uint64_t key) {
  std::uint64_t answer = 0;
  may_contain(std::span<const std::uint64_t>(&key, 1), std::span(&answer, 1));
  return answer != 0;
}

std::uint64_t redis_filter::remove(key_span keys, std::span<removal> results) {
  detail::check_answers("redis_filter::remove", keys.size(), results.size());
  std::vector<std::uint64_t> hash64s;
  std::vector<removal> done;
  std::uint64_t all_removed = 0;
  in_parts(keys.size(), [&](std::size_t first, std::size_t count) {
    impl_->hash(keys.part(first, count), hash64s);
    done.assign(count, removal::not_found);
    impl_->remove(hash64s, done.data());
    try {
      impl_->confirm(redis::access::write);
    } catch (const redis::made_anew&) {
      impl_->throw_replaced_in_removal();
    }
    all_removed += static_cast<std::uint64_t>(std::count(done.begin(), done.end(), removal::removed));
    if (!results.empty()) std::copy(done.begin(), done.end(), results.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return all_removed;
}

}  // namespace bloomery
