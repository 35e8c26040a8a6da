// guard: lookups, writes, and the thread that refills a filter after a failure.
#include "guard.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace cache_guard {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t keys_of_a_batch = 10'000;

// A marker key, inserted last. A filter without it is incomplete, because it is new, was emptied or is being filled,
// and its negative answers are not valid.
constexpr std::string_view full_mark("\0full", 5);

bloomery::redis_options in_time(std::chrono::milliseconds time) {
  bloomery::redis_options options;
  options.connection.connect_time = time;
  options.connection.time = time;
  return options;
}

// Lookups that were sent just before a failure must have timed out before refilling begins, because a partly filled
// filter gives false negatives.
guard_options with_long_pause(guard_options options) {
  options.pause = std::max(options.pause, 2 * options.filter_time);
  return options;
}

void insert(bloomery::redis_filter& filter, const std::vector<std::string>& keys) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  filter.insert(std::span<const std::string_view>(views));
}

}  // namespace

guard::guard(table_opener table, guard_options options)
    : options_(with_long_pause(std::move(options))), tables_(std::move(table)) {
  tables_.give_back(tables_.take());  // throws at once if the table cannot be opened
  if (!options_.filter) return;
  if (!fill_filter()) ++counted_.filter_errors;
  repairer_ = std::thread([this] { repair_filter(); });
}

guard::~guard() {
  if (!repairer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  repairer_.join();
}

// One filter for all threads: their keys are sent to the server together.
std::shared_ptr<bloomery::concurrent_redis_filter> guard::open_filter() {
  const std::lock_guard lock(opening_);
  if (!filter_) {
    filter_ = std::make_shared<bloomery::concurrent_redis_filter>(
        bloomery::redis_filter::open(*options_.filter, in_time(options_.filter_time)),
        bloomery::concurrent_redis_options{.time = options_.filter_time});
  }
  return filter_;
}

std::optional<std::string> guard::find(const std::string& key) {
  ++counted_.lookups;
  bool filter_said_maybe = false;
  if (options_.filter && filter_is_up_) {
    try {
      const std::array<std::string_view, 2> wanted = {full_mark, key};  // in one exchange, with those of other threads
      std::uint64_t answers = 0;
      open_filter()->may_contain(std::span<const std::string_view>(wanted), {&answers, 1});
      const bool is_full = (answers & 1) != 0;
      filter_said_maybe = is_full && (answers & 2) != 0;
      if (is_full && !filter_said_maybe) {
        ++counted_.filter_negatives;
        return std::nullopt;
      }
      if (!is_full) filter_failed();
    } catch (const bloomery::error&) {
      filter_failed();
    }
  } else if (options_.filter) {
    ++counted_.filter_skipped;
  }

  ++counted_.database_queries;
  std::unique_ptr<user_table> table = tables_.take();
  std::optional<std::string> value = table->find(key);
  tables_.give_back(std::move(table));
  if (!value && filter_said_maybe) ++counted_.false_positives;
  return value;
}

void guard::put(const std::string& key, const std::string& value) {
  ++counted_.writes;
  std::unique_ptr<user_table> table = tables_.take();
  table->put(key, value);
  tables_.give_back(std::move(table));
  if (!options_.filter) return;

  for (;;) {
    if (filter_is_up_) {
      try {
        open_filter()->insert(key);
        return;
      } catch (const bloomery::error&) {
        filter_failed();
      }
    }
    const std::lock_guard lock(mutex_);
    if (filter_is_up_) continue;  // it has just recovered, without this key
    not_in_filter_.push_back(key);
    return;
  }
}

// Stops lookups in the filter until the repair thread has restored it.
void guard::filter_failed() {
  ++counted_.filter_errors;
  {
    const std::lock_guard lock(mutex_);
    filter_is_up_ = false;
  }
  std::shared_ptr<bloomery::concurrent_redis_filter> failed;  // destroyed when the last call on it has ended
  {
    const std::lock_guard lock(opening_);
    failed.swap(filter_);
  }
  wake_.notify_all();
}

void guard::repair_filter() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ends_ || !filter_is_up_; });
    wake_.wait_for(lock, options_.pause, [&] { return ends_; });
    if (ends_) return;
    lock.unlock();
    if (!fill_filter()) ++counted_.filter_errors;
    lock.lock();
  }
}

// Inserts all keys that the filter may lack and resumes lookups. False: the server is unreachable or failed again.
bool guard::fill_filter() {
  try {
    std::unique_ptr<user_table> table = tables_.take();
    const bloomery::redis_options options = in_time(std::max<std::chrono::milliseconds>(options_.filter_time, 10s));
    std::optional<bloomery::redis_filter> filter;
    try {
      bloomery::redis_filter::open(*options_.filter,
                                   in_time(options_.filter_time));  // detects an unreachable server soon
      filter = bloomery::redis_filter::open(*options_.filter, options);
    } catch (const bloomery::error& e) {
      if (e.code() == bloomery::errc::unavailable) throw;
      bloomery::redis_params wanted;
      wanted.filter.capacity = std::max<std::uint64_t>(1000, table->size());
      wanted.filter.target_fpr = options_.rate;
      wanted.growth = bloomery::redis_growth::unlimited;
      filter = bloomery::redis_filter::create(*options_.filter, wanted, options);
    }

    std::vector<std::string> keys;
    table->for_each_key([&](std::string_view key) {
      keys.emplace_back(key);
      if (keys.size() < keys_of_a_batch) return;
      insert(*filter, keys);
      keys.clear();
    });
    insert(*filter, keys);
    tables_.give_back(std::move(table));

    for (bool is_marked = false;; is_marked = true) {
      {
        const std::lock_guard lock(mutex_);
        if (not_in_filter_.empty() && is_marked) {
          filter_is_up_ = true;
          return true;
        }
        keys = not_in_filter_;
      }
      insert(*filter, keys);
      filter->insert(full_mark);
      const std::lock_guard lock(mutex_);
      not_in_filter_.erase(not_in_filter_.begin(), not_in_filter_.begin() + static_cast<std::ptrdiff_t>(keys.size()));
    }
  } catch (const std::exception&) {  // of the filter or the table; lookups report it
    return false;
  }
}

std::string guard::metrics() const {
  std::string text;
  const auto add = [&](const char* name, const char* kind, const char* help, std::uint64_t value) {
    text += std::string("# HELP cache_guard_") + name + " " + help + "\n# TYPE cache_guard_" + name + " " + kind +
            "\ncache_guard_" + name + " " + std::to_string(value) + "\n";
  };
  add("lookups_total", "counter", "Keys looked up.", counted_.lookups);
  add("filter_negatives_total", "counter", "Lookups that the filter answered alone.", counted_.filter_negatives);
  add("database_queries_total", "counter", "Lookups that reached the database.", counted_.database_queries);
  add("false_positives_total", "counter", "Keys reported as maybe present by the filter but absent from the database.",
      counted_.false_positives);
  add("filter_errors_total", "counter", "Lookups that the filter did not answer.", counted_.filter_errors);
  add("filter_skipped_total", "counter", "Lookups that skipped a failed filter.", counted_.filter_skipped);
  add("writes_total", "counter", "Rows written.", counted_.writes);
  add("filter_up", "gauge", "1 while lookups use the filter.", filter_is_up_ ? 1 : 0);
  const std::lock_guard lock(mutex_);
  add("keys_not_in_filter", "gauge", "Keys written while the filter was unavailable, to be inserted later.",
      not_in_filter_.size());
  return text;
}

}  // namespace cache_guard
