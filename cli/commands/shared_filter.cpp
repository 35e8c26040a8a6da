#include "cli/commands/shared_filter.hpp"
#include "cli/commands/build.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/removal.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/secret.hpp>

#include "redis/filter/meta.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

[[noreturn]] void refuse(const char* what, const std::string& option, const std::string& found,
                         const std::string& hint) {
  throw error(errc::invalid_argument, {what, option, "", found, hint});
}

const char* first_of(const server_options& o) {
  return o.wait_replicas != 0         ? "--wait-replicas"
         : o.from_replicas            ? "--replicas"
         : !o.on_damage.empty()       ? "--on-damage"
         : !o.authorities.empty()     ? "--tls-ca"
         : !o.certificate.empty()     ? "--tls-cert"
         : !o.certificate_key.empty() ? "--tls-key"
         : o.milliseconds.has_value() ? "--timeout"
                                      : nullptr;
}

const char* first_of(const sharing_options& o) {
  return o.most_keys ? "--max-keys" : o.shards ? "--shards" : o.milliseconds ? "--ttl" : nullptr;
}

const char* first_of(const chain_options& o) {
  return !o.scheme.empty() ? "--scheme" : o.capacity ? "--capacity" : o.rate ? "--rate" : nullptr;
}

// A shared filter has all bits of a key in one block of one string, which schemes do not. Guava chains, which are
// another kind of filter, are handled before.
void check_scheme(const std::string& scheme) {
  if (scheme.empty()) return;
  refuse("a shared filter cannot have this scheme", "--scheme", scheme,
         "leave out --scheme, use --scheme guava-chain, or build a file");
}

// The text after "://" in arguments that contain blanks.
std::vector<std::string>& blank_addresses() {
  static std::vector<std::string> all;
  return all;
}

}  // namespace

// ---- addresses ------------------------------------------------------------------------------------------------------

const char* given_of(const server_options& server, const sharing_options& sharing, const chain_options& chain) {
  for (const char* option : {first_of(server), first_of(sharing), first_of(chain)}) {
    if (option != nullptr) return option;
  }
  return nullptr;
}

void check_server_options(const std::string& filter, const server_options& server, const sharing_options& sharing,
                          const chain_options& chain) {
  if (redis_address::is_one(filter)) return refuse_needless(server, {&filter, 1});
  const char* const option = given_of(server, sharing, chain);
  if (option == nullptr) return;
  const std::string leave_out = std::string("leave out ") + option;
  if (filter.empty()) {
    refuse("this option needs a filter on Redis", option, "", leave_out + ", or add --state redis://HOST/NAME");
  }
  refuse("this option needs a filter on Redis, and FILTER is a file", option, "'" + filter + "'",
         leave_out + ", or give an address: redis://HOST/NAME");
}

bool is_shared(const std::string& filter, const server_options& server, const sharing_options& sharing,
               const chain_options& chain) {
  check_server_options(filter, server, sharing, chain);
  return redis_address::is_one(filter);
}

void refuse_time(const std::optional<std::uint64_t>& now) {
  if (now) refuse("filters on servers use the clock of the server", "--now", "", "leave it out");
}

void refuse_needless(const server_options& server, std::span<const std::string> filters) {
  server_options certificates;
  certificates.authorities = server.authorities;
  certificates.certificate = server.certificate;
  certificates.certificate_key = server.certificate_key;
  const char* const option = first_of(certificates);
  const auto has_tls = [](const std::string& text) {
    return redis_address::is_one(text) && redis_address::parse_server(text).tls;
  };
  if (option == nullptr || std::any_of(filters.begin(), filters.end(), has_tls)) return;
  refuse("certificates need an address with TLS", option, "an address without TLS",
         "leave it out, or use rediss:// or rediss+cluster://");
}

void refuse_shared(const std::string& filter, const std::string& verb, bool takes_log) {
  if (!redis_address::is_one(filter)) return;
  const std::string text = redis_address::parse(filter).text();
  const std::string hint =
      takes_log
          ? "it needs a key log, which servers do not keep; use a filter built with 'bloomery build --grow -o FILE'"
          : "'bloomery pull " + text +
                " -o FILE' copies the filter to a file, 'bloomery push FILE ADDRESS' copies a file to Redis";
  throw error(errc::invalid_argument,
              {verb + " works on files, not on Redis", text, "the file of a filter", "an address", hint});
}

std::string without_passwords(const std::string& text) {
  std::string shown;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find("://", from)) != std::string::npos;) {
    at += 3;
    shown.append(text, from, at - from);
    std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    for (const std::string& rest : blank_addresses()) {
      if (text.compare(at, rest.size(), rest) == 0) end = std::max(end, at + rest.size());
    }
    const std::size_t sign = std::string_view(text).substr(at, end - at).rfind('@');
    from = sign == std::string::npos ? at : at + sign + 1;
  }
  return shown.append(text, from);
}

void know_words(std::span<const char* const> words) {
  for (const std::string_view word : words) {
    const std::size_t at = word.find("://");
    if (at != word.npos && word.find_first_of(" \t\n", at) != word.npos)
      blank_addresses().emplace_back(word.substr(at + 3));
  }
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
  throw error(
      errc::incompatible,
      {"the name is that of a Guava chain", address.text(), "a shared filter", "a Guava chain",
       "choose another name, or add keys to the chain: bloomery build --scheme guava-chain -o " + address.text()});
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

// ---- creation -------------------------------------------------------------------------------------------------------

void check_shared_promise(const making_options& wanted, const sharing_options& sharing) {
  check_scheme(wanted.scheme);
  if (wanted.bits) {
    refuse("the size of a shared filter follows from its capacity and FPR", "--bits", "", "give --capacity and --rate");
  }
  if (wanted.probes)
    refuse("the probes of a shared filter follow from its capacity and FPR", "--probes", "",
           "give --capacity and --rate");
  if (wanted.quotient)
    refuse("a quotient filter cannot be shared", "--quotient", "", "use --counting, or build a file");
  const layout_facts* facts = find_layout_facts(wanted.layout);
  if (!wanted.layout.empty() && !wanted.counting && (facts == nullptr || !facts->may_be_shared)) {
    throw error(errc::invalid_argument,
                {"a filter of this layout cannot be shared", "--layout", "split_block512 or blocked",
                 "'" + wanted.layout + "'", "choose one of these, or leave out --layout"});
  }
  if (wanted.prefer) {
    refuse("not available for shared filters", "--prefer", name_of(*wanted.prefer),
           "use --layout split_block512 for speed (default) or --layout blocked for memory");
  }
  if (wanted.window.length && !wanted.window.length->by_time()) {
    refuse("a shared filter can only have a window of time", "--window-keys", "", "use --window 24h");
  }
  refuse_time(wanted.window.now);
  const bool grows = wanted.growing || sharing.most_keys;
  const std::string growing = wanted.growing ? "--grow" : "--max-keys";
  if (wanted.growing && sharing.most_keys) {
    refuse("--max-keys and --grow exclude each other", "", "", "give one of them");
  }
  if (grows && wanted.counting)
    refuse("a counting filter cannot grow", growing, "--counting", "leave out one of the two options");
  if (grows && wants_window(wanted)) {
    refuse("a sliding-window filter cannot grow", growing, "--window", "leave out one of the two options");
  }
  if (wanted.counting && wants_window(wanted)) {
    refuse("keys cannot be removed from a sliding-window filter", "--counting", "--window",
           "leave out one of the two options");
  }
  if (sharing.most_keys && *sharing.most_keys < wanted.capacity.value_or(1)) {
    throw error(errc::invalid_argument,
                {"the maximum is less than the capacity", "--max-keys",
                 fmt::format("{} or more", wanted.capacity.value_or(1)), std::to_string(*sharing.most_keys), ""});
  }
  if (sharing.shards && *sharing.shards == 0) {
    throw error(errc::invalid_argument, {"invalid number of shards", "--shards", "1 or more", "0", ""});
  }
  making_options rest = wanted;  // checks that filters in files have as well
  rest.window = {};
  rest.growing = false;
  check_target_fpr(rest);
}

void refuse_what_files_have(const build_options& options) {
  if (options.foldable) refuse("a shared filter cannot be folded", "--foldable", "", "leave it out");
  if (!options.note.empty()) refuse("a shared filter cannot store a comment", "--note", "", "leave it out");
}

redis_params shared_params(const making_options& wanted, const sharing_options& sharing, std::uint64_t capacity,
                           double default_rate) {
  redis_params p;
  p.filter.layout = layout_for(wanted);
  p.filter.hash = wanted.hash;
  p.filter.keys = wanted.keys;
  p.filter.seed = wanted.seed;
  p.filter.capacity = capacity;
  p.filter.target_fpr = wanted.rate.value_or(default_rate);
  if (wanted.window.length) p.filter.extra = *wanted.window.length;
  p.filter.secret = secret_of(wanted.secret);
  p.growth = sharing.most_keys ? redis_growth::to_maximum
             : wanted.growing  ? redis_growth::unlimited
                               : redis_growth::none;
  p.maximum = sharing.most_keys.value_or(0);
  p.shards = sharing.shards.value_or(0);
  if (sharing.milliseconds) p.expires_in = std::chrono::milliseconds(*sharing.milliseconds);
  return p;
}

namespace {

[[noreturn]] void refuse_another(const redis_address& address, const char* what, const std::string& asked,
                                 const std::string& there, const char* option) {
  throw error(errc::incompatible,
              {std::string("the existing filter has another ") + what + ", which cannot be changed", address.text(),
               asked, there, std::string("leave out ") + option + ", or choose another name"});
}

}  // namespace

void refuse_another_sharing(const redis_address& address, const redis_params& there, bool growing,
                            const sharing_options& asked, const server_options& server) {
  redis_params wanted = there;
  if (growing) wanted.growth = redis_growth::unlimited;
  if (asked.most_keys) wanted.growth = redis_growth::to_maximum;
  wanted.maximum = asked.most_keys.value_or(there.maximum);
  if (wanted.growth != there.growth || wanted.maximum != there.maximum) {
    refuse_another(address, "growth", growth_text(wanted), growth_text(there), growing ? "--grow" : "--max-keys");
  }
  if (asked.shards && *asked.shards != there.shards) {
    refuse_another(address, "number of shards", count_text(*asked.shards), count_text(there.shards), "--shards");
  }
  refuse_another_life(address, redis::meta_key(address.name), asked, server);
}

void refuse_another_life(const redis_address& address, const std::string& key, const sharing_options& asked,
                         const server_options& server) {
  if (!asked.milliseconds) return;
  redis::router servers(address, connection_of(server));
  redis::batch question;
  question.begin(redis::slot_of(key), redis::mode::read);
  question.command({"PTTL", key});
  std::int64_t left = 0;
  servers.run(question, [&](std::size_t, redis::reply r) {
    if (!r.is_error()) left = r.integer();
  });
  constexpr std::int64_t never = -1;  // reply of PTTL
  if (left != never && (left < 0 || static_cast<std::uint64_t>(left) <= *asked.milliseconds)) return;
  refuse_another(
      address, "time to live", duration_text(*asked.milliseconds) + " at most",
      left == never ? "it does not expire" : duration_text(static_cast<std::uint64_t>(left) / 1000 * 1000) + " left",
      "--ttl");
}

// ---- messages -------------------------------------------------------------------------------------------------------

std::optional<redis_info> info_at_once(redis_filter& filter) {
  if (filter.parameters().filter.geometry.bits > most_bits_counted_at_once) return std::nullopt;
  return filter.info();
}

void print_result(const nlohmann::ordered_json& result) {
  output out(STDOUT_FILENO, "standard output");
  out.write(json_line(result));
  out.flush();
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

}  // namespace bloomery::cli
