// What info prints alike of filters of all families.
#pragma once

#include "commands.hpp"
#include "output.hpp"

#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

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

/// The secret's check value as JSON; null if there is none.
nlohmann::ordered_json check_value_of(const params& p);

/// Adds the measured rate, if there is one, and what --check found; and writes the object.
void write_info(output& out, const info_options& options, nlohmann::ordered_json result,
                const std::optional<measured_rate>& measured, const inspection& pages);

}  // namespace bloomery::cli
