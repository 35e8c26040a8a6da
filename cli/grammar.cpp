// The grammar of all commands. Each command is a function of its options; see commands.hpp.
#include "cli/grammar.hpp"
#include "app/numbers.hpp"
#include "cli/shared_options.hpp"

#include <bloomery/params.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <thread>

namespace bloomery::cli {
namespace {

unsigned default_threads() { return std::min(4u, std::max(1u, std::thread::hardware_concurrency())); }

// What a filter has to do, for plan.
void add_needs(CLI::App& app, plan_options& o) {
  app.add_flag("--deletes", o.deletes, "keys are taken out again");
  auto* grow = app.add_flag("--grow", o.wanted.growing, "nobody knows how many keys come; -n is where it starts");
  app.add_option_function<std::string>(
         "--max-keys", [&o](const std::string& text) { o.most_keys = parse_count(text, "--max-keys"); },
         "the most keys that may come; -n is the fewest")
      ->excludes(grow);
  auto* time = app.add_option_function<std::string>(
      "--window",
      [&o](const std::string& text) {
        o.wanted.window.length = window_of_milliseconds(parse_duration(text, "--window"));
      },
      "forget what came longer ago: 24h, 90min, 7d; -n is how many keys come in that time");
  app.add_option_function<std::string>(
         "--window-keys",
         [&o](const std::string& text) { o.wanted.window.length = window_of_keys(parse_count(text, "--window-keys")); },
         "forget all but the last so many keys")
      ->excludes(time);
  app.add_flag("--sealed", o.sealed, "all keys are known beforehand, and none comes or goes later");
  auto* log = app.add_flag_callback(
      "--log", [&o] { o.log = true; }, "a log of 8 bytes a key may lie on disk");
  app.add_flag_callback(
         "--no-log", [&o] { o.log = false; }, "it may not, which is what is supposed")
      ->excludes(log);
  parsed(app, "--memory", o.memory, parse_bits, "the most memory it may take: 64MiB");
  app.add_flag("--threat", o.threat, "others choose keys, and would gain by errors");
}

void add_plan(CLI::App& app, plan_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("plan", "what size, what error rate? which filter, for what I need?");
  add_size(c, o.wanted, true);
  add_preference(c, o.wanted);
  c.add_flag("--table", o.table, "a table of usual sizes; with --prefer, of the layouts that are chosen");
  add_needs(c, o);
  auto* redis = c.add_flag("--redis", o.redis, "of a filter on Redis, which many machines share");
  c.add_option("--nodes", o.nodes, "servers of a cluster that it is spread over")
      ->check(CLI::Range(1, 1000))
      ->needs(redis);
  c.add_flag("--json", o.json, "the result as one JSON object");
  c.footer(
      "Two of -n, -p, -m give the third, for each layout. With any of the options from --deletes on all kinds of\n"
      "filters are compared;\n"
      "the rate is then 1 % if -p is not given, and without -n nobody knows how many keys come.\n"
      "Example: bloomery plan -n 100M -p 1%\n"
      "         bloomery plan --window 24h -n 10M -p 0.1%\n"
      "         bloomery plan --redis --nodes 6 -n 10G -p 1%");
  c.callback([&] { chosen = [&] { return plan(o); }; });
}

void add_build(CLI::App& app, build_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("build", "make a filter from keys");
  c.add_option(
       "-o,--output", o.filter,
       "the filter's file; an old one is replaced when the new one is whole. Or an address, of a filter that is "
       "made if missing, else added to")
      ->required()
      ->check(check_name);
  add_size(c, o.wanted, true);
  add_kind(c, o.wanted);
  c.add_option("--scheme", o.wanted.scheme,
               "bits as another system sets them: guava, pharo, python, perl; with an address guava-chain, a chain of "
               "bitmaps that grows, -n keys each, as a Java service may have made it");
  c.add_flag_callback(
      "--u64", [&] { o.wanted.keys = key_kind::u64le; }, "keys are whole numbers in decimal");
  c.add_flag("--counting", o.wanted.counting, "counters instead of bits: keys can be removed; four times the memory");
  c.add_flag(
      "--grow", o.wanted.growing,
      "keep a log of all keys' hashes in FILTER.log, so that the filter can grow; on Redis it grows without one");
  add_window(c, o.wanted.window);
  c.add_flag("--foldable", o.foldable, "round the size up so that fold can halve it at least six times");
  add_secret(c, o.wanted.secret);
  c.add_option("--note", o.note, "a remark kept in the file");
  add_inputs(c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  add_sharing(c, o.sharing);
  add_waiting(c, o.server);
  add_server(c, o.server);
  c.footer(std::string("Without -n the keys are counted first. The rate is 1 % if neither -p nor -m is given.\n") +
           addresses +
           "Example: bloomery build -o users.bloom -p 0.1% users.txt\n"
           "         bloomery build -o redis://cache/users -n 10M users.txt");
  c.callback([&] { chosen = [&] { return build(o); }; });
}

void add_add(CLI::App& app, add_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("add", "put more keys into a filter, in place");
  c.add_option("FILTER", o.filter, file_or_address)->required()->check(check_name);
  add_inputs(c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  add_secret(c, o.secret);
  add_now(c, o.now);
  add_waiting(c, o.server);
  add_chain(c, o.chain);
  add_server(c, o.server);
  c.footer("Example: bloomery add users.bloom new-users.txt");
  c.callback([&] { chosen = [&] { return add(o); }; });
}

void add_check(CLI::App& app, check_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("check", "print the lines whose key may be in the filter");
  c.add_option("FILTER", o.filter, file_or_address)->required()->check(check_name);
  c.add_flag("-v,--invert", o.invert, "print those that are certainly absent instead");
  c.add_flag("-c,--count", o.count, "print their number only");
  add_secret(c, o.secret);
  add_now(c, o.now);
  add_inputs(c, o.inputs);
  add_common(c, o.common, "print nothing; stop at the first");
  add_from_replicas(c, o.server);
  add_chain(c, o.chain);
  add_server(c, o.server);
  c.footer(
      "Exit status: 0 some were selected, 1 none, 2 an error.\nExample: bloomery check -v users.bloom requests.txt");
  c.callback([&] { chosen = [&] { return check(o); }; });
}

void add_dedup(CLI::App& app, dedup_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("dedup", "print the first occurrence of each line, in order");
  add_size(c, o.wanted, false);
  parsed(c, "--max-loss", o.max_loss, parse_rate,
         "instead of -p: share of the distinct lines that may be dropped wrongly");
  c.add_option("--state", o.state,
               "a filter file that remembers, or an address, of one that many machines share: made if missing, else "
               "gone on with")
      ->check(check_name);
  c.add_option("--suspects", o.suspects, "write the lines that the filter seemed to have seen to this file")
      ->check(check_name);
  c.add_flag(
      "--grow", o.wanted.growing,
      "a filter that grows, instead of counting lines first; with --state a log of all keys' hashes is beside it");
  add_window(c, o.wanted.window);
  c.add_flag("--exact", o.exact, "lose nothing: look at every suspect again, with temporary files");
  add_kind(c, o.wanted);
  add_secret(c, o.wanted.secret);
  add_inputs(c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  add_sharing(c, o.sharing);
  add_waiting(c, o.server);
  add_server(c, o.server);
  c.footer(
      "Without -n a file's lines are counted, and for a pipe the filter grows. The rate is 1e-4 unless -p or\n"
      "--max-loss is given.\n"
      "With an address a line goes out at one of the machines only. What a killed run was just about to write, up to\n"
      "256 KiB of lines, is remembered and goes out nowhere; with a file it would go out again.\n"
      "Example: bloomery dedup --state seen.bloom today.txt > new.txt");
  c.callback([&] { chosen = [&] { return dedup(o); }; });
}

void add_playground(CLI::App& app, playground_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("playground", "a page to see filters work, to measure them, and to look into your own");
  c.add_option("FILTER", o.filters, "filters to look into: files, or addresses as redis://HOST/NAME");
  c.add_option("--port", o.port, "where to listen; any free port if not given")->check(CLI::Range(0, 65535));
  c.add_option("--host", o.host, "an address of this machine to listen on; others can then come, too")
      ->capture_default_str();
  c.add_flag_callback(
      "--no-open", [&] { o.open = false; }, "do not open a browser");
  add_secret(c, o.secret);
  add_server(c, o.server);
  c.callback([&] { chosen = [&] { return playground(o); }; });
}

void add_info(CLI::App& app, info_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand(
      "info", "show a filter's parameters, fill ratio and false-positive rate, or how this program was built");
  c.add_option("FILTER", o.filter, file_or_address)->check(check_name);
  c.add_flag("--build", o.build, "of this program, not of a filter: version, kernels, layouts, hashes, schemes");
  parsed(c, "--queries", o.queries, parse_count,
         "measure the error with so many absent keys; 0, and an address if not given: do not measure");
  add_secret(c, o.secret);
  c.add_flag("--check", o.check_pages, "compare every page with its checksum; exit status 1 if some differ");
  c.add_flag("--json", o.json, "the result as one JSON object");
  add_from_replicas(c, o.server);
  add_chain(c, o.chain);
  add_server(c, o.server);
  c.callback([&] { chosen = [&] { return info(o); }; });
}

void add_verify(CLI::App& app, verify_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand(
      "verify", "compare a filter's expected, exact and measured false-positive rates, also on your own keys");
  c.add_option("FILTER", o.filter, file_or_address)->required()->check(check_name);
  add_key_shape(c, o.present);
  c.add_option("--present", o.present.files, "keys that were put in: each must be found; '-' is standard input")
      ->allow_extra_args(false)
      ->check(check_name);
  c.add_option("--absent", o.absent.files, "keys that were not: how many are found is measured")
      ->allow_extra_args(false)
      ->check(check_name);
  parsed(c, "--queries", o.queries, parse_count,
         "random absent keys to ask for; as many as resolve the rate if not given");
  add_secret(c, o.secret);
  add_common(c, o.common, "say nothing; the exit status is the verdict");
  add_from_replicas(c, o.server);
  add_server(c, o.server);
  c.footer(
      "Exit status: 0 all is well, 1 a present key is missing or the filter is not what its count says, 2 an error.\n"
      "Example: bloomery verify users.bloom --present users.txt");
  c.callback([&] { chosen = [&] { return verify(o); }; });
}

void add_explain(CLI::App& app, explain_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("explain", "why a filter says yes or no to a key: its hash, its bits, who set them");
  c.add_option("FILTER", o.filter, file_or_address)->required()->check(check_name);
  c.add_option("KEY", o.keys, "keys to explain")->required();
  add_key_shape(c, o.owners);
  c.add_option("--keys", o.owners.files, "files of the keys that were put in: names the owners of each bit")
      ->allow_extra_args(false)
      ->check(check_name);
  add_secret(c, o.secret);
  c.add_flag("--json", o.json, "the result as one JSON object");
  add_from_replicas(c, o.server);
  add_server(c, o.server);
  c.footer(
      "Exit status: 0 some may be there, 1 none is.\nExample: bloomery explain cities.bloom Berlin --keys cities.txt");
  c.callback([&] { chosen = [&] { return explain(o); }; });
}

void add_analyze(CLI::App& app, analyze_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("analyze", "fill filters and measure their error as they fill, beside the theory");
  add_size(c, o.wanted, true);
  add_kind(c, o.wanted);
  c.add_option("--scheme", o.wanted.scheme, "bits as another system sets them: guava, pharo, python, perl");
  c.add_option("-o,--output", o.charts, "write the chart to a file: NAME.svg or NAME.png; may be given twice")
      ->allow_extra_args(false);  // what follows the name is INPUT
  parsed(c, "--runs", o.runs, parse_count, "filters to fill, each with other keys; 10 if not given");
  parsed(c, "--queries", o.queries, parse_count, "absent keys to ask for at each point of each run");
  add_inputs(c, o.inputs);
  c.get_option("INPUT")->description(
      "files of keys, one a line, instead of random e-mail addresses; '-' is standard input");
  c.get_option("--seed")->description("other addresses, and another family of hashes; not a secret");
  add_common(c, o.common, "no chart and no table on standard output");
  c.footer(
      "Without INPUT, -n is needed; with it, -n is a third of the distinct lines if not given. The rate is 1 % if "
      "neither\n"
      "-p nor -m is given.\n"
      "Example: bloomery analyze -n 100 -p 3% -o chart.svg\n"
      "         bloomery analyze -n 1M -p 1% --scheme pharo");
  c.callback([&] { chosen = [&] { return analyze(o); }; });
}

void add_combine(CLI::App& app, const char* name, const char* help, const char* example, combine_options& o,
                 exit_status (*act)(const combine_options&), command_handler& chosen) {
  auto& c = *app.add_subcommand(name, help);
  c.add_option("-o,--output", o.output, "the result's file; an old one is replaced when the new one is whole")
      ->required()
      ->check(check_name);
  c.add_option("FILTER", o.filters, "two or more filters of one kind and size")->required()->check(check_name);
  c.add_flag("-q,--quiet", o.quiet, "say nothing but errors and warnings");
  c.add_flag("--json", o.json, "the result as one JSON object");
  if (act == unite) {
    c.get_option("--output")
        ->description(
            "the result's file; an old one is replaced when the new one is whole. Or an address, whose filter is made "
            "if "
            "missing, and else takes all in");
    c.get_option("FILTER")->description("two or more filters of one kind and size, files or addresses");
    add_secret(c, o.secret);
    add_server(c, o.server);
  }
  c.footer(example);
  c.callback([&o, act, &chosen] { chosen = [&o, act] { return act(o); }; });
}

void add_overlap(CLI::App& app, overlap_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("overlap", "how many keys two filters have in common, with error bars");
  c.add_option("A", o.a, "a filter's file")->required()->check(check_name);
  c.add_option("B", o.b, "another, of the same kind and size")->required()->check(check_name);
  c.add_flag("--json", o.json, "the result as one JSON object");
  c.footer(
      "Exit status: 0 they have keys in common, 1 not so that one could tell.\nExample: bloomery overlap mon.bloom "
      "tue.bloom");
  c.callback([&] { chosen = [&] { return overlap_of(o); }; });
}

void add_fold(CLI::App& app, fold_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("fold", "make a filter smaller, without its keys");
  c.add_option("FILTER", o.filter, "the filter's file")->required()->check(check_name);
  c.add_option("-o,--output", o.output, "the result's file; it may be FILTER itself")->required()->check(check_name);
  parsed(c, "-p,--rate", o.rate, parse_rate,
         "error rate that may not be passed; the filter's own promise if not given");
  parsed(c, "--times", o.times, parse_count, "halve it so often, whatever comes of it");
  c.add_flag("-q,--quiet", o.quiet, "say nothing but errors and warnings");
  c.add_flag("--json", o.json, "the result as one JSON object");
  c.footer("Example: bloomery fold large.bloom -o small.bloom -p 1%");
  c.callback([&] { chosen = [&] { return fold_filter(o); }; });
}

void add_keygen(CLI::App& app, keygen_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("keygen", "make a secret key for --secret");
  c.add_option("-o,--output", o.output, "the key's file; never one that is there already")
      ->required()
      ->check(check_name);
  c.footer("Example: bloomery keygen -o users.key && bloomery build --secret users.key -o users.bloom users.txt");
  c.callback([&] { chosen = [&] { return keygen(o); }; });
}

void add_noisy(CLI::App& app, noisy_split_options& split, noisy_check_options& check_them, command_handler& chosen) {
  auto& c = *app.add_subcommand("noisy", "a set in several copies that each give little away");
  c.require_subcommand(1);
  auto& s = *c.add_subcommand("split", "make the copies: each errs every other time, and has a secret of its own");
  parsed(s, "--copies", split.copies, parse_count, "how many; together they err 0.5^copies of the time");
  s.add_option("-o,--output", split.prefix, "copies go to PREFIX.1.bloom, PREFIX.1.key and so on")
      ->required()
      ->check(check_name);
  parsed(s, "-n,--capacity", split.capacity, parse_count, "distinct keys to expect; counted if not given");
  add_inputs(s, split.inputs);
  add_common(s, split.common, "say nothing but errors and warnings");
  s.footer("Example: bloomery noisy split --copies 5 -o members members.txt");
  s.callback([&] { chosen = [&] { return noisy_split(split); }; });
  auto& k = *c.add_subcommand("check", "print the lines whose key may be in all of these copies");
  k.add_option("PREFIX", check_them.copies, "all copies of a PREFIX, or PREFIX.1 PREFIX.3 for some")
      ->required()
      ->check(check_name);
  k.add_option("-i,--input", check_them.inputs.files, "files of keys, one a line; standard input if none")
      ->allow_extra_args(false)
      ->check(check_name);
  add_key_shape(k, check_them.inputs);
  k.add_flag("-v,--invert", check_them.invert, "print those that are certainly absent instead");
  k.add_flag("-c,--count", check_them.count, "print their number only");
  add_common(k, check_them.common, "print nothing; stop at the first");
  k.footer("Exit status: 0 some were selected, 1 none, 2 an error.\nExample: bloomery noisy check members < names.txt");
  k.callback([&] { chosen = [&] { return noisy_check(check_them); }; });
}

void add_remove(CLI::App& app, remove_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("remove", "take keys out of a counting filter");
  c.add_option("FILTER", o.filter, "the filter's file, or its address, made with build --counting")
      ->required()
      ->check(check_name);
  add_inputs(c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  add_secret(c, o.secret);
  add_server(c, o.server);
  c.footer(
      "Remove only what was added: taking out a key that never was in may take parts of others with it.\n"
      "Exit status: 0 all were removed, 1 some were not there, 2 an error.\n"
      "Example: bloomery remove users.bloom gone.txt");
  c.callback([&] { chosen = [&] { return remove_keys(o); }; });
}

void add_rebuild(CLI::App& app, rebuild_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("rebuild", "make a filter that has a log anew: another size, rate or layout");
  c.add_option("FILTER", o.filter, "the filter's file; its log is FILTER.log")->required()->check(check_name);
  parsed(c, "-p,--rate", o.rate, parse_rate, "false-positive rate; the filter's own if not given");
  parsed(c, "-n,--capacity", o.capacity, parse_count,
         "distinct keys to expect; a quarter more than there are if not given");
  c.add_option("--layout", o.layout, "another layout: split_block, split_block512, blocked, blocked_page");
  c.add_flag("--salvage", o.salvage, "if the log is damaged, go on without the keys that are lost");
  add_common(c, o.common, "say nothing but errors and warnings");
  add_secret(c, o.secret);
  c.footer("Example: bloomery rebuild users.bloom -p 0.1%");
  c.callback([&] { chosen = [&] { return rebuild(o); }; });
}

void add_seal(CLI::App& app, seal_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("seal", "make a smaller filter that no key can be added to");
  c.add_option("-o,--output", o.output, "the sealed filter's file; an old one is replaced when the new one is whole")
      ->required()
      ->check(check_name);
  parsed(c, "--width", o.width, parse_count,
         "bits of a fingerprint: 8 (0.39 % at 9 bits a key), 16 (0.0015 %, 18) or 32 (2.3e-8 %, 36)");
  c.add_option("--hash", o.wanted.hash, "xxh3, murmur3, mix for integers, or siphash with --secret");
  c.add_option("--seed", o.wanted.seed, "another family of hashes; not a secret")->check(CLI::NonNegativeNumber);
  c.add_flag_callback(
      "--u64", [&] { o.wanted.keys = key_kind::u64le; }, "keys are whole numbers in decimal");
  add_secret(c, o.wanted.secret);
  c.add_option("--note", o.note, "a remark kept in the file");
  add_inputs(c, o.inputs);
  c.get_option("INPUT")->description("files of keys, one a line; or one filter that has a log (build --grow)");
  add_common(c, o.common, "say nothing but errors and warnings");
  c.footer("Example: bloomery seal users.txt -o users.bloom");
  c.callback([&] { chosen = [&] { return seal(o); }; });
}

void add_pull(CLI::App& app, pull_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("pull", "make a file of a filter on Redis");
  c.add_option("ADDRESS", o.address, "the filter's address")->required()->check(check_name);
  c.add_option("-o,--output", o.output, "the filter's file; an old one is replaced when the new one is whole")
      ->required()
      ->check(check_name);
  add_secret(c, o.secret);
  c.add_option("--note", o.note, "a remark kept in the file");
  c.add_flag("-q,--quiet", o.quiet, "say nothing but errors and warnings");
  c.add_flag("--json", o.json, "the result as one JSON object");
  add_server(c, o.server);
  c.footer(std::string(addresses) + "Example: bloomery pull redis://cache/users -o users.bloom");
  c.callback([&] { chosen = [&] { return pull(o); }; });
}

void add_push(CLI::App& app, push_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("push", "put a filter's file on Redis");
  c.add_option("FILE", o.file, "the filter's file, of layout split_block512 or blocked")->required()->check(check_name);
  c.add_option("ADDRESS", o.address, "where to: a filter is made there if missing, and else takes all keys in")
      ->required()
      ->check(check_name);
  add_secret(c, o.secret);
  c.add_flag("-q,--quiet", o.quiet, "say nothing but errors and warnings");
  c.add_flag("--json", o.json, "the result as one JSON object");
  add_life(c, o.sharing);
  add_server(c, o.server);
  c.footer(std::string(addresses) + "Example: bloomery push users.bloom redis://cache/users");
  c.callback([&] { chosen = [&] { return push(o); }; });
}

void add_redis(CLI::App& app, doctor_options& o, command_handler& chosen) {
  auto& c = *app.add_subcommand("redis", "servers of shared filters");
  c.require_subcommand(1);
  auto& d = *c.add_subcommand("doctor", "what could a filter on these servers come to harm by?");
  d.add_option("ADDRESS", o.address, "a filter's address; the filter need not be there")->required()->check(check_name);
  add_secret(d, o.secret);
  d.add_flag("--json", o.json, "the result as one JSON object");
  add_waiting(d, o.server);
  add_from_replicas(d, o.server);
  add_server(d, o.server);
  d.footer(std::string(addresses) +
           "Exit status: 0 all is well, 1 there are risks, or something is not known, 2 an error.\nExample: bloomery "
           "redis doctor redis://cache/users");
  d.callback([&] { chosen = [&] { return redis_doctor(o); }; });
}

}  // namespace

void add_commands(CLI::App& app, all_options& o, command_handler& chosen) {
  for (common_options* common :
       {&o.build.common, &o.add.common, &o.check.common, &o.dedup.common, &o.verify.common, &o.analyze.common,
        &o.remove.common, &o.rebuild.common, &o.seal.common, &o.noisy_split.common, &o.noisy_check.common}) {
    common->threads = default_threads();
  }
  add_plan(app, o.plan, chosen);
  add_build(app, o.build, chosen);
  add_add(app, o.add, chosen);
  add_check(app, o.check, chosen);
  add_dedup(app, o.dedup, chosen);
  add_info(app, o.info, chosen);
  add_playground(app, o.playground, chosen);
  add_verify(app, o.verify, chosen);
  add_explain(app, o.explain, chosen);
  add_analyze(app, o.analyze, chosen);
  add_combine(app, "union", "make one filter of several: all keys of any of them",
              "Example: bloomery union -o week.bloom mon.bloom tue.bloom", o.unite, unite, chosen);
  add_combine(app, "intersect", "make a filter of the keys that are in all of several",
              "Example: bloomery intersect -o both.bloom mon.bloom tue.bloom", o.intersect, intersect, chosen);
  add_overlap(app, o.overlap, chosen);
  add_fold(app, o.fold, chosen);
  add_remove(app, o.remove, chosen);
  add_rebuild(app, o.rebuild, chosen);
  add_seal(app, o.seal, chosen);
  add_keygen(app, o.keygen, chosen);
  add_noisy(app, o.noisy_split, o.noisy_check, chosen);
  add_pull(app, o.pull, chosen);
  add_push(app, o.push, chosen);
  add_redis(app, o.doctor, chosen);
}

std::vector<const input_options*> all_inputs(const all_options& o) {
  return {&o.build.inputs,   &o.add.inputs,    &o.check.inputs,       &o.dedup.inputs,
          &o.verify.present, &o.verify.absent, &o.explain.owners,     &o.analyze.inputs,
          &o.remove.inputs,  &o.seal.inputs,   &o.noisy_split.inputs, &o.noisy_check.inputs};
}

}  // namespace bloomery::cli
