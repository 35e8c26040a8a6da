// Key names of a Guava chain. The first two are those of the Java implementation.
#pragma once

#include <cstdint>
#include <string>

namespace bloomery::redis {

inline std::string bitmap_key(const std::string& name, std::uint64_t i) { return name + "-" + std::to_string(i); }
inline std::string cursor_key(const std::string& name) { return name == "bloomfilter" ? "cursor" : name + "-cursor"; }
inline std::string chain_facts_key(const std::string& name) { return name + "-bloomery"; }

}  // namespace bloomery::redis
