#include "cli/commands/options.hpp"

#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"

#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>

namespace bloomery::cli {
namespace {

preference parse_preference(const std::string& text, const std::string& option) {
  for (const preference prefer : {preference::speed, preference::memory}) {
    if (text == name_of(prefer)) return prefer;
  }
  throw error(errc::invalid_argument, {"no such preference", option, "speed or memory", "'" + text + "'", ""});
}

}  // namespace

void add_size(command& c, making_options& o, bool bits) {
  parsed(c, "-n,--capacity", o.capacity, parse_count, "N", "distinct keys to expect: 1000, 100M, 1e9");
  parsed(c, "-p,--rate", o.rate, parse_rate, "RATE", "false-positive rate at that number: 1%, 1e-4, '1 in 1000'");
  if (!bits) return;
  parsed(c, "-m,--bits", o.bits, parse_bits, "SIZE", "size: bits (1000000, 8Mbit) or bytes (64MiB)");
  parsed(c, "-k,--probes", o.probes, parse_count, "N", "bits set by a key, 1 to 255");
}

void add_preference(command& c, making_options& o) {
  parsed(c, "--prefer", o.prefer, parse_preference, "speed|memory",
         "what to choose the layout by: speed (the default; up to 25 % more memory than the least) or memory (3 %)");
}

void add_kind(command& c, making_options& o) {
  c.option("--layout", o.layout, "NAME", layout_names() + ": the quickest first, the smallest last; see plan");
  add_preference(c, o);
  c.option("--hash", o.hash, "NAME",
           "xxh3_64, xxh3, murmur3, mix for integers, identity for random integers, or siphash with --secret");
  c.option("--seed", o.seed, {}, "N", "another family of hashes; not a secret");
}

void add_now(command& c, std::optional<std::uint64_t>& now) {
  parsed(c, "--now", now, parse_time, "TIME",
         "of windowed filters: the time to take for now, in seconds since 1970; the clock's if not given");
}

void add_window(command& c, window_options& o) {
  const argument& time = c.option(
      "--window",
      [&o](const std::string& text) { o.length = window_of_milliseconds(parse_duration(text, "--window")); },
      "DURATION", "remember the last so long: 24h, 90min, 7d, 30s");
  c.option(
       "--window-keys",
       [&o](const std::string& text) { o.length = window_of_keys(parse_count(text, "--window-keys")); }, "N",
       "remember the last so many keys")
      .excludes(time);
  add_now(c, o.now);
}

void add_key_shape(command_line& line, command& c, input_options& o) {
  line.inputs.push_back(&o);
  c.when_parsed([&o](const command& verb) {
    const argument* const quiet = verb.find("--quiet");
    o.quiet = quiet != nullptr && verb.given(*quiet);
  });
  c.flag("-0,--null", o.nul_separated, "lines end with NUL");
  c.flag("--text", o.as_text, "read binary data and archives as lines, too, which are refused otherwise");
  c.flag("--crlf", o.crlf, "lines end with CR LF: the CR is not part of the key");
  parsed(c, "-d,--delimiter", o.delimiter, parse_delimiter, "TEXT",
         "text between fields, with -f; TAB if not given, in CSV a comma; \\t \\n \\r \\0 \\\\ and \\xHH are bytes");
  parsed(c, "-f,--field", o.fields, parse_fields, "FIELDS",
         "the key is this field, or these: 1,3-5; in CSV also names; a field that a line lacks is empty");
  c.flag("--csv", o.csv, "input is CSV: fields may be in quotes, and then have separators and line breaks in them");
  c.flag("--header", o.header, "the first record of each CSV file is its header, no key; implied by a name in -f");
  parsed(c, "--jsonl", o.paths, parse_json_paths, "PATHS",
         "input is JSON Lines, and the key is the value at this path, or these, as in jq: .user.id,.tags[0]");
}

void add_times(command& c, input_options& o) {
  c.option(
      "--time-field",
      [&o](const std::string& text) {
        const auto one = [](auto list) {
          if (list.size() == 1) return std::optional(list.front());
          throw error(errc::invalid_argument, {"a record has one time", "--time-field", "one field", "a list", ""});
        };
        if (text.starts_with('.') || text.starts_with('['))
          o.time.path = one(parse_json_paths(text, "--time-field"));
        else
          o.time.field = one(parse_fields(text, "--time-field"));
      },
      "FIELD",
      "for windows by time: the time of a record, a field (4-5 with the text between) or a path; the window's clock "
      "goes by it");
  c.option(
      "--time-format",
      [&o](const std::string& text) {
        o.time.format = time_format::parse(text, "--time-format");
        o.format_is_set = true;
      },
      "FORMAT",
      "iso8601, rfc3339, clf, epoch, epoch-ms or a pattern as of strptime; the usual ones are recognised if not given");
}

void say_notes(const input_notes& notes) {
  std::uint64_t lacking = 0;
  for (const auto& [files, count] : notes.lacking) lacking += count;
  if (lacking > 0) {
    say(fmt::format("warning: {} no value for the key or a part of it, which is empty then",
                    lacking == 1 ? "1 record has" : count_text(lacking) + " records have"));
  }
  if (notes.late > 0) {
    say(fmt::format("warning: {} older than the window when read, and taken as of the newest time before",
                    notes.late == 1 ? "1 record was" : count_text(notes.late) + " records were"));
  }
}

void add_inputs(command_line& line, command& c, input_options& o) {
  c.positional("INPUT", o.files,
               "files of keys, one per line; gzip, zstd, lz4, xz and bzip2 are recognised; '-' or none: standard input")
      .file();
  add_key_shape(line, c, o);
}

unsigned default_threads() { return std::min(4u, std::max(1u, std::thread::hardware_concurrency())); }

void add_common(command& c, common_options& o, const std::string& quiet) {
  c.option("-j,--threads", o.threads, {1, 256}, "N", "threads; with an address always one");
  c.flag("-q,--quiet", o.quiet, quiet);
  c.flag(
      "--no-progress", [&o] { o.progress = false; }, "no progress bar (there is none anyway if stderr is no terminal)");
  c.flag("--json", o.json, "the result as one JSON object");
}

void add_secret(command& c, std::string& secret) {
  c.option("--secret", secret, "KEYFILE", "the file of the filter's secret key, as keygen makes it").file();
}

namespace {

bool locks_are_optional = false;

}  // namespace

void add_no_lock(command& c) {
  c.flag("--no-lock", locks_are_optional,
         "write a filter on a file system without locks; no other process may write it meanwhile");
}

bool no_lock() { return locks_are_optional; }

void add_no_verify(command& c, file_check& check) {
  c.flag(
      "--no-verify", [&check] { check = file_check::header; },
      "do not compare pages of a file with their checksums before they are used: a damaged file then gives wrong "
      "answers");
}

// ---- options of filters on servers ----------------------------------------------------------------------------------

void add_server(command& c, server_options& o) {
  c.option("--tls-ca", o.authorities, "FILE", "TLS: a file of certificates to trust; the system's if not given")
      .file()
      .group(on_redis);
  c.option("--tls-cert", o.certificate, "FILE", "TLS: the file of this client's certificate").file().group(on_redis);
  c.option("--tls-key", o.certificate_key, "FILE", "TLS: the file of its key").file().group(on_redis);
  c.option(
       "--timeout", [&o](const std::string& text) { o.milliseconds = parse_duration(text, "--timeout"); }, "DURATION",
       "of an exchange with the servers, with all that is tried again in it: 500ms, 1min; 10s if not given")
      .group(on_redis);
}

void add_waiting(command& c, server_options& o) {
  c.option("--wait-replicas", o.wait_replicas, {0, 1000}, "N",
           "what is added is there only when so many replicas have it")
      .group(on_redis);
}

void add_from_replicas(command& c, server_options& o) {
  c.flag("--replicas", o.from_replicas, "ask replicas of a cluster: what they have not got yet is absent there")
      .group(on_redis);
}

void add_on_damage(command& c, server_options& o) {
  c.option("--on-damage", o.on_damage, "error|maybe",
           "error (the default): stop with an error at a key whose part of the filter is lost; maybe: take such "
           "keys for present")
      .one_of({"error", "maybe"})
      .group(on_redis);
}

void add_life(command& c, sharing_options& o) {
  c.option(
       "--shards", [&o](const std::string& text) { o.shards = parse_count(text, "--shards"); }, "N",
       "parts that it is spread over, for good; chosen by its size if not given")
      .group(on_redis);
  c.option(
       "--ttl", [&o](const std::string& text) { o.milliseconds = parse_duration(text, "--ttl"); }, "DURATION",
       "all of it expires so long after it was made: 7d, 90min")
      .group(on_redis);
}

void add_sharing(command& c, sharing_options& o) {
  c.option(
       "--max-keys", [&o](const std::string& text) { o.most_keys = parse_count(text, "--max-keys"); }, "N",
       "it grows, up to so many keys; -n is where it starts. --grow has no limit, and takes more memory")
      .group(on_redis);
  add_life(c, o);
}

void add_chain(command& c, chain_options& o) {
  c.option("--scheme", o.scheme, "NAME",
           "guava-chain: FILTER is a chain of bitmaps, as a Java service may have made it")
      .group(on_redis);
  c.option(
       "-n,--capacity", [&o](const std::string& text) { o.capacity = parse_count(text, "-n"); }, "N",
       "of a chain: keys of one bitmap; not needed if build has made it or taken it over")
      .group(on_redis);
  c.option(
       "-p,--rate", [&o](const std::string& text) { o.rate = parse_rate(text, "-p"); }, "RATE",
       "of a chain: the false-positive rate of a bitmap with so many; likewise")
      .group(on_redis);
}

}  // namespace bloomery::cli
