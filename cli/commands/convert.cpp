// bloomery import FILE -o X.bloom and bloomery export FILTER --to FORMAT -o FILE: filter files of other systems.
//
//   $ bloomery import users.guava -o users.bloom
//   $ bloomery export users.bloom --to guava -o users.guava
//
// The bits stay as they are. A filter whose bits another system cannot use has to be built again from its keys.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/container.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/parquet.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr const char* parquet_format = "parquet";  // a container of filters, not a row of file_formats()

struct import_options {
  std::string file;
  std::string output;
  std::string format;  ///< empty: recognized
  std::optional<std::uint64_t> capacity;
  std::optional<double> rate;
  std::string column;                      ///< of a Parquet file
  std::optional<std::uint64_t> row_group;  ///< of a Parquet file
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
  if (options.capacity == 0 || (options.rate && !(*options.rate > 0 && *options.rate < 1))) {
    throw error(errc::invalid_argument, {"the target is out of range", options.capacity == 0 ? "--capacity" : "--rate",
                                         "at least one key, and a rate between 0 and 1", "", ""});
  }
  if (options.capacity) p.capacity = *options.capacity;
  if (options.rate) p.target_fpr = *options.rate;
  if (options.rate && !options.capacity) p.capacity = std::max<std::uint64_t>(keys_within(p, p.target_fpr), 1);
  if (options.capacity && !options.rate) p.target_fpr = expected_fpr(p, p.capacity);
  if (options.capacity && p.target_fpr >= 1) {
    throw error(errc::invalid_argument, {"the filter is too small for this number of keys at any false-positive rate",
                                         "--capacity", "fewer keys", count_text(p.capacity), ""});
  }
}

// The count of the file if the bits confirm it, otherwise the estimate from the bits.
key_counts counts_of(const any_filter& filter, const estimate& keys) {
  key_counts counts = filter.counts();
  if (!std::isfinite(keys.value)) return counts;
  const double by_bits = static_cast<double>(counted_of_estimate(filter.parameters(), keys.value));
  if (std::abs(static_cast<double>(counts.inserted) - by_bits) > 5 * keys.sigma + 1)
    counts.inserted = static_cast<std::uint64_t>(by_bits);
  return counts;
}

// A filter to be saved, and the format of the file that it is from.
struct imported {
  any_filter filter;
  params parameters;
  std::string format;
  std::string note;
};

// The key of an imported filter is a line of text, or with --u64 a number: other types have keys that are neither.
key_kind keys_of(const parquet_column& column) {
  if (column.type == "BYTE_ARRAY" || column.type == "FIXED_LEN_BYTE_ARRAY") return key_kind::bytes;
  if (column.type == "INT64") return key_kind::u64le;
  throw error(errc::incompatible, {"the values of this column are neither text nor 64-bit integers", "--column",
                                   "type BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY or INT64", column.type,
                                   "look up its values in the file: bloomery check --column"});
}

imported import_parquet(const import_options& options) {
  if (options.column.empty() || !options.row_group) {
    throw error(errc::invalid_argument, {"a Parquet file has a filter per column and row group", options.file,
                                         "--column and --row-group", "", "'bloomery info' lists the columns"});
  }
  const parquet_filters filters = parquet_filters::open(options.file, options.column);
  const std::uint64_t groups = filters.column().row_groups.size();
  if (*options.row_group >= groups || filters.filter(*options.row_group) == nullptr) {
    throw error(errc::not_found, {"the row group has no filter for this column", "--row-group",
                                  "a row group below " + count_text(groups), count_text(*options.row_group),
                                  "'bloomery info --column' lists the row groups"});
  }
  imported result{filters.filter(*options.row_group)->clone(), {}, parquet_format, ""};
  result.parameters = result.filter.parameters();
  result.parameters.keys = keys_of(filters.column());
  return result;
}

imported import_any(const import_options& options) {
  const container_kind* const container = options.format.empty() ? container_of(options.file) : nullptr;
  const bool by_content = container != nullptr && container->has_columns;
  if (by_content || options.format == parquet_format) return import_parquet(options);
  if (!options.column.empty() || options.row_group) {
    throw error(errc::invalid_argument,
                {"this is not a Parquet file", options.file, "", "", "leave out --column and --row-group"});
  }
  if (container != nullptr) {
    const std::unique_ptr<filter_handle> table = container->open({.name = options.file});
    any_filter filter = table->copy();
    params p = filter.parameters();
    return {std::move(filter), std::move(p), table->info(info_depth::counts).file->format, ""};
  }
  imported result{import_filter(options.file, options.format), {}, "", ""};
  result.parameters = result.filter.parameters();
  result.format = result.filter.opened_from()->format;
  result.note = result.filter.opened_from()->metadata;
  return result;
}

exit_status import_file(const import_options& options) {
  refuse_shared(options.file, "import");
  refuse_shared(options.output, "import");
  const file_version replaced = check_replaceable(options.output, "--output");
  check_locks(options.output);
  imported from = import_any(options);
  const any_filter& filter = from.filter;
  params& p = from.parameters;
  add_target(p, options);
  const fill_statistics now = measure_fill(p, filter.bytes());
  const estimate keys = filter.estimated_keys();
  const key_counts counts = counts_of(filter, keys);
  if (stop_signal() != 0) throw interrupted();
  point_of_no_return();
  save_file(options.output, p, filter.bytes(), counts,
            create_options{.metadata = from.note, .expected = replaced, .no_lock = no_lock()});

  const std::string number = std::isfinite(keys.value) ? keys_text(keys, "key") : "all bits set";
  fpr_watch watch(options.output);
  if (p.capacity > 0) watch.judge(p, now.current_fpr, number);
  if (options.json) {
    nlohmann::ordered_json result = {
        {"filter", options.output},
        {"format", from.format},
        {"layout", p.layout.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(p.layout)},
        {"scheme", p.scheme.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(p.scheme)},
        {"bits", p.geometry.bits},
        {"probes", p.geometry.probes},
        {"estimated_keys", number_or_null(keys.value)},
        {"rate", now.current_fpr},
        {"capacity", p.capacity},
        {"target_rate", p.target_fpr}};
    add_verdict(result, watch.judgement());
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: imported from format {}: {}; {}; current FPR {}", options.output, from.format, size_text(p),
                    number, rate_text(now.current_fpr)));
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
  const file_info* const from = filter.opened_from();  // null: copied from a table
  std::string note = from == nullptr ? "" : from->metadata;
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
    text += fmt::format("  {:<22}{}; schemes: {}\n", format.name, format.system, format.schemes);
  return text;
}

}  // namespace

void add_import(command_line& line) {
  command& c = line.root.subcommand("import", "convert a filter file of another system to a file of bloomery");
  auto& o = line.options_of(c, import_file);
  c.positional("FILE", o.file, "filter file of another system").required().file();
  c.option("-o,--output", o.output, "FILTER", "new file; an existing filter is replaced").required().file();
  std::vector<std::string> formats = names_of_formats();
  formats.emplace_back(parquet_format);
  c.option("--from", o.format, "FORMAT", "format of the file; default: recognized by its content")
      .one_of(std::move(formats));
  parsed(c, "-n,--capacity", o.capacity, parse_count, "N", "capacity in keys, if the file does not state it");
  parsed(c, "-p,--rate", o.rate, parse_rate, "RATE", "target false-positive rate at this capacity");
  c.option("--column", o.column, "NAME", "column of a Parquet file");
  parsed(c, "--row-group", o.row_group, parse_count, "N", "row group of a Parquet file, from 0");
  add_no_lock(c);
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  c.example("bloomery import users.guava -o users.bloom -n 1M -p 1%");
  c.example("bloomery import orders.parquet --column user_id --row-group 0 -o users.bloom");
  c.footer(list_of_formats() +
           "  parquet               Apache Parquet, a column in a row group; layout split_block, hash xxh64\n"
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
