#include "cli/commands/info_page.hpp"

#include <fmt/format.h>

namespace bloomery::cli {

void info_page::line(const std::string& name, const std::string& value) {
  out_.write(fmt::format("{:<14}{}\n", name, value));
}

void info_page::seed_and_secret(const params& p) {
  if (p.seed != 0) line("seed", std::to_string(p.seed));
  if (p.key_check != 0) line("secret", "check value " + key_check_text(p.key_check));
}

void info_page::measured(const info_options& options, const params& p, const std::optional<measured_rate>& rate) {
  if (rate)
    line("measured", rate_with_interval(*rate));
  else if (p.key_check != 0 && options.secret.empty() && options.queries.value_or(1) > 0)
    line("measured", "not without its secret: add --secret KEYFILE");
}

void info_page::end(const info_options& options, const file_info& file, const inspection& pages) {
  if (!file.metadata.empty()) line("note", printable(file.metadata));
  if (!options.check_pages) return;
  line("pages", pages.problems.empty() ? "all match their checksums" : "");
  for (const std::string& problem : pages.problems) out_.write("  " + problem + "\n");
}

nlohmann::ordered_json info_head(const std::string& name, const params& p,
                                 const std::pair<const char*, nlohmann::ordered_json>& sort) {
  return {{"filter", name},
          {"layout", name_or_null(p.layout)},
          {sort.first, sort.second},
          {"hash", name_or_null(p.hash)},
          {"keys", name_of(p.keys)},
          {"seed", p.seed},
          {"key_check", name_or_null(p.key_check == 0 ? "" : key_check_text(p.key_check))}};
}

nlohmann::ordered_json info_head_of_file(const std::string& name, const mapped_storage& filter) {
  const file_info& file = filter.info();
  const params& p = file.parameters;
  nlohmann::ordered_json head = info_head(name, p, {"scheme", name_or_null(p.scheme)});
  head.update({{"bits", p.geometry.bits},
               {"bytes", filter.size()},
               {"file_bytes", file.file_bytes},
               {"probes", p.geometry.probes},
               {"capacity", p.capacity},
               {"target_rate", p.target_rate},
               {"inserted", file.counts.inserted},
               {"count_is_estimate", file.counts.is_estimate}});
  return head;
}

void add_rates(nlohmann::ordered_json& result, const error_facts& now) {
  result.update({{"rate_now", now.bits.certified_rate},
                 {"predicted_rate", now.predicted},
                 {"predicted_for_keys", now.keys},
                 {"measured_rate", nullptr}});
}

nlohmann::ordered_json name_or_null(const std::string& name) {
  return name.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(name);
}

void write_info(output& out, const info_options& options, nlohmann::ordered_json result,
                const std::optional<measured_rate>& measured, const inspection& pages) {
  if (measured) result["measured_rate"] = json_of(*measured);
  if (options.check_pages) result["problems"] = pages.problems;
  out.write(json_line(result));
}

}  // namespace bloomery::cli
