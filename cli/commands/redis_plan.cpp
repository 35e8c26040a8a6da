// bloomery plan --redis: plans a shared filter: shards, memory, servers and speed.
//
//   $ bloomery plan --redis --nodes 6 -n 10G -p 1%
//   layout    blocked: 6 bits per key in a block of 64 bytes
//   shards    12,445 of 16,382 blocks: strings of 1 MiB, 24,891 keys on the servers
//   memory    12.2 GiB, 10.47 bits per key
//             1.58 times the lower bound of 6.64 bits per key
//   nodes     6: 2.03 GiB on each, up to 2.16 GiB by chance
//   ...
#include "cli/commands/common.hpp"
#include "cli/commands/plan.hpp"
#include "cli/commands/shared_filter.hpp"

#include "app/numbers.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/redis/plan.hpp>
#include <bloomery/sizing.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

// Microseconds of a server core per key, in batches: measured with redis-server 7.0, blocks read by GETRANGE and bits
// set by BITFIELD.
constexpr double microseconds_of_lookup = 0.40;
constexpr double microseconds_of_insert = 2.2;

void check_needs(const plan_options& o) {
  const auto refuse = [](bool given, const char* option) {
    if (!given) return;
    throw error(errc::invalid_argument,
                {"cannot be combined with --redis", option, "", "", std::string("leave out --redis or ") + option});
  };
  refuse(o.table, "--table");
  refuse(o.sealed, "--sealed");
  refuse(o.never_for.has_value(), "--never-for");
  refuse(o.log.has_value(), "--log, --no-log");
  refuse(o.memory.has_value(), "--memory");
  refuse(o.threat, "--threat");
}

redis_plan planned(const plan_options& o) {
  check_needs(o);
  making_options wanted = o.wanted;
  wanted.counting = o.deletes;
  sharing_options sharing;
  sharing.most_keys = o.most_keys;
  check_shared_promise(wanted, sharing);
  std::uint64_t capacity = wanted.capacity.value_or(0);
  if (capacity == 0 && (wanted.growing || o.most_keys))
    capacity = std::min(growing_from, o.most_keys.value_or(growing_from));
  if (capacity == 0) {
    throw error(errc::invalid_argument,
                {"a plan needs a number of keys", "--capacity", "the distinct keys to expect", "none",
                 "give --capacity 100M, for example, or --max-keys, or --grow if the number is unknown"});
  }
  return plan_redis(shared_params(wanted, sharing, capacity, default_fpr));
}

// Layers of a shard of a filter that grows, with this many keys.
std::size_t layers_of(const redis_plan& plan, double keys) {
  std::vector<redis_layer> layers = {plan.first};
  const double of_shard = keys / static_cast<double>(plan.shards);
  double capacity = static_cast<double>(plan.first.capacity);
  while (capacity < of_shard && layers.size() < plan.layers) {
    layers.push_back(next_layer(plan.parameters, layers));
    capacity += static_cast<double>(layers.back().capacity);
  }
  return layers.size();
}

// The number of layers, which determines the cost of a lookup unless the client has copies of the older layers.
std::string growth_cost_text(const redis_plan& plan) {
  std::string text;
  for (const double times : {1.0, 10.0, 100.0, 1000.0}) {
    const double keys = times * static_cast<double>(plan.parameters.filter.capacity);
    const std::size_t layers = layers_of(plan, keys);
    text += fmt::format("{}{} at {} keys", text.empty() ? "" : ", ", counted(layers, "layer"),
                        count_text(static_cast<std::uint64_t>(keys)));
  }
  return text;
}

// The number of shards on the fullest node: shards are distributed by the hash of their names.
double most_shards_of_a_node(double shards, double nodes) {
  const double mean = shards / nodes;
  return nodes == 1 ? shards : std::min(shards, std::ceil(mean + 3 * std::sqrt(mean)));
}

std::string command_for(const plan_options& o, const redis_plan& plan) {
  const redis_params& p = plan.parameters;
  std::string command = "bloomery build -o ";
  command += o.nodes > 1 ? "redis+cluster://HOST:PORT,HOST:PORT/NAME" : "redis://HOST/NAME";
  command += fmt::format(" -n {}", p.filter.capacity) + rate_option(p.filter.target_fpr);
  if (p.growth == redis_growth::unlimited) command += " --grow";
  if (p.growth == redis_growth::to_maximum) command += fmt::format(" --max-keys {}", p.maximum);
  const bool counts = capabilities_of(p.filter).can_remove;
  if (counts) command += " --counting";
  if (!o.wanted.layout.empty() && !counts) command += " --layout " + o.wanted.layout;
  if (p.filter.has_window()) command += window_option(p.filter);
  return command + " INPUT";
}

}  // namespace

exit_status plan_shared(const plan_options& options) {
  const redis_plan plan = planned(options);
  const redis_params& p = plan.parameters;
  const auto nodes = static_cast<double>(options.nodes);
  const auto shards = static_cast<double>(plan.shards);
  const std::uint64_t keys = p.growth == redis_growth::to_maximum ? p.maximum : p.filter.capacity;
  const bool unlimited = p.growth == redis_growth::unlimited;
  const auto memory = static_cast<double>(plan.full_memory_bytes);
  const double bits_per_key = 8 * memory / static_cast<double>(keys);
  const double of_a_node = memory / nodes;
  const double most_of_a_node = memory / shards * most_shards_of_a_node(shards, nodes);
  const double lookups = 1e6 / microseconds_of_lookup * nodes;
  const double inserts = 1e6 / microseconds_of_insert * nodes;
  const auto whole = [](double x) { return static_cast<std::uint64_t>(std::llround(x)); };

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    out.write(json_line({{"layout", p.filter.layout},
                         {"probes", plan.first.probes},
                         {"capacity", p.filter.capacity},
                         {"target_rate", p.filter.target_fpr},
                         {"growth", growth_text(p)},
                         {"shards", plan.shards},
                         {"lines_of_a_shard", plan.first.lines},
                         {"bytes_of_a_string", plan.first.string_bytes()},
                         {"layers", plan.layers},
                         {"server_keys", plan.server_keys},
                         {"memory_bytes", plan.memory_bytes},
                         {"full_memory_bytes", plan.full_memory_bytes},
                         {"log_bytes_per_key", plan.log_bytes_per_key},
                         {"bits_a_key", bits_per_key},
                         {"lower_bound_bits_a_key", lower_bound_bits_per_key(p.filter.target_fpr)},
                         {"nodes", options.nodes},
                         {"bytes_of_a_node", whole(of_a_node)},
                         {"most_bytes_of_a_node", whole(most_of_a_node)},
                         {"lookups_a_second", whole(lookups)},
                         {"inserts_a_second", whole(inserts)},
                         {"command", command_for(options, plan)}}));
    out.flush();
    return exit_status::found;
  }
  const auto line = [&](const char* name, const std::string& text) {
    out.write(fmt::format("{:<9} {}\n", name, text));
  };
  line("filter", fmt::format("{}{} at {}", counted(p.filter.capacity, "key"), window_text(p.filter),
                             rate_text(p.filter.target_fpr)));
  line("layout", fmt::format("{}: {} {}s per key in a block of 64 bytes", p.filter.layout, plan.first.probes,
                             capabilities_of(p.filter).can_remove ? "counter" : "bit"));
  line("shards", fmt::format("{} of {}: strings of {}, {} on the servers", count_text(plan.shards),
                             counted(plan.first.lines, "block"), bytes_text(plan.first.string_bytes()),
                             counted(plan.server_keys, "key")));
  if (p.growth != redis_growth::none) {
    line("grows",
         growth_text(p) + (unlimited ? fmt::format("; each shard grows separately, {} layers at most", plan.layers)
                                     : fmt::format("; each shard grows separately, up to {} layers", plan.layers)));
  }
  if (p.filter.has_window()) line("window", fmt::format("{} generations, each with the full capacity", plan.layers));
  line("memory", plan.memory_bytes == plan.full_memory_bytes
                     ? fmt::format("{}{}, {:.2f} bits per key", bytes_text(plan.memory_bytes),
                                   unlimited ? " at first" : "", bits_per_key)
                     : fmt::format("{} at first, {} when full: {:.2f} bits per key", bytes_text(plan.memory_bytes),
                                   bytes_text(plan.full_memory_bytes), bits_per_key));
  line("", lower_bound_text(bits_per_key, lower_bound_bits_per_key(p.filter.target_fpr)));
  if (options.nodes > 1) {
    line("nodes", fmt::format("{}: {} on each, up to {} by chance", options.nodes, bytes_text(whole(of_a_node)),
                              bytes_text(whole(most_of_a_node))));
    if (shards < 4 * nodes) {
      line("", fmt::format("{} are too few for an even distribution; use --shards {}", counted(plan.shards, "shard"),
                           4 * options.nodes));
    }
  }
  line("speed", fmt::format("about {} lookups or {} inserts per second in batches ({} us and {} us of a server core)",
                            count_text(whole(lookups / 1e4) * 10'000), count_text(whole(inserts / 1e4) * 10'000),
                            microseconds_of_lookup, microseconds_of_insert));
  if (unlimited) {
    line("", growth_cost_text(plan));
    line("", fmt::format("lookups without copies of the older layers: {} us per layer", microseconds_of_lookup));
  }
  line("log",
       fmt::format("{:.0f} bytes per new key in the append-only file, and to each replica", plan.log_bytes_per_key));
  line("command", command_for(options, plan));
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
