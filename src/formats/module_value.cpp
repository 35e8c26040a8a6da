#include "formats/module_value.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace bloomery::formats {
namespace {

constexpr std::uint8_t value_of_module = 7;
constexpr std::uint8_t length_of_64_bits = 0x81;
constexpr std::uint8_t compressed = 0xC3;
constexpr std::uint16_t rdb_version = 9;  // of Redis 5, which later versions accept
constexpr std::size_t checksum_bytes = 8;

enum part : std::uint8_t { value_end = 0, integer_part = 2, floating_part = 4, bytes_part = 5 };

// The name in a type's identity.
std::string name_of(std::uint64_t identity) {
  std::string name(9, ' ');
  identity >>= module_type::version_bits;
  for (std::size_t i = name.size(); i-- > 0; identity >>= 6) name[i] = module_type::alphabet[identity & 63];
  return name;
}

}  // namespace

bool module_type::has_signature(const head& file) const {
  return file.byte(0) == value_of_module && file.byte(1) == length_of_64_bits &&
         file.u64_big_endian(2) >> version_bits == identity() >> version_bits;
}

// ---- reading --------------------------------------------------------------------------------------------------------

void module_value_reader::refuse_truncated() const {
  file_.refuse("a number or the bits are truncated or in an unknown form, at offset " + std::to_string(in_.at()), "",
               "");
}

void module_value_reader::begin(const module_type& type) {
  file_.check_range("type of the value", checked(in_.byte()), value_of_module, value_of_module);
  file_.check_range("form of the module's identity", checked(in_.byte()), length_of_64_bits, length_of_64_bits);
  const std::uint64_t found = checked(in_.number(8));
  if (found >> module_type::version_bits != type.identity() >> module_type::version_bits)
    file_.refuse("type of the module's value", std::string(type.name), name_of(found));
  if (found == type.identity()) return;
  const std::uint64_t version = found & ((1 << module_type::version_bits) - 1);
  throw error(errc::incompatible,
              {"unknown version of the values of type " + std::string(type.name), file_.path(),
               std::to_string(type.version), std::to_string(version),
               version < type.version ? "restore it on a server with a newer module, and dump it there"
                                      : "use a newer version of bloomery"});
}

void module_value_reader::expect(std::uint8_t kind) {
  const std::uint8_t found = checked(in_.byte());
  if (found != kind) file_.refuse("kind of a value", std::to_string(kind), std::to_string(found));
}

std::uint64_t module_value_reader::integer() {
  expect(integer_part);
  return checked(in_.length());
}

double module_value_reader::floating() {
  expect(floating_part);
  const std::uint64_t image = __builtin_bswap64(checked(in_.number(8)));
  double value;
  std::memcpy(&value, &image, sizeof value);
  return value;
}

module_value_reader::stored_bytes module_value_reader::lengths() {
  expect(bytes_part);
  stored_bytes found;
  found.is_compressed = in_.at() < bytes_.size() && bytes_[in_.at()] == compressed;
  if (found.is_compressed) in_.byte();
  found.stored = found.expanded = checked(in_.length());
  if (found.is_compressed) found.expanded = checked(in_.length());
  file_.check_range("length of the stored bits", found.stored, found.expanded / rdb::most_expansion, found.expanded);
  return found;
}

std::span<const std::uint8_t> module_value_reader::stored(const stored_bytes& of) {
  return checked(in_.bytes(of.stored));
}

void module_value_reader::expand(const stored_bytes& of, std::span<const std::uint8_t> data,
                                 std::span<std::uint8_t> into) const {
  if (!of.is_compressed)
    std::copy(data.begin(), data.end(), into.begin());
  else if (!rdb::expand_lzf(data, into))
    file_.refuse("the compressed bits that end at offset " + std::to_string(in_.at()) + " are invalid", "", "");
}

void module_value_reader::end() {
  expect(value_end);
  checked(in_.bytes(sizeof rdb_version));
  const std::uint64_t computed = rdb::crc64(0, bytes_.first(in_.at()));
  std::uint64_t stated;
  std::memcpy(&stated, checked(in_.bytes(checksum_bytes)).data(), sizeof stated);
  if (stated != computed) file_.refuse("the bytes do not match their checksum", "", "");
  if (in_.at() < bytes_.size() && bytes_[in_.at()] == '\n') in_.byte();
  file_.check_range("length of the file", bytes_.size(), in_.at(), in_.at());
}

// ---- writing --------------------------------------------------------------------------------------------------------

void module_value_writer::begin(const module_type& type) {
  append(bytes, value_of_module);
  append(bytes, length_of_64_bits);
  append(bytes, type.identity(), byte_order::big_endian);
}

void module_value_writer::integer(std::uint64_t number) {
  append(bytes, std::uint8_t{integer_part});
  rdb::append_length(bytes, number);
}

void module_value_writer::floating(double number) {
  append(bytes, std::uint8_t{floating_part});
  append(bytes, number);
}

void module_value_writer::begin_bytes(std::uint64_t length) {
  append(bytes, std::uint8_t{bytes_part});
  rdb::append_length(bytes, length);
}

void module_value_writer::end(std::uint64_t crc) {
  append(bytes, std::uint8_t{value_end});
  append(bytes, rdb_version);
  append(bytes, rdb::crc64(crc, bytes));
}

}  // namespace bloomery::formats
