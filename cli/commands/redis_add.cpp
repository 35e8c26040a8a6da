// bloomery build for a filter on Redis.
//
//   $ bloomery build -n 1M -p 1% -o redis://cache/users users.txt
//
// build creates the filter if it does not exist, and otherwise adds to it. Every client finds a key as soon as it is
// inserted, and a killed run can be repeated.
#include "cli/commands/build.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/shared_filter.hpp"

#include "app/numbers.hpp"
#include "cli/commands/removal.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/temporary_file.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/handle.hpp>

#include "redis/filter/meta.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace bloomery::cli {
namespace {

// The number of keys to expect, counted unless an option gives it. A pipe is copied to `text`.
std::uint64_t capacity_of(const build_options& options, input_options& inputs, std::optional<temporary_file>& text) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (wants_window(options.wanted)) return window_capacity_said(options.wanted);
  if (!can_reread(inputs)) inputs.files = {text.emplace(spool_text(inputs)).path()};
  const std::uint64_t lines = std::max<std::uint64_t>(count_lines(inputs), 1);
  if (options.sharing.most_keys) return std::min(std::max(lines, growing_from), *options.sharing.most_keys);
  return options.wanted.growing ? std::max(lines, growing_from) : lines;
}

}  // namespace

exit_status build_shared(const build_options& options) {
  if (options.wanted.scheme == chain_scheme) return build_chain(options);
  const redis_address address = redis_address::parse(options.filter);
  refuse_what_files_have(options);
  check_shared_promise(options.wanted, options.sharing);
  { const reader readable(options.inputs); }  // report a missing file before anything else
  input_options inputs = options.inputs;
  std::optional<temporary_file> text;
  making_options wanted = options.wanted;
  const bool quiet = options.common.quiet;
  // Servers first: a missing server is reported before keys are counted.
  std::optional<redis_filter> there = find_shared(address, options.server, wanted.secret, quiet);
  const bool made = !there;
  std::uint64_t capacity = 0;
  if (there) {
    refuse_another_life(address, redis::meta_key(address.name), options.sharing, options.server);
    const params& p = there->parameters().filter;
    capacity = wanted.capacity.value_or(p.capacity);
    if (!wanted.rate) wanted.rate = p.target_fpr;
    there.reset();
  } else {
    capacity = capacity_of(options, inputs, text);
  }
  redis_filter created = redis_filter::create(address, shared_params(wanted, options.sharing, capacity, default_fpr),
                                              options_for(address, options.server, wanted.secret, quiet));
  warn_of_eviction(address, options.server);
  const redis_params p = created.parameters();
  const std::unique_ptr<filter_handle> filter = redis::make_handle(std::move(created));
  keys_done done = change_keys(
      *filter, inputs, options.common, "build", [&](key_batch& batch) { return filter->insert(batch.prepared); },
      [] {});
  const filter_summary now = summary_after(done, address.text(), *filter);
  fpr_watch watch(address.text());
  watch.judge(*filter, now);
  if (options.common.json) {
    nlohmann::ordered_json result = {{"filter", address.text()},
                                     {"made", made},
                                     {"keys", done.keys},
                                     {"new", done.changed},
                                     {"capacity", p.filter.capacity},
                                     {"bytes", bytes_for(p.filter.geometry.bits)},
                                     {"target_rate", p.filter.target_fpr},
                                     {"rate", now.fpr ? number_or_null(*now.fpr) : nlohmann::ordered_json(nullptr)},
                                     {"layout", p.filter.layout},
                                     {"bits", p.filter.geometry.bits},
                                     {"probes", p.filter.geometry.probes},
                                     {"shards", p.shards}};
    add_verdict(result, watch.judgement());
    add_end(result, done);
    print_result(done, result);
  } else if (!quiet && !done.failure) {
    say(fmt::format("{}: {}{}, {} added; {}, {}", address.text(),
                    done.finished ? "" : "interrupted: ", counted(done.keys, "line"), new_keys_text(done, now),
                    made ? "created" : "existed already", shared_size_text(p)));
  }
  if (done.failure) throw *done.failure;
  return watch.end();
}

}  // namespace bloomery::cli
