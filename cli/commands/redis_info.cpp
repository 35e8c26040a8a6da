// bloomery info of a filter that many machines share: what it is, how full it is, what follows from it. The servers count
// its bits, a millisecond for each MiB.
#include "cli/commands/shared_filter.hpp"

#include "cli/commands/counting.hpp"
#include "cli/commands/info_page.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/error.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

namespace bloomery::cli {
namespace {

const char* name_of_growth(redis_growth growth) {
  switch (growth) {
    case redis_growth::to_maximum: return "to_maximum";
    case redis_growth::unlimited: return "unlimited";
    case redis_growth::none: break;
  }
  return "none";
}

template <class Number>
nlohmann::ordered_json number_or_nothing(bool known, Number number) {
  return known ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

// "2026-11-14 22:13:20 UTC"
std::string moment_text(std::int64_t milliseconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(milliseconds / 1000)));
}

// Keys that come until the promise is broken; none of a filter that grows, for it never is.
std::uint64_t keys_left(const redis_info& now) {
  const params& p = now.parameters.filter;
  if (now.parameters.growth == redis_growth::to_maximum) {
    return now.parameters.maximum - std::min(now.inserted, now.parameters.maximum);
  }
  if (p.target_rate >= 1 || now.rate_now > p.target_rate) return 0;
  const std::uint64_t limit = keys_within(p, p.target_rate);
  return limit - std::min(now.inserted, limit);
}

std::string left_text(const redis_info& now, std::uint64_t left) {
  const params& p = now.parameters.filter;
  if (now.parameters.growth == redis_growth::to_maximum) return count_text(left) + " of the most that were declared";
  if (now.rate_now > p.target_rate) return "none: the promise of " + rate_text(p.target_rate) + " is broken";
  return fmt::format("{} until the error passes {}", count_text(left), rate_text(p.target_rate));
}

}  // namespace

exit_status info_of_shared(const info_options& options) {
  if (is_chain(options.chain)) return info_of_chain(options);
  const redis_address address = redis_address::parse(options.filter);
  if (options.check_pages) {
    throw error(errc::invalid_argument, {"a shared filter has no pages with checksums", "--check", "", "",
                                         "leave it out: whether all of it is there is always looked at"});
  }
  redis_filter filter = open_shared(address, options.server, options.secret, true);
  const redis_info now = filter.info();
  const redis_params& r = now.parameters;
  const params& p = r.filter;
  std::optional<measured_rate> measured;
  if (options.queries.value_or(0) > 0) measured = measure_shared(filter, *options.queries);
  const bool forgets = p.window_milliseconds != 0;
  const bool unlimited = r.growth == redis_growth::unlimited || forgets;
  const std::uint64_t left = unlimited ? 0 : keys_left(now);
  const double fill =
      now.bits == 0 ? 0 : static_cast<double>(now.ones) / (static_cast<double>(now.bits) / cell_bits_of(p));

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    nlohmann::ordered_json result = info_head(address.text(), p, {"family", name_of(family_of(p))});
    result.update({{"shards", r.shards},
                   {"lines_of_a_shard", now.lines},
                   {"layers", now.layers},
                   {"epoch", now.epoch},
                   {"bits", now.bits},
                   {"bytes", bytes_for(now.bits)},
                   {"first_bits", p.geometry.bits},
                   {"probes", p.geometry.probes},
                   {"capacity", p.capacity},
                   {"target_rate", p.target_rate},
                   {"growth", name_of_growth(r.growth)},
                   {"most_keys", number_or_nothing(r.growth == redis_growth::to_maximum, r.maximum)},
                   {"window_seconds", number_or_nothing(forgets, static_cast<double>(p.window_milliseconds) / 1000)},
                   {"expires_at", number_or_nothing(now.expires_at.has_value(),
                                                    static_cast<double>(now.expires_at.value_or(0)) / 1000)},
                   {"inserted", now.inserted},
                   {"count_is_estimate", now.is_estimate},
                   {"fill", fill},
                   {"rate_now", now.rate_now},
                   {"measured_rate", nullptr},
                   {"keys_left", number_or_nothing(!unlimited, left)}});
    write_info(out, options, std::move(result), measured, {});
  } else {
    info_page page(out);
    const auto line = [&](const std::string& name, const std::string& value) { page.line(name, value); };
    line("filter", address.text());
    line("kind", fmt::format("shared, {}, hash {}, keys {}", p.layout, p.hash, name_of(p.keys)));
    page.seed_and_secret(p);
    line("size", fmt::format("{} in {} of {} {}, {} a key", bytes_text(bytes_for(now.bits)), counted(r.shards, "shard"),
                             now.layers <= 1 ? "1 layer," : fmt::format("up to {} layers,", now.layers),
                             counted(now.lines, "line") + (now.layers <= 1 ? "" : " in the first"),
                             counted(p.geometry.probes, "probe")));
    line("made for", fmt::format("{}{} at {}", counted(p.capacity, "key"), window_text(p), rate_text(p.target_rate)));
    line("grows", growth_text(r));
    line("inserted", now.is_estimate ? counted(now.inserted, "key") + ", estimated from the bits"
                                     : "at most " + counted(now.inserted, "key") + ", as counted");
    line("fill", fmt::format("{:.1f} % of the {}s", fill * 100, name_of_cell(p)));
    line("error now", rate_text(now.rate_now) + ", from the bits");
    if (measured) line("measured", rate_with_interval(*measured));
    if (!unlimited) line("keys left", left_text(now, left));
    if (now.expires_at) line("expires", moment_text(*now.expires_at));
  }
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
