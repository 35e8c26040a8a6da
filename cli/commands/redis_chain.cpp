// bloomery build, add, check and info of a chain of bitmaps (bloomery/redis_chain.hpp), which a Java service may share.
//
//   $ bloomery build --scheme guava-chain -n 10k -p 0.05% -o redis://cache/users users.txt
//   $ bloomery check --scheme guava-chain redis://cache/users requests.txt
//
// A chain that the Java one made does not say what it was made for: n and p are given until build has stored them. A
// chain grows by bitmaps of n keys each, and its error grows with it.
#include "app/numbers.hpp"
#include "cli/commands/screen.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis_chain.hpp>

#include "redis/chain/chain_keys.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>

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

// With n and p that nobody checks against anything, keys would be looked for at bits that nobody has set.
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
  refuse_if(w.window.milliseconds.has_value(), "a chain forgets nothing", "--window");
  refuse_if(w.window.keys.has_value(), "a chain forgets nothing", "--window-keys");
  refuse_time(w.window.now);
  refuse_what_files_have(o);
  refuse_if(o.server.wait_replicas != 0, no_waiting, "--wait-replicas");
}

// ---- keys -----------------------------------------------------------------------------------------------------------

keys_done add_all(redis_chain& chain, const input_options& inputs, const common_options& common, const char* verb) {
  return change_keys(key_kind::bytes, inputs, common, verb,
                     [&](key_batch& batch, std::size_t first, std::size_t count) {
                       batch.is_new.resize(batch.keys.size());
                       const std::span<std::uint8_t> is_new = std::span(batch.is_new).subspan(first, count);
                       chain.insert(batch.keys.subspan(first, count), is_new);
                       return static_cast<std::uint64_t>(std::count(is_new.begin(), is_new.end(), std::uint8_t{1}));
                     });
}

// ---- saying ---------------------------------------------------------------------------------------------------------

std::string bitmaps_text(redis_chain& chain, std::uint64_t growths) {
  return fmt::format("{} of {}", counted(growths + 1, "bitmap"), bytes_text(chain.geometry().bits / 8));
}

std::string made_for_text(const redis_chain_params& p) {
  return fmt::format("{} a bitmap at {}", counted(p.capacity, "key"), rate_text(p.target_fpr));
}

// How far it has grown, and its error unless the server would be long in counting the bits.
struct growth_now {
  std::optional<std::uint64_t> growths = {};
  std::optional<double> rate = {};
};

growth_now growth_after(keys_done& done, const redis_address& address, redis_chain& chain) {
  growth_now now;
  if (done.failure) return now;
  try {
    now.growths = chain.growths();
    if (*now.growths < most_bits_counted_at_once / chain.geometry().bits) now.rate = chain.info().rate_now;
  } catch (const error& e) {
    count_failed(done, address.text(), e);
  }
  return now;
}

// Also throws what ended the work.
void report(const redis_address& address, redis_chain& chain, keys_done done, const common_options& common,
            std::optional<bool> made) {
  const redis_chain_params& p = chain.parameters();
  const growth_now now = growth_after(done, address, chain);
  if (common.json) {
    nlohmann::ordered_json result = {{"filter", address.text()}, {"scheme", chain_scheme}};
    if (made) result["made"] = *made;
    result.update({{"keys", done.keys},
                   {"new", done.changed},
                   {"capacity", p.capacity},
                   {"target_rate", p.target_fpr},
                   {"bits", chain.geometry().bits},
                   {"probes", chain.geometry().probes},
                   {"growths", now.growths ? nlohmann::ordered_json(*now.growths) : nlohmann::ordered_json(nullptr)},
                   {"rate", now.rate ? number_or_null(*now.rate) : nlohmann::ordered_json(nullptr)}});
    add_end(result, done);
    print_result(result);
  } else if (!common.quiet && !done.failure) {
    const std::string start = address.text() + ": " + (done.finished ? "" : "interrupted: ");
    const std::string size = (now.growths ? "; " + bitmaps_text(chain, *now.growths) : "") +
                             (now.rate ? ", error now " + rate_text(*now.rate) : "");
    if (made) {
      say(fmt::format("{}{}, {} new; {} for {}{}", start, counted(done.keys, "line"), count_text(done.changed),
                      *made ? "made" : "it was there already, made", made_for_text(p), size));
    } else {
      say(fmt::format("{}{} read, {} new{}", start, counted(done.keys, "key"), count_text(done.changed), size));
    }
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
      asked.command({key == bitmap ? "STRLEN" : "PTTL", key});  // who may use a chain may ask these
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
  redis_chain chain = redis_chain::create(address, params_to_make(options.wanted, there), connection);
  if (options.sharing.milliseconds && !there.is_there) {
    chain.expire(std::chrono::milliseconds(*options.sharing.milliseconds));
  }
  report(address, chain, add_all(chain, options.inputs, options.common, "build"), options.common, !there.is_there);
  return exit_status::found;
}

}  // namespace bloomery::cli
