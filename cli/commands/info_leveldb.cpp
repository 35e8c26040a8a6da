#include "cli/commands/info_leveldb.hpp"

#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/io/output.hpp"

#include <bloomery/leveldb.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

using json = nlohmann::ordered_json;

// All filters of a table of LevelDB that have keys.
struct table_facts {
  std::uint64_t filters = 0;
  std::uint64_t bits = 0;
  std::uint64_t ones = 0;
  estimate keys = {};
  double least_fpr = 1;
  double mean_fpr = 0;
  double most_fpr = 0;
};

table_facts facts_of(const std::vector<leveldb_filter>& filters) {
  table_facts all;
  for (const leveldb_filter& filter : filters) {
    if (filter.size.bits == 0) continue;
    ++all.filters;
    all.bits += filter.size.bits;
    all.ones += filter.ones;
    all.keys.value += filter.keys.value;
    all.keys.sigma = std::hypot(all.keys.sigma, filter.keys.sigma);
    all.least_fpr = std::min(all.least_fpr, filter.current_fpr);
    all.mean_fpr += filter.current_fpr;
    all.most_fpr = std::max(all.most_fpr, filter.current_fpr);
  }
  if (all.filters == 0) return {.least_fpr = 0};
  all.mean_fpr /= static_cast<double>(all.filters);
  return all;
}

json json_of(const leveldb_filter& filter) {
  return {{"first", filter.first},         {"end", filter.end},   {"bits", filter.size.bits},
          {"probes", filter.size.probes},  {"ones", filter.ones}, {"estimated_keys", number_or_null(filter.keys.value)},
          {"rate_now", filter.current_fpr}};
}

double fill_ratio(std::uint64_t ones, std::uint64_t bits) {
  return bits == 0 ? 0 : static_cast<double>(ones) / static_cast<double>(bits);
}

// How keys are looked up, and the FPR of this.
void describe_lookups(json& object, std::string& text, const leveldb_table& table,
                      const std::vector<leveldb_filter>& filters, double mean_fpr) {
  const std::string& reason = table.all_filters_because();
  double no_filter = 0;  // ln of the probability that no filter reports a key
  for (const leveldb_filter& filter : filters) no_filter += std::log1p(-filter.current_fpr);
  const double fpr = reason.empty() ? mean_fpr : -std::expm1(no_filter);
  object.update({{"all_filters_because", reason.empty() ? json(nullptr) : json(reason)}, {"rate_of_lookups", fpr}});
  if (reason.empty())
    text += line_of("lookups", "in the filter of the key's data block");
  else
    text += line_of("lookups", fmt::format("in all filters, FPR {}: {}", rate_text(fpr), printable(reason)));
}

void describe(json& object, std::string& text, const leveldb_table& table, bool lists_filters) {
  const std::vector<leveldb_filter> filters = table.filters();
  const table_facts all = facts_of(filters);
  const auto first = std::find_if(filters.begin(), filters.end(), [](const auto& f) { return f.size.bits > 0; });
  const std::uint32_t probes = first == filters.end() ? 0 : first->size.probes;
  object.update({{"bits", all.bits},
                 {"probes", probes},
                 {"fill", fill_ratio(all.ones, all.bits)},
                 {"estimated_keys", number_or_null(all.keys.value)},
                 {"estimated_keys_sigma", number_or_null(all.keys.sigma)},
                 {"rate_min", all.least_fpr},
                 {"rate_now", all.mean_fpr},
                 {"rate_max", all.most_fpr}});
  if (lists_filters) {
    object["filters"] = json::array();
    for (const leveldb_filter& filter : filters) object["filters"].push_back(json_of(filter));
  }
  if (all.filters == 0) {
    text += line_of("filters", "none: the table has no keys");
    return;
  }
  text += line_of("filters", fmt::format("{}, one per {} of data that has keys", count_text(all.filters),
                                         bytes_text(first->end - first->first)));
  text += line_of(
      "size", fmt::format("{} ({}, {} per key), {:.1f}% of the bits set", bytes_text(all.bits / 8),
                          counted(all.bits, "bit"), counted(probes, "probe"), 100 * fill_ratio(all.ones, all.bits)));
  text += line_of("keys", std::isfinite(all.keys.value) ? keys_text(all.keys, "key") : "all bits of a filter are set");
  text += line_of("FPR", fmt::format("{} (mean of the filters; {} to {})", rate_text(all.mean_fpr),
                                     rate_text(all.least_fpr), rate_text(all.most_fpr)));
  if (table.no_lookups().empty()) describe_lookups(object, text, table, filters, all.mean_fpr);
}

// The keys and the FPR that the bits of a table of RocksDB show.
void describe_rate(json& object, std::string& text, leveldb_table table) {
  const filter_facts facts = make_handle(std::move(table))->info(info_depth::bits);
  const estimate keys = facts.fill->estimated_keys.value_or(estimate{});
  const double rate = facts.fill->current_fpr;
  object.update({{"estimated_keys", number_or_null(keys.value)},
                 {"estimated_keys_sigma", number_or_null(keys.sigma)},
                 {"rate_now", rate},
                 {"rate_now_within", facts.fill->uncertainty}});
  text += line_of("keys", std::isfinite(keys.value) ? keys_text(keys, "key") : "all bits are set");
  text += line_of("FPR", rate_text(rate) + uncertainty_text(*facts.fill));
}

void describe(json& object, std::string& text, const rocksdb_filter& filter) {
  const std::uint64_t bits = 512 * filter.lines;
  const double fill = fill_ratio(filter.ones, bits);
  const char* const kind = filter.is_legacy ? "legacy_bloom" : "fast_local_bloom";
  object.update({{"kind", kind}, {"bits", bits}, {"lines", filter.lines}, {"probes", filter.probes}, {"fill", fill}});
  text += line_of("kind", filter.is_legacy ? "legacy_bloom, of format_version 4 and before"
                                           : "fast_local_bloom, of format_version 5");
  text += line_of("size", fmt::format("{} ({} of 64 bytes, {} per key), {:.1f}% of the bits set", bytes_text(bits / 8),
                                      counted(filter.lines, "line"), counted(filter.probes, "probe"), 100 * fill));
}

}  // namespace

exit_status info_of_leveldb(const container_info_options& options) {
  leveldb_table table = leveldb_table::open(options.file);
  const std::string no_lookups = table.no_lookups();
  const bool is_rocksdb = table.of_rocksdb().has_value();
  json object = {{"filter", options.file},
                 {"format", is_rocksdb ? "rocksdb_table" : "leveldb_table"},
                 {"policy", table.policy()},
                 {"file_bytes", table.file_bytes()}};
  std::string text = line_of("filter", printable(options.file));
  text += line_of("format",
                  fmt::format("{}, filter policy {}", is_rocksdb ? "rocksdb_table" : "leveldb_table", table.policy()));
  if (is_rocksdb) {
    const bool has_checksums = table.has_checksums();
    describe(object, text, *table.of_rocksdb());
    if (no_lookups.empty()) describe_rate(object, text, std::move(table));
    object["has_checksums"] = has_checksums;
    if (!has_checksums) text += line_of("checksums", "none: damage is not noticed");
  } else {
    describe(object, text, table, options.json);
  }
  object["no_lookups"] = no_lookups.empty() ? json(nullptr) : json(no_lookups);
  if (!no_lookups.empty()) text += line_of("lookups", "impossible: " + printable(no_lookups));
  output out(STDOUT_FILENO, "standard output");
  out.write(options.json ? json_line(object) : text);
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
