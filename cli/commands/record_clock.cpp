#include "cli/commands/record_clock.hpp"

#include "cli/commands/window.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/address.hpp>

namespace bloomery::cli {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& found, const std::string& hint) {
  throw error(errc::invalid_argument, {what, "--time-field", "", found, hint});
}

}  // namespace

record_clock::record_clock(filter_handle& filter) {
  filter.tick(0);
  const window_facts window = filter.summary().window.value();
  window_ = window.length.milliseconds();
  slice_ = window.slice;
  now_ = window.epoch * window.slice;
}

timed_insertion::timed_insertion(filter_handle& filter, const input_options& inputs)
    : filter_(filter), notes_(*inputs.notes) {
  if (!inputs.time.is_set()) return;
  check_times(inputs, filter.parameters());
  clock_.emplace(filter);
}

change_result timed_insertion::insert(key_batch& batch) {
  if (!clock_) return filter_.insert(batch.prepared);
  change_result all;
  clock_->each_run(batch.times, [&](std::size_t first, std::size_t count, std::uint64_t now) {
    filter_.tick(now);
    const change_result some = filter_.insert(batch.prepared.part(first, count));
    all.keys += some.keys;
    all.changed += some.changed;
  });
  notes_.late = clock_->late();
  return all;
}

void check_times(const input_options& inputs, const std::string& name, const std::optional<std::uint64_t>& now) {
  if (!inputs.time.is_set()) return;
  if (now) refuse("cannot be combined with --now", "", "leave out one of the two options");
  if (redis_address::is_one(name))
    refuse("filters on servers use the clock of the server", name, "leave out --time-field");
}

void check_times(const input_options& inputs, const params& p) {
  if (!inputs.time.is_set() || p.window().by_time()) return;
  refuse("the filter has no window of time", kind_text(p),
         "leave out --time-field, or build a filter with --window 24h");
}

}  // namespace bloomery::cli
