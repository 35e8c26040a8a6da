// JSON of the API (docs/playground-api.md): strict parsing of requests, field by field, and serialization of results.
#pragma once

#include "playground/session/demo_session.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/params.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::playground {

using json = nlohmann::ordered_json;

/// The largest integer that every JSON number type holds exactly.
inline constexpr std::uint64_t most_exact = (std::uint64_t{1} << 53) - 1;

/// The body of a request: an object whose fields are read one by one. Unknown fields are errors.
///
/// Example:
///     fields body(R"({"count": 3, "seed": "7"})");
///     assert(body.number("count", 1, 100) == 3 && body.seed("seed") == 7);
///     body.end();  // throws if there are other fields
class fields {
 public:
  /// @throws error invalid_argument: not a JSON object in UTF-8
  explicit fields(std::string_view text);
  static fields of(json object);  ///< @throws error as above

  /// @throws error  invalid_argument: the field is missing, of another type, or out of range; so do all other readers
  std::uint64_t number(const std::string& name, std::uint64_t least, std::uint64_t most);
  std::optional<std::uint64_t> number_if_any(const std::string& name, std::uint64_t least, std::uint64_t most);
  std::optional<double> rate_if_any(const std::string& name);
  std::string text_if_any(const std::string& name);
  bool flag(const std::string& name);           ///< false if absent
  std::uint64_t seed(const std::string& name);  ///< a number below 2^53, or a string of digits; 0 if absent
  std::string key(const std::string& name);     ///< a string, or {"base64": "..."}
  key_list keys(std::uint64_t most);            ///< "keys" or "addresses"; too_large: more than `most`
  fields object(const std::string& name);
  json take(const std::string& name);  ///< null if absent
  bool has(const std::string& name) const { return object_.contains(name); }

  /// @throws error  invalid_argument: a field that was not read
  void end() const;

 private:
  fields() = default;
  json object_;
};

wanted_filter wanted_from(fields& body);

json json_of_key(std::string_view key);  ///< a string, or {"base64": "..."}
json json_of_keys(const std::vector<std::string>& keys);
json json_of(const params& p);                                              ///< PARAMS of a filter with one layer
json params_json(const filter_facts& f);                                    ///< PARAMS of any filter
json facts_json(const filter_facts& f, std::optional<std::uint64_t> keys);  ///< FACTS; requires f.fill
json json_of(const key_view& view, std::uint64_t block_cells);
json json_of(const error& e);

/// A sentence about a contradictory count of keys; empty if there is none.
std::string alarm_of(const filter_facts& f);

/// Serialized on one line; invalid UTF-8 is replaced.
std::string text_of(const json& value);

/// The HTTP status of an error.
int status_of(errc code) noexcept;

}  // namespace bloomery::playground
