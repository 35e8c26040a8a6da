// The header page of a filter file: encoding, decoding and checks.
#include "file/format.hpp"

#include <bloomery/detail/file_magic.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>

#include "file/fields.hpp"
#include "file/layers_file.hpp"
#include "registry/tables.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

namespace bloomery::format {
namespace {

// A non-text byte, then a name, then line ends that a text-mode transfer would change.
constexpr const file_magic& magic = filter_magic;

// Offsets of the immutable fields.
constexpr std::size_t at_version = 8;
constexpr std::size_t at_header_bytes = 12;
constexpr std::size_t at_layout = 16;
constexpr std::size_t at_scheme = 48;
constexpr std::size_t at_hash = 80;
constexpr std::size_t at_key_kind = 112;
constexpr std::size_t at_cell_bits = 116;
constexpr std::size_t at_seed = 120;
constexpr std::size_t at_bits = 128;
constexpr std::size_t at_probes = 136;
constexpr std::size_t at_capacity = 144;
constexpr std::size_t at_target_rate = 152;
constexpr std::size_t at_metadata_bytes = 160;
constexpr std::size_t at_metadata_checksum = 168;
constexpr std::size_t at_file_bytes = 176;
constexpr std::size_t at_key_check = 184;
constexpr std::size_t at_window_keys = 192;
constexpr std::size_t at_window_milliseconds = 200;
constexpr std::size_t at_log_id = 208;
constexpr std::size_t at_salts_bytes = 216;
constexpr std::size_t at_salts_checksum = 224;
constexpr std::size_t at_reserved = 232;
constexpr std::size_t at_checksum = 504;
constexpr std::size_t at_salts = slot_at[1] + slot_bytes;
static_assert(at_salts + salt_list::most_bytes == header_bytes);

constexpr std::uint32_t state_clean = 1;
constexpr std::uint32_t state_dirty = 2;
constexpr std::uint32_t keys_counted = 0;
constexpr std::uint32_t keys_estimated = 1;

void put_name(std::span<std::uint8_t> bytes, std::size_t at, const std::string& name) {
  const bool readable =
      std::all_of(name.begin(), name.end(), [](char c) { return is_name_character(static_cast<std::uint8_t>(c)); });
  if (name.size() >= name_bytes || !readable) {
    throw error(errc::invalid_argument, {"invalid name in the header", "header",
                                         "at most 31 printable ASCII characters without spaces", name, ""});
  }
  std::copy(name.begin(), name.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

// A sliding-window filter has a window of keys or of milliseconds, at most 2^62; other filters have none.
bool window_fits(const params& p) {
  const std::uint64_t length = p.window().count;
  return family_of(p) == family::sliding_window ? length != 0 && length <= window_length::most : !p.has_window();
}

constexpr const char* window_expected = "keys or milliseconds, at most 2^62, for sliding-window filters only";

// The salts as in the header: a byte of length before each.
std::string bytes_of_salts(const params& p) {
  std::string bytes;
  for (const std::string& salt : p.salts()) {
    bytes += static_cast<char>(salt.size());
    bytes += salt;
  }
  return bytes;
}

bool salts_fit(const params& p) {
  const auto salts = p.salts();
  const bool lengths_fit = std::all_of(salts.begin(), salts.end(),
                                       [](const std::string& salt) { return salt.size() <= salt_list::longest; });
  return salts.empty() ? !std::holds_alternative<salt_list>(p.extra)
                       : lengths_fit && salts.size() <= max_probes && p.seed == 0 && !p.scheme.empty() &&
                             bytes_of_salts(p).size() <= salt_list::most_bytes;
}

constexpr const char* salts_expected = "1 to 255 of a scheme, and seed 0";  // complete() knows those of the scheme

// Refuses params that decode() would refuse.
void check_writable(const params& p) {
  const auto refuse = [](const char* what, const char* expected) {
    throw error(errc::invalid_argument, {what, "header", expected, "", ""});
  };
  if (p.layout.empty() == p.scheme.empty()) refuse("names in the header", "a layout or a scheme");
  if (p.scheme.empty() == p.hash.empty()) refuse("names in the header", "a hash or a scheme");
  if (!window_fits(p)) refuse("length of a window in the header", window_expected);
  if (!salts_fit(p)) refuse("salts in the header", salts_expected);
  if (p.geometry.bits == 0) refuse("number of bits in the header", "1 or more");
  if (p.geometry.probes == 0 || p.geometry.probes > max_probes) refuse("number of probes in the header", "1 to 255");
  if (!(p.target_fpr >= 0 && p.target_fpr <= 1)) refuse("target FPR in the header", "a probability");
  if ((p.hash == siphash::name) != (p.key_check != 0)) refuse("check value of the secret", "one for hash siphash only");
}

[[noreturn]] void damaged(const std::string& path, std::string what, std::string expected, std::string found) {
  throw error(errc::damaged, {std::move(what), path, std::move(expected), std::move(found), hint::restore_file});
}

// The bytes of the salts. In a file of version 1, which has none, their place is reserved.
std::span<const std::uint8_t> salts_of(std::span<const std::uint8_t> header, const std::string& path) {
  const bool has_salts = get<std::uint32_t>(header, at_version) == salts_version;
  const auto length = get<std::uint64_t>(header, at_salts_bytes);
  if (has_salts ? length == 0 || length > salt_list::most_bytes : length != 0)
    damaged(path, "length of the salts", has_salts ? "1 to 3008 bytes" : "0", std::to_string(length));
  const auto bytes = header.subspan(at_salts, static_cast<std::size_t>(length));
  if (get<std::uint64_t>(header, at_salts_checksum) != (has_salts ? checksum(bytes) : 0))
    damaged(path, "the salts do not match their checksum", "", "");
  return bytes;
}

salt_list get_salts(std::span<const std::uint8_t> bytes, const std::string& path) {
  salt_list salts;
  while (!bytes.empty()) {
    const std::size_t length = bytes[0];
    if (length >= bytes.size()) damaged(path, "length of a salt", "within the salts", std::to_string(length));
    salts.values.emplace_back(bytes.begin() + 1, bytes.begin() + 1 + static_cast<std::ptrdiff_t>(length));
    bytes = bytes.subspan(1 + length);
  }
  return salts;
}

// At most one of the four fields is non-zero.
extra_params get_extra(std::span<const std::uint8_t> header, std::span<const std::uint8_t> salts,
                       const std::string& path) {
  const auto keys = get<std::uint64_t>(header, at_window_keys);
  const auto milliseconds = get<std::uint64_t>(header, at_window_milliseconds);
  const auto log = get<std::uint64_t>(header, at_log_id);
  if (keys != 0 && milliseconds != 0) damaged(path, "length of a window", window_expected, "keys and milliseconds");
  const window_length length = keys != 0 ? window_of_keys(keys) : window_of_milliseconds(milliseconds);
  if (length.count != 0 && log != 0)
    damaged(path, "number of a key log", "0 in a sliding-window filter", std::to_string(log));
  if (!salts.empty() && (length.count != 0 || log != 0))
    damaged(path, "window or key log", "none in a filter with salts", "one");
  if (!salts.empty()) return get_salts(salts, path);
  if (length.count != 0) return length;
  if (log != 0) return key_log_id{log};
  return {};
}

std::string get_name(std::span<const std::uint8_t> bytes, std::size_t at, const std::string& path) {
  std::optional<std::string> name = name_at(bytes, at);
  if (!name) damaged(path, "a name in the header is unreadable", "", "");
  return *std::move(name);
}

bool decode_slot(std::span<const std::uint8_t> bytes, slot& s) {
  if (get<std::uint64_t>(bytes, 56) != checksum(bytes.first(56))) return false;
  const auto state = get<std::uint32_t>(bytes, 16);
  if (state != state_clean && state != state_dirty) return false;
  const auto count = get<std::uint32_t>(bytes, 20);
  if (count != keys_counted && count != keys_estimated) return false;
  if (get<std::uint64_t>(bytes, 0) >= sequence_numbers) return false;
  s = {get<std::uint64_t>(bytes, 0),
       state == state_clean,
       {get<std::uint64_t>(bytes, 8), count == keys_estimated, get<std::uint64_t>(bytes, 24),
        get<std::uint64_t>(bytes, 32), get<std::uint64_t>(bytes, 40)}};
  return all_zero(bytes.subspan(48, 8));
}

}  // namespace

std::uint64_t checksum(std::span<const std::uint8_t> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t page_checksum(std::span<const std::uint8_t, page_bytes> bytes) noexcept {
  static const page zeros{};
  static const std::uint64_t of_zeros = checksum(zeros);
  return checksum(bytes) ^ of_zeros;
}

extents extents_for(std::uint64_t bits, std::uint64_t metadata_bytes) {
  extents e;
  e.payload_bytes = bytes_for(bits);
  e.pages = e.payload_bytes / page_bytes + (e.payload_bytes % page_bytes != 0);
  e.checksums_at = header_bytes + e.pages * page_bytes;
  e.metadata_at = e.checksums_at + e.pages * checksum_bytes;
  e.metadata_bytes = metadata_bytes;
  e.file_bytes = e.metadata_at + metadata_bytes;
  return e;
}

std::array<std::uint8_t, slot_bytes> encode(const slot& s) {
  std::array<std::uint8_t, slot_bytes> bytes{};
  put(bytes, 0, s.sequence);
  put(bytes, 8, s.counts.inserted);
  put(bytes, 16, s.clean ? state_clean : state_dirty);
  put(bytes, 20, s.counts.is_estimate ? keys_estimated : keys_counted);
  put(bytes, 24, s.counts.refused_removals);
  put(bytes, 32, s.counts.logged);
  put(bytes, 40, s.counts.log_generation);
  put(bytes, 56, checksum(std::span(bytes).first(56)));
  return bytes;
}

page encode(const params& parameters, const slot& s, const std::string& metadata) {
  check_writable(parameters);
  if (metadata.size() > most_metadata) {
    throw error(errc::invalid_argument, {"metadata of a filter file", "metadata", "at most 1 MiB",
                                         std::to_string(metadata.size()) + " bytes", ""});
  }
  page bytes{};
  std::copy(magic.begin(), magic.end(), bytes.begin());
  const std::string salts = bytes_of_salts(parameters);
  put(bytes, at_version, salts.empty() ? version : salts_version);
  put(bytes, at_header_bytes, static_cast<std::uint32_t>(header_bytes));
  put_name(bytes, at_layout, parameters.layout);
  put_name(bytes, at_scheme, parameters.scheme);
  put_name(bytes, at_hash, parameters.hash);
  put(bytes, at_key_kind, static_cast<std::uint32_t>(parameters.keys));
  put(bytes, at_cell_bits, cell_bits_of(parameters));
  put(bytes, at_seed, parameters.seed);
  put(bytes, at_bits, parameters.geometry.bits);
  put(bytes, at_probes, parameters.geometry.probes);
  put(bytes, at_capacity, parameters.capacity);
  put(bytes, at_target_rate, parameters.target_fpr);
  put(bytes, at_metadata_bytes, static_cast<std::uint64_t>(metadata.size()));
  put(bytes, at_metadata_checksum, checksum({reinterpret_cast<const std::uint8_t*>(metadata.data()), metadata.size()}));
  put(bytes, at_file_bytes, extents_for(parameters.geometry.bits, metadata.size()).file_bytes);
  put(bytes, at_key_check, parameters.key_check);
  put(bytes, at_window_keys, parameters.window().keys());
  put(bytes, at_window_milliseconds, parameters.window().milliseconds());
  put(bytes, at_log_id, parameters.log_id());
  if (!salts.empty()) {
    put(bytes, at_salts_bytes, static_cast<std::uint64_t>(salts.size()));
    std::copy(salts.begin(), salts.end(), bytes.begin() + at_salts);
    put(bytes, at_salts_checksum, checksum(std::span(bytes).subspan(at_salts, salts.size())));
  }
  put(bytes, at_checksum, checksum(std::span(bytes).first(at_checksum)));
  const auto slot_image = encode(s);
  for (const std::size_t at : slot_at) {
    std::copy(slot_image.begin(), slot_image.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

decoded decode(std::span<const std::uint8_t> header, std::uint64_t file_bytes, const std::string& path) {
  if (is_layers_file(header)) {
    throw error(errc::incompatible,
                {has_slices(header) ? "this file contains the slices of a shared sliding-window filter"
                                    : "this file contains the layers of a scalable filter",
                 path, "a filter of one layer", "several layers", "use it for lookups, or copy it to servers"});
  }
  const std::size_t seen = std::min(header.size(), magic.size());
  if (seen == 0 || !std::equal(magic.begin(), magic.begin() + static_cast<std::ptrdiff_t>(seen), header.begin())) {
    const bool is_gzip = header.size() >= 2 && header[0] == 0x1F && header[1] == 0x8B;
    throw error(errc::not_a_filter, {"not a bloomery filter", path, "a file that starts with 89 'BLMR'",
                                     file_bytes == 0 ? "an empty file"
                                     : is_gzip       ? "a file compressed by gzip"
                                                     : "other bytes",
                                     is_gzip ? "decompress it first: gunzip" : error_hint(hint::make_a_filter)});
  }
  if (header.size() < header_bytes) {
    damaged(path, "the file is truncated within its header", "4096 bytes of header", std::to_string(header.size()));
  }
  header = header.first(header_bytes);
  const auto found_version = get<std::uint32_t>(header, at_version);
  if (found_version != version && found_version != salts_version) {
    throw error(errc::wrong_version, {"unsupported file version", path, "version 1 or 2", std::to_string(found_version),
                                      hint::use_its_version});
  }
  if (get<std::uint64_t>(header, at_checksum) != checksum(header.first(at_checksum))) {
    damaged(path, "the header does not match its checksum", "", "");
  }

  decoded d;
  params& p = d.info.parameters;
  p.layout = get_name(header, at_layout, path);
  p.scheme = get_name(header, at_scheme, path);
  p.hash = get_name(header, at_hash, path);
  const auto kind = get<std::uint32_t>(header, at_key_kind);
  p.keys = static_cast<key_kind>(kind);
  p.seed = get<std::uint64_t>(header, at_seed);
  p.geometry = {get<std::uint64_t>(header, at_bits), get<std::uint32_t>(header, at_probes)};
  p.capacity = get<std::uint64_t>(header, at_capacity);
  p.target_fpr = get<double>(header, at_target_rate);
  p.key_check = get<std::uint64_t>(header, at_key_check);
  d.metadata_checksum = get<std::uint64_t>(header, at_metadata_checksum);
  const auto metadata_bytes = get<std::uint64_t>(header, at_metadata_bytes);

  if (get<std::uint32_t>(header, at_header_bytes) != header_bytes)
    damaged(path, "length of the header", "4096", "another");
  if (p.layout.empty() == p.scheme.empty())
    damaged(path, "names in the header", "a layout or a scheme", "both or neither");
  if (p.scheme.empty() == p.hash.empty()) damaged(path, "names in the header", "a hash or a scheme", "both or neither");
  if (kind > 1) damaged(path, "kind of keys", "0 or 1", std::to_string(kind));
  if (const auto cell_bits = get<std::uint32_t>(header, at_cell_bits); cell_bits != cell_bits_of(p)) {
    damaged(path, "width of a cell", std::to_string(cell_bits_of(p)) + " bits", std::to_string(cell_bits));
  }
  if (p.geometry.bits == 0) damaged(path, "number of bits", "1 or more", "0");
  if (p.geometry.probes == 0 || p.geometry.probes > max_probes) {
    damaged(path, "probes", "1 to 255", std::to_string(p.geometry.probes));
  }
  if (!(p.target_fpr >= 0 && p.target_fpr <= 1)) damaged(path, "target FPR", "a probability", "another value");
  if ((p.hash == siphash::name) != (p.key_check != 0)) {
    damaged(path, "check value of the secret", "non-zero for hash siphash, otherwise 0",
            p.key_check == 0 ? "0" : "another value");
  }
  const auto salts = salts_of(header, path);
  p.extra = get_extra(header, salts, path);
  if (!window_fits(p)) damaged(path, "length of a window", window_expected, "another value");
  if (!salts_fit(p)) damaged(path, "salts", salts_expected, "another number of salts, a layout or a seed");
  if (metadata_bytes > most_metadata)
    damaged(path, "length of the metadata", "at most 1 MiB", std::to_string(metadata_bytes));
  const bool rest_is_zero = all_zero(header.subspan(140, 4)) &&
                            all_zero(header.subspan(at_reserved, at_checksum - at_reserved)) &&
                            all_zero(header.subspan(slot_at[0] + slot_bytes, slot_at[1] - slot_at[0] - slot_bytes)) &&
                            all_zero(header.subspan(at_salts + salts.size()));
  if (!rest_is_zero) damaged(path, "reserved bytes of the header", "zeros", "other bytes");

  d.parts = extents_for(p.geometry.bits, metadata_bytes);
  if (get<std::uint64_t>(header, at_file_bytes) != d.parts.file_bytes) {
    damaged(path, "length in the header", std::to_string(d.parts.file_bytes) + " bytes for the filter's geometry",
            "another length");
  }
  if (file_bytes != d.parts.file_bytes) {
    damaged(path, file_bytes < d.parts.file_bytes ? "file is truncated" : "file is too long",
            std::to_string(d.parts.file_bytes) + " bytes", std::to_string(file_bytes));
  }

  slot slots[2];
  bool valid[2];
  const layout_row* const layout = find_layout(p.layout);
  const bool counts_removals = layout != nullptr && layout->removals != nullptr;
  for (std::size_t i = 0; i < 2; ++i) {
    valid[i] = decode_slot(header.subspan(slot_at[i], slot_bytes), slots[i]) &&
               (counts_removals || slots[i].counts.refused_removals == 0);
  }
  if (!valid[0] && !valid[1]) damaged(path, "both state slots are unreadable", "", "");
  d.current_slot = !valid[0] || (valid[1] && is_later(slots[1].sequence, slots[0].sequence)) ? 1 : 0;
  d.current = slots[d.current_slot];
  // If one slot is unreadable, it may have been the newest one, so the file cannot count as clean.
  d.info.slot_damaged = !valid[0] || !valid[1];
  d.info.clean = d.current.clean && !d.info.slot_damaged;
  d.info.counts = d.current.counts;
  d.info.file_bytes = file_bytes;
  return d;
}

}  // namespace bloomery::format
