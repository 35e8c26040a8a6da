// bloomery info of a sealed filter: its keys are all known, and nothing can change.
#include "cli/commands/commands.hpp"
#include "cli/commands/info_page.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/census.hpp>
#include <bloomery/fuse.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace bloomery::cli {

exit_status info_of_sealed(const info_options& options, const mapped_storage& bits, const inspection& pages,
                           const std::optional<measured_rate>& measured) {
  const file_info& file = bits.info();
  const params& p = file.parameters;
  const std::span<const std::uint8_t> payload(bits.data(), bits.size());
  const census now = take_census(p, payload);  // throws if the bytes contradict each other
  const std::uint64_t keys = fuse_keys(payload);
  const std::uint64_t partitions = fuse::partitions_in(payload.data());
  const double bits_a_key =
      static_cast<double>(p.geometry.bits) / static_cast<double>(std::max<std::uint64_t>(keys, 1));

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    nlohmann::ordered_json result = info_head(options.filter, p, {"family", name_of(family_of(p))});
    result.update({{"bits", p.geometry.bits},
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
                   {"note", file.metadata}});
    write_info(out, options, std::move(result), measured, pages);
  } else {
    info_page page(out);
    const auto line = [&](const std::string& name, const std::string& value) { page.line(name, value); };
    line("filter", options.filter);
    line("kind", fmt::format("sealed, {}, hash {}, keys {}", p.layout, p.hash, name_of(p.keys)));
    page.seed_and_secret(p);
    line("keys", counted(keys, "distinct key") + ", exactly; it takes no more");
    line("size", fmt::format("{}{}, in {}", bytes_text(bits.size()),
                             keys == 0 ? "" : fmt::format(", {:.4g} bits a key", bits_a_key),
                             counted(partitions, "partition")));
    line("lookup", fmt::format("3 fingerprints of {} bits", cell_bits_of(p)));
    line("error", rate_text(now.certified_rate) + ", exact, whatever was put in");
    page.measured(options, p, measured);
    line("state", file.clean ? "clean" : "not closed cleanly, which a sealed filter never is: see --check");
    page.end(options, file, pages);
  }
  out.flush();
  return pages.problems.empty() ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
