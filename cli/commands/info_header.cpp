#include "cli/commands/info_header.hpp"

#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/container.hpp"
#include "cli/commands/info_text.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/redis/address.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <string_view>

namespace bloomery::cli {
namespace {

using json = nlohmann::ordered_json;

json json_of(const std::string& path, const file_info& header) {
  const params& p = header.parameters;
  const window_length& length = p.window();
  return {{"filter", path},
          {"layout", text_or_null(p.layout)},
          {"scheme", text_or_null(p.scheme)},
          {"salts", salts_json(p.salts())},
          {"hash", text_or_null(p.hash)},
          {"keys", name_of(p.keys)},
          {"seed", p.seed},
          {"key_check", text_or_null(p.key_check == 0 ? "" : key_check_text(p.key_check))},
          {"bits", p.geometry.bits},
          {"bytes", bytes_for(p.geometry.bits)},
          {"file_bytes", header.file_bytes},
          {"probes", p.geometry.probes},
          {"capacity", p.capacity},
          {"target_rate", p.target_fpr},
          {"window_keys", p.has_window() && !length.by_time() ? json(length.count) : json(nullptr)},
          {"window_milliseconds", p.has_window() && length.by_time() ? json(length.count) : json(nullptr)},
          {"log", p.log_id() == 0 ? json(nullptr) : json(path + ".log")},
          {"inserted", header.counts.inserted},
          {"count_is_estimate", header.counts.is_estimate || !header.clean},
          {"clean", header.clean},
          {"slot_damaged", header.slot_damaged},
          {"note", header.metadata}};
}

std::string text_of(const std::string& path, const file_info& header) {
  const params& p = header.parameters;
  std::string text;
  const auto line = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{:<14}{}\n", name, value);
  };
  line("filter", path);
  line("kind", p.scheme.empty() ? fmt::format("{}, hash {}, keys {}", p.layout, p.hash, name_of(p.keys))
                                : "scheme " + p.scheme);
  if (p.seed != 0) line("seed", std::to_string(p.seed));
  if (!p.salts().empty()) line("salts", salts_text(p.salts()));
  if (p.key_check != 0) line("secret", "check value " + key_check_text(p.key_check));
  if (p.has_window()) line("window", length_text(p.window()));
  line("size", fmt::format("{} ({}, {})", bytes_text(bytes_for(p.geometry.bits)), counted(p.geometry.bits, "bit"),
                           probes_text(p)));
  line("capacity", p.capacity == 0 ? "unknown number of keys"
                                   : fmt::format("{} at {}", counted(p.capacity, "key"), rate_text(p.target_fpr)));
  line("inserted", fmt::format("{}, {}", counted(header.counts.inserted, "key"),
                               !header.clean               ? "when last closed"
                               : header.counts.is_estimate ? "estimated"
                                                           : "counted"));
  if (p.log_id() != 0) line("log", path + ".log");
  line("state", header.clean ? "clean" : "not closed cleanly (a writer is active or was killed)");
  if (!header.metadata.empty()) line("note", printable(header.metadata));
  return text;
}

}  // namespace

exit_status info_of_header(const std::string& path, bool json) {
  if (redis_address::is_one(path)) {
    throw error(errc::invalid_argument, {"a filter on servers has no file header", "--header", "a file",
                                         redis_address::parse(path).text(), "leave out --header"});
  }
  const file_format* const other = recognize_format(path);
  const container_kind* const container = container_of(path);
  if (other != nullptr || container != nullptr) {
    throw error(errc::invalid_argument,
                {"files of other systems have no header of bloomery", "--header", "a file of bloomery",
                 "format " + std::string(other == nullptr ? container->format : other->name), "leave out --header"});
  }
  const mapped_storage file = mapped_storage::open(path, {.check = file_check::header});
  output out(STDOUT_FILENO, "standard output");
  out.write(json ? json_line(json_of(path, file.info())) : text_of(path, file.info()));
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
