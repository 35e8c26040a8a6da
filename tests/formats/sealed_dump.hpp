// Seals changed values of DUMP with their checksum.
#pragma once

#include "formats/rdb.hpp"

#include <cstdint>
#include <string>

namespace bloomery_tests {

/// A value with a matching checksum in place of its last 8 bytes.
inline std::string sealed_dump(std::string content) {
  content.resize(content.size() - 8);
  const std::uint64_t crc =
      bloomery::rdb::crc64(0, {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
  return content.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

}  // namespace bloomery_tests
