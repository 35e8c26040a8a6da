// The filters on servers, found by their keys: names, descriptions and memory.
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

/// Inverse of redis::key_name(); nothing for texts that it does not return.
std::optional<std::string> decoded_key_name(std::string_view name);

/// What the keys {NAME}:m, {NAME}:m2 and {NAME}:n of a name contain.
struct described_name {
  std::shared_ptr<const redis::meta> now = {};  ///< the filter in use, by {NAME}:m, or by {NAME}:m2 if that is missing
  std::shared_ptr<const redis::meta> second = {};  ///< by {NAME}:m2
  std::shared_ptr<const redis::meta> coming = {};  ///< the filter that is to replace it
  std::string problem = {};                        ///< why a description could not be read; empty: all were
  bool is_other = false;                           ///< the name has a value that is not of this program
};

/// Reads the descriptions of all these names in a few exchanges. A name that the user may not read has a problem.
/// @throws error  as redis::router::run
std::vector<described_name> descriptions_of(redis::router& servers, const std::vector<std::string>& names);

/// Memory of a filter in bytes, by MEMORY USAGE of the keys of up to 16 shards; nothing if that is not allowed.
/// @throws error  as redis::router::run
std::optional<std::uint64_t> memory_of(redis::router& servers, const redis::meta& description);

/// Sum of MEMORY USAGE over these keys; nothing if that is not allowed.
std::optional<std::uint64_t> memory_of_keys(redis::router& servers, const std::vector<std::string>& keys);

}  // namespace bloomery::cli
