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

std::string check_name(const std::string& name) { return name.empty() ? "the name is empty" : ""; }

void add_size(CLI::App& app, making_options& o, bool bits) {
  parsed(app, "-n,--capacity", o.capacity, parse_count, "distinct keys to expect: 1000, 100M, 1e9");
  parsed(app, "-p,--rate", o.rate, parse_rate, "false-positive rate at that number: 1%, 1e-4, '1 in 1000'");
  if (!bits) return;
  parsed(app, "-m,--bits", o.bits, parse_bits, "size: bits (1000000, 8Mbit) or bytes (64MiB)");
  parsed(app, "-k,--probes", o.probes, parse_count, "bits set by a key, 1 to 255");
}

void add_preference(CLI::App& app, making_options& o) {
  parsed(app, "--prefer", o.prefer, parse_preference,
         "what to choose the layout by: speed (the default; up to 25 % more memory than the least) or memory (3 %)");
}

void add_kind(CLI::App& app, making_options& o) {
  app.add_option("--layout", o.layout, layout_names() + ": the quickest first, the smallest last; see plan");
  add_preference(app, o);
  app.add_option("--hash", o.hash,
                 "xxh3_64, xxh3, murmur3, mix for integers, identity for random integers, or siphash with --secret");
  app.add_option("--seed", o.seed, "another family of hashes; not a secret")->check(CLI::NonNegativeNumber);
}

void add_now(CLI::App& app, std::optional<std::uint64_t>& now) {
  parsed(app, "--now", now, parse_time,
         "of windowed filters: the time to take for now, in seconds since 1970; the clock's if not given");
}

void add_window(CLI::App& app, window_options& o) {
  auto* time = app.add_option_function<std::string>(
      "--window",
      [&o](const std::string& text) { o.length = window_of_milliseconds(parse_duration(text, "--window")); },
      "remember the last so long: 24h, 90min, 7d, 30s");
  app.add_option_function<std::string>(
         "--window-keys",
         [&o](const std::string& text) { o.length = window_of_keys(parse_count(text, "--window-keys")); },
         "remember the last so many keys")
      ->excludes(time);
  add_now(app, o.now);
}

void add_key_shape(command_line& line, CLI::App& app, input_options& o) {
  line.inputs.push_back(&o);
  app.parse_complete_callback([&app, &o] {
    const CLI::Option* const quiet = app.get_option_no_throw("--quiet");
    o.quiet = quiet != nullptr && quiet->count() > 0;
  });
  app.add_flag("-0,--null", o.nul_separated, "lines end with NUL");
  app.add_flag("--text", o.as_text, "read binary data and archives as lines, too, which are refused otherwise");
  app.add_flag("--crlf", o.crlf, "lines end with CR LF: the CR is not part of the key");
  parsed(app, "-d,--delimiter", o.delimiter, parse_delimiter,
         "text between fields, with -f; TAB if not given, in CSV a comma; \\t \\n \\r \\0 \\\\ and \\xHH are bytes");
  parsed(app, "-f,--field", o.fields, parse_fields,
         "the key is this field, or these: 1,3-5; in CSV also names; a field that a line lacks is empty");
  app.add_flag("--csv", o.csv,
               "input is CSV: fields may be in quotes, and then have separators and line breaks in them");
  app.add_flag("--header", o.header,
               "the first record of each CSV file is its header, no key; implied by a name in -f");
  parsed(app, "--jsonl", o.paths, parse_json_paths,
         "input is JSON Lines, and the key is the value at this path, or these, as in jq: .user.id,.tags[0]");
}

void add_times(CLI::App& app, input_options& o) {
  app.add_option_function<std::string>(
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
      "for windows by time: the time of a record, a field (4-5 with the text between) or a path; the window's clock "
      "goes by it");
  app.add_option_function<std::string>(
      "--time-format",
      [&o](const std::string& text) {
        o.time.format = time_format::parse(text, "--time-format");
        o.format_is_set = true;
      },
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

void add_inputs(command_line& line, CLI::App& app, input_options& o) {
  app.add_option(
         "INPUT", o.files,
         "files of keys, one per line; gzip, zstd, lz4, xz and bzip2 are recognised; '-' or none: standard input")
      ->check(check_name);
  add_key_shape(line, app, o);
}

unsigned default_threads() { return std::min(4u, std::max(1u, std::thread::hardware_concurrency())); }

void add_common(CLI::App& app, common_options& o, const std::string& quiet) {
  app.add_option("-j,--threads", o.threads, "threads; with an address always one")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("-q,--quiet", o.quiet, quiet);
  app.add_flag_callback(
      "--no-progress", [&o] { o.progress = false; }, "no progress bar (there is none anyway if stderr is no terminal)");
  app.add_flag("--json", o.json, "the result as one JSON object");
}

void add_secret(CLI::App& app, std::string& secret) {
  app.add_option("--secret", secret, "the file of the filter's secret key, as keygen makes it")->check(check_name);
}

namespace {

bool locks_are_optional = false;

}  // namespace

void add_no_lock(CLI::App& app) {
  app.add_flag("--no-lock", locks_are_optional,
               "write a filter on a file system without locks; no other process may write it meanwhile");
}

bool no_lock() { return locks_are_optional; }

void add_no_verify(CLI::App& app, file_check& check) {
  app.add_flag_callback(
      "--no-verify", [&check] { check = file_check::header; },
      "do not compare pages of a file with their checksums before they are used: a damaged file then gives wrong "
      "answers");
}

// ---- options of filters on servers ----------------------------------------------------------------------------------

void add_server(CLI::App& app, server_options& o) {
  app.add_option("--tls-ca", o.authorities, "TLS: a file of certificates to trust; the system's if not given")
      ->check(check_name)
      ->group(on_redis);
  app.add_option("--tls-cert", o.certificate, "TLS: the file of this client's certificate")
      ->check(check_name)
      ->group(on_redis);
  app.add_option("--tls-key", o.certificate_key, "TLS: the file of its key")->check(check_name)->group(on_redis);
  app.add_option_function<std::string>(
         "--timeout", [&o](const std::string& text) { o.milliseconds = parse_duration(text, "--timeout"); },
         "of an exchange with the servers, with all that is tried again in it: 500ms, 1min; 10s if not given")
      ->group(on_redis);
}

void add_waiting(CLI::App& app, server_options& o) {
  app.add_option("--wait-replicas", o.wait_replicas, "what is added is there only when so many replicas have it")
      ->check(CLI::Range(0, 1000))
      ->group(on_redis);
}

void add_from_replicas(CLI::App& app, server_options& o) {
  app.add_flag("--replicas", o.from_replicas, "ask replicas of a cluster: what they have not got yet is absent there")
      ->group(on_redis);
}

void add_on_damage(CLI::App& app, server_options& o) {
  app.add_option("--on-damage", o.on_damage,
                 "error (the default): stop with an error at a key whose part of the filter is lost; maybe: take such "
                 "keys for present")
      ->check(CLI::IsMember({"error", "maybe"}))
      ->group(on_redis);
}

void add_life(CLI::App& app, sharing_options& o) {
  app.add_option_function<std::string>(
         "--shards", [&o](const std::string& text) { o.shards = parse_count(text, "--shards"); },
         "parts that it is spread over, for good; chosen by its size if not given")
      ->group(on_redis);
  app.add_option_function<std::string>(
         "--ttl", [&o](const std::string& text) { o.milliseconds = parse_duration(text, "--ttl"); },
         "all of it expires so long after it was made: 7d, 90min")
      ->group(on_redis);
}

void add_sharing(CLI::App& app, sharing_options& o) {
  app.add_option_function<std::string>(
         "--max-keys", [&o](const std::string& text) { o.most_keys = parse_count(text, "--max-keys"); },
         "it grows, up to so many keys; -n is where it starts. --grow has no limit, and takes more memory")
      ->group(on_redis);
  add_life(app, o);
}

void add_chain(CLI::App& app, chain_options& o) {
  app.add_option("--scheme", o.scheme, "guava-chain: FILTER is a chain of bitmaps, as a Java service may have made it")
      ->group(on_redis);
  app.add_option_function<std::string>(
         "-n,--capacity", [&o](const std::string& text) { o.capacity = parse_count(text, "-n"); },
         "of a chain: keys of one bitmap; not needed if build has made it or taken it over")
      ->group(on_redis);
  app.add_option_function<std::string>(
         "-p,--rate", [&o](const std::string& text) { o.rate = parse_rate(text, "-p"); },
         "of a chain: the false-positive rate of a bitmap with so many; likewise")
      ->group(on_redis);
}

}  // namespace bloomery::cli
