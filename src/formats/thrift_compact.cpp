// Decoding of Thrift's compact protocol.
#include "formats/thrift_compact.hpp"

#include <bloomery/error.hpp>

#include <limits>

namespace bloomery::formats {
namespace {

const char* name_of(thrift_type type) {
  switch (type) {
    case thrift_type::stop: return "the end of a struct";
    case thrift_type::boolean_true:
    case thrift_type::boolean_false: return "a boolean";
    case thrift_type::byte: return "a byte";
    case thrift_type::i16: return "a 16-bit integer";
    case thrift_type::i32: return "a 32-bit integer";
    case thrift_type::i64: return "a 64-bit integer";
    case thrift_type::float64: return "a double";
    case thrift_type::binary: return "a string";
    case thrift_type::list: return "a list";
    case thrift_type::set: return "a set";
    case thrift_type::map: return "a map";
    case thrift_type::structure: return "a struct";
    case thrift_type::uuid: return "a UUID";
  }
  return "an unknown type";
}

thrift_type type_in(std::uint8_t nibble) { return static_cast<thrift_type>(nibble & 0x0F); }

}  // namespace

void thrift_reader::fail(std::string expected, std::string found) const {
  throw error(errc::damaged, {std::string(subject_) + " is damaged", path_, std::move(expected),
                              std::move(found) + " at byte " + std::to_string(at_) + " of it", hint::restore_file});
}

void thrift_reader::descend() {
  if (++depth_ > most_depth) fail("at most " + std::to_string(most_depth) + " nested values", "more");
}

void thrift_reader::expect(thrift_type found, thrift_type expected) const {
  if (found != expected) fail(name_of(expected), name_of(found));
}

std::uint8_t thrift_reader::octet() {
  if (at_ >= bytes_.size()) fail("another byte", "the end");
  return bytes_[at_++];
}

std::span<const std::uint8_t> thrift_reader::take(std::uint64_t count) {
  if (count > left()) fail(std::to_string(count) + " bytes", std::to_string(left()));
  const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

std::uint64_t thrift_reader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint64_t next = octet();
    if (shift == 63 && next > 1) break;  // only one of the 64 bits is left
    value |= (next & 0x7F) << shift;
    if ((next & 0x80) == 0) return value;
  }
  fail("a number of 64 bits", "a longer one");
}

std::int64_t thrift_reader::zigzag() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

bool thrift_reader::next(thrift_field& field) {
  const std::uint8_t header = octet();
  field.type = type_in(header);
  if (field.type == thrift_type::stop) return false;
  if (field.type > thrift_type::uuid) fail("a type from 0 to 13", std::to_string(header & 0x0F));
  const std::int64_t id = header >> 4 != 0 ? field.id + (header >> 4) : zigzag();
  if (id < std::numeric_limits<std::int16_t>::min() || id > std::numeric_limits<std::int16_t>::max()) {
    fail("a field number of 16 bits", std::to_string(id));
  }
  field.id = static_cast<std::int16_t>(id);
  return true;
}

bool thrift_reader::boolean(thrift_type type) {
  if (type != thrift_type::boolean_true) expect(type, thrift_type::boolean_false);
  return type == thrift_type::boolean_true;
}

std::int8_t thrift_reader::byte(thrift_type type) {
  expect(type, thrift_type::byte);
  return static_cast<std::int8_t>(octet());
}

std::int32_t thrift_reader::i32(thrift_type type) {
  expect(type, thrift_type::i32);
  const std::int64_t value = zigzag();
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
    fail("a number of 32 bits", std::to_string(value));
  }
  return static_cast<std::int32_t>(value);
}

std::int64_t thrift_reader::i64(thrift_type type) {
  expect(type, thrift_type::i64);
  return zigzag();
}

std::string_view thrift_reader::binary(thrift_type type) {
  expect(type, thrift_type::binary);
  const auto taken = take(varint());
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

std::uint32_t thrift_reader::size_of(std::uint64_t declared, std::uint64_t least_bytes) const {
  const std::uint64_t most = (left()) / least_bytes;
  if (declared > most || declared > std::numeric_limits<std::int32_t>::max()) {
    fail("at most " + std::to_string(most) + " elements in the remaining bytes", std::to_string(declared));
  }
  return static_cast<std::uint32_t>(declared);
}

thrift_list thrift_reader::list_header() {
  const std::uint8_t header = octet();
  const std::uint64_t declared = header >> 4 == 15 ? varint() : header >> 4;
  const thrift_type elements = type_in(header);
  if (declared > 0 && (elements == thrift_type::stop || elements > thrift_type::uuid)) {
    fail("a type of elements from 1 to 13", std::to_string(header & 0x0F));
  }
  return {size_of(declared, 1), elements};
}

thrift_list thrift_reader::list(thrift_type type, thrift_type elements) {
  expect(type, thrift_type::list);
  const thrift_list found = list_header();
  if (found.size > 0) expect(found.elements, elements);
  return found;
}

void thrift_reader::skip(thrift_type type) {
  if (type != thrift_type::boolean_true && type != thrift_type::boolean_false) skip_element(type);
}

void thrift_reader::skip_element(thrift_type type) {
  switch (type) {
    case thrift_type::boolean_true:
    case thrift_type::boolean_false:
    case thrift_type::byte: octet(); return;
    case thrift_type::i16:
    case thrift_type::i32:
    case thrift_type::i64: varint(); return;
    case thrift_type::float64: take(8); return;
    case thrift_type::uuid: take(16); return;
    case thrift_type::binary: take(varint()); return;
    case thrift_type::structure: structure([this](thrift_field field) { skip(field.type); }); return;
    case thrift_type::list:
    case thrift_type::set: {
      descend();
      const thrift_list found = list_header();
      for (std::uint32_t left = found.size; left > 0; --left) skip_element(found.elements);
      --depth_;
      return;
    }
    case thrift_type::map: {
      descend();
      const std::uint32_t size = size_of(varint(), 2);
      const std::uint8_t types = size > 0 ? octet() : 0;
      for (std::uint32_t left = size; left > 0; --left) {
        skip_element(type_in(static_cast<std::uint8_t>(types >> 4)));
        skip_element(type_in(types));
      }
      --depth_;
      return;
    }
    case thrift_type::stop: break;
  }
  fail("a type from 1 to 13", std::to_string(static_cast<unsigned>(type)));
}

}  // namespace bloomery::formats
