// What commands do alike with a filter on Redis or Valkey (bloomery/redis.hpp), which is named by its address. The
// deeds are in redis_*.cpp, one call from each command's own file; a filter is used by one thread at a time, whatever
// -j says.
#pragma once

#include "cli/commands/common.hpp"
#include "cli/commands/key_changes.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace bloomery::cli {

// ---- which filters are shared ---------------------------------------------------------------------------------------

/// Refuses options about servers, sharing or chains if FILTER is a file, and certificates if it is an address without
/// TLS. @throws error invalid_argument
void check_server_options(const std::string& filter, const server_options& server, const sharing_options& sharing = {},
                          const chain_options& chain = {});

/// Whether FILTER is an address. @throws error, as check_server_options
bool is_shared(const std::string& filter, const server_options& server, const sharing_options& sharing = {},
               const chain_options& chain = {});

/// Refuses a time, of which a filter on servers needs none from the command line. @throws error invalid_argument
void refuse_time(const std::optional<std::uint64_t>& now);

/// The first option given of those about servers, sharing or chains; nullptr: none.
const char* given_of(const server_options& server, const sharing_options& sharing = {},
                     const chain_options& chain = {});

/// Refuses certificates if none of these filters has an address with TLS. @throws error invalid_argument; as
/// redis_address::parse
void refuse_needless(const server_options& server, std::span<const std::string> filters);

/// Refuses an address where only a file will do.
/// @param verb       "fold"
/// @param takes_log  and only one that has a log, so that pulling it is no way out @throws error invalid_argument
void refuse_shared(const std::string& filter, const std::string& verb, bool takes_log = false);

/// The name of a chain of bitmaps for --scheme.
inline constexpr const char* chain_scheme = "guava-chain";

/// Whether the keys of a chain are there. What cannot be asked is not there.
bool finds_chain(const redis_address& address, const server_options& server);

/// A text without the passwords in it: nothing between "://" and the last '@' of that word. A password may have been
/// written unencoded, with '/', ':' or quotation marks, and a scheme be misspelt.
std::string without_passwords(const std::string& text);

/// Makes known which words of the command line are one word with blanks in it, such as a password with blanks.
void know_words(std::span<const char* const> words);

// ---- opening --------------------------------------------------------------------------------------------------------

redis_connection_options connection_of(const server_options& server);

/// @param quiet  no note is printed about repairs
/// @throws error  as secret_of
redis_options options_for(const redis_address& address, const server_options& server, const std::string& keyfile,
                          bool quiet);

/// redis_filter::open. @throws error  as that, and as redis_address::parse; incompatible: there is a chain of this name
redis_filter open_shared(const redis_address& address, const server_options& server, const std::string& keyfile,
                         bool quiet = false);

/// The same, or nothing if there is none.
std::optional<redis_filter> find_shared(const redis_address& address, const server_options& server,
                                        const std::string& keyfile, bool quiet = false);

// ---- making ---------------------------------------------------------------------------------------------------------

/// Refuses what no shared filter can be, before anything is read or asked. @throws error invalid_argument
void check_shared_promise(const making_options& wanted, const sharing_options& sharing);

/// The parameters asked for. @param capacity  keys to expect; at first, if it grows
redis_params shared_params(const making_options& wanted, const sharing_options& sharing, std::uint64_t capacity,
                           double default_rate);

/// Refuses what is asked of a filter that is there already and is made otherwise: growth, shards, and what
/// refuse_another_life() does. @param growing  --grow @throws error incompatible
void refuse_another_sharing(const redis_address& address, const redis_params& there, bool growing,
                            const sharing_options& asked, const server_options& server);

/// Refuses --ttl for keys that are there already and do not expire, or later than in so long: their time stays. (If
/// they expire earlier, they may have been made with it a while ago.)
/// @param key  one of the filter's, all of which expire at one time @throws error incompatible
void refuse_another_life(const redis_address& address, const std::string& key, const sharing_options& asked,
                         const server_options& server);

/// What a shared filter with the bits of this local one is created with.
/// @param name  of the local filter, for errors
/// @throws error incompatible: servers do not take its layout
redis_params shared_like(const any_filter& filter, const std::string& name, const sharing_options& sharing);

struct shared_copy {
  redis_filter filter;
  bool made;  ///< false: merged into the filter that was there
};

/// Merges a local filter into the shared filter of this name, or into a new one created `like` this. Errors after the
/// first write say which keys may be there.
shared_copy put_on_servers(const redis_address& address, const any_filter& filter, const redis_params& like,
                           const sharing_options& sharing, const server_options& server, const std::string& secret);

/// The first capacity of a growing filter if none is given: this number, or the keys that exist already.
inline constexpr std::uint64_t growing_from = 100'000;

// ---- saying ---------------------------------------------------------------------------------------------------------

/// Bits that a server counts in some tens of milliseconds.
inline constexpr std::uint64_t most_bits_counted_at_once = std::uint64_t{64} << 23;

/// What is known at once: nothing of a filter so large that its server would be long in counting its bits.
std::optional<redis_info> info_at_once(redis_filter& filter);

/// Warns if a server of this address evicts any key when its memory is full, which damages filters. Says nothing if the
/// server does not tell its policy within a second.
void warn_of_eviction(const redis_address& address, const server_options& server);

/// Writes it to standard output.
void print_result(const nlohmann::ordered_json& result);

/// size_text() of its first layers, and the shards: "... in 4 shards".
std::string shared_size_text(const redis_params& p);

/// "no growth", "up to 1,000,000 keys", "without limit".
std::string growth_text(const redis_params& p);

}  // namespace bloomery::cli
