// bloomery: the grammar of all commands, on one screen. Each command is a function of its options; see commands.hpp.
#include "commands.hpp"
#include "numbers.hpp"
#include "output.hpp"
#include "signals.hpp"
#include "suggest.hpp"

#include <bloomery/error.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/params.hpp>

#include <CLI/CLI.hpp>

#include <fcntl.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace bloomery::cli {
namespace {

// ---- options that several commands share
// -------------------------------------------------------------------------------

// An option whose text is turned into a value by `parse`, which names the option when it refuses.
template <class Value, class Parse>
void parsed(CLI::App& app, const std::string& flags, Value& value, Parse parse, const std::string& help) {
  const std::string name = flags.substr(0, flags.find(','));
  app.add_option_function<std::string>(
      flags, [&value, parse, name](const std::string& text) { value = parse(text, name); }, help);
}

preference parse_preference(const std::string& text, const std::string& option) {
  for (const preference prefer : {preference::speed, preference::memory}) {
    if (text == name_of(prefer)) return prefer;
  }
  throw error(errc::invalid_argument, {"no such preference", option, "speed or memory", "'" + text + "'", ""});
}

// An empty name is an unset variable of a script.
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
  app.add_option("--hash", o.hash, "xxh3, murmur3, or mix for integers");
  app.add_option("--seed", o.seed, "another family of hashes; not a secret");
}

void add_inputs(CLI::App& app, input_options& o) {
  app.add_option("INPUT", o.files,
                 "files of keys, one a line; gzip and zstd are recognised; '-' or none: standard input");
  app.add_flag("-0,--null", o.nul_separated, "lines end with NUL");
  app.add_flag("--crlf", o.crlf, "lines end with CR LF: the CR is not part of the key");
  app.add_option("-d,--delimiter", o.delimiter, "character between fields, with -f; TAB if not given");
  app.add_option("-f,--field", o.field, "the key is this field, from 1; a line without it has the empty key")
      ->check(CLI::Range(1, 1'000'000));
}

void add_common(CLI::App& app, common_options& o, const std::string& quiet) {
  app.add_option("-j,--threads", o.threads, "threads")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_flag("-q,--quiet", o.quiet, quiet);
  app.add_flag_callback(
      "--no-progress", [&o] { o.progress = false; }, "no progress bar (there is none anyway if stderr is no terminal)");
  app.add_flag("--json", o.json, "the result as one JSON object");
}

unsigned default_threads() { return std::min(4u, std::max(1u, std::thread::hardware_concurrency())); }

// ---- the grammar
// -------------------------------------------------------------------------------------------------------

struct all_options {
  plan_options plan;
  build_options build;
  add_options add;
  check_options check;
  dedup_options dedup;
  info_options info;
};

using deed = std::function<exit_status()>;

void add_plan(CLI::App& app, plan_options& o, deed& chosen) {
  auto& c = *app.add_subcommand("plan", "what size, what error rate? give two of -n, -p, -m, get the rest");
  add_size(c, o.wanted, true);
  add_preference(c, o.wanted);
  c.add_flag("--table", o.table, "a table of usual sizes; with --prefer, of the layouts that are chosen");
  c.add_flag("--json", o.json, "the result as one JSON object");
  c.footer("Example: bloomery plan -n 100M -p 1%");
  c.callback([&] { chosen = [&] { return plan(o); }; });
}

void add_build(CLI::App& app, build_options& o, deed& chosen) {
  auto& c = *app.add_subcommand("build", "make a filter from keys");
  c.add_option("-o,--output", o.filter, "the filter's file; an old one is replaced when the new one is whole")
      ->required();
  add_size(c, o.wanted, true);
  add_kind(c, o.wanted);
  c.add_option("--scheme", o.wanted.scheme, "bits as another system sets them: guava, pharo, python, perl");
  c.add_flag_callback(
      "--u64", [&] { o.wanted.keys = key_kind::u64le; }, "keys are whole numbers in decimal");
  c.add_option("--note", o.note, "a remark kept in the file");
  add_inputs(c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  c.footer(
      "Without -n the keys are counted first. The rate is 1 % if neither -p nor -m is given.\n"
      "Example: bloomery build -o users.bloom -p 0.1% users.txt");
  c.callback([&] { chosen = [&] { return build(o); }; });
}

void add_add(CLI::App& app, add_options& o, deed& chosen) {
  auto& c = *app.add_subcommand("add", "put more keys into a filter, in place");
  c.add_option("FILTER", o.filter, "the filter's file")->required()->check(check_name);
  add_inputs(c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  c.footer("Example: bloomery add users.bloom new-users.txt");
  c.callback([&] { chosen = [&] { return add(o); }; });
}

void add_check(CLI::App& app, check_options& o, deed& chosen) {
  auto& c = *app.add_subcommand("check", "print the lines whose key may be in the filter");
  c.add_option("FILTER", o.filter, "the filter's file")->required()->check(check_name);
  c.add_flag("-v,--invert", o.invert, "print those that are certainly absent instead");
  c.add_flag("-c,--count", o.count, "print their number only");
  add_inputs(c, o.inputs);
  add_common(c, o.common, "print nothing; stop at the first");
  c.footer(
      "Exit status: 0 some were selected, 1 none, 2 an error.\nExample: bloomery check -v users.bloom requests.txt");
  c.callback([&] { chosen = [&] { return check(o); }; });
}

void add_dedup(CLI::App& app, dedup_options& o, deed& chosen) {
  auto& c = *app.add_subcommand("dedup", "print the first occurrence of each line, in order");
  add_size(c, o.wanted, false);
  parsed(c, "--max-loss", o.max_loss, parse_rate,
         "instead of -p: share of the distinct lines that may be dropped wrongly");
  c.add_option("--state", o.state, "a filter file that remembers: made if missing, else gone on with")
      ->check(check_name);
  c.add_option("--suspects", o.suspects, "write the lines that the filter seemed to have seen to this file")
      ->check(check_name);
  c.add_flag("--exact", o.exact, "lose nothing: look at every suspect again, with temporary files");
  add_kind(c, o.wanted);
  add_inputs(c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  c.footer(
      "Without -n a file's lines are counted; a pipe needs -n. The rate is 1e-4 unless -p or --max-loss is given.\n"
      "Example: bloomery dedup --state seen.bloom today.txt > new.txt");
  c.callback([&] { chosen = [&] { return dedup(o); }; });
}

void add_info(CLI::App& app, info_options& o, deed& chosen) {
  auto& c =
      *app.add_subcommand("info", "what a filter knows, and what follows from it; or what this program is made of");
  c.add_option("FILTER", o.filter, "the filter's file")->check(check_name);
  c.add_flag("--build", o.build, "of this program, not of a filter: version, kernels, layouts, hashes, schemes");
  c.add_flag("--check", o.check_pages, "compare every page with its checksum; exit status 1 if some differ");
  c.add_flag("--json", o.json, "the result as one JSON object");
  c.callback([&] { chosen = [&] { return info(o); }; });
}

// ---- running
// -----------------------------------------------------------------------------------------------------------

// A mistyped verb, which CLI11 would only call an unexpected argument.
void check_verb(const CLI::App& app, const std::string& word) {
  std::vector<std::string> verbs;
  std::string all;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
    all += (all.empty() ? "" : ", ") + verb->get_name();
  }
  if (word.starts_with('-') || std::find(verbs.begin(), verbs.end(), word) != verbs.end()) return;
  const std::string meant = nearest(word, verbs);
  throw error(errc::invalid_argument,
              {"no such command", "", "one of " + all, "'" + word + "'",
               meant.empty() ? "see bloomery --help" : "did you mean 'bloomery " + meant + "'?"});
}

exit_status run(int argc, char** argv) {
  CLI::App app("Have I seen this key before? In about ten bits a key, never wrongly no.", "bloomery");
  app.set_version_flag("--version", "bloomery " BLOOMERY_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Each command explains itself: bloomery COMMAND --help\n"
      "Numbers: 100M, 64MiB, 1%, 1e-4, '1 in 1000'. Exit status: 0 done or found, 1 nothing found, 2 error.");
  all_options o;
  o.build.common.threads = o.add.common.threads = o.check.common.threads = o.dedup.common.threads = default_threads();
  deed chosen;
  add_plan(app, o.plan, chosen);
  add_build(app, o.build, chosen);
  add_add(app, o.add, chosen);
  add_check(app, o.check, chosen);
  add_dedup(app, o.dedup, chosen);
  add_info(app, o.info, chosen);

  if (argc > 1) check_verb(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help and --version
      app.exit(e);
      return exit_status::found;
    }
    const auto verbs = app.get_subcommands();
    const std::string help = verbs.empty() ? "bloomery --help" : "bloomery " + verbs.front()->get_name() + " --help";
    throw error(errc::invalid_argument, {e.what(), "", "", "", "see " + help});
  }
  for (const input_options* inputs : {&o.build.inputs, &o.add.inputs, &o.check.inputs, &o.dedup.inputs}) check(*inputs);
  kernel_name();  // a wrong BLOOMERY_KERNEL is said now
  install_signal_handlers();
  return chosen();
}

int report(const std::string& text) {
  say(text);
  return static_cast<int>(exit_status::error);
}

int guarded(int argc, char** argv) {
  try {
    const exit_status status = run(argc, argv);
    // Work that could end halfway did so; the shell should still see what ended it.
    if (stop_signal() != 0) die_of(stop_signal());
    return static_cast<int>(status);
  } catch (const interrupted&) {
    die_of(stop_signal());
    return report("interrupted");
  } catch (const reader_gone&) {
    die_of(SIGPIPE);
    return static_cast<int>(exit_status::error);
  } catch (const std::bad_alloc&) {
    return report("out of memory; ask for fewer keys or a higher error rate");
  } catch (const std::exception& e) {
    return report(e.what());
  }
}

}  // namespace
}  // namespace bloomery::cli

namespace {

// Who closed a standard stream (<&-) must not find a filter's file in its place, written over by messages. Opened the
// wrong way round, so that using it is an error.
void fill_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    const int wrong_way = fd == 0 ? O_WRONLY : O_RDONLY;
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", wrong_way) != fd) std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  return bloomery::cli::guarded(argc, argv);
}
