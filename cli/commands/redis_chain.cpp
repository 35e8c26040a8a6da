// bloomery build, add, check and info of a chain of bitmaps (bloomery/redis_chain.hpp), which a Java service may share.
//
//   $ bloomery build --scheme guava-chain -n 10k -p 0.05% -o redis://cache/users users.txt
//   $ bloomery check --scheme guava-chain redis://cache/users requests.txt
//
// A chain that the Java one made does not say what it was made for: n and p are given until build has stored them. A chain
// grows by bitmaps of n keys each, and its error grows with it.
#include "cli/commands/info_page.hpp"
#include "cli/commands/screen.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

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

redis_chain open_chain(const redis_address& address, const chain_options& wanted, const server_options& server) {
  if (wanted.capacity.has_value() != wanted.rate.has_value()) {
    refuse("a chain's n and p belong together", wanted.capacity ? "-n" : "-p", "give both, or none");
  }
  std::optional<redis_chain_params> known;
  if (wanted.capacity) known = redis_chain_params{*wanted.capacity, *wanted.rate};
  try {
    return redis_chain::open(address, known, connection_of(server));
  } catch (const redis_chain_params_unknown& e) {
    error_text text = e.text();
    text.hint = "give -n and -p; build with them stores them";
    throw error(e.code(), text);
  }
}

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
    return {wanted.capacity.value_or(there.stored->capacity), wanted.rate.value_or(there.stored->target_rate)};
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
  return fmt::format("{} a bitmap at {}", counted(p.capacity, "key"), rate_text(p.target_rate));
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
                   {"target_rate", p.target_rate},
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

bool is_chain(const chain_options& chain) {
  if (chain.scheme == chain_scheme) return true;
  if (!chain.scheme.empty()) {
    throw error(errc::invalid_argument,
                {"what a filter is made by it says itself", "--scheme", std::string(chain_scheme) + ", of a chain",
                 "'" + chain.scheme + "'", "leave it out"});
  }
  if (const char* option = chain.capacity ? "-n" : chain.rate ? "-p" : nullptr) {
    refuse("what a filter was made for it says itself", option, "leave it out, or say --scheme guava-chain");
  }
  return false;
}

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

exit_status info_of_chain(const info_options& options) {
  const redis_address address = redis_address::parse(options.filter);
  refuse_if(!options.secret.empty(), no_secret, "--secret");
  refuse_if(options.check_pages, "a chain has no pages with checksums", "--check");
  refuse_if(options.queries.value_or(0) > 0, "the error of a chain follows from its bits", "--queries");
  redis_chain chain = open_chain(address, options.chain, options.server);
  const redis_chain_info now = chain.info();
  const std::uint64_t bits = now.geometry.bits;

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    out.write(
        json_line({{"filter", address.text()},
                   {"scheme", chain_scheme},
                   {"capacity", now.parameters.capacity},
                   {"target_rate", now.parameters.target_rate},
                   {"bits", bits},
                   {"probes", now.geometry.probes},
                   {"growths", now.growths},
                   {"bytes", (now.growths + 1) * (bits / 8)},
                   {"ones", now.ones},
                   {"estimated_keys", number_or_null(now.keys)},
                   {"rate_now", now.rate_now},
                   {"expires_at", now.expires_at ? nlohmann::ordered_json(static_cast<double>(*now.expires_at) / 1000)
                                                 : nlohmann::ordered_json(nullptr)}}));
  } else {
    info_page page(out);
    page.line("filter", address.text());
    page.line("kind", "shared, scheme " + std::string(chain_scheme));
    page.line("size", fmt::format("{} ({} each), {} a key", bitmaps_text(chain, now.growths), counted(bits, "bit"),
                                  counted(now.geometry.probes, "probe")));
    page.line("made for", made_for_text(now.parameters));
    page.line("growths", count_text(now.growths));
    page.line("estimated",
              std::isfinite(now.keys)
                  ? counted(static_cast<std::uint64_t>(std::llround(now.keys)), "distinct key") + ", from the bits"
                  : "no longer possible: all bits of a bitmap are set");
    const double ones = static_cast<double>(now.ones.back());
    page.line("newest", fmt::format("{} of {} set, {:.1f} %; above 50 % it grows", count_text(now.ones.back()),
                                    counted(bits, "bit"), 100 * ones / static_cast<double>(bits)));
    page.line("error now", rate_text(now.rate_now) + ", from the bits");
    if (now.expires_at) {
      page.line("expires",
                fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(*now.expires_at / 1000))));
    }
  }
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
