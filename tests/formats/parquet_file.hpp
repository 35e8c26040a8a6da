// Parquet files in memory for tests: a writer for Thrift's compact protocol, and files with one Bloom filter.
#pragma once

#include "formats/parquet_footer.hpp"
#include "support/files.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {

/// A source whose file is in memory. The bytes must outlive it.
inline bloomery::formats::byte_source source_of(const bytes& file, const std::string& name = "test.parquet") {
  return {name, file.size(), [&file](std::uint64_t offset, std::span<std::uint8_t> into) {
            if (offset >= file.size()) return std::size_t{0};
            const std::size_t count = std::min<std::size_t>(into.size(), file.size() - offset);
            std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
            return count;
          }};
}

/// Type codes of the protocol, independent of the library's.
enum : std::uint8_t { t_true = 1, t_false = 2, t_i32 = 5, t_i64 = 6, t_binary = 8, t_list = 9, t_struct = 12 };

/// Writes field by field; fields have ascending numbers within a struct.
class thrift_writer {
 public:
  bytes out;

  thrift_writer& field(int id, std::uint8_t type) {
    const int delta = id - last_;
    if (delta > 0 && delta < 16) {
      out.push_back(static_cast<std::uint8_t>(delta << 4 | type));
    } else {
      out.push_back(type);
      zigzag(id);
    }
    last_ = id;
    return *this;
  }
  thrift_writer& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
    out.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  thrift_writer& zigzag(std::int64_t value) {
    return varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  thrift_writer& text(std::string_view value) {
    varint(value.size());
    out.insert(out.end(), value.begin(), value.end());
    return *this;
  }
  thrift_writer& list(std::size_t size, std::uint8_t type) {
    if (size < 15) {
      out.push_back(static_cast<std::uint8_t>(size << 4 | type));
    } else {
      out.push_back(static_cast<std::uint8_t>(0xF0 | type));
      varint(size);
    }
    return *this;
  }
  thrift_writer& i32(int id, std::int64_t value) { return field(id, t_i32).zigzag(value); }
  thrift_writer& i64(int id, std::int64_t value) { return field(id, t_i64).zigzag(value); }
  thrift_writer& binary(int id, std::string_view value) { return field(id, t_binary).text(value); }
  thrift_writer& raw(const bytes& more) {
    out.insert(out.end(), more.begin(), more.end());
    return *this;
  }
  /// A field with a struct, or an element if id is 0.
  thrift_writer& structure(int id, const std::function<void(thrift_writer&)>& fill) {
    if (id != 0) field(id, t_struct);
    thrift_writer inner;
    fill(inner);
    inner.out.push_back(0);
    return raw(inner.out);
  }

 private:
  int last_ = 0;
};

/// The header of a filter as all known writers encode it.
inline bytes filter_header(std::int64_t bitset_bytes) {
  thrift_writer w;
  w.i32(1, bitset_bytes);
  for (int id = 2; id <= 4; ++id) w.structure(id, [](thrift_writer& u) { u.structure(1, [](thrift_writer&) {}); });
  w.out.push_back(0);
  return w.out;
}

/// A file with one column, one row group and one filter. Tests change a member before they write it.
struct small_parquet {
  bytes header = filter_header(64);
  bytes bitset = bytes(64, 0xFF);
  std::optional<std::int64_t> offset = 4;
  std::optional<std::int64_t> length = static_cast<std::int64_t>(header.size()) + 64;
  std::int64_t schema_type = 1;  // INT32
  std::int64_t type = 1;
  std::vector<std::string> path = {"x"};
  std::function<void(thrift_writer&)> more_in_schema = [](thrift_writer&) {};    ///< fields after 4 of the column
  std::function<void(thrift_writer&)> more_in_metadata = [](thrift_writer&) {};  ///< fields after 15
  std::function<void(thrift_writer&)> more_in_chunk = [](thrift_writer&) {};     ///< fields after 3
  std::function<void(thrift_writer&)> first_in_chunk = [](thrift_writer&) {};    ///< fields before 3
  std::function<void(thrift_writer&)> more_in_footer = [](thrift_writer&) {};    ///< fields after 6
  std::int64_t children = 1;
  std::size_t columns = 1;     ///< of equal names
  std::size_t row_groups = 1;  ///< whose chunks share the filter
  std::size_t chunks = 1;
  bool has_metadata = true;

  bytes footer() const {
    thrift_writer w;
    w.i32(1, 2);
    w.field(2, t_list).list(1 + columns, t_struct);
    w.structure(0, [&](thrift_writer& root) { root.binary(4, "root").i32(5, children); });
    for (std::size_t i = 0; i < columns; ++i) {
      w.structure(0, [&](thrift_writer& leaf) {
        leaf.i32(1, schema_type).binary(4, "x");
        more_in_schema(leaf);
      });
    }
    w.i64(3, 10);
    w.field(4, t_list).list(row_groups, t_struct);
    for (std::size_t number = 0; number < row_groups; ++number) {
      w.structure(0, [&](thrift_writer& group) {
        group.field(1, t_list).list(chunks, t_struct);
        for (std::size_t i = 0; i < chunks; ++i) group.structure(0, [&](thrift_writer& chunk) { fill(chunk); });
        group.i64(2, 100).i64(3, 10);
      });
    }
    w.binary(6, "tests");
    more_in_footer(w);
    w.out.push_back(0);
    return w.out;
  }

  bytes file() const { return around(footer()); }

  /// The file with another footer.
  bytes around(const bytes& footer_bytes) const {
    bytes file = {'P', 'A', 'R', '1'};
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), bitset.begin(), bitset.end());
    file.insert(file.end(), footer_bytes.begin(), footer_bytes.end());
    for (unsigned shift = 0; shift < 32; shift += 8)
      file.push_back(static_cast<std::uint8_t>(footer_bytes.size() >> shift));
    for (const char c : {'P', 'A', 'R', '1'}) file.push_back(static_cast<std::uint8_t>(c));
    return file;
  }

 private:
  void fill(thrift_writer& chunk) const {
    first_in_chunk(chunk);
    if (has_metadata) {
      chunk.structure(3, [&](thrift_writer& metadata) {
        metadata.i32(1, type).field(2, t_list).list(1, t_i32).zigzag(0);
        metadata.field(3, t_list).list(path.size(), t_binary);
        for (const std::string& name : path) metadata.text(name);
        metadata.i32(4, 0).i64(5, 10).i64(6, 0).i64(7, 0).i64(9, 4);
        if (offset) metadata.i64(14, *offset);
        if (length) metadata.i32(15, *length);
        more_in_metadata(metadata);
      });
    }
    more_in_chunk(chunk);
  }
};

}  // namespace bloomery_tests
