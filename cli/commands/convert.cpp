// bloomery import FILE -o X.bloom and bloomery export FILTER --to FORMAT -o FILE: filter files of other systems.
//
//   $ bloomery import users.guava -o users.bloom
//   $ bloomery export users.bloom --to guava -o users.guava
//
// The bits stay as they are. A filter whose bits another system cannot use has to be built again from its keys.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/measure.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

struct import_options {
  std::string file;
  std::string output;
  std::string format;  ///< empty: recognized
  std::optional<std::uint64_t> capacity;
  std::optional<double> rate;
  bool quiet = false;
  bool json = false;
};

struct export_options {
  std::string filter;
  std::string output;
  std::string format;
  std::string secret;
  bool quiet = false;
  bool json = false;
};

// Many formats store neither the capacity nor the target FPR.
void add_target(params& p, const import_options& options) {
  if (options.capacity) p.capacity = *options.capacity;
  if (options.rate) p.target_fpr = *options.rate;
  if (options.rate && !options.capacity) p.capacity = std::max<std::uint64_t>(keys_within(p, p.target_fpr), 1);
  if (options.capacity && !options.rate) p.target_fpr = expected_fpr(p, p.capacity);
}

exit_status import_file(const import_options& options) {
  refuse_shared(options.file, "import");
  refuse_shared(options.output, "import");
  check_replaceable(options.output, "--output");
  check_locks(options.output);
  const any_filter filter = import_filter(options.file, options.format);
  const file_info& from = *filter.opened_from();
  params p = filter.parameters();
  add_target(p, options);
  const fill_statistics now = measure_fill(p, filter.bytes());
  if (stop_signal() != 0) throw interrupted();
  point_of_no_return();
  save_file(options.output, p, filter.bytes(), filter.counts(),
            create_options{.metadata = from.metadata, .no_lock = no_lock()});

  const estimate keys = filter.estimated_keys();
  fpr_watch watch(options.output);
  if (p.capacity > 0) watch.judge(p, now.current_fpr, keys_text(keys, "key"));
  if (options.json) {
    nlohmann::ordered_json result = {
        {"filter", options.output}, {"format", from.format},       {"scheme", p.scheme},
        {"bits", p.geometry.bits},  {"probes", p.geometry.probes}, {"estimated_keys", number_or_null(keys.value)},
        {"rate", now.current_fpr},  {"capacity", p.capacity},      {"target_rate", p.target_fpr}};
    add_verdict(result, watch.judgement());
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: imported from format {}: {}; {}; current FPR {}", options.output, from.format, size_text(p),
                    std::isfinite(keys.value) ? keys_text(keys, "key") : "all bits are set",
                    rate_text(now.current_fpr)));
  }
  return watch.end();
}

exit_status export_file(const export_options& options) {
  refuse_shared(options.filter, "export");
  refuse_shared(options.output, "export");
  check_replaceable(options.output, "--output");
  const std::unique_ptr<filter_handle> handle =
      open_handle({.name = options.filter, .quiet = options.quiet, .facts_only = true});
  const any_filter& filter = *handle->local();
  const file_format& format = *find_file_format(options.format);
  std::string note = filter.opened_from()->metadata;
  const bool drops_note = !note.empty() && !format.has_metadata;
  if (drops_note) note.clear();
  if (stop_signal() != 0) throw interrupted();
  point_of_no_return();
  export_filter(filter, options.output, options.format, {.metadata = note});
  const params& p = filter.parameters();
  if (options.json) {
    print_result({{"file", options.output},
                  {"format", options.format},
                  {"scheme", p.scheme},
                  {"bits", p.geometry.bits},
                  {"probes", p.geometry.probes},
                  {"note_dropped", drops_note}});
  } else if (!options.quiet) {
    say(fmt::format("{}: exported to format {}: {} ({}, {} per key)", options.output, options.format,
                    bytes_text(bytes_for(p.geometry.bits)), kind_text(p), counted(p.geometry.probes, "probe")));
    if (drops_note)
      say(fmt::format("{}: note: format {} does not store the filter's note", options.output, options.format));
  }
  return exit_status::found;
}

std::vector<std::string> names_of_formats() {
  std::vector<std::string> names;
  for (const file_format& format : file_formats()) names.emplace_back(format.name);
  return names;
}

std::string list_of_formats() {
  std::string text = "Formats:\n";
  for (const file_format& format : file_formats())
    text += fmt::format("  {:<16}{}; schemes: {}\n", format.name, format.system, format.schemes);
  return text;
}

}  // namespace

void add_import(command_line& line) {
  command& c = line.root.subcommand("import", "convert a filter file of another system to a file of bloomery");
  auto& o = line.options_of(c, import_file);
  c.positional("FILE", o.file, "filter file of another system").required().file();
  c.option("-o,--output", o.output, "FILTER", "new file; an existing filter is replaced").required().file();
  c.option("--from", o.format, "FORMAT", "format of the file; default: recognized by its content")
      .one_of(names_of_formats());
  parsed(c, "-n,--capacity", o.capacity, parse_count, "N",
         "keys for which the filter was made, if the file does not state them");
  parsed(c, "-p,--rate", o.rate, parse_rate, "RATE", "target false-positive rate at this number of keys");
  add_no_lock(c);
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  c.example("bloomery import users.guava -o users.bloom -n 1M -p 1%");
  c.footer(list_of_formats() +
           "Exit status: 0 if the filter was created, 2 on error, 3 if it was created but exceeds its target FPR.");
}

void add_export(command_line& line) {
  command& c = line.root.subcommand("export", "convert a filter to a file of another system");
  auto& o = line.options_of(c, export_file);
  c.positional("FILTER", o.filter, "file of the filter").required().file();
  c.option("--to", o.format, "FORMAT", "format of the file").required().one_of(names_of_formats());
  c.option("-o,--output", o.output, "FILE", "new file; an existing filter is replaced").required().file();
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  c.example("bloomery build --scheme guava -o users.bloom users.txt");
  c.example("bloomery export users.bloom --to guava -o users.guava");
  c.footer(list_of_formats() + "A filter of another scheme or layout must be built again from its keys.");
}

}  // namespace bloomery::cli
