#include "shared_filter.hpp"

#include "counting.hpp"
#include "numbers.hpp"
#include "signals.hpp"
#include "window.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/line.hpp>
#include <bloomery/layouts/line_free.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

// Keys of a call: many enough for every shard to get some, few enough for a slow line to carry them within the time.
// A multiple of 64, so that answers begin with a word.
constexpr std::size_t most_keys_of_a_call = std::size_t{32} << 10;

[[noreturn]] void refuse(const char* what, const std::string& option, const std::string& found,
                         const std::string& way_out) {
  throw error(errc::invalid_argument, {what, option, "", found, way_out});
}

const char* given_of(const server_options& o) {
  return o.wait_replicas != 0         ? "--wait-replicas"
         : o.from_replicas            ? "--replicas"
         : !o.authorities.empty()     ? "--tls-ca"
         : !o.certificate.empty()     ? "--tls-cert"
         : !o.certificate_key.empty() ? "--tls-key"
         : o.milliseconds.has_value() ? "--timeout"
                                      : nullptr;
}

const char* given_of(const sharing_options& o) {
  return o.most_keys ? "--max-keys" : o.shards ? "--shards" : o.milliseconds ? "--ttl" : nullptr;
}

const char* given_of(const chain_options& o) {
  return !o.scheme.empty() ? "--scheme" : o.capacity ? "-n" : o.rate ? "-p" : nullptr;
}

// A shared filter has all bits of a key within a line of one string. A scheme that sets them anywhere has no place here;
// a chain of bitmaps is no shared filter of this kind, and was asked for before.
void check_scheme(const std::string& scheme) {
  if (scheme.empty()) return;
  refuse("a shared filter has all bits of a key in one cache line, and a scheme has them anywhere", "--scheme", scheme,
         "leave out --scheme, say --scheme guava-chain, or build a file");
}

template <class Part>
void in_calls(std::size_t keys, Part part) {
  for (std::size_t first = 0; first < keys; first += most_keys_of_a_call) {
    part(first, std::min(most_keys_of_a_call, keys - first));
  }
}

// part(keys, first, count) with the keys as the filter takes them.
template <class Part>
void in_calls(const redis_filter& filter, const key_batch& batch, Part part) {
  const bool integers = filter.parameters().filter.keys == key_kind::u64le;
  in_calls(batch.keys.size(), [&](std::size_t first, std::size_t count) {
    if (integers)
      part(std::span<const std::uint64_t>(batch.integers).subspan(first, count), first, count);
    else
      part(batch.keys.subspan(first, count), first, count);
  });
}

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

}  // namespace

// ---- which filters are shared ---------------------------------------------------------------------------------------

bool is_shared(const std::string& filter, const server_options& server, const sharing_options& sharing,
               const chain_options& chain) {
  if (redis_address::is_one(filter)) return true;
  for (const char* option : {given_of(server), given_of(sharing), given_of(chain)}) {
    if (option == nullptr) continue;
    refuse("this is about a filter on Redis, and FILTER is a file", option, "'" + filter + "'",
           std::string("leave out ") + option + ", or give an address: redis://HOST/NAME");
  }
  return false;
}

void refuse_shared(const std::string& filter, const std::string& verb) {
  if (!redis_address::is_one(filter)) return;
  const std::string text = redis_address::parse(filter).text();
  throw error(errc::invalid_argument, {verb + " takes files, not filters on Redis", text, "a filter's file",
                                       "an address", "'bloomery pull " + text + " -o FILE' makes it one"});
}

std::string without_passwords(const std::string& text) {
  std::string shown;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = std::string_view(text).substr(at);
    std::size_t scheme = 0;
    for (const std::string_view known : {"redis://", "rediss://", "redis+cluster://", "rediss+cluster://"}) {
      if (starts_with_any_case(rest, known)) scheme = known.size();
    }
    if (scheme == 0) {
      shown += text[at++];
      continue;
    }
    shown += rest.substr(0, scheme);
    at += scheme;
    // What is before the last '@' of the host's part is a secret. A password with a slash that is not encoded is one, too:
    // then that part ends early, with something that is no port.
    const std::size_t end = std::min(text.find_first_of(" \t\n'\"", at), text.size());
    const std::size_t slash = std::min(text.find('/', at), end);
    std::size_t sign = text.substr(at, slash - at).rfind('@');
    const std::size_t colon = text.substr(at, slash - at).rfind(':');
    if (sign == std::string::npos && colon != std::string::npos &&
        !std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at + colon + 1),
                     text.begin() + static_cast<std::ptrdiff_t>(slash), [](char c) { return c >= '0' && c <= '9'; })) {
      sign = text.substr(at, end - at).rfind('@');
    }
    if (sign != std::string::npos) at += sign + 1;
  }
  return shown;
}

// ---- opening --------------------------------------------------------------------------------------------------------

redis_connection_options connection_of(const server_options& server) {
  redis_connection_options o;
  if (server.milliseconds) {
    o.time = std::chrono::milliseconds(*server.milliseconds);
    o.connect_time = std::min(o.connect_time, o.time);
  }
  o.certificate_authorities = server.authorities;
  o.certificate = server.certificate;
  o.certificate_key = server.certificate_key;
  o.read_from_replicas = server.from_replicas;
  o.stop_descriptor = stop_descriptor();
  return o;
}

redis_options options_for(const redis_address& address, const server_options& server, const std::string& keyfile,
                          bool quiet) {
  redis_options o;
  o.connection = connection_of(server);
  o.secret = secret_of(keyfile);
  o.wait_replicas = static_cast<unsigned>(server.wait_replicas);
  if (!quiet) {
    o.notes = [where = address.text()](const std::string& note) { say(where + ": note: " + note); };
  }
  return o;
}

redis_filter open_shared(const redis_address& address, const server_options& server, const std::string& keyfile,
                         bool quiet) {
  try {
    return redis_filter::open(address, options_for(address, server, keyfile, quiet));
  } catch (const error& e) {
    if (e.code() != errc::not_found || !finds_chain(address, server)) throw;
  }
  throw error(errc::incompatible, {"there is a chain of bitmaps of this name", address.text(), "a shared filter", "",
                                   "build, add, check and info know chains: say --scheme guava-chain; other commands "
                                   "take another name"});
}

std::optional<redis_filter> find_shared(const redis_address& address, const server_options& server,
                                        const std::string& keyfile, bool quiet) {
  try {
    return open_shared(address, server, keyfile, quiet);
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;
    return std::nullopt;
  }
}

// ---- making ---------------------------------------------------------------------------------------------------------

void check_shared_promise(const making_options& wanted, const sharing_options& sharing) {
  check_scheme(wanted.scheme);
  if (wanted.bits) {
    refuse("the size of a shared filter follows from keys and error rate", "-m", "", "give -n and -p");
  }
  if (wanted.probes) refuse("the bits of a key follow from keys and error rate", "-k", "", "give -n and -p");
  if (!wanted.layout.empty() && !wanted.counting && wanted.layout != line::name && wanted.layout != line_free::name &&
      wanted.layout != counting::name) {
    throw error(errc::invalid_argument,
                {"a shared filter has all bits of a key in one cache line", "--layout", "line or line_free",
                 "'" + wanted.layout + "'", "choose one of these, or leave out --layout"});
  }
  if (wanted.prefer) {
    refuse("the quickest layout of a shared filter is line, the smallest line_free", "--prefer",
           name_of(*wanted.prefer), "leave it out, or say --layout line_free");
  }
  if (wanted.window.keys) {
    refuse("machines share a clock, and not a count of insertions", "--window-keys", "", "say --window 24h");
  }
  if (wanted.window.now) refuse("a shared filter goes by its server's clock", "--now", "", "leave it out");
  const bool grows = wanted.growing || sharing.most_keys;
  const std::string growing = wanted.growing ? "--grow" : "--max-keys";
  if (wanted.growing && sharing.most_keys) {
    refuse("growing without a limit has none", "--max-keys", "--grow", "leave out one of the two");
  }
  if (grows && wanted.counting) refuse("counters do not grow", growing, "--counting", "leave out one of the two");
  if (grows && wants_window(wanted)) {
    refuse("a filter that forgets does not grow", growing, "--window", "leave out one of the two");
  }
  if (wanted.counting && wants_window(wanted)) {
    refuse("a filter that forgets by itself takes no key out", "--counting", "--window", "leave out one of the two");
  }
  if (sharing.most_keys && *sharing.most_keys < wanted.capacity.value_or(1)) {
    throw error(errc::invalid_argument,
                {"the most keys are fewer than the keys to expect", "--max-keys",
                 fmt::format("{} or more", wanted.capacity.value_or(1)), std::to_string(*sharing.most_keys), ""});
  }
  if (sharing.shards && *sharing.shards == 0) {
    throw error(errc::invalid_argument, {"a filter has at least one shard", "--shards", "1 or more", "0", ""});
  }
  making_options rest = wanted;  // what files' filters are asked, too
  rest.window = {};
  rest.growing = false;
  check_promise(rest);
}

redis_params shared_params(const making_options& wanted, const sharing_options& sharing, std::uint64_t capacity,
                           double default_rate) {
  redis_params p;
  p.filter.layout = wanted.counting ? std::string(counting::name) : wanted.layout;
  p.filter.hash = wanted.hash;
  p.filter.keys = wanted.keys;
  p.filter.seed = wanted.seed;
  p.filter.capacity = capacity;
  p.filter.target_rate = wanted.rate.value_or(default_rate);
  p.filter.window_milliseconds = wanted.window.milliseconds.value_or(0);
  p.filter.secret = secret_of(wanted.secret);
  p.growth = sharing.most_keys ? redis_growth::to_maximum
             : wanted.growing  ? redis_growth::unlimited
                               : redis_growth::none;
  p.maximum = sharing.most_keys.value_or(0);
  p.shards = sharing.shards.value_or(0);
  if (sharing.milliseconds) p.expires_in = std::chrono::milliseconds(*sharing.milliseconds);
  return p;
}

// ---- keys -----------------------------------------------------------------------------------------------------------

void insert(redis_filter& filter, key_batch& batch) {
  batch.is_new.resize(batch.keys.size());
  in_calls(filter, batch, [&](auto keys, std::size_t first, std::size_t count) {
    filter.insert(keys, std::span(batch.is_new).subspan(first, count));
  });
}

void look_up(redis_filter& filter, key_batch& batch) {
  batch.maybe.resize((batch.keys.size() + 63) / 64);
  in_calls(filter, batch, [&](auto keys, std::size_t first, std::size_t count) {
    filter.may_contain(keys, std::span(batch.maybe).subspan(first / 64, (count + 63) / 64));
  });
}

std::uint64_t remove(redis_filter& filter, const key_batch& batch) {
  std::vector<removal> results(batch.keys.size());
  in_calls(filter, batch, [&](auto keys, std::size_t first, std::size_t count) {
    filter.remove(keys, std::span(results).subspan(first, count));
  });
  return static_cast<std::uint64_t>(std::count(results.begin(), results.end(), removal::removed));
}

lookup_pass lookups_in(redis_filter& filter) {
  return [&filter](const input_options& inputs, const pass_options& options,
                   const std::function<bool(key_batch&)>& finish) {
    return for_each_batch(filter.parameters().filter.keys, inputs, options, [&](key_batch& batch) {
      look_up(filter, batch);
      return finish(batch);
    });
  };
}

// ---- saying ---------------------------------------------------------------------------------------------------------

std::optional<redis_info> info_at_once(redis_filter& filter) {
  if (filter.parameters().filter.geometry.bits > most_bits_counted_at_once) return std::nullopt;
  return filter.info();
}

std::string shared_size_text(const redis_params& p) {
  return size_text(p.filter) + " in " + counted(p.shards, "shard");
}

std::string growth_text(const redis_params& p) {
  switch (p.growth) {
    case redis_growth::to_maximum: return "up to " + counted(p.maximum, "key");
    case redis_growth::unlimited: return "without limit";
    case redis_growth::none: break;
  }
  return "not at all";
}

void warn_if_overfull(const redis_address& address, const redis_info& now) {
  const params& p = now.parameters.filter;
  if (now.parameters.growth != redis_growth::none || now.rate_now <= 1.01 * p.target_rate) return;
  if (p.window_milliseconds != 0) {
    say(fmt::format(
        "{}: warning: more keys at a time than a seventh of the {} it was made for in a window; error now {} "
        "instead of {}; make a larger one",
        address.text(), count_text(p.capacity), rate_text(now.rate_now), rate_text(p.target_rate)));
    return;
  }
  say(fmt::format("{}: warning: more keys than the {} it was made for; error now {} instead of {}; make a larger one",
                  address.text(), count_text(p.capacity), rate_text(now.rate_now), rate_text(p.target_rate)));
}

}  // namespace bloomery::cli
