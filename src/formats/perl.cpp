// perl: an object of Bloom::Filter in a file of Storable.
//
//   capacity, error_rate        n, p
//   filter_length               m
//   num_hash_funcs, salts       k, and k salts
//   key_count                   number of keys added
//   filter                      ceil(m / 8) bytes
//   blankvec                    4 zero bytes
//
// Storable writes the fields in any order, unless $Storable::canonical is set. This writer sorts them and uses network
// order, so its files are the same as those of nstore() with $Storable::canonical.
#include "formats/format_row.hpp"
#include "formats/storable.hpp"

#include <bloomery/scheme.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace bloomery::formats {
namespace {

constexpr std::string_view class_name = "Bloom::Filter";
constexpr std::string_view names[] = {"blankvec",      "capacity",  "error_rate",     "filter",
                                      "filter_length", "key_count", "num_hash_funcs", "salts"};
constexpr std::string_view blank("\0\0\0\0", 4);
constexpr std::uint64_t most_bits = std::uint64_t{1} << 32;  // of the scheme
constexpr std::uint64_t most_keys = std::uint64_t{1} << 53;  // beyond, doubles are not exact
constexpr std::uint8_t head_of_network_order[] = {'p', 's', 't', '0', 5, 11};

// ---- reading --------------------------------------------------------------------------------------------------------

// Perl's numbers can be doubles.
std::uint64_t integer(const head& file, const char* name, double number) {
  if (number >= 0 && number <= static_cast<double>(most_keys) && number == std::floor(number))
    return static_cast<std::uint64_t>(number);
  file.refuse(name, "an integer from 0 to 2^53", text_of(number));
}

contents read(const head& file) {
  storable_object(file.bytes(), class_name, file.path());
  contents found;
  found.parameters.scheme = "perl";  // the others follow anywhere in the file: see read_layers()
  return found;
}

// The salts that a file of bloomery can store.
void check_salts(const head& file, const std::vector<std::string>& salts) {
  std::size_t bytes = 0, longest = 0;
  for (const std::string& salt : salts) {
    bytes += salt.size() + 1;
    longest = std::max(longest, salt.size());
  }
  if (longest <= salt_list::longest && bytes <= salt_list::most_bytes) return;
  throw error(errc::incompatible,
              {"the salts are too long", file.path(),
               "at most " + std::to_string(salt_list::longest) + " bytes each, " +
                   std::to_string(salt_list::most_bytes) + " in all",
               std::to_string(longest) + " bytes in a salt, " + std::to_string(bytes) + " in all", hint::none});
}

std::vector<stored_layer> read_layers(const head& file, std::span<const std::uint8_t> bytes) {
  storable_object object(bytes, class_name, file.path());
  object.find(names);
  params p;
  p.scheme = "perl";
  // Bloom::Filter with a capacity of 1200.5 accepts 1201 keys.
  p.capacity = integer(file, "capacity", std::ceil(object.number("capacity")));
  file.check_range("capacity", p.capacity, 1, most_keys);
  p.target_fpr = object.number("error_rate");
  if (!(p.target_fpr > 0 && p.target_fpr < 1)) file.refuse("error_rate", "between 0 and 1", text_of(p.target_fpr));
  p.geometry.bits = integer(file, "filter_length", object.number("filter_length"));
  file.check_range("filter_length", p.geometry.bits, 1, most_bits);
  std::vector<std::string> salts = object.texts("salts", 1, max_probes);
  p.geometry.probes = static_cast<std::uint32_t>(salts.size());
  const std::uint64_t hashes = integer(file, "num_hash_funcs", object.number("num_hash_funcs"));
  file.check_range("num_hash_funcs", hashes, salts.size(), salts.size());
  const std::uint64_t keys = integer(file, "key_count", object.number("key_count"));
  const auto blankvec = object.bytes("blankvec");
  if (!std::equal(blankvec.begin(), blankvec.end(), std::begin(blank), std::end(blank)))
    file.refuse("blankvec", "4 zero bytes", "other bytes");
  check_salts(file, salts);
  set_salts(p, std::move(salts));

  const auto filter = object.bytes("filter");
  if (filter.size() != bytes_for(p.geometry.bits)) {
    file.refuse("length of filter", std::to_string(bytes_for(p.geometry.bits)) + " bytes for filter_length",
                std::to_string(filter.size()));
  }
  if (p.geometry.bits % 8 != 0 && filter.back() >> p.geometry.bits % 8 != 0)
    file.refuse("unused bits of filter are set", "no bits from " + std::to_string(p.geometry.bits) + " on", "");
  std::vector<stored_layer> layers;
  layers.push_back({std::move(p), heap_storage(filter.size()), keys});
  std::copy(filter.begin(), filter.end(), layers.back().words.data());
  return layers;
}

bool has_signature(const head& file) {
  return file.bytes().size() >= 4 && std::equal(file.bytes().begin(), file.bytes().begin() + 4, head_of_network_order);
}

// ---- writing --------------------------------------------------------------------------------------------------------

class writer {
 public:
  void code(storable_code code) { bytes.push_back(static_cast<std::uint8_t>(code)); }
  void u32(std::uint64_t number) { append(bytes, static_cast<std::uint32_t>(number), byte_order::big_endian); }
  void raw(std::string_view text) {
    for (const char c : text) bytes.push_back(static_cast<std::uint8_t>(c));  // (gcc 12 warns wrongly of insert())
  }

  void begin_text(std::uint64_t length) {
    code(length <= 255 ? storable_code::text : storable_code::long_text);
    length <= 255 ? bytes.push_back(static_cast<std::uint8_t>(length)) : u32(length);
  }

  void text(std::string_view value) {
    begin_text(value.size());
    raw(value);
  }

  void number(std::uint64_t value) {
    if (value > 0x7FFF'FFFF) return text(std::to_string(value));
    code(value < 128 ? storable_code::byte : storable_code::integer);
    value < 128 ? bytes.push_back(static_cast<std::uint8_t>(value + 128)) : u32(value);
  }

  // The key of the value before.
  void key(std::string_view name) {
    u32(name.size());
    raw(name);
  }

  std::vector<std::uint8_t> bytes;
};

std::vector<std::uint8_t> write(const params& p, const key_counts& /*counts*/) {
  require_capacity(p);
  require_target_fpr(p);
  writer out;
  out.bytes.assign(std::begin(head_of_network_order), std::end(head_of_network_order));
  out.code(storable_code::object);
  out.bytes.push_back(static_cast<std::uint8_t>(class_name.size()));
  out.raw(class_name);
  out.code(storable_code::hash);
  out.u32(std::size(names));
  out.text(blank);
  out.key("blankvec");
  out.number(p.capacity);
  out.key("capacity");
  out.text(storable_number(p.target_fpr));
  out.key("error_rate");
  out.begin_text(bytes_for(p.geometry.bits));
  return std::move(out.bytes);
}

// After the bits of the filter.
std::vector<std::uint8_t> write_end(const params& p, const key_counts& counts, std::uint64_t /*crc*/) {
  writer out;
  out.key("filter");
  out.number(p.geometry.bits);
  out.key("filter_length");
  out.number(counts.inserted);
  out.key("key_count");
  out.number(p.geometry.probes);
  out.key("num_hash_funcs");
  out.code(storable_code::reference);
  out.code(storable_code::array);
  out.u32(p.geometry.probes);
  for (std::uint32_t i = 0; i < p.geometry.probes; ++i)
    out.text(p.salts().empty() ? find_scheme(p.scheme)->salt_for(p.seed, i) : p.salts()[i]);
  out.key("salts");
  return std::move(out.bytes);
}

}  // namespace

constinit const format_row perl_row = {.name = "perl",
                                       .system = "Bloom::Filter 1.2 (Perl), Storable",
                                       .schemes = "perl",
                                       .order = byte_order::little_endian,
                                       .read = read,
                                       .write = write,
                                       .read_layers = read_layers,
                                       .write_end = write_end,
                                       .has_signature = has_signature};

}  // namespace bloomery::formats
