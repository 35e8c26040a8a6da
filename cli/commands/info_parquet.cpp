#include "cli/commands/info_parquet.hpp"

#include "app/numbers.hpp"
#include "cli/io/output.hpp"

#include <bloomery/judgement.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/parquet.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {
namespace {

using json = nlohmann::ordered_json;

std::string type_text(const parquet_column& column) {
  return column.annotation.empty() ? column.type : fmt::format("{} ({})", column.type, printable(column.annotation));
}

struct with_filters {
  std::uint64_t row_groups = 0;
  std::uint64_t bytes = 0;
};

with_filters count_filters(const parquet_column& column) {
  with_filters all;
  for (const parquet_row_group& group : column.row_groups) {
    all.row_groups += group.filter_bytes == 0 ? 0 : 1;
    all.bytes += group.filter_bytes;
  }
  return all;
}

void print(const container_info_options& options, const json& object, const std::string& text) {
  output out(STDOUT_FILENO, "standard output");
  out.write(options.json ? json_line(object) : text);
  out.flush();
}

void list_columns(const container_info_options& options) {
  const std::vector<parquet_column> columns = parquet_columns(options.file);
  json object = {{"filter", options.file}, {"format", "parquet"}, {"columns", json::array()}};
  std::string text = line_of("filter", printable(options.file));
  text += line_of("format", "parquet; --column NAME shows the filters of a column");
  for (const parquet_column& column : columns) {
    const with_filters all = count_filters(column);
    object["columns"].push_back({{"column", column.name},
                                 {"type", column.type},
                                 {"annotation", column.annotation},
                                 {"row_groups", column.row_groups.size()},
                                 {"filters", all.row_groups},
                                 {"unreadable", column.unreadable.empty() ? json(nullptr) : json(column.unreadable)},
                                 {"bytes", all.bytes}});
    const std::string filters =
        all.row_groups == 0
            ? (column.unreadable.empty() ? "no filter" : "unreadable filters: " + printable(column.unreadable))
            : fmt::format("filters in {} of {}, {}", count_text(all.row_groups),
                          counted(column.row_groups.size(), "row group"), bytes_text(all.bytes));
    text += line_of("column", fmt::format("{}: {}, {}", printable(column.name), type_text(column), filters));
  }
  print(options, object, text);
}

// The filter of a row group.
struct group_facts {
  fill_statistics bits;
  estimate values;
  fpr_judgement judgement;
};

group_facts facts_of(const any_filter& filter, const container_info_options& options) {
  params p = filter.parameters();
  p.capacity = 0;
  p.target_fpr = options.rate.value_or(0);
  group_facts facts{measure_fill(p, filter.bytes()), {}, {}};
  facts.values = estimated_keys(p, facts.bits.ones);
  facts.judgement = judge_fpr(p, facts.bits.current_fpr);
  return facts;
}

json json_of(const parquet_row_group& group, const group_facts& facts) {
  const double cells = 8 * static_cast<double>(group.filter_bytes);
  return {{"row_group", group.number},
          {"rows", group.rows},
          {"bytes", group.filter_bytes},
          {"fill", static_cast<double>(facts.bits.ones) / cells},
          {"estimated_keys", number_or_null(facts.values.value)},
          {"estimated_keys_sigma", number_or_null(facts.values.sigma)},
          {"rate_now", facts.bits.current_fpr},
          {"fpr_verdict", name_of(facts.judgement.verdict)}};
}

std::string text_of(const parquet_row_group& group, const group_facts& facts) {
  const double cells = 8 * static_cast<double>(group.filter_bytes);
  return fmt::format(
      "{}, {}, {}, {:.1f}% of the bits, FPR {}{}", counted(group.rows, "row"), bytes_text(group.filter_bytes),
      std::isfinite(facts.values.value) ? keys_text(facts.values, "distinct value") : "all bits are set",
      100 * static_cast<double>(facts.bits.ones) / cells, rate_text(facts.bits.current_fpr),
      facts.judgement.is_broken() ? fmt::format(", more than {}", rate_text(facts.judgement.target)) : "");
}

exit_status show_column(const container_info_options& options) {
  const parquet_filters filters = parquet_filters::open(options.file, options.column);
  const parquet_column& column = filters.column();
  json object = {{"filter", options.file},
                 {"format", "parquet"},
                 {"column", column.name},
                 {"type", column.type},
                 {"annotation", column.annotation},
                 {"layout", "split_block"},
                 {"hash", "xxh64"},
                 {"target_rate", options.rate ? json(*options.rate) : json(nullptr)},
                 {"row_groups", json::array()}};
  std::string text = line_of("filter", printable(options.file));
  text += line_of("format", "parquet");
  text += line_of("column", fmt::format("{}: {}, {}", printable(column.name), type_text(column),
                                        counted(column.row_groups.size(), "row group")));
  text += line_of("kind", "split_block, hash xxh64");
  if (options.rate) text += line_of("target", rate_text(*options.rate));
  double needless = 0;  // expected row groups that are read for an absent value
  std::uint64_t broken = 0;
  for (const parquet_row_group& group : column.row_groups) {
    const std::string name = "group " + count_text(group.number);
    const any_filter* const filter = filters.filter(group.number);
    if (filter == nullptr) {
      needless += 1;
      object["row_groups"].push_back(
          {{"row_group", group.number}, {"rows", group.rows}, {"bytes", 0}, {"rate_now", 1.0}});
      text += line_of(name, counted(group.rows, "row") + ", no readable filter: it must always be read");
      continue;
    }
    const group_facts facts = facts_of(*filter, options);
    needless += facts.bits.current_fpr;
    broken += facts.judgement.is_broken() ? 1 : 0;
    object["row_groups"].push_back(json_of(group, facts));
    text += line_of(name, text_of(group, facts));
  }
  object["needless_reads"] = needless;
  text += line_of("reads", fmt::format("{:.4g} of {} expected per absent value", needless,
                                       counted(column.row_groups.size(), "row group")));
  print(options, object, text);
  return broken > 0 ? exit_status::target_missed : exit_status::found;
}

}  // namespace

exit_status info_of_parquet(const container_info_options& options) {
  if (!options.column.empty()) return show_column(options);
  list_columns(options);
  return exit_status::found;
}

}  // namespace bloomery::cli
