// The manifest of a LevelDB database, which names the comparator that orders the keys of its tables.
//
//   CURRENT          the name of the manifest, and a line feed
//   MANIFEST-000004  records: masked CRC-32C of type and data, u32 | u16 size | u8 type | data
//
// The first record begins with the comparator: varint 1 | varint size | name.
//
// https://github.com/google/leveldb/blob/main/doc/impl.md
#pragma once

#include <optional>
#include <string>

namespace bloomery::formats {

inline constexpr const char* bytewise_comparator = "leveldb.BytewiseComparator";

/// The comparator of the database in the folder of a table; empty if the folder has no manifest that can be read.
std::optional<std::string> comparator_of_folder(const std::string& table);

}  // namespace bloomery::formats
