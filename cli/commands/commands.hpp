// The commands: what each needs, and the function that does it. main.cpp fills the options in; the deeds are one file
// each.
#pragma once

#include "app/layout_choice.hpp"
#include "cli/io/input.hpp"
#include "cli/io/temporary_file.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::cli {

using namespace app;

/// As grep: 0 something was found, 1 nothing was, 2 an error. Commands that do not search succeed with 0.
enum class exit_status : int { found = 0, nothing = 1, error = 2 };

/// What most commands share.
struct common_options {
  unsigned threads = 1;
  bool quiet = false;
  bool progress = true;
  bool json = false;
};

/// Options of sliding-window filters.
struct window_options {
  std::optional<window_length> length;  ///< --window or --window-keys; absent: another filter
  std::optional<std::uint64_t> now;     ///< --now, milliseconds since 1970; the system's clock if absent

  /// The option of the length, "--window" if it is absent.
  const char* option() const { return length && !length->by_time() ? "--window-keys" : "--window"; }
};

/// Parameters of a filter to be made; what is absent is derived. The base has -n, -p, -m, -k and --prefer.
struct making_options : size_request {
  std::string layout;
  std::string scheme;
  std::string hash;
  key_kind keys = key_kind::bytes;
  std::uint64_t seed = 0;
  std::string secret;     ///< file of the secret key; empty: none
  bool counting = false;  ///< --counting: keys can be removed
  bool growing = false;   ///< --grow: with a log, so that it can be made larger
  window_options window;  ///< --window, --window-keys: old keys expire
};

/// How to reach the servers of a shared filter (redis.hpp), and what is asked of them. None of it goes with a file.
struct server_options {
  std::uint64_t wait_replicas = 0;            ///< --wait-replicas
  bool from_replicas = false;                 ///< --replicas
  std::string authorities;                    ///< --tls-ca
  std::string certificate;                    ///< --tls-cert
  std::string certificate_key;                ///< --tls-key
  std::optional<std::uint64_t> milliseconds;  ///< --timeout
};

/// What else a shared filter is made with. None of it goes with a file.
struct sharing_options {
  std::optional<std::uint64_t> most_keys;     ///< --max-keys
  std::optional<std::uint64_t> shards;        ///< --shards
  std::optional<std::uint64_t> milliseconds;  ///< --ttl: all of it expires
};

/// A chain of bitmaps on servers (redis/chain.hpp), which does not say that it is one. None of it goes with a file.
struct chain_options {
  std::string scheme;                     ///< --scheme: guava-chain, or empty
  std::optional<std::uint64_t> capacity;  ///< -n, if the chain does not say
  std::optional<double> rate;             ///< -p, likewise
};

struct plan_options {
  making_options wanted;
  bool table = false;
  bool json = false;
  bool deletes = false;
  bool sealed = false;
  bool threat = false;
  std::optional<std::uint64_t> most_keys;  ///< --max-keys
  std::optional<std::uint64_t> memory;     ///< --memory, bits
  std::optional<bool> log;                 ///< --log, --no-log
  bool redis = false;                      ///< a filter that many machines share
  std::uint64_t nodes = 1;                 ///< --nodes: servers it is spread over

  /// Asks for more than a size: then all structures are compared, not the layouts of one.
  bool advised() const {
    return deletes || sealed || threat || most_keys || memory || log || wanted.growing || wanted.window.length;
  }
};

struct build_options {
  std::string filter;
  making_options wanted;
  std::string note;       ///< kept in the file as metadata
  bool foldable = false;  ///< blocks rounded up to a multiple of 64
  sharing_options sharing;
  server_options server;
  input_options inputs;
  common_options common;
};

struct add_options {
  std::string filter;
  std::string secret;
  std::optional<std::uint64_t> now;  ///< as in window_options
  chain_options chain;
  server_options server;
  input_options inputs;
  common_options common;
};

struct check_options {
  std::string filter;
  std::string secret;
  std::optional<std::uint64_t> now;  ///< as in window_options
  bool invert = false;
  bool count = false;
  chain_options chain;
  server_options server;
  input_options inputs;
  common_options common;
};

struct dedup_options {
  making_options wanted;
  std::optional<double> max_loss;  ///< share of distinct lines that may be dropped wrongly
  std::string state;               ///< filter file that remembers from run to run
  std::string suspects;            ///< file for the lines the filter had, or seemed to have, seen
  bool exact = false;
  sharing_options sharing;
  server_options server;
  input_options inputs;
  common_options common;
};

struct info_options {
  std::string filter;  ///< empty with `build`
  std::string secret;
  std::optional<std::uint64_t> queries;  ///< to measure the error with
  bool check_pages = false;
  bool build = false;  ///< the program itself, instead of a filter
  chain_options chain;
  server_options server;
  bool json = false;
};

struct playground_options {
  std::vector<std::string> filters;  ///< to be inspected
  std::string host = "127.0.0.1";
  std::uint64_t port = 0;  ///< 0: any that is free
  bool open = true;        ///< a browser
  std::string secret;
  server_options server;
};

struct verify_options {
  std::string filter;
  std::string secret;
  input_options present;  ///< its files may be none: then nothing is checked
  input_options absent;   ///< likewise
  std::optional<std::uint64_t> queries;
  server_options server;
  common_options common;
};

struct explain_options {
  std::string filter;
  std::string secret;
  std::vector<std::string> keys;
  input_options owners;  ///< files of the keys that were put in; may be none
  server_options server;
  bool json = false;
};

struct analyze_options {
  making_options wanted;
  std::vector<std::string> charts;  ///< files to write, .svg or .png
  std::uint64_t runs = 10;
  std::optional<std::uint64_t> queries;  ///< absent keys at each point of each run
  input_options inputs;                  ///< files of keys; if none, random e-mail addresses
  common_options common;
};

struct combine_options {
  std::string output;
  std::vector<std::string> filters;
  std::string secret;     ///< of shared filters; the bits of files take none
  server_options server;  ///< of shared filters, which unite but do not intersect
  bool quiet = false;
  bool json = false;
};

struct overlap_options {
  std::string a;
  std::string b;
  bool json = false;
};

struct fold_options {
  std::string filter;
  std::string output;
  std::optional<double> rate;
  std::optional<std::uint64_t> times;
  bool quiet = false;
  bool json = false;
};

struct keygen_options {
  std::string output;
};

struct noisy_split_options {
  std::uint64_t copies = 5;
  std::string prefix;
  std::optional<std::uint64_t> capacity;
  input_options inputs;
  common_options common;
};

struct noisy_check_options {
  std::vector<std::string> copies;
  input_options inputs;
  bool invert = false;
  bool count = false;
  common_options common;
};

struct remove_options {
  std::string filter;
  std::string secret;
  server_options server;
  input_options inputs;
  common_options common;
};

struct rebuild_options {
  std::string filter;  ///< with a log
  std::string secret;
  std::optional<double> rate;             ///< -p; the filter's own if absent
  std::optional<std::uint64_t> capacity;  ///< -n; a quarter more than its keys if absent
  std::string layout;                     ///< another layout; the filter's own if empty
  bool salvage = false;                   ///< go on without what is lost of a damaged log
  common_options common;
};

struct seal_options {
  std::string output;
  std::uint64_t width = 8;  ///< bits of a fingerprint: 8, 16 or 32
  making_options wanted;    ///< hash, seed, kind of keys, secret; nothing else
  std::string note;
  input_options inputs;  ///< files of keys; or one filter that has a log
  common_options common;
};

struct pull_options {
  std::string address;
  std::string output;
  std::string secret;
  std::string note;
  server_options server;
  bool quiet = false;
  bool json = false;
};

struct push_options {
  std::string file;
  std::string address;
  std::string secret;
  sharing_options sharing;
  server_options server;
  bool quiet = false;
  bool json = false;
};

struct doctor_options {
  std::string address;
  std::string secret;
  server_options server;
  bool json = false;
};

exit_status playground(const playground_options& options);
exit_status plan(const plan_options& options);
exit_status plan_advice(const plan_options& options);
exit_status build(const build_options& options);
exit_status add(const add_options& options);
exit_status check(const check_options& options);
exit_status dedup(const dedup_options& options);
exit_status info(const info_options& options);
exit_status info_of_build(bool json);
exit_status verify(const verify_options& options);
exit_status explain(const explain_options& options);
exit_status analyze(const analyze_options& options);
exit_status unite(const combine_options& options);
exit_status intersect(const combine_options& options);
exit_status overlap_of(const overlap_options& options);
exit_status fold_filter(const fold_options& options);
exit_status keygen(const keygen_options& options);
exit_status remove_keys(const remove_options& options);
exit_status rebuild(const rebuild_options& options);
exit_status seal(const seal_options& options);
exit_status pull(const pull_options& options);
exit_status push(const push_options& options);
exit_status redis_doctor(const doctor_options& options);
exit_status noisy_split(const noisy_split_options& options);
exit_status noisy_check(const noisy_check_options& options);

// ---- what commands say alike ----------------------------------------------------------------------------------------

/// Text of other origin, on one line and harmless to a terminal: control characters are shown as \x0A.
std::string printable(const std::string& text);

/// A line on stderr, printable: "bloomery: ...".
void say(const std::string& text);

/// A JSON object as one line. Names are anyone's bytes: what is no UTF-8 is shown as U+FFFD.
std::string json_line(const nlohmann::ordered_json& object);

/// Complains on stderr if the file was not closed cleanly.
void say_if_dirty(const std::string& path, const file_info& info);

/// Says that another process is writing and waits for it; throws if a signal ends the waiting.
void wait_for_writer(const std::string& path);

/// The key in a key file; none if there is no file's name. Says once if others can read it, too. A file is read once:
/// it may be a pipe. @throws error as read_secret
std::optional<secret_key> secret_of(const std::string& keyfile);

/// any_filter::open, with the key in `keyfile` if that is not empty.
any_filter open_filter(const std::string& path, const std::string& keyfile, access mode = access::read_only,
                       file_check what = file_check::header, const callback<void(const std::string&)>& waiting = {});

/// "split_block" or "scheme guava".
std::string kind_text(const params& p);

/// Name, size and promise: "100,000 keys at 1 %: 128 KiB (split_block, 10.5 bits a key)".
std::string size_text(const params& p);

/// The params asked for, with the capacity that was given or counted.
/// @throws error invalid_argument: contradictory options; too_large: no filter can be so large
params params_for(const making_options& wanted, std::uint64_t capacity, double default_rate);

/// Refuses numbers that no filter can have, contradictions, and a key file that has no key, before anything is read.
/// @throws error invalid_argument; as read_secret
void check_target_fpr(const making_options& wanted);

/// Copies all inputs, uncompressed, to a temporary file whose every line has its end. @throws interrupted, error
temporary_file spool_text(const input_options& inputs);

/// Refuses to write over an input, which would be lost. @throws error invalid_argument
void check_not_an_input(const std::string& path, const std::string& option, const input_options& inputs);

/// Refuses to write over the file of a secret key, which would be lost. @throws error invalid_argument
void check_not_the_key(const std::string& path, const std::string& option, const std::string& keyfile);

/// Refuses to write a filter over a file that is none: a key, a list; and over one whose log would be left alone.
/// @throws error already_exists
void check_replaceable(const std::string& path, const std::string& option);

/// Refuses counting, sliding-window and static filters: "counting filters have no overlap". @throws error incompatible
/// @param what  "overlap"
void refuse_unless_plain(const params& p, const std::string& path, const std::string& what, const char* hint);

/// Refuses standard output that is an input or the filter's own file: it would be read back, or destroyed.
/// @throws error invalid_argument
void check_output(const input_options& inputs, const std::string& filter);

/// Refuses two filters that cannot be compared bit for bit: names the field and both values. @throws error incompatible
void check_compatible(const std::string& path_a, const params& a, const std::string& path_b, const params& b);

/// A number, or null where JSON has none: infinity.
nlohmann::ordered_json number_or_null(double value);

/// "30,035 +- 114 keys", at two standard deviations.
std::string keys_text(const estimate& keys, const std::string& noun);

/// How far the bits are from those that the count leads to: "by 7.2 standard deviations".
std::string distance_text(const fill_check& count);

/// "1 % (0.9 % to 1.1 %): 99 of 10,000 absent keys", the interval at 95 %; and the same as JSON.
std::string rate_with_interval(const measured_rate& m);

/// Throws too_large if the disk of `path` has not this many bytes free: better now than after an hour of reading.
void check_room(const std::string& path, std::uint64_t bytes);

/// Queries of a scheme's filter, which hashes as often as it has probes: `usual` of them, or fewer if those are many.
std::uint64_t queries_of_scheme(const params& p, std::uint64_t usual);
nlohmann::ordered_json json_of(const measured_rate& m);

/// The count to store for a filter with this estimated number of distinct keys: expected_insertions().
std::uint64_t counted_of_estimate(const params& p, double keys);

/// Keys wrongly taken for seen while a filter goes from `from` to `to` distinct keys.
double losses_between(const params& p, std::uint64_t from, std::uint64_t to);

}  // namespace bloomery::cli
