// The Bloom filter of a table of RocksDB.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/leveldb.hpp>

#include "formats/sorted_table.hpp"

#include <string>

namespace bloomery {

struct rocksdb_table {
  std::string policy;
  rocksdb_filter facts;
  any_filter filter;
  std::string no_lookups;  ///< why the filter does not answer for keys; empty: it does
};

/// @throws error  as leveldb_table::open()
rocksdb_table read_rocksdb_table(const formats::byte_source& source, const formats::table_footer& footer);

}  // namespace bloomery
