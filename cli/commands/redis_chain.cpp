// bloomery build of a Guava chain (bloomery/redis/chain.hpp), which a Java service may share.
//
//   $ bloomery build --scheme guava-chain -n 10k -p 0.05% -o redis://cache/users users.txt
//   $ bloomery check --scheme guava-chain redis://cache/users requests.txt
//
// A chain that the Java one made does not say what it was made for: n and p are given until build has stored them. A
// chain grows by bitmaps of n keys each, and its error grows with it.
#include "app/numbers.hpp"
#include "cli/commands/build.hpp"
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

constexpr double default_rate = 0.01;

[[noreturn]] void refuse(const std::string& what, const std::string& option, const std::string& hint = "leave it out") {
  throw error(errc::invalid_argument, {what, option, "", "", hint});
}

void refuse_if(bool given, const std::string& what, const std::string& option) {
  if (given) refuse(what, option);
}

constexpr const char* no_secret = "the bits of a chain are where the Java one has them, and that takes no secret";
constexpr const char* no_waiting = "a chain does not wait for replicas";
constexpr const char* own_bits = "the bits of a chain are where the Java one has them";

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

// Unchecked n and p could differ from the chain's: lookups would then read bits that no insert sets.
redis_chain_params params_to_make(const making_options& wanted, const chain_there& there) {
  if (there.stored) {
    return {wanted.capacity.value_or(there.stored->capacity), wanted.rate.value_or(there.stored->target_fpr)};
  }
  if (!wanted.capacity) refuse("a chain has bitmaps of one size", "-n", "say how many keys a bitmap is for: -n 10k");
  if (there.is_there && !wanted.rate) {
    refuse("the chain that is there does not say what it was made for", "-p", "give -n and -p, as it was made with");
  }
  return {*wanted.capacity, wanted.rate.value_or(default_rate)};
}

void refuse_what_no_chain_has(const build_options& o) {
  const making_options& w = o.wanted;
  const std::string size = "the size of a chain's bitmaps follows from -n and -p";
  const std::string growth = "a chain grows by itself, by one bitmap after the other";
  refuse_if(w.bits.has_value(), size, "-m");
  refuse_if(w.probes.has_value(), size, "-k");
  refuse_if(!w.layout.empty(), own_bits, "--layout");
  refuse_if(w.prefer.has_value(), own_bits, "--prefer");
  refuse_if(!w.hash.empty(), own_bits, "--hash");
  refuse_if(w.seed != 0, own_bits, "--seed");
  refuse_if(w.keys != key_kind::bytes, "the keys of a chain are text", "--u64");
  refuse_if(!w.secret.empty(), no_secret, "--secret");
  refuse_if(w.counting, "no key can be taken out of a chain", "--counting");
  refuse_if(w.growing, growth, "--grow");
  refuse_if(o.sharing.most_keys.has_value(), growth, "--max-keys");
  refuse_if(o.sharing.shards.has_value(), "each bitmap of a chain lies on one server", "--shards");
  refuse_if(w.window.length.has_value(), "a chain forgets nothing", w.window.option());
  refuse_time(w.window.now);
  refuse_what_files_have(o);
  refuse_if(o.server.wait_replicas != 0, no_waiting, "--wait-replicas");
}

// ---- reporting ------------------------------------------------------------------------------------------------------

// Prints the result and throws what ended the work.
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
    say(fmt::format("{}: {}{}, {} new; {} for {} a bitmap at {}{}", name, done.finished ? "" : "interrupted: ",
                    counted(done.keys, "line"), count_text(done.changed), made ? "made" : "it was there already, made",
                    counted(p.capacity, "key"), rate_text(p.target_fpr), state_text(chain, now, "")));
  }
  if (done.failure) throw *done.failure;
}

}  // namespace

// ---- which filters are chains ---------------------------------------------------------------------------------------

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
      asked.command({key == bitmap ? "STRLEN" : "PTTL", key});  // every user of a chain may send these
    }
    servers.run(asked,
                [&](std::size_t i, redis::reply r) { found[i] = !r.is_error() && r.integer() > (i == 0 ? 0 : -2); });
  } catch (const error&) {
    return false;  // what is asked for here explains an error, and is none itself
  }
  return found[0] && (found[1] || found[2]);
}

// ---- the deeds ------------------------------------------------------------------------------------------------------

exit_status build_chain(const build_options& options) {
  const redis_address address = redis_address::parse(options.filter);
  refuse_what_no_chain_has(options);
  { const reader readable(options.inputs); }  // a file that is missing is said to be missing, before all else
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
