#include "cli/commands/options.hpp"

#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/text/color.hpp"

#include <bloomery/error.hpp>
#include <bloomery/params.hpp>
#include <bloomery/processors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace bloomery::cli {
namespace {

preference parse_preference(const std::string& text, const std::string& option) {
  for (const preference prefer : {preference::speed, preference::memory}) {
    if (text == name_of(prefer)) return prefer;
  }
  throw error(errc::invalid_argument, {"unknown preference", option, "speed or memory", "'" + text + "'", ""});
}

}  // namespace

void add_size(command& c, making_options& o, bool bits) {
  parsed(c, "-n,--capacity", o.capacity, parse_count, "N", "expected number of distinct keys: 1000, 100M, 1e9")
      .group(of_size);
  parsed(c, "-p,--rate", o.rate, parse_rate, "RATE", "false-positive rate with N keys: 1%, 1e-4, '1 in 1000'")
      .group(of_size);
  if (!bits) return;
  parsed(c, "-m,--bits", o.bits, parse_bits, "SIZE", "filter size in bits (1000000, 8Mbit) or bytes (64MiB)")
      .group(of_size);
  parsed(c, "-k,--probes", o.probes, parse_count, "N", "number of bits to set per key, 1 to 255").group(of_size);
}

void add_preference(command& c, making_options& o) {
  parsed(c, "--prefer", o.prefer, parse_preference, "speed|memory",
         "choose the layout for speed (default) or for memory")
      .suggest("speed, memory")
      .group(of_size);
}

void add_kind(command& c, making_options& o) {
  c.option("--layout", o.layout, "NAME", layout_names()).suggest(layout_names()).not_empty().group(of_size);
  add_preference(c, o);
  c.option("--hash", o.hash, "NAME", hash_help).suggest(hash_names()).not_empty().group(of_size);
  c.option("--seed", o.seed, {}, "N", "hash seed (not a secret)").group(of_size);
}

void add_now(command& c, std::optional<std::uint64_t>& now) {
  parsed(c, "--now", now, parse_time, "TIME", "current time in seconds since 1970; default: the system clock")
      .group(of_windows);
}

void add_window(command& c, window_options& o) {
  const argument& time =
      c.option(
           "--window",
           [&o](const std::string& text) { o.length = window_of_milliseconds(parse_duration(text, "--window")); },
           "DURATION", "remember each key for this long: 24h, 90min, 7d, 30s")
          .group(of_windows);
  c.option(
       "--window-keys",
       [&o](const std::string& text) { o.length = window_of_keys(parse_count(text, "--window-keys")); }, "N",
       "remember only the last N keys")
      .excludes(time)
      .group(of_windows);
  add_now(c, o.now);
}

void add_key_shape(command_line& line, command& c, input_options& o) {
  line.inputs.push_back(&o);
  c.when_parsed([&o](const command& verb) {
    const argument* const quiet = verb.find("--quiet");
    o.quiet = quiet != nullptr && verb.given(*quiet);
  });
  c.flag("-0,--null", o.nul_separated, "lines end with NUL instead of a line feed").group(of_input);
  c.flag("--text", o.as_text, "also accept binary data and archives, and read them as lines").group(of_input);
  c.flag("--crlf", o.crlf, "lines end with CR LF; the CR is not part of the key").group(of_input);
  parsed(c, "-d,--delimiter", o.delimiter, parse_delimiter, "TEXT",
         "field separator for -f (text, \\t, \\xHH); default: TAB, comma for CSV")
      .group(of_input);
  parsed(c, "-f,--field", o.fields, parse_fields, "FIELDS",
         "fields that form the key, such as 1,3-5; for CSV also column names")
      .group(of_input);
  c.flag("--csv", o.csv, "input is CSV; quoted fields may contain separators and line breaks").group(of_input);
  c.flag("--header", o.header, "each CSV file begins with a header; implied if -f names columns").group(of_input);
  parsed(c, "--jsonl", o.paths, parse_json_paths, "PATHS",
         "input is JSON Lines; the key is at these paths: .user.id,.tags[0]")
      .group(of_input);
}

void add_times(command& c, input_options& o) {
  c.option(
       "--time-field",
       [&o](const std::string& text) {
         const auto one = [](auto list) {
           if (list.size() == 1) return std::optional(list.front());
           throw error(errc::invalid_argument,
                       {"a record has only one time", "--time-field", "one field", "a list", ""});
         };
         if (text.starts_with('.') || text.starts_with('['))
           o.time.path = one(parse_json_paths(text, "--time-field"));
         else
           o.time.field = one(parse_fields(text, "--time-field"));
       },
       "FIELD", "the field (4), fields (4-5) or JSON path (.time) with the time")
      .group(of_windows);
  c.option(
       "--time-format",
       [&o](const std::string& text) {
         o.time.format = time_format::parse(text, "--time-format");
         o.format_is_set = true;
       },
       "FORMAT", "iso8601, rfc3339, clf, epoch, epoch-ms or a pattern of strptime")
      .suggest("iso8601, rfc3339, clf, epoch, epoch-ms")
      .group(of_windows);
}

void say_notes(const input_notes& notes) {
  std::uint64_t lacking = 0;
  for (const auto& [files, count] : notes.lacking) lacking += count;
  if (lacking > 0) {
    say(fmt::format("warning: {} no value for the key or a part of it, which is then empty",
                    lacking == 1 ? "1 record has" : count_text(lacking) + " records have"));
  }
  if (notes.late > 0) {
    say(fmt::format("warning: {} older than the window and inserted with the newest time so far",
                    notes.late == 1 ? "1 record was" : count_text(notes.late) + " records were"));
  }
}

void add_inputs(command_line& line, command& c, input_options& o) {
  c.positional("INPUT", o.files, "files (compressed or not) with one key per line; default: stdin").file();
  add_key_shape(line, c, o);
}

unsigned default_threads() { return std::min(4u, available_processors()); }

void add_common(command& c, common_options& o, const std::string& quiet) {
  c.option("-j,--threads", o.threads, {1, 256}, "N", "threads, 1 to 256; default: 1 per processor, up to 4")
      .group(of_all_verbs);
  c.flag("-q,--quiet", o.quiet, quiet).group(of_all_verbs);
  c.flag(
       "--no-progress", [&o] { o.progress = false; }, "show no progress bar")
      .group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
}

void add_color(command& c) {
  for (command& sub : c.subcommands()) add_color(sub);
  if (!c.subcommands().empty()) return;
  c.option(
       "--color",
       [](const std::string& text) {
         set_color_mode(text == "always"  ? color_mode::always
                        : text == "never" ? color_mode::never
                                          : color_mode::automatic);
       },
       "WHEN", "color the output: auto (default: only on terminals), always or never")
      .one_of({"auto", "always", "never"})
      .group(of_all_verbs);
}

void add_secret(command& c, std::string& secret) {
  c.option("--secret", secret, "KEYFILE", "file with the filter's secret key, as created by keygen").file();
}

namespace {

bool locks_are_optional = false;

}  // namespace

void add_no_lock(command& c) {
  c.flag("--no-lock", locks_are_optional, "write on a file system without locks; no other process may write")
      .group(of_all_verbs);
}

bool no_lock() { return locks_are_optional; }

void add_no_verify(command& c, file_check& check) {
  c.flag(
       "--no-verify", [&check] { check = file_check::header; },
       "do not verify checksums; a damaged file may give wrong answers")
      .group(of_all_verbs);
}

// ---- options for filters on servers ---------------------------------------------------------------------------------

void add_server(command& c, server_options& o) {
  if (argument* const threads = c.find("--threads")) threads->describe(threads->help + "; only 1 on Redis");
  c.option("--tls-ca", o.authorities, "FILE", "file with CA certificates; default: the system's certificates")
      .file()
      .group(on_redis);
  c.option("--tls-cert", o.certificate, "FILE", "file with the client certificate").file().group(on_redis);
  c.option("--tls-key", o.certificate_key, "FILE", "file with the private key of the client certificate")
      .file()
      .group(on_redis);
  c.option(
       "--timeout", [&o](const std::string& text) { o.milliseconds = parse_duration(text, "--timeout"); }, "DURATION",
       "time limit for a request, including retries; default: 10s")
      .group(on_redis);
}

void add_waiting(command& c, server_options& o) {
  c.option("--wait-replicas", o.wait_replicas, {0, 1000}, "N",
           "after each insert, wait until N replicas have received it")
      .group(on_redis);
}

void add_from_replicas(command& c, server_options& o) {
  c.flag("--replicas", o.from_replicas, "read from the replicas of a cluster, which may lag behind").group(on_redis);
}

void add_on_damage(command& c, server_options& o) {
  c.option("--on-damage", o.on_damage, "error|maybe",
           "for keys in a lost shard: fail (default), or report them as present")
      .one_of({"error", "maybe"})
      .group(on_redis);
}

void add_life(command& c, sharing_options& o) {
  c.option(
       "--shards", [&o](const std::string& text) { o.shards = parse_count(text, "--shards"); }, "N",
       "number of shards, which is then fixed; default: based on size")
      .group(on_redis);
  c.option(
       "--ttl", [&o](const std::string& text) { o.milliseconds = parse_duration(text, "--ttl"); }, "DURATION",
       "let the filter expire after this time: 7d, 90min")
      .group(on_redis);
}

void add_sharing(command& c, sharing_options& o) {
  c.option(
       "--max-keys", [&o](const std::string& text) { o.most_keys = parse_count(text, "--max-keys"); }, "N",
       "let the filter grow from the capacity -n up to this many keys")
      .group(on_redis);
  add_life(c, o);
}

void add_chain(command& c, chain_options& o) {
  c.option("--scheme", o.scheme, "NAME", "guava-chain: the filter is a chain of bitmaps kept by Java programs")
      .suggest("guava-chain")
      .group(on_redis);
  c.option(
       "-n,--capacity", [&o](const std::string& text) { o.capacity = parse_count(text, "--capacity"); }, "N",
       "capacity of each bitmap of the chain; default: as stored by build")
      .group(on_redis);
  c.option(
       "-p,--rate", [&o](const std::string& text) { o.rate = parse_rate(text, "--rate"); }, "RATE",
       "false-positive rate of each bitmap; default: as stored by build")
      .group(on_redis);
}

}  // namespace bloomery::cli
