// A survey of the filters on servers: names, descriptions and memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {
struct meta;
class router;
}  // namespace bloomery::redis

namespace bloomery::cli {

/// Inverse of redis::key_name(); empty for other texts.
std::optional<std::string> decoded_key_name(std::string_view name);

/// The contents of the keys {NAME}:m, {NAME}:m2 and {NAME}:n.
struct described_name {
  std::shared_ptr<const redis::meta> now = {};  ///< the filter in use, by {NAME}:m, or by {NAME}:m2 if that is missing
  std::shared_ptr<const redis::meta> second = {};  ///< by {NAME}:m2
  std::shared_ptr<const redis::meta> coming = {};  ///< the filter that will replace it
  std::string problem = {};                        ///< why a description could not be read; empty: no problem
  bool is_other = false;                           ///< the key has a value of another program
};

/// Reads the descriptions of all these names in a few requests. A name without permission gets a problem.
/// @throws error  as redis::router::run
std::vector<described_name> descriptions_of(redis::router& servers, const std::vector<std::string>& names);

/// Memory of a filter in bytes, by MEMORY USAGE of the keys of up to 16 shards; empty without permission.
/// @throws error  as redis::router::run
std::optional<std::uint64_t> memory_of(redis::router& servers, const redis::meta& description);

/// Sum of MEMORY USAGE over these keys; empty without permission.
std::optional<std::uint64_t> memory_of_keys(redis::router& servers, const std::vector<std::string>& keys);

}  // namespace bloomery::cli
