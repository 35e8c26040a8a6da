// bloomery build for a Guava chain (bloomery/redis/chain.hpp), which may be shared with a Java service.
//
//   $ bloomery build --scheme guava-chain -n 10k -p 0.05% -o redis://cache/users users.txt
//   $ bloomery check --scheme guava-chain redis://cache/users requests.txt
//
// A chain made by the Java implementation does not store n and p: the options are required until build has stored them.
// A chain grows by bitmaps for n keys each, and its FPR grows with it.
#include "app/numbers.hpp"
#include "cli/commands/build.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/shared_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/chain.hpp>
#include <bloomery/redis/handle.hpp>

#include "redis/chain/chain_keys.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace bloomery::cli {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& option, const std::string& hint = "leave it out") {
  throw error(errc::invalid_argument, {what, option, "", "", hint});
}

void refuse_if(bool given, const std::string& what, const std::string& option) {
  if (given) refuse(what, option);
}

constexpr const char* no_secret = "a Guava chain has no secret";
constexpr const char* no_waiting = "operations on a Guava chain do not wait for replicas";
constexpr const char* own_bits = "a Guava chain has its own bits and hashes";

// ---- opening --------------------------------------------------------------------------------------------------------

struct chain_there {
  bool is_there = false;
  std::optional<redis_chain_params> stored = {};
};

chain_there find_chain(const redis_address& address, const redis_connection_options& connection) {
  try {
    return {true, redis_chain::open(address, {}, connection).parameters()};
  } catch (const redis_chain_params_unknown&) {
    return {true};
  } catch (const error& e) {
    if (e.code() == errc::not_found) return {};
    throw;
  }
}

// With n and p that differ from those of the chain, lookups would read other bits than inserts set.
redis_chain_params params_to_make(const making_options& wanted, const chain_there& there) {
  if (there.stored) {
    return {wanted.capacity.value_or(there.stored->capacity), wanted.rate.value_or(there.stored->target_fpr)};
  }
  if (!wanted.capacity) refuse("the number of keys per bitmap is missing", "--capacity", "for example: --capacity 10k");
  if (there.is_there && !wanted.rate) {
    refuse("the existing chain does not store its capacity and FPR", "--rate",
           "give the --capacity and --rate of the chain");
  }
  return {*wanted.capacity, wanted.rate.value_or(default_fpr)};
}

void refuse_what_no_chain_has(const build_options& o) {
  const making_options& w = o.wanted;
  const std::string size = "the size of a bitmap follows from --capacity and --rate";
  const std::string growth = "a Guava chain always grows, bitmap by bitmap";
  refuse_if(w.bits.has_value(), size, "--bits");
  refuse_if(w.probes.has_value(), size, "--probes");
  refuse_if(!w.layout.empty(), own_bits, "--layout");
  refuse_if(w.prefer.has_value(), own_bits, "--prefer");
  refuse_if(!w.hash.empty(), own_bits, "--hash");
  refuse_if(w.seed != 0, own_bits, "--seed");
  refuse_if(w.keys != key_kind::bytes, "the keys of a Guava chain are text", "--u64");
  refuse_if(!w.secret.empty(), no_secret, "--secret");
  refuse_if(w.removal_option() != nullptr, "a Guava chain cannot remove keys",
            w.counting ? "--counting" : "--quotient");
  refuse_if(w.growing, growth, "--grow");
  refuse_if(o.sharing.most_keys.has_value(), growth, "--max-keys");
  refuse_if(o.sharing.shards.has_value(), "each bitmap of a Guava chain is on one server", "--shards");
  refuse_if(w.window.length.has_value(), "a Guava chain has no window", w.window.option());
  refuse_time(w.window.now);
  refuse_what_files_have(o);
  refuse_if(o.server.wait_replicas != 0, no_waiting, "--wait-replicas");
}

// ---- report ---------------------------------------------------------------------------------------------------------

// Prints the result and throws the failure of the work, if any.
void report(const std::string& name, const filter_handle& chain, const keys_done& done, const filter_summary& now,
            const common_options& common, bool made) {
  const params& p = chain.parameters();
  if (common.json) {
    nlohmann::ordered_json result = {
        {"filter", name},
        {"scheme", chain_scheme},
        {"made", made},
        {"keys", done.keys},
        {"new", done.changed},
        {"capacity", p.capacity},
        {"target_rate", p.target_fpr},
        {"bits", p.geometry.bits},
        {"probes", p.geometry.probes},
        {"growths", now.growths ? nlohmann::ordered_json(*now.growths) : nlohmann::ordered_json(nullptr)},
        {"rate", now.fpr ? number_or_null(*now.fpr) : nlohmann::ordered_json(nullptr)}};
    add_end(result, done);
    print_result(done, result);
  } else if (!common.quiet && !done.failure) {
    say(fmt::format("{}: {}{}, {} added; {}, capacity {} per bitmap at {}{}", name,
                    done.finished ? "" : "interrupted: ", counted(done.keys, "line"), count_text(done.changed),
                    made ? "created" : "existed already", counted(p.capacity, "key"), rate_text(p.target_fpr),
                    state_text(chain, now, "")));
  }
  if (done.failure) throw *done.failure;
}

}  // namespace

// ---- Guava chains ---------------------------------------------------------------------------------------------------

bool finds_chain(const redis_address& address, const server_options& server) {
  const std::string bitmap = redis::bitmap_key(address.name, 0);
  const std::string cursor = redis::cursor_key(address.name);
  const std::string ours = redis::chain_facts_key(address.name);
  bool found[3] = {};
  try {
    redis::router servers(address, connection_of(server));
    redis::batch asked;
    for (const std::string& key : {bitmap, cursor, ours}) {
      asked.begin(redis::slot_of(key), redis::mode::read);
      asked.command({key == bitmap ? "STRLEN" : "PTTL", key});  // every user of a chain has permission for these
    }
    servers.run(asked,
                [&](std::size_t i, redis::reply r) { found[i] = !r.is_error() && r.integer() > (i == 0 ? 0 : -2); });
  } catch (const error&) {
    return false;  // this only serves to explain another error
  }
  return found[0] && (found[1] || found[2]);
}

// ---- operations -----------------------------------------------------------------------------------------------------

exit_status build_chain(const build_options& options) {
  const redis_address address = redis_address::parse(options.filter);
  refuse_what_no_chain_has(options);
  { const reader readable(options.inputs); }  // report a missing file before anything else
  const redis_connection_options connection = connection_of(options.server);
  const chain_there there = find_chain(address, connection);
  if (there.is_there) refuse_another_life(address, address.name + "-0", options.sharing, options.server);
  redis_chain created = redis_chain::create(address, params_to_make(options.wanted, there), connection);
  if (options.sharing.milliseconds && !there.is_there) {
    created.expire(std::chrono::milliseconds(*options.sharing.milliseconds));
  }
  warn_of_eviction(address, options.server);
  const std::unique_ptr<filter_handle> chain = redis::make_handle(std::move(created));
  keys_done done = change_keys(
      *chain, options.inputs, options.common, "build", [&](key_batch& batch) { return chain->insert(batch.prepared); },
      [] {});
  const filter_summary now = summary_after(done, address.text(), *chain);
  report(address.text(), *chain, done, now, options.common, !there.is_there);
  return exit_status::found;
}

}  // namespace bloomery::cli
