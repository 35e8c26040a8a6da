// Helpers for filters on Redis or Valkey (bloomery/redis.hpp), which are named by their address. The commands are in
// redis_*.cpp. A filter is used by one thread at a time, regardless of -j.
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

// ---- addresses ------------------------------------------------------------------------------------------------------

/// Refuses options about servers, sharing or chains if FILTER is a file, and certificates if it is an address without
/// TLS. @throws error invalid_argument
void check_server_options(const std::string& filter, const server_options& server, const sharing_options& sharing = {},
                          const chain_options& chain = {});

/// Whether FILTER is an address. @throws error, as check_server_options
bool is_shared(const std::string& filter, const server_options& server, const sharing_options& sharing = {},
               const chain_options& chain = {});

/// Refuses --now for a filter on servers. @throws error invalid_argument
void refuse_time(const std::optional<std::uint64_t>& now);

/// The first given option for servers, sharing or chains; nullptr: none.
const char* given_of(const server_options& server, const sharing_options& sharing = {},
                     const chain_options& chain = {});

/// Refuses certificates if none of these filters has an address with TLS. @throws error invalid_argument; as
/// redis_address::parse
void refuse_needless(const server_options& server, std::span<const std::string> filters);

/// Refuses an address for a command that works only on files.
/// @param verb       "fold"
/// @param takes_log  the command needs a key log, so that pulling the filter does not help
/// @throws error invalid_argument
void refuse_shared(const std::string& filter, const std::string& verb, bool takes_log = false);

/// The name of a chain of bitmaps for --scheme.
inline constexpr const char* chain_scheme = "guava-chain";

/// Whether the keys of a chain exist; false if the server cannot be queried.
bool finds_chain(const redis_address& address, const server_options& server);

/// The text without passwords: removes everything between "://" and the last '@' of the word, because a password may
/// contain unencoded characters such as '/', ':' or quotes, and the scheme may be misspelt.
std::string without_passwords(const std::string& text);

/// Registers arguments that contain blanks, such as addresses with blanks in the password, for without_passwords().
void know_words(std::span<const char* const> words);

// ---- opening --------------------------------------------------------------------------------------------------------

redis_connection_options connection_of(const server_options& server);

/// @param quiet  prints no notes about repairs
/// @throws error  as secret_of
redis_options options_for(const redis_address& address, const server_options& server, const std::string& keyfile,
                          bool quiet);

/// redis_filter::open. @throws error  as that, and as redis_address::parse; incompatible: the name is that of a chain
redis_filter open_shared(const redis_address& address, const server_options& server, const std::string& keyfile,
                         bool quiet = false);

/// The same; empty if there is no filter with this name.
std::optional<redis_filter> find_shared(const redis_address& address, const server_options& server,
                                        const std::string& keyfile, bool quiet = false);

// ---- creation -------------------------------------------------------------------------------------------------------

/// Refuses options that a shared filter cannot have, before any input is read or request sent. @throws error
/// invalid_argument
void check_shared_promise(const making_options& wanted, const sharing_options& sharing);

/// The requested parameters. @param capacity  keys to expect; the initial capacity of a filter that grows
redis_params shared_params(const making_options& wanted, const sharing_options& sharing, std::uint64_t capacity,
                           double default_rate);

/// Refuses options that contradict an existing filter: growth, number of shards, and those of refuse_another_life().
/// @param growing  --grow
/// @throws error incompatible
void refuse_another_sharing(const redis_address& address, const redis_params& there, bool growing,
                            const sharing_options& asked, const server_options& server);

/// Refuses --ttl for an existing filter that does not expire or expires later. (One that expires earlier may have been
/// created with the same --ttl.)
/// @param key  any key of the filter: all have the same expiry
/// @throws error incompatible
void refuse_another_life(const redis_address& address, const std::string& key, const sharing_options& asked,
                         const server_options& server);

/// The parameters of a shared filter with the bits of this local one.
/// @param name  of the local filter, for error messages
/// @throws error incompatible: a filter of this layout cannot be shared
redis_params shared_like(const any_filter& filter, const std::string& name, const sharing_options& sharing);

struct shared_copy {
  redis_filter filter;
  bool made;  ///< false: merged into an existing filter
};

/// Merges a local filter into the shared filter of this name, or into a new one created `like` this. Errors after the
/// first write report which keys the server may have.
shared_copy put_on_servers(const redis_address& address, const any_filter& filter, const redis_params& like,
                           const sharing_options& sharing, const server_options& server, const std::string& secret);

/// The default initial capacity of a filter that grows: this number, or the number of existing keys.
inline constexpr std::uint64_t growing_from = 100'000;

// ---- messages -------------------------------------------------------------------------------------------------------

/// A number of bits that a server counts in some tens of milliseconds.
inline constexpr std::uint64_t most_bits_counted_at_once = std::uint64_t{64} << 23;

/// The facts that a server returns quickly; empty for a filter that is so large that counting its bits would block the
/// server.
std::optional<redis_info> info_at_once(redis_filter& filter);

/// Warns if a server of this address evicts keys when its memory is full, which damages filters. Prints nothing if the
/// server does not return its policy within a second.
void warn_of_eviction(const redis_address& address, const server_options& server);

/// Writes a JSON object to standard output.
void print_result(const nlohmann::ordered_json& result);

/// size_text() of its first layers, and the shards: "... in 4 shards".
std::string shared_size_text(const redis_params& p);

/// "not at all", "up to 1,000,000 keys", "without limit".
std::string growth_text(const redis_params& p);

}  // namespace bloomery::cli
