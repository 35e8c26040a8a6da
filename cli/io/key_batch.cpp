#include "cli/io/key_batch.hpp"

#include "app/pipeline.hpp"
#include "app/signals.hpp"

#include <bloomery/error.hpp>

#include <charconv>
#include <string>

namespace bloomery::cli {

using namespace app;

std::uint64_t parse_integer_key(std::string_view key, const std::string& source) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), value);
  if (problem != std::errc() || end != key.data() + key.size()) {
    std::string shown(key.substr(0, 60));
    if (shown.size() < key.size()) shown += "...";
    throw error(errc::invalid_argument, {"the filter's keys are integers", source == "-" ? "standard input" : source,
                                         "a whole number from 0 to 2^64-1 on each line", "'" + shown + "'", ""});
  }
  return value;
}

namespace {

void cut(key_kind kind, const input_options& inputs, key_batch& batch) {
  if (!batch.cutter) batch.cutter = std::make_unique<record_cutter>(inputs);
  batch.cutter->cut(batch.text, batch);
  if (kind == key_kind::u64le) {
    batch.integers.clear();
    for (const std::string_view key : batch.keys) batch.integers.push_back(parse_integer_key(key, *batch.text.source));
  }
}

}  // namespace

bool for_each_batch(filter_handle& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish) {
  reader source(inputs);
  progress bar(options.show_progress, options.verb);
  const bool tells_at_once = !options.only_hashes && !filter.capabilities().is_remote;
  const key_kind kind = filter.parameters().keys;  // read once, because an insertion may replace the parameters
  std::uint64_t keys = 0;
  std::uint64_t lacking = 0;
  run_pipeline<key_batch>(
      options.threads, [&](key_batch& batch) { return source.next(batch.text); },
      [&](key_batch& batch) {
        cut(kind, inputs, batch);
        const key_span given = kind == key_kind::u64le ? key_span(batch.integers) : batch.keys;
        batch.prepared = filter.prepare(given, batch.hashes);
        prepare(batch);
      },
      options.steps, [&](key_batch& batch, unsigned step) { options.step(batch, step); },
      [&](key_batch& batch) {
        const bool go_on = finish(batch);
        keys += batch.keys.size();
        lacking += batch.lacking;
        if (!bar.due()) return go_on;
        progress_state state{keys, source.bytes_read(), source.bytes_total(), -1, -1};
        if (tells_at_once) {
          const filter_summary now = filter.summary();
          state.fill = now.fill_ratio.value_or(-1);
          state.rate_now = now.fpr.value_or(-1);
        }
        bar.show(state);
        return go_on;
      },
      [&] { source.cancel(); });
  if (lacking > 0) inputs.notes->lacking[inputs.files] = lacking;
  return stop_signal() == 0;
}

std::unique_ptr<filter_handle> make_hasher(const params& hashing) {
  params smallest = hashing;
  smallest.capacity = 1;
  smallest.geometry = {};
  return make_handle(any_filter(complete(smallest)));
}

std::uint64_t for_each_hash(const params& hashing, const input_options& inputs, const pass_options& options,
                            const std::function<void(std::span<const key_hash>)>& take) {
  const std::unique_ptr<filter_handle> hasher = make_hasher(hashing);
  std::uint64_t keys = 0;
  const bool whole = for_each_batch(
      *hasher, inputs, options, [](key_batch&) {},
      [&](key_batch& batch) {
        take(batch.prepared.hashes());
        keys += batch.keys.size();
        return true;
      });
  if (!whole) throw interrupted();
  return keys;
}

lookup_pass lookups_in(filter_handle& filter) {
  return [&filter](const input_options& inputs, const pass_options& options,
                   const std::function<bool(key_batch&)>& finish) {
    const auto look_up_batch = [&](key_batch& batch) {
      batch.maybe.resize((batch.keys.size() + 63) / 64);
      filter.contains(batch.prepared, batch.maybe);
    };
    if (filter.capabilities().lookups_in_parallel)
      return for_each_batch(filter, inputs, options, look_up_batch, finish);
    return for_each_batch(
        filter, inputs, options, [](key_batch&) {},
        [&](key_batch& batch) {
          look_up_batch(batch);
          return finish(batch);
        });
  };
}

}  // namespace bloomery::cli
