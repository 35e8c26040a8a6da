// Options shared by several commands: each group is a struct with a function that adds it to a grammar.
#pragma once

#include "app/layout_choice.hpp"
#include "cli/io/input.hpp"

#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace bloomery::cli {

using namespace app;

struct command_line;
class command;

/// As for grep: 0 found, 1 not found, 2 an error. Commands that do not search succeed with 0. 3: the work was done, but
/// the result misses a target: the target FPR, or --max-loss.
enum class exit_status : int { found = 0, nothing = 1, error = 2, target_missed = 3 };

// ---- options of most commands ---------------------------------------------------------------------------------------

// Headings in --help.
inline constexpr const char* of_size = "Size and layout";
inline constexpr const char* of_windows = "Sliding window";
inline constexpr const char* of_input = "Input format";
inline constexpr const char* on_redis = "Filters on Redis";  ///< options for filters on servers
inline constexpr const char* of_all_verbs = "General";

inline constexpr const char* file_or_address = "file or address of the filter";

inline constexpr const char* hash_help = "xxh3_64, xxh3, murmur3, mix or identity; siphash needs --secret";

inline constexpr const char* addresses =
    "An address is redis://HOST[:PORT]/NAME, unix:///SOCKET?name=NAME, redis+cluster://HOST:PORT,.../NAME or "
    "redis+sentinel://HOST,.../MASTER/NAME. For TLS, begin the address with rediss://, rediss+cluster:// or "
    "rediss+sentinel://. The user and password are read from the environment variables BLOOMERY_REDIS_USER and "
    "BLOOMERY_REDIS_PASSWORD.";

/// The default number of threads: the processors of the machine, at most 4.
unsigned default_threads();

/// Options of most commands.
struct common_options {
  unsigned threads = default_threads();
  bool quiet = false;
  bool progress = true;
  bool json = false;
};

/// @param quiet  the help of --quiet
void add_common(command& c, common_options& o, const std::string& quiet);

void add_secret(command& c, std::string& secret);

/// --color, for a command without subcommands, otherwise for all of these.
void add_color(command& c);

/// --no-lock, for all commands that write a local filter.
void add_no_lock(command& c);

/// Whether --no-lock was given: create_options::no_lock.
bool no_lock();

/// --no-verify: sets `check` to file_check::header.
void add_no_verify(command& c, file_check& check);

// ---- keys -----------------------------------------------------------------------------------------------------------

// The input_options are checked after the command line is parsed.
void add_inputs(command_line& line, command& c, input_options& o);
void add_key_shape(command_line& line, command& c, input_options& o);

/// --time-field and --time-format, for commands that fill windows by time.
void add_times(command& c, input_options& o);

/// Prints warnings about the inputs.
void say_notes(const input_notes& notes);

// ---- new filters ----------------------------------------------------------------------------------------------------

/// Options of sliding-window filters.
struct window_options {
  std::optional<window_length> length;  ///< --window or --window-keys; absent: no window
  std::optional<std::uint64_t> now;     ///< --now, milliseconds since 1970; the system's clock if absent

  /// The option of the length, "--window" if it is absent.
  const char* option() const { return length && !length->by_time() ? "--window-keys" : "--window"; }
};

void add_window(command& c, window_options& o);
void add_now(command& c, std::optional<std::uint64_t>& now);

/// Parameters of a new filter; absent ones are derived. The base has -n, -p, -m, -k and --prefer.
struct making_options : size_request {
  std::string layout;
  std::string scheme;
  std::string hash;
  key_kind keys = key_kind::bytes;
  std::uint64_t seed = 0;
  std::string secret;     ///< file of the secret key; empty: none
  bool counting = false;  ///< --counting: keys can be removed
  bool quotient = false;  ///< --quotient: keys can be removed; less memory, at most 15 copies of a key
  bool growing = false;   ///< --grow: the filter can grow
  window_options window;  ///< --window, --window-keys: old keys expire

  /// The option for a filter with removal; null: none was given.
  const char* removal_option() const { return counting ? "--counting" : quotient ? "--quotient" : nullptr; }
};

/// @param bits  also adds -m and -k
void add_size(command& c, making_options& o, bool bits);
void add_preference(command& c, making_options& o);
void add_kind(command& c, making_options& o);

// ---- filters on servers ---------------------------------------------------------------------------------------------

/// Options for the servers of a shared filter (redis.hpp). Refused for files.
struct server_options {
  std::uint64_t wait_replicas = 0;            ///< --wait-replicas
  bool from_replicas = false;                 ///< --replicas
  std::string on_damage;                      ///< --on-damage: error or maybe; empty: not given
  std::string authorities;                    ///< --tls-ca
  std::string certificate;                    ///< --tls-cert
  std::string certificate_key;                ///< --tls-key
  std::optional<std::uint64_t> milliseconds;  ///< --timeout
};

void add_server(command& c, server_options& o);
void add_waiting(command& c, server_options& o);
void add_from_replicas(command& c, server_options& o);
void add_on_damage(command& c, server_options& o);

/// Further parameters of a new shared filter. Refused for files.
struct sharing_options {
  std::optional<std::uint64_t> most_keys;     ///< --max-keys
  std::optional<std::uint64_t> shards;        ///< --shards
  std::optional<std::uint64_t> milliseconds;  ///< --ttl
};

void add_life(command& c, sharing_options& o);
void add_sharing(command& c, sharing_options& o);

/// Options for a Guava chain (redis/chain.hpp), which is not recognized by its keys. Refused for files.
struct chain_options {
  std::string scheme;                     ///< --scheme: guava-chain, or empty
  std::optional<std::uint64_t> capacity;  ///< -n, unless stored with the chain
  std::optional<double> rate;             ///< -p, unless stored with the chain
};

void add_chain(command& c, chain_options& o);

}  // namespace bloomery::cli
