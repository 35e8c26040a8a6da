// The reader of files of Perl's Storable.
#include "formats/storable.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <cstring>
#include <locale>
#include <sstream>
#include <utility>
#include <variant>

namespace bloomery::formats {
namespace {

constexpr std::string_view signature = "pst0";
constexpr std::uint8_t major_version = 2;
constexpr std::uint8_t least_minor = 2;  // since then, the head has the size of floating-point numbers
constexpr unsigned deepest = 64;         // values within values
constexpr std::size_t longest_number = 64;

// Codes besides those of storable_code.
enum code : std::uint8_t {
  same_object = 0,  // number u32 of a value before
  undefined = 5,
  native_integer = 6,
  floating_point = 7,
  undefined_constant = 14,
  yes = 15,
  no = 16,
  object_of_same_class = 18,
  overloaded_reference = 20,
  utf8_text = 23,
  long_utf8_text = 24,
  hash_with_flags = 25,  // flags u8, then as a hash, with flags u8 before the length of each key
  weak_reference = 27,
  weak_overloaded_reference = 28,
  version_text = 29,       // length u8, text, then a value
  long_version_text = 30,  // the same with length u32
  undefined_element = 31,
  regular_expression = 32,  // flags u8, length u8 or u32, text, length u8, text
  boolean_true = 34,
  boolean_false = 35,
};

constexpr std::uint8_t long_name = 0x80;        // the length is u32
constexpr std::uint8_t key_is_a_value = 0x08;   // of the flags of a key
constexpr std::uint8_t long_expression = 0x01;  // of the flags of a regular expression

constexpr std::uint8_t code_of(storable_code code) { return static_cast<std::uint8_t>(code); }

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string text_of_code(std::uint8_t code) {
  switch (code) {
    case same_object: return "a value that is also elsewhere in the file";
    case code_of(storable_code::array): return "an array";
    case code_of(storable_code::hash):
    case hash_with_flags: return "a hash";
    case code_of(storable_code::reference): return "a reference";
    case overloaded_reference:
    case weak_overloaded_reference: return "a reference to an object with operators";
    case weak_reference: return "a weak reference";
    case undefined:
    case undefined_constant:
    case undefined_element: return "undef";
    case yes:
    case no:
    case boolean_true:
    case boolean_false: return "a boolean";
    case code_of(storable_code::object):
    case object_of_same_class: return "an object";
    case code_of(storable_code::text):
    case code_of(storable_code::long_text):
    case utf8_text:
    case long_utf8_text: return "a string";
    case version_text:
    case long_version_text: return "a version";
    case code_of(storable_code::byte):
    case code_of(storable_code::integer):
    case native_integer:
    case floating_point: return "a number";
    case regular_expression: return "a regular expression";
    default: return "code " + std::to_string(code) + " of Storable";
  }
}

std::string name_of(std::string_view field) { return "field " + std::string(field); }

// As Perl converts a number to a string, with 15 digits.
std::string text_of_double(double number, int digits) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(digits);
  text << number;
  return text.str();
}

// Perl ignores white space around a number.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(spaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

bool read_double(std::string_view text, double& number) {
  std::istringstream from{std::string(text)};
  from.imbue(std::locale::classic());
  return (from >> std::noskipws >> number) && from.peek() == std::istringstream::traits_type::eof();
}

}  // namespace

std::string storable_number(double number) {
  for (const int digits : {15, 16}) {
    double again = 0;
    const std::string text = text_of_double(number, digits);
    if (read_double(text, again) && again == number) return text;
  }
  return text_of_double(number, 17);
}

// A place in the file.
class storable_object::cursor {
 public:
  using scalar = std::variant<std::span<const std::uint8_t>, std::int64_t, double>;

  cursor(const storable_object& object, std::size_t at) : object_(object), at_(at) {}

  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == object_.file_.size(); }

  std::span<const std::uint8_t> take(std::uint64_t count) {
    if (count > object_.file_.size() - at_) {
      object_.refuse("the file is truncated", std::to_string(count) + " more bytes",
                     std::to_string(object_.file_.size() - at_));
    }
    const auto bytes = object_.file_.subspan(at_, static_cast<std::size_t>(count));
    at_ += bytes.size();
    return bytes;
  }

  std::uint8_t byte() { return take(1)[0]; }
  std::uint32_t u32() { return static_cast<std::uint32_t>(unsigned_number(4, object_.is_big_endian_)); }

  std::string_view name_of_class() {
    const std::uint8_t length = byte();
    return text_of(take((length & long_name) != 0 ? u32() : length));
  }

  // A value of this field, or of an array in it.
  scalar read_scalar(std::string_view field) {
    const std::uint8_t code = byte();
    switch (code) {
      case code_of(storable_code::text): return take(byte());
      case code_of(storable_code::long_text): return take(u32());
      case utf8_text: return ascii(field, take(byte()));
      case long_utf8_text: return ascii(field, take(u32()));
      case code_of(storable_code::byte): return std::int64_t{byte()} - 128;
      case code_of(storable_code::integer): return std::int64_t{static_cast<std::int32_t>(unsigned_number(4, true))};
      case native_integer: {
        const std::uint64_t value = unsigned_number(object_.integer_bytes_, object_.is_big_endian_);
        return object_.integer_bytes_ == 4 ? std::int64_t{static_cast<std::int32_t>(value)}
                                           : static_cast<std::int64_t>(value);
      }
      case floating_point: {
        if (object_.double_bytes_ != 8) {
          throw error(errc::incompatible, {name_of(field) + " is a number of another size", object_.path_, "8 bytes",
                                           std::to_string(object_.double_bytes_), "write the file with nstore()"});
        }
        const std::uint64_t bits = unsigned_number(8, object_.is_big_endian_);
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
      }
      default: object_.refuse(name_of(field), "a string or a number", text_of_code(code));
    }
  }

  // Skips a value.
  void skip(unsigned depth = 0) {
    if (depth == deepest) object_.refuse("values within values", "at most " + std::to_string(deepest), "more");
    const std::uint8_t code = byte();
    switch (code) {
      case undefined:
      case undefined_constant:
      case undefined_element:
      case yes:
      case no:
      case boolean_true:
      case boolean_false: return;
      case code_of(storable_code::text):
      case utf8_text: take(byte()); return;
      case code_of(storable_code::long_text):
      case long_utf8_text: take(u32()); return;
      case code_of(storable_code::byte): take(1); return;
      case code_of(storable_code::integer):
      case same_object: take(4); return;
      case native_integer: take(object_.integer_bytes_); return;
      case floating_point: take(object_.double_bytes_); return;
      case code_of(storable_code::reference):
      case overloaded_reference:
      case weak_reference:
      case weak_overloaded_reference: return skip(depth + 1);
      case version_text: take(byte()); return skip(depth + 1);
      case long_version_text: take(u32()); return skip(depth + 1);
      case regular_expression:
        take((byte() & long_expression) != 0 ? u32() : byte());
        take(byte());
        return;
      case code_of(storable_code::object): name_of_class(); return skip(depth + 1);
      case object_of_same_class: take((byte() & long_name) != 0 ? 4 : 0); return skip(depth + 1);
      case code_of(storable_code::array):
        for (std::uint32_t left = u32(); left > 0; --left) skip(depth + 1);
        return;
      case code_of(storable_code::hash):
      case hash_with_flags:
        --at_;
        for_each_key([](std::string_view, std::size_t) {}, depth);
        return;
      default:
        throw error(errc::incompatible,
                    {"the file has a value that is not data alone, such as code or a tied variable", object_.path_,
                     "strings, numbers, arrays and hashes", text_of_code(code), hint::none});
    }
  }

  // Calls use(key, offset of its value) for each key of a hash.
  template <class Use>
  void for_each_key(Use use, unsigned depth) {
    const std::uint8_t code = byte();
    const bool has_flags = code == hash_with_flags;
    if (!has_flags && code != code_of(storable_code::hash)) object_.refuse("the object", "a hash", text_of_code(code));
    if (has_flags) byte();
    for (std::uint32_t left = u32(); left > 0; --left) {
      const std::size_t value = at_;
      skip(depth + 1);
      if (has_flags && (byte() & key_is_a_value) != 0) object_.refuse("a key of a hash", "a string", "another value");
      use(text_of(take(u32())), value);
    }
  }

 private:
  std::span<const std::uint8_t> ascii(std::string_view field, std::span<const std::uint8_t> bytes) {
    if (std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte < 0x80; })) return bytes;
    throw error(errc::incompatible, {name_of(field) + " has characters beyond ASCII", object_.path_,
                                     "bytes, or characters of ASCII", "characters in UTF-8", hint::none});
  }

  std::uint64_t unsigned_number(std::size_t count, bool is_big_endian) {
    if (count == 0) object_.refuse("a number in network order", "32 bits or text", "a number of the machine");
    std::uint64_t value = 0;
    const auto bytes = take(count);
    for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[is_big_endian ? i : count - 1 - i];
    return value;
  }

  const storable_object& object_;
  std::size_t at_;
};

storable_object::storable_object(std::span<const std::uint8_t> file, std::string_view class_name,
                                 const std::string& path)
    : file_(file), path_(path) {
  cursor at(*this, text_of(file).starts_with(signature) ? signature.size() : 0);
  const std::uint8_t version = at.byte();
  if (version >> 1 != major_version)
    refuse("version of Storable", std::to_string(major_version), std::to_string(version >> 1));
  const std::uint8_t minor = at.byte();
  if (minor < least_minor)
    refuse("minor version of Storable", "at least " + std::to_string(least_minor), std::to_string(minor));
  if ((version & 1) == 0) {
    const std::string_view order = text_of(at.take(at.byte()));
    is_big_endian_ = order == "87654321" || order == "4321";
    if (!is_big_endian_ && order != "12345678" && order != "1234")
      refuse("order of bytes", "12345678, 1234, 87654321 or 4321", "another");
    integer_bytes_ = order.size();
    if (const std::uint8_t size = at.byte(); size != 4) refuse("size of integers", "4 bytes", std::to_string(size));
    at.take(2);
    double_bytes_ = at.byte();
  }
  std::uint8_t code = at.byte();
  while (code == code_of(storable_code::reference)) code = at.byte();
  const bool is_object = code == code_of(storable_code::object);
  const std::string found = is_object ? std::string(at.name_of_class()) : text_of_code(code);
  if (!is_object || found != class_name) {
    // Without the signature, any file may begin like this.
    throw error(text_of(file).starts_with(signature) ? errc::incompatible : errc::damaged,
                {"the file of Storable contains another value", path, "an object of " + std::string(class_name),
                 found.empty() ? "another class" : found, "store the filter itself: store($filter, FILE)"});
  }
  hash_at_ = at.at();
}

void storable_object::find(std::span<const std::string_view> names) {
  cursor at(*this, hash_at_);
  at.for_each_key(
      [&](std::string_view key, std::size_t value) {
        const auto name = std::find(names.begin(), names.end(), key);
        if (name != names.end() && !values_.emplace(*name, value).second)
          refuse(name_of(*name) + " occurs twice", "one", "");
      },
      0);
  if (!at.at_end()) {
    refuse("the file is too long", std::to_string(at.at()) + " bytes", std::to_string(file_.size()));
  }
  for (const std::string_view name : names) {
    if (!values_.contains(name)) refuse("a field is missing", std::string(name), "");
  }
}

std::span<const std::uint8_t> storable_object::bytes(std::string_view name) const {
  const cursor::scalar value = cursor(*this, values_.at(name)).read_scalar(name);
  if (const auto* bytes = std::get_if<std::span<const std::uint8_t>>(&value)) return *bytes;
  refuse(name_of(name), "a string", "a number");
}

double storable_object::number(std::string_view name) const {
  const cursor::scalar value = cursor(*this, values_.at(name)).read_scalar(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  const std::string_view text = trimmed(text_of(std::get<std::span<const std::uint8_t>>(value)));
  double result = 0;
  if (text.size() > longest_number || !read_double(text, result)) {
    const bool is_shown = text.size() <= longest_number &&
                          std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
    refuse(name_of(name), "a number", is_shown ? "'" + std::string(text) + "'" : "another string");
  }
  return result;
}

std::vector<std::string> storable_object::texts(std::string_view name, std::uint32_t least, std::uint32_t most) const {
  cursor at(*this, values_.at(name));
  for (const storable_code expected : {storable_code::reference, storable_code::array}) {
    const std::uint8_t found = at.byte();
    if (found == code_of(expected)) continue;
    const bool is_first = expected == storable_code::reference;
    refuse(name_of(name), "a reference to an array", (is_first ? "" : "a reference to ") + text_of_code(found));
  }
  const std::uint32_t count = at.u32();
  if (count < least || count > most) {
    refuse("number of values in " + std::string(name), std::to_string(least) + " to " + std::to_string(most),
           std::to_string(count));
  }
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < count; ++i) {
    const cursor::scalar value = at.read_scalar(name);
    if (const auto* bytes = std::get_if<std::span<const std::uint8_t>>(&value))
      texts.emplace_back(text_of(*bytes));
    else if (const auto* integer = std::get_if<std::int64_t>(&value))
      texts.push_back(std::to_string(*integer));
    else
      texts.push_back(text_of_double(std::get<double>(value), 15));
  }
  return texts;
}

void storable_object::refuse(std::string what, std::string expected, std::string found) const {
  throw error(errc::damaged, {std::move(what), path_, std::move(expected), std::move(found), hint::restore_file});
}

}  // namespace bloomery::formats
