// bloomery build, add and remove with a filter that many machines share.
//
//   $ bloomery build -n 1M -p 1% -o redis://cache/users users.txt
//   $ printf 'bob\n' | bloomery add redis://cache/users
//
// build makes the filter if there is none of that name, and else adds to the one there is. What is in is in at once, for
// everybody: whatever is killed can be run again.
#include "shared_filter.hpp"

#include "numbers.hpp"
#include "output.hpp"
#include "signals.hpp"
#include "temporary_file.hpp"
#include "window.hpp"

#include <bloomery/error.hpp>

#include "redis/meta.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 0.01;

struct added {
  std::uint64_t keys = 0;
  std::uint64_t fresh = 0;
  bool finished = true;
};

added add_all(redis_filter& filter, const input_options& inputs, const common_options& common, const char* verb) {
  added a;
  const pass_options pass{1, common.progress && !common.quiet, verb};
  a.finished = for_each_batch(filter.parameters().filter.keys, inputs, pass, [&](key_batch& batch) {
    insert(filter, batch);
    a.keys += batch.keys.size();
    a.fresh += static_cast<std::uint64_t>(std::count(batch.is_new.begin(), batch.is_new.end(), std::uint8_t{1}));
    return true;
  });
  return a;
}

// Keys to expect, if nobody says. A pipe is kept in `text` meanwhile.
std::uint64_t capacity_of(const build_options& options, input_options& inputs, std::optional<temporary_file>& text) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (wants_window(options.wanted)) return window_capacity_said(options.wanted);
  if (!can_reread(inputs)) inputs.files = {text.emplace(spool_text(inputs)).path()};
  const std::uint64_t lines = std::max<std::uint64_t>(count_lines(inputs), 1);
  if (options.sharing.most_keys) return std::min(std::max(lines, growing_from), *options.sharing.most_keys);
  return options.wanted.growing ? std::max(lines, growing_from) : lines;
}

nlohmann::ordered_json number_or_unknown(const std::optional<std::uint64_t>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

void print(const nlohmann::ordered_json& result) {
  output out(STDOUT_FILENO, "standard output");
  out.write(json_line(result));
  out.flush();
}

}  // namespace

exit_status build_shared(const build_options& options) {
  if (options.wanted.scheme == chain_scheme) return build_chain(options);
  const redis_address address = redis_address::parse(options.filter);
  if (options.foldable) {
    throw error(errc::invalid_argument, {"a shared filter is not folded", "--foldable", "", "", "leave it out"});
  }
  if (!options.note.empty()) {
    throw error(errc::invalid_argument, {"a shared filter keeps no remark", "--note", "", "", "leave it out"});
  }
  check_shared_promise(options.wanted, options.sharing);
  { const reader readable(options.inputs); }  // a file that is missing is said to be missing, before all else
  input_options inputs = options.inputs;
  std::optional<temporary_file> text;
  making_options wanted = options.wanted;
  const bool quiet = options.common.quiet;
  // Asked first: who has to count keys should not learn afterwards that there is no server.
  std::optional<redis_filter> there = find_shared(address, options.server, wanted.secret, quiet);
  const bool made = !there;
  std::uint64_t capacity = 0;
  if (there) {
    refuse_another_life(address, redis::meta_key(address.name), options.sharing, options.server);
    const params& p = there->parameters().filter;
    capacity = wanted.capacity.value_or(p.capacity);
    if (!wanted.rate) wanted.rate = p.target_rate;
    there.reset();
  } else {
    capacity = capacity_of(options, inputs, text);
  }
  redis_filter filter = redis_filter::create(address, shared_params(wanted, options.sharing, capacity, default_rate),
                                             options_for(address, options.server, wanted.secret, quiet));
  const added a = add_all(filter, inputs, options.common, "build");
  const redis_params& p = filter.parameters();
  const std::optional<redis_info> now = info_at_once(filter);
  if (now) warn_if_overfull(address, *now);
  if (options.common.json) {
    print({{"filter", address.text()},
           {"made", made},
           {"keys", a.keys},
           {"new", a.fresh},
           {"capacity", p.filter.capacity},
           {"bytes", bytes_for(p.filter.geometry.bits)},
           {"target_rate", p.filter.target_rate},
           {"rate", now ? number_or_null(now->rate_now) : nlohmann::ordered_json(nullptr)},
           {"layout", p.filter.layout},
           {"bits", p.filter.geometry.bits},
           {"probes", p.filter.geometry.probes},
           {"shards", p.shards},
           {"complete", a.finished}});
  } else if (!quiet) {
    say(fmt::format("{}: {}{}, {} new; {} for {}", address.text(),
                    a.finished ? "" : "interrupted: ", counted(a.keys, "line"), count_text(a.fresh),
                    made ? "made" : "it was there already, made", shared_size_text(p)));
  }
  return exit_status::found;
}

exit_status add_to_shared(const add_options& options) {
  if (is_chain(options.chain)) return add_to_chain(options);
  const redis_address address = redis_address::parse(options.filter);
  const bool quiet = options.common.quiet;
  if (options.now) {
    throw error(errc::invalid_argument,
                {"a shared filter goes by its server's clock", "--now", "", "", "leave it out"});
  }
  redis_filter filter = open_shared(address, options.server, options.secret, quiet);
  const added a = add_all(filter, options.inputs, options.common, "add");
  const std::optional<redis_info> now = info_at_once(filter);
  if (now) warn_if_overfull(address, *now);
  if (options.common.json) {
    print({{"filter", address.text()},
           {"keys", a.keys},
           {"new", a.fresh},
           {"size", number_or_unknown(now ? std::optional(now->inserted) : std::nullopt)},
           {"rate", now ? number_or_null(now->rate_now) : nlohmann::ordered_json(nullptr)},
           {"complete", a.finished}});
  } else if (!quiet) {
    say(fmt::format(
        "{}: {}{} read, {} new{}", address.text(), a.finished ? "" : "interrupted: ", counted(a.keys, "key"),
        count_text(a.fresh),
        now ? fmt::format(", {} {}, error now {}", count_text(now->inserted),
                          now->parameters.filter.window_milliseconds != 0 ? "held" : "in all", rate_text(now->rate_now))
            : ""));
  }
  return exit_status::found;
}

exit_status remove_from_shared(const remove_options& options) {
  const redis_address address = redis_address::parse(options.filter);
  const bool quiet = options.common.quiet;
  redis_filter filter = open_shared(address, options.server, options.secret, quiet);
  const params& p = filter.parameters().filter;
  if (family_of(p) != family::counting) {
    throw error(errc::incompatible,
                {"keys cannot be removed from this filter: its bits belong to many keys at once", address.text(),
                 "a counting filter", kind_text(p), "build it anew with --counting"});
  }
  std::uint64_t keys = 0;
  std::uint64_t removed = 0;
  const pass_options pass{1, options.common.progress && !quiet, "remove"};
  const bool finished = for_each_batch(p.keys, options.inputs, pass, [&](key_batch& batch) {
    removed += remove(filter, batch);
    keys += batch.keys.size();
    return true;
  });
  const std::uint64_t not_found = keys - removed;
  const std::optional<redis_info> now = info_at_once(filter);
  if (not_found > 0) {
    const std::string which = keys == 1 ? "the key was"
                                        : fmt::format("{} of {} {}", count_text(not_found), counted(keys, "key"),
                                                      not_found == 1 ? "was" : "were");
    say(
        fmt::format("{}: warning: {} not there; only what was added may be removed: other such keys may have gone "
                    "unnoticed, and have taken others' along",
                    address.text(), which));
  }
  if (options.common.json) {
    print({{"filter", address.text()},
           {"keys", keys},
           {"removed", removed},
           {"not_found", not_found},
           {"size", number_or_unknown(now ? std::optional(now->inserted) : std::nullopt)},
           {"rate", now ? number_or_null(now->rate_now) : nlohmann::ordered_json(nullptr)},
           {"complete", finished}});
  } else if (!quiet) {
    say(fmt::format(
        "{}: {}{} removed{}", address.text(), finished ? "" : "interrupted: ", counted(removed, "key"),
        now ? fmt::format(", {} left, error now {}", count_text(now->inserted), rate_text(now->rate_now)) : ""));
  }
  return not_found == 0 ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
