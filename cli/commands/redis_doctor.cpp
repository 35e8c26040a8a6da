// bloomery redis doctor ADDRESS: checks servers for settings that endanger a filter, and names the fix.
//
//   $ bloomery redis doctor redis://cache/users
//   OK      server       redis 7.0.15, one server
//   RISK    persistence  no append-only file: a restart goes back to the last snapshot
//                        fix: CONFIG SET appendonly yes, and the same in its configuration
//   ...
//
// Nothing is changed. A check that cannot be made is listed as "not checked", with the reason. Exit status: 0 no risks,
// 1 risks were found or some checks could not be made, 2 an error.
#include "cli/commands/redis_doctor.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/redis.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"
#include "cli/text/color.hpp"

#include <bloomery/redis/address.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

const char* name_of(severity s) {
  constexpr const char* names[] = {"OK", "UNKNOWN", "RISK", "BAD"};
  return names[static_cast<std::size_t>(s)];
}

// Padded to the width of its column.
std::string painted_status(severity s) {
  constexpr tone tones[] = {tone::good, tone::warning, tone::warning, tone::bad};
  return painted(fmt::format("{:<7}", name_of(s)), tones[static_cast<std::size_t>(s)], STDOUT_FILENO);
}

exit_status redis_doctor(const doctor_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  const examination examined = examine(address, options);
  const std::vector<finding>& found = examined.findings;
  severity worst = severity::ok;
  for (const finding& f : found) worst = std::max(worst, f.status);

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
    for (const std::string& name : examined.nodes) nodes.push_back(name);
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    for (const finding& f : found) {
      lines.push_back({{"check", f.check},
                       {"status", name_of(f.status)},
                       {"text", f.text},
                       {"mend", f.mend.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(f.mend)},
                       {"nodes", f.nodes}});
    }
    out.write(
        json_line({{"filter", address.text()}, {"status", name_of(worst)}, {"nodes", nodes}, {"findings", lines}}));
  } else {
    for (const finding& f : found) {
      std::string where;
      if (!f.nodes.empty() && f.nodes.size() < examined.nodes.size()) {
        for (const std::string& name : f.nodes) where += (where.empty() ? " [" : ", ") + name;
        where += "]";
      }
      out.write(fmt::format("{} {:<12} {}\n", painted_status(f.status), f.check, printable(f.text + where)));
      if (!f.mend.empty()) out.write(fmt::format("{:<7} {:<12} fix: {}\n", "", "", printable(f.mend)));
    }
  }
  out.flush();
  return worst == severity::ok ? exit_status::found : exit_status::nothing;
}

}  // namespace

void add_redis_doctor(command_line& line, command& redis) {
  command& d = redis.subcommand("doctor", "check servers for settings that endanger a filter");
  auto& o = line.options_of(d, redis_doctor);
  d.positional("ADDRESS", o.address, "address of a filter, which need not exist yet").required().not_empty();
  add_secret(d, o.secret);
  d.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_waiting(d, o.server);
  add_from_replicas(d, o.server);
  add_server(d, o.server);
  d.example("bloomery redis doctor redis://cache/users");
  d.footer(
      "Exit status: 0 if no risk was found, 1 if risks were found or some checks were not possible, 2 on error.\n");
  d.footer(addresses);
}

}  // namespace bloomery::cli
