// bloomery info of a sealed filter: its keys are all known, and nothing can change.
#include "commands.hpp"
#include "numbers.hpp"
#include "output.hpp"
#include "signals.hpp"

#include <bloomery/census.hpp>
#include <bloomery/fuse.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace bloomery::cli {
namespace {

std::optional<measured_rate> measured_by(const info_options& options, const params& p) {
  constexpr std::uint64_t usual_queries = 1'000'000;
  if (p.key_check != 0 && options.secret.empty()) return std::nullopt;
  const std::uint64_t queries = options.queries.value_or(usual_queries);
  if (queries == 0) return std::nullopt;
  const measured_rate measured =
      measure_rate(open_filter(options.filter, options.secret), queries, 0, 0, [] { return stop_signal() == 0; });
  if (stop_signal() != 0) throw interrupted();
  return measured;
}

}  // namespace

exit_status info_of_sealed(const info_options& options, const mapped_storage& bits) {
  const file_info& file = bits.info();
  const params& p = file.parameters;
  const std::span<const std::uint8_t> payload(bits.data(), bits.size());
  const census now = take_census(p, payload);  // throws if the bytes contradict each other
  const inspection pages = options.check_pages ? inspect(options.filter, check::payload) : inspection{};
  const std::uint64_t keys = fuse_keys(payload);
  const std::uint64_t partitions = fuse::partitions_in(payload.data());
  const std::optional<measured_rate> measured = measured_by(options, p);
  const std::string check_value = p.key_check == 0 ? "" : key_check_text(p.key_check);
  const double bits_a_key =
      static_cast<double>(p.geometry.bits) / static_cast<double>(std::max<std::uint64_t>(keys, 1));

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    nlohmann::ordered_json result = {
        {"filter", options.filter},
        {"layout", p.layout},
        {"family", name_of(family_of(p))},
        {"hash", p.hash},
        {"keys", name_of(p.keys)},
        {"seed", p.seed},
        {"key_check", check_value.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(check_value)},
        {"bits", p.geometry.bits},
        {"bytes", bits.size()},
        {"file_bytes", file.file_bytes},
        {"width", cell_bits_of(p)},
        {"probes", p.geometry.probes},
        {"partitions", partitions},
        {"capacity", p.capacity},
        {"inserted", keys},
        {"count_is_estimate", false},
        {"bits_a_key", keys == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(bits_a_key)},
        {"target_rate", p.target_rate},
        {"rate_now", now.certified_rate},
        {"predicted_rate", fuse_rate(cell_bits_of(p), keys)},
        {"measured_rate", nullptr},
        {"keys_left", 0},
        {"clean", file.clean},
        {"note", file.metadata}};
    if (measured) result["measured_rate"] = json_of(*measured);
    if (options.check_pages) result["problems"] = pages.problems;
    out.write(json_line(result));
  } else {
    const auto line = [&](const char* name, const std::string& value) {
      out.write(fmt::format("{:<14}{}\n", name, value));
    };
    line("filter", options.filter);
    line("kind", fmt::format("sealed, {}, hash {}, keys {}", p.layout, p.hash, name_of(p.keys)));
    if (p.seed != 0) line("seed", std::to_string(p.seed));
    if (!check_value.empty()) line("secret", "check value " + check_value);
    line("keys", counted(keys, "distinct key") + ", exactly; it takes no more");
    line("size", fmt::format("{}{}, in {}", bytes_text(bits.size()),
                             keys == 0 ? "" : fmt::format(", {:.4g} bits a key", bits_a_key),
                             counted(partitions, "partition")));
    line("lookup", fmt::format("3 fingerprints of {} bits", cell_bits_of(p)));
    line("error", rate_text(now.certified_rate) + ", exact, whatever was put in");
    if (measured)
      line("measured", rate_with_interval(*measured));
    else if (p.key_check != 0 && options.secret.empty() && options.queries.value_or(1) > 0)
      line("measured", "not without its secret: add --secret KEYFILE");
    line("state", file.clean ? "clean" : "not closed cleanly, which a sealed filter never is: see --check");
    if (!file.metadata.empty()) line("note", printable(file.metadata));
    if (options.check_pages) {
      line("pages", pages.problems.empty() ? "all match their checksums" : "");
      for (const std::string& problem : pages.problems) out.write("  " + problem + "\n");
    }
  }
  out.flush();
  return pages.problems.empty() ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
