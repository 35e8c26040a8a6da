// What info prints alike of filters of all families.
#pragma once

#include "cli/commands/commands.hpp"
#include "cli/commands/error_facts.hpp"
#include "cli/io/output.hpp"

#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>

namespace bloomery::cli {

/// Lines of a name and a value.
class info_page {
 public:
  explicit info_page(output& out) : out_(out) {}

  void line(const std::string& name, const std::string& value);

  /// The seed and the secret's check value, if the filter has them.
  void seed_and_secret(const params& p);

  /// The measured rate, or that it takes a secret.
  void measured(const info_options& options, const params& p, const std::optional<measured_rate>& rate);

  /// The user's note, and what --check found.
  void end(const info_options& options, const file_info& file, const inspection& pages);

 private:
  output& out_;
};

/// What the JSON object begins with: name, layout, what sort it is, hash, kind of keys, seed, the secret's check value.
/// @param sort  {"family", ...} or {"scheme", ...}
nlohmann::ordered_json info_head(const std::string& name, const params& p,
                                 const std::pair<const char*, nlohmann::ordered_json>& sort);

/// What that of a file begins with, whose keys are added one by one: sizes, promise and the count of keys, too.
nlohmann::ordered_json info_head_of_file(const std::string& name, const mapped_storage& filter);

/// Adds the rates, with room for the measured one.
void add_rates(nlohmann::ordered_json& result, const error_facts& now);

/// null if it is empty.
nlohmann::ordered_json name_or_null(const std::string& name);

/// Adds the measured rate, if there is one, and what --check found; and writes the object.
void write_info(output& out, const info_options& options, nlohmann::ordered_json result,
                const std::optional<measured_rate>& measured, const inspection& pages);

}  // namespace bloomery::cli
