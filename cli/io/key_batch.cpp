#include "cli/io/key_batch.hpp"

#include "app/pipeline.hpp"
#include "app/signals.hpp"

#include <bloomery/error.hpp>

#include <charconv>
#include <cmath>
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
  cut_lines(batch.text.text(), inputs.line_end(), batch.lines);
  if (keys_are_lines(inputs)) {
    batch.keys = batch.lines;
  } else {
    cut_keys(batch.lines, inputs, batch.cut);
    batch.keys = batch.cut;
  }
  if (kind == key_kind::u64le) {
    batch.integers.clear();
    for (const std::string_view key : batch.keys) batch.integers.push_back(parse_integer_key(key, *batch.text.source));
  }
}

void cut_and_hash(const any_filter& filter, const input_options& inputs, key_batch& batch) {
  cut(filter.parameters().keys, inputs, batch);
  if (!filter.uses_hashes()) return;
  batch.hashes.resize(batch.keys.size());
  if (filter.parameters().keys == key_kind::u64le) {
    filter.hash(std::span<const std::uint64_t>(batch.integers), batch.hashes);
  } else {
    filter.hash(batch.keys, batch.hashes);
  }
}

// Estimates the fill ratio from the count: reading all bits ten times per second would cost more than the work.
double expected_fill(const any_filter& filter) {
  const geometry& g = filter.parameters().geometry;
  if (const auto window = filter.window()) {
    return -std::expm1(-static_cast<double>(window->keys_held()) * g.probes / static_cast<double>(g.bits));
  }
  const double cells = static_cast<double>(g.bits) / cell_bits_of(filter.parameters());
  return -std::expm1(-static_cast<double>(filter.insert_count()) * g.probes / cells);
}

}  // namespace

void insert(any_filter& filter, key_batch& batch) {
  batch.is_new.resize(batch.keys.size());
  if (filter.uses_hashes())
    filter.insert(batch.hashes, batch.is_new);
  else
    filter.insert(batch.keys, batch.is_new);
}

void look_up(const any_filter& filter, key_batch& batch) {
  batch.maybe.resize((batch.keys.size() + 63) / 64);
  if (filter.uses_hashes())
    filter.may_contain(batch.hashes, batch.maybe);
  else
    filter.may_contain(batch.keys, batch.maybe);
}

bool for_each_batch(const any_filter& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish) {
  reader source(inputs);
  progress bar(options.show_progress, options.verb);
  std::uint64_t keys = 0;
  run_pipeline<key_batch>(
      options.threads, [&](key_batch& batch) { return source.next(batch.text); },
      [&](key_batch& batch) {
        cut_and_hash(filter, inputs, batch);
        prepare(batch);
      },
      [&](key_batch& batch) {
        const bool go_on = finish(batch);
        keys += batch.keys.size();
        if (bar.due()) {
          const scalable_layers* const growing = options.growing;
          bar.show({keys, source.bytes_read(), source.bytes_total(), growing != nullptr ? -1 : expected_fill(filter),
                    growing != nullptr ? growing->expected_fpr()
                    : filter.window()  ? filter.expected_fpr()
                                       : filter.expected_fpr(filter.insert_count())});
        }
        return go_on;
      },
      [&] { source.cancel(); });
  return stop_signal() == 0;
}

bool for_each_batch(key_kind keys, const input_options& inputs, const pass_options& options,
                    const std::function<bool(key_batch&)>& finish) {
  reader source(inputs);
  progress bar(options.show_progress, options.verb);
  progress_state state;
  for (key_batch batch; source.next(batch.text);) {
    cut(keys, inputs, batch);
    if (!finish(batch)) break;
    state.keys += batch.keys.size();
    if (!bar.due()) continue;
    state.bytes_read = source.bytes_read();
    state.bytes_total = source.bytes_total();
    bar.show(state);
  }
  return stop_signal() == 0;
}

lookup_pass lookups_in(const any_filter& filter) {
  return [&filter](const input_options& inputs, const pass_options& options,
                   const std::function<bool(key_batch&)>& finish) {
    return for_each_batch(
        filter, inputs, options, [&](key_batch& batch) { look_up(filter, batch); }, finish);
  };
}

bool for_each_batch(filter_handle& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish) {
  reader source(inputs);
  progress bar(options.show_progress, options.verb);
  const bool tells_at_once = !filter.capabilities().is_remote;
  const key_kind kind = filter.parameters().keys;  // read once, because an insertion may replace the parameters
  std::uint64_t keys = 0;
  run_pipeline<key_batch>(
      options.threads, [&](key_batch& batch) { return source.next(batch.text); },
      [&](key_batch& batch) {
        cut(kind, inputs, batch);
        const key_span given = kind == key_kind::u64le ? key_span(batch.integers) : batch.keys;
        batch.prepared = filter.prepare(given, batch.hashes);
        prepare(batch);
      },
      [&](key_batch& batch) {
        const bool go_on = finish(batch);
        keys += batch.keys.size();
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
  return stop_signal() == 0;
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
