// Decoding of the footer of a Parquet file and of the headers of its Bloom filters.
#include "formats/parquet_footer.hpp"

#include <bloomery/error.hpp>

#include "formats/thrift_compact.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace bloomery::formats {
namespace {

constexpr std::array<std::uint8_t, 4> encrypted_magic = {'P', 'A', 'R', 'E'};
constexpr std::uint64_t length_bytes = 4;
constexpr std::uint64_t tail_bytes = length_bytes + parquet_magic.size();
constexpr std::uint64_t block_bytes = 32;
constexpr std::uint64_t most_header_bytes = 1024;  // a header has 15 to 18 bytes unless it has fields unknown here
constexpr std::size_t types = 8;
constexpr std::size_t least_element_bytes = 3;  // of a group with an empty name
constexpr std::size_t least_chunk_bytes = 8;    // of an encrypted column with an empty name
constexpr std::uint32_t no_parent = std::numeric_limits<std::uint32_t>::max();

[[noreturn]] void damaged(const byte_source& source, std::string what, std::string expected, std::string found) {
  throw error(errc::damaged, {std::move(what), source.path, std::move(expected), std::move(found), hint::restore_file});
}

bool is(std::span<const std::uint8_t> bytes, const std::array<std::uint8_t, 4>& magic) {
  return std::equal(bytes.begin(), bytes.end(), magic.begin(), magic.end());
}

// ---- meaning of values ----------------------------------------------------------------------------------------------

// By the numbers of ConvertedType. The newer LogicalType is used instead if a column has both.
constexpr std::string_view converted_names[] = {"STRING",
                                                "MAP",
                                                "MAP_KEY_VALUE",
                                                "LIST",
                                                "ENUM",
                                                "DECIMAL",
                                                "DATE",
                                                "TIME_MILLIS",
                                                "TIME_MICROS",
                                                "TIMESTAMP_MILLIS",
                                                "TIMESTAMP_MICROS",
                                                "UINT_8",
                                                "UINT_16",
                                                "UINT_32",
                                                "UINT_64",
                                                "INT_8",
                                                "INT_16",
                                                "INT_32",
                                                "INT_64",
                                                "JSON",
                                                "BSON",
                                                "INTERVAL"};
constexpr std::int32_t first_unsigned = 11;
constexpr std::int32_t last_unsigned = 14;

// By the field numbers of the union LogicalType.
constexpr std::string_view logical_names[] = {
    "",        "STRING",  "MAP",  "LIST", "ENUM", "DECIMAL", "DATE",    "TIME",     "TIMESTAMP", "INTERVAL",
    "INTEGER", "UNKNOWN", "JSON", "BSON", "UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY"};
constexpr std::int16_t logical_integer = 10;

template <std::size_t Size>
std::string_view name_in(const std::string_view (&names)[Size], std::int64_t number) {
  return number >= 0 && static_cast<std::uint64_t>(number) < Size ? names[number] : "UNKNOWN";
}

// ---- schema ---------------------------------------------------------------------------------------------------------

// A column, or a group of columns: SchemaElement.
struct element {
  std::string_view name;
  std::string_view annotation;
  std::uint32_t parent = no_parent;
  std::uint32_t value_bytes = 0;
  std::uint32_t children = 0;
  bool is_column = false;
  bool is_unsigned = false;
  parquet_type type{};
};

struct schema {
  std::vector<element> elements;
  std::vector<std::uint32_t> columns;  // positions of the elements without children
};

parquet_type type_of(thrift_reader& in, thrift_type type) {
  const std::int32_t number = in.i32(type);
  if (number < 0 || static_cast<std::size_t>(number) >= types) in.fail("a type from 0 to 7", std::to_string(number));
  return static_cast<parquet_type>(number);
}

std::uint64_t count_of(thrift_reader& in, std::int64_t number) {
  if (number < 0) in.fail("a number of at least 0", std::to_string(number));
  return static_cast<std::uint64_t>(number);
}

void read_logical_type(thrift_reader& in, thrift_type type, element& e) {
  in.structure(type, [&](thrift_field alternative) {
    e.annotation = name_in(logical_names, alternative.id);
    if (alternative.id != logical_integer) return in.skip(alternative.type);
    in.structure(alternative.type, [&](thrift_field field) {
      if (field.id == 2) {
        e.is_unsigned = !in.boolean(field.type);
      } else {
        in.skip(field.type);
      }
    });
  });
}

element read_element(thrift_reader& in) {
  element e;
  bool has_name = false;
  std::optional<std::int32_t> converted;
  in.structure([&](thrift_field field) {
    switch (field.id) {
      case 1:
        e.type = type_of(in, field.type);
        e.is_column = true;
        break;
      case 2: e.value_bytes = static_cast<std::uint32_t>(count_of(in, in.i32(field.type))); break;
      case 4:
        e.name = in.binary(field.type);
        has_name = true;
        break;
      case 5: e.children = static_cast<std::uint32_t>(count_of(in, in.i32(field.type))); break;
      case 6: converted = in.i32(field.type); break;
      case 10: read_logical_type(in, field.type, e); break;
      default: in.skip(field.type);
    }
  });
  if (!has_name) in.fail("the name of a column", "none");
  if (e.is_column && e.children != 0) in.fail("a column without children", std::to_string(e.children) + " children");
  if (e.is_column && e.type == parquet_type::fixed_len_byte_array && e.value_bytes == 0) {
    in.fail("the length of the values of a column", "none");
  }
  if (e.annotation.empty() && converted) {
    e.annotation = name_in(converted_names, *converted);
    e.is_unsigned = *converted >= first_unsigned && *converted <= last_unsigned;
  }
  return e;
}

// The list has the elements of a tree, each before its children.
schema read_schema(thrift_reader& in, thrift_type type) {
  struct open_group {
    std::uint32_t at;
    std::uint32_t left;  // children that follow
  };
  schema found;
  std::vector<open_group> open;
  const std::uint32_t size = in.list(type, thrift_type::structure).size;
  found.elements.reserve(std::min<std::size_t>(size, in.left() / least_element_bytes));
  for (std::uint32_t at = 0; at < size; ++at) {
    element e = read_element(in);
    while (!open.empty() && open.back().left == 0) open.pop_back();
    if (at == 0) {
      if (e.is_column) in.fail("a group as the root of the schema", "a column");
    } else if (open.empty()) {
      in.fail("the end of the schema", "an element outside of its tree");
    } else {
      --open.back().left;
      e.parent = open.back().at;
    }
    if (e.is_column) {
      found.columns.push_back(at);
    } else {
      open.push_back({at, e.children});
    }
    found.elements.push_back(e);
  }
  if (found.elements.empty()) in.fail("a schema", "an empty one");
  const auto misses = [](const open_group& group) { return group.left != 0; };
  if (std::any_of(open.begin(), open.end(), misses)) in.fail("all children of the groups of the schema", "fewer");
  return found;
}

// ---- row groups -----------------------------------------------------------------------------------------------------

// The path of a column, as stored with a chunk. It must be that of the schema: a filter that is mistaken for that of
// another column would exclude keys that are present.
std::string read_path(thrift_reader& in, thrift_type type, const schema& columns, const element& column) {
  const thrift_list list = in.list(type, thrift_type::binary);
  std::vector<std::string_view> names;
  std::size_t length = list.size;
  for (std::uint32_t left = list.size; left > 0; --left) {
    names.push_back(in.binary(thrift_type::binary));
    length += names.back().size();
  }
  const element* e = &column;
  bool matches = true;
  for (std::size_t i = names.size(); matches && i > 0; --i) {
    matches = e->parent != no_parent && e->name == names[i - 1];
    if (matches) e = &columns.elements[e->parent];
  }
  if (!matches || e->parent != no_parent) in.fail("the path of a column as in the schema", "another path");
  std::string joined;
  joined.reserve(length);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) joined += '.';
    joined += names[i];
  }
  return joined;
}

// The fields of a chunk before they are checked together.
struct raw_filter {
  std::optional<std::int64_t> offset;
  std::optional<std::int64_t> length;
};

void read_column_metadata(thrift_reader& in, thrift_type type, const schema& columns, const element& column,
                          parquet_chunk& chunk, raw_filter& filter) {
  bool has_type = false;
  bool has_path = false;
  bool has_values = false;
  in.structure(type, [&](thrift_field field) {
    switch (field.id) {
      case 1:
        if (const parquet_type found = type_of(in, field.type); found != column.type) {
          in.fail(std::string("type ") + name_of(column.type) + " as in the schema", name_of(found));
        }
        has_type = true;
        break;
      case 3:
        chunk.column = read_path(in, field.type, columns, column);
        has_path = true;
        break;
      case 5:
        chunk.values = count_of(in, in.i64(field.type));
        has_values = true;
        break;
      case 14: filter.offset = in.i64(field.type); break;
      case 15: filter.length = in.i32(field.type); break;
      default: in.skip(field.type);
    }
  });
  if (!has_type || !has_path || !has_values) in.fail("type, path and number of values of a column chunk", "fewer");
}

// Union ColumnCryptoMetaData. A column with a key of its own has its path here, and maybe nowhere else.
bool read_encryption(thrift_reader& in, thrift_type type, const schema& columns, const element& column,
                     parquet_chunk& chunk) {
  bool has_path = false;
  in.structure(type, [&](thrift_field alternative) {
    if (alternative.id != 2) return in.skip(alternative.type);
    in.structure(alternative.type, [&](thrift_field field) {
      if (field.id == 1) {
        chunk.column = read_path(in, field.type, columns, column);
        has_path = true;
      } else {
        in.skip(field.type);
      }
    });
  });
  return has_path;
}

// Whether the bitset fits is checked when its header is read.
std::optional<parquet_filter> checked(thrift_reader& in, const raw_filter& raw, std::uint64_t footer_at) {
  if (!raw.offset) return std::nullopt;
  const std::uint64_t first = parquet_magic.size();
  const std::string range = std::to_string(first) + " to " + std::to_string(footer_at);
  if (*raw.offset < static_cast<std::int64_t>(first) || static_cast<std::uint64_t>(*raw.offset) >= footer_at) {
    in.fail("the offset of a Bloom filter within bytes " + range, std::to_string(*raw.offset));
  }
  parquet_filter filter{static_cast<std::uint64_t>(*raw.offset), std::nullopt};
  if (raw.length) {
    if (*raw.length <= 0 || static_cast<std::uint64_t>(*raw.length) > footer_at - filter.offset) {
      in.fail("a Bloom filter within bytes " + range,
              std::to_string(*raw.length) + " bytes from offset " + std::to_string(filter.offset));
    }
    filter.length = static_cast<std::uint64_t>(*raw.length);
  }
  return filter;
}

parquet_chunk read_chunk(thrift_reader& in, const schema& columns, const element& column, std::uint64_t footer_at) {
  parquet_chunk chunk;
  chunk.type = column.type;
  chunk.value_bytes = column.type == parquet_type::fixed_len_byte_array ? column.value_bytes : 0;
  chunk.annotation = column.annotation;
  chunk.is_unsigned = column.is_unsigned;
  raw_filter filter;
  bool has_metadata = false;
  bool has_path = false;
  in.structure([&](thrift_field field) {
    switch (field.id) {
      case 1: chunk.in_another_file = !in.binary(field.type).empty(); break;
      case 3:
        filter = {};
        read_column_metadata(in, field.type, columns, column, chunk, filter);
        has_metadata = true;
        break;
      case 8:
        has_path = read_encryption(in, field.type, columns, column, chunk) || has_path;
        chunk.is_encrypted = true;
        break;
      case 9:
        in.skip(field.type);
        chunk.is_encrypted = true;
        break;
      default: in.skip(field.type);
    }
  });
  if (!has_metadata && !has_path) in.fail("the metadata of a column chunk", "none");
  // Offsets in another file have other limits, and are not used.
  if (!chunk.in_another_file) chunk.filter = checked(in, filter, footer_at);
  return chunk;
}

void read_row_group(thrift_reader& in, const schema& columns, parquet_footer& footer) {
  const std::size_t first = footer.chunks.size();
  std::uint64_t rows = 0;
  in.structure([&](thrift_field field) {
    if (field.id == 3) {
      rows = count_of(in, in.i64(field.type));
    } else if (field.id == 1) {
      footer.chunks.resize(first);
      in.list(field.type, thrift_type::structure, [&] {
        const std::size_t number = footer.chunks.size() - first;
        if (number >= columns.columns.size()) in.fail("one chunk per column of the schema", "more");
        footer.chunks.push_back(read_chunk(in, columns, columns.elements[columns.columns[number]], footer.offset));
        footer.chunks.back().column_number = number;
      });
    } else {
      in.skip(field.type);
    }
  });
  if (footer.chunks.size() - first != columns.columns.size()) in.fail("one chunk per column of the schema", "fewer");
  for (std::size_t i = first; i < footer.chunks.size(); ++i) {
    footer.chunks[i].row_group = footer.row_groups;
    footer.chunks[i].rows = rows;
  }
  ++footer.row_groups;
}

// ---- header of a filter ---------------------------------------------------------------------------------------------

// Reads a union that has only one known alternative, number 1, which is an empty struct. Some writers store a union
// without any alternative (@dsnp/parquetjs 1.8.8), and readers ignore their filters.
void expect_alternative(thrift_reader& in, thrift_type type, const parquet_chunk& chunk, const byte_source& source,
                        const char* what, const char* expected) {
  const char* found = "none";
  in.structure(type, [&](thrift_field field) {
    const bool is_known = field.id == 1 && field.type == thrift_type::structure;
    found = is_known && found != std::string_view("another") ? "" : "another";
    in.skip(field.type);
  });
  if (*found == '\0') return;
  throw error(errc::incompatible,
              {"unsupported " + std::string(what) + " of the Bloom filter of column " + chunk.column, source.path,
               expected, found, ""});
}

}  // namespace

const char* name_of(parquet_type type) noexcept {
  constexpr const char* names[types] = {"BOOLEAN", "INT32",  "INT64",      "INT96",
                                        "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
  return names[static_cast<std::size_t>(type)];
}

parquet_footer read_parquet_footer(const byte_source& source) {
  std::array<std::uint8_t, 4> start{};
  std::array<std::uint8_t, tail_bytes> tail{};
  const auto refuse = [&](const char* expected, const char* found) {
    throw error(errc::not_a_filter, {"not a Parquet file", source.path, expected, found, ""});
  };
  if (source.bytes < start.size() + tail.size()) refuse("at least 12 bytes", "fewer");
  source.read_all(0, start);
  source.read_all(source.bytes - tail.size(), tail);
  const auto end = std::span(tail).subspan<length_bytes>();
  if (start == encrypted_magic || (start == parquet_magic && is(end, encrypted_magic))) {
    throw error(errc::incompatible, {"the footer of this Parquet file is encrypted", source.path,
                                     "PAR1 at its start and end", "PARE", "write the file without encryption"});
  }
  if (start != parquet_magic) refuse("a file that starts with PAR1", "other bytes");
  if (!is(end, parquet_magic)) damaged(source, "the Parquet file is truncated", "PAR1 at its end", "other bytes");

  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::uint64_t{tail[i]} << (8 * i);
  const std::uint64_t most = source.bytes - start.size() - tail.size();
  if (length == 0 || length > most) {
    damaged(source, "length of the footer", "1 to " + std::to_string(most) + " bytes", std::to_string(length));
  }
  if (length > most_footer_bytes) {
    throw error(errc::too_large,
                {"the footer of this Parquet file is too long", source.path,
                 "at most " + std::to_string(most_footer_bytes) + " bytes", std::to_string(length), ""});
  }

  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(length));
  parquet_footer footer;
  footer.offset = source.bytes - tail.size() - length;
  source.read_all(footer.offset, bytes);

  // Fields may have any order, but row groups need the schema. So the list is passed over, and read at the end.
  thrift_reader in(bytes, "the footer of this Parquet file", source.path);
  std::optional<thrift_reader> row_groups;
  std::optional<schema> columns;
  thrift_type list = thrift_type::stop;
  in.structure([&](thrift_field field) {
    switch (field.id) {
      case 2: columns = read_schema(in, field.type); break;
      case 3: footer.rows = count_of(in, in.i64(field.type)); break;
      case 4:
        row_groups.emplace(in);
        list = field.type;
        in.skip(field.type);
        break;
      case 6: footer.created_by = in.binary(field.type); break;
      default: in.skip(field.type);
    }
  });
  if (!columns) in.fail("a schema", "none");
  if (!row_groups) in.fail("a list of row groups", "none");
  footer.columns = columns->columns.size();
  const std::uint32_t groups = row_groups->list(list, thrift_type::structure).size;
  footer.chunks.reserve(static_cast<std::size_t>(
      std::min<std::uint64_t>(footer.columns * groups, row_groups->left() / least_chunk_bytes)));
  for (std::uint32_t left = groups; left > 0; --left) read_row_group(*row_groups, *columns, footer);
  return footer;
}

parquet_bitset read_filter_header(const byte_source& source, const parquet_footer& footer, const parquet_chunk& chunk) {
  const std::string where = " of column " + chunk.column + ", row group " + std::to_string(chunk.row_group);
  const auto refuse = [&](errc code, std::string what, hint advice) {
    throw error(code, {std::move(what), source.path, "", "", advice});
  };
  if (chunk.is_encrypted) refuse(errc::incompatible, "the Bloom filter" + where + " is encrypted", {});
  if (chunk.in_another_file) refuse(errc::incompatible, "the values" + where + " are in another file", {});
  if (!chunk.filter) refuse(errc::not_found, "no Bloom filter" + where, {});

  const parquet_filter& filter = *chunk.filter;
  const std::uint64_t room = filter.length.value_or(footer.offset - filter.offset);
  std::array<std::uint8_t, most_header_bytes> buffer{};
  const auto bytes = std::span(buffer).first(static_cast<std::size_t>(std::min(room, most_header_bytes)));
  source.read_all(filter.offset, bytes);

  const std::string subject = "the Bloom filter" + where;
  thrift_reader in(bytes, subject, source.path);
  std::optional<std::int32_t> size;
  bool has_algorithm = false;
  bool has_hash = false;
  bool has_compression = false;
  in.structure([&](thrift_field field) {
    switch (field.id) {
      case 1: size = in.i32(field.type); break;
      case 2:
        expect_alternative(in, field.type, chunk, source, "algorithm", "BLOCK");
        has_algorithm = true;
        break;
      case 3:
        expect_alternative(in, field.type, chunk, source, "hash", "XXHASH");
        has_hash = true;
        break;
      case 4:
        expect_alternative(in, field.type, chunk, source, "compression", "UNCOMPRESSED");
        has_compression = true;
        break;
      default: in.skip(field.type);
    }
  });
  if (!size || !has_algorithm || !has_hash || !has_compression) {
    in.fail("size, algorithm, hash and compression of a Bloom filter", "fewer");
  }
  if (*size <= 0 || static_cast<std::uint64_t>(*size) % block_bytes != 0) {
    in.fail("a size that is a multiple of 32 bytes", std::to_string(*size));
  }
  const parquet_bitset bits{filter.offset + in.position(), static_cast<std::uint64_t>(*size)};
  const std::uint64_t left = room - in.position();
  if (filter.length ? bits.bytes != left : bits.bytes > left) {
    in.fail((filter.length ? "" : "at most ") + std::to_string(left) + " bytes", std::to_string(bits.bytes));
  }
  return bits;
}

}  // namespace bloomery::formats
