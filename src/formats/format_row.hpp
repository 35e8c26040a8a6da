// The rows of the table of formats of other systems, one file each. Read guava.cpp first: it is the simplest.
#pragma once

#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::formats {

static_assert(std::endian::native == std::endian::little);

/// Order of the bytes of a word of 64 bits in a file.
enum class byte_order : std::uint8_t {
  little_endian,  ///< as in a filter of bloomery: bit i is in byte i / 8
  big_endian,
};

/// What the beginning of a file says.
struct contents {
  params parameters;
  std::uint64_t bits_at = 0;               ///< offset of the bits
  std::optional<std::uint64_t> keys = {};  ///< as counted by the other system
  std::uint64_t layers = 1;                ///< a filter that has grown has several; the parameters are of the first
  bool is_empty = false;                   ///< the file has no words: all bits are 0
};

/// A filter that was read, or a layer of one that has grown.
struct stored_layer {
  params parameters;
  heap_storage words;
  std::uint64_t keys = 0;  ///< as counted by the other system
};

/// The beginning and the last bytes of a file. Numbers beyond its end are 0, so readers check the length once they know
/// it.
class head {
 public:
  static constexpr std::size_t most_bytes = 4096;  ///< redisbloom_chunks needs 53 for each layer

  static constexpr std::size_t most_last = 8;

  /// @param last  the last bytes of the file: most_last, or all of them
  head(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> last, std::uint64_t file_bytes,
       std::string path);

  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint8_t last_byte() const { return last_.back(); }
  const std::string& path() const { return path_; }
  std::span<const std::uint8_t> bytes() const {
    return std::span(bytes_).first(static_cast<std::size_t>(std::min<std::uint64_t>(most_bytes, file_bytes_)));
  }

  /// The last N bytes. Requires a file of at least N bytes.
  template <std::size_t N>
  std::span<const std::uint8_t, N> last() const {
    static_assert(N <= most_last);
    return std::span(last_).template last<N>();
  }

  std::uint8_t byte(std::size_t at) const { return bytes_[at]; }
  std::uint32_t u32_big_endian(std::size_t at) const { return __builtin_bswap32(get<std::uint32_t>(at)); }
  std::uint64_t u64_big_endian(std::size_t at) const { return __builtin_bswap64(get<std::uint64_t>(at)); }
  std::uint64_t u64(std::size_t at) const { return get<std::uint64_t>(at); }
  double f64(std::size_t at) const { return get<double>(at); }

  /// @throws error  damaged
  [[noreturn]] void refuse(std::string what, std::string expected, std::string found) const;
  /// @throws error  damaged, unless `value` is in least .. most
  void check_range(const char* what, std::uint64_t value, std::uint64_t least, std::uint64_t most) const;
  /// @throws error  damaged, unless `words` words of 8 bytes begin at `bits_at` and end the file
  void check_length(std::uint64_t bits_at, std::uint64_t words, bool has_metadata = false) const;

 private:
  template <class T>
  T get(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  std::array<std::uint8_t, most_bytes> bytes_{};
  std::array<std::uint8_t, most_last> last_{};
  std::uint64_t file_bytes_;
  std::string path_;
};

/// A format of another system. A file consists of write(), the bits, the user's own bytes and write_end(). The bits are
/// whole 64-bit words, or whole bytes if there is a write_end().
struct format_row {
  std::string_view name;
  std::string_view system;   ///< the systems that read and write it
  std::string_view schemes;  ///< the schemes of its filters, separated by ", "
  byte_order order;

  /// @throws error  damaged: not a file of this format
  contents (*read)(const head& file);

  /// The bytes before the bits. Requires a scheme of this format. @throws error  incompatible
  std::vector<std::uint8_t> (*write)(const params& p, const key_counts& counts);

  /// The whole file of a filter without set bits: see contents::is_empty. Null: it has words like all others.
  std::vector<std::uint8_t> (*write_empty)(const params& p) = nullptr;

  bool has_metadata = false;  ///< the user's own bytes may follow the bits

  /// Reads the parameters and bits of all layers, for formats whose bits are not a part of the file as they are, or not
  /// at a known place. Requires a file that read() accepts, and all of its bytes. Null: the bits begin at
  /// contents::bits_at. @throws error  damaged
  std::vector<stored_layer> (*read_layers)(const head& file, std::span<const std::uint8_t> bytes) = nullptr;

  /// The bytes at the end of the file. Null: none.
  /// @param crc  CRC-64 of all bytes before, see rdb.hpp
  std::vector<std::uint8_t> (*write_end)(const params& p, const key_counts& counts, std::uint64_t crc) = nullptr;

  /// Whether a file is recognized by its content; false if nearly any file could be of this format.
  bool is_recognized = true;

  /// Whether a file has the signature of this format, so a wrong number in it is damage. Null: there is no signature.
  bool (*has_signature)(const head& file) = nullptr;
};

extern const format_row guava_row;
extern const format_row spark_row;
extern const format_row dcso_row;
extern const format_row bits_and_blooms_row;
extern const format_row redisbloom_row;
extern const format_row redisbloom_chunks_row;
extern const format_row valkey_bloom_row;
extern const format_row datasketches_row;
extern const format_row leveldb_row;
extern const format_row rocksdb_row;
extern const format_row perl_row;

constexpr std::uint64_t words_for(std::uint64_t bits) { return bits / 64 + (bits % 64 != 0); }

/// The number of bytes that a file of this format has for these bits.
constexpr std::uint64_t stored_bytes(const format_row& row, std::uint64_t bits) {
  return row.write_end == nullptr ? 8 * words_for(bits) : bytes_for(bits);
}

/// All formats.
std::span<const format_row> format_rows() noexcept;

/// The row with this name, or null.
const format_row* find_format(std::string_view name) noexcept;

/// The row whose reader accepts the file, or finds that it is of this format but incompatible; null for files of
/// bloomery and for unknown files.
const format_row* recognize(const head& file) noexcept;

/// Whether a scheme is among those of a format, as in format_row::schemes.
bool has_scheme(std::string_view schemes, std::string_view scheme) noexcept;

/// Stores the salts of a filter, unless seed 0 selects the same ones. Requires p.scheme, of a scheme with salts.
void set_salts(params& p, std::vector<std::string> salts);

/// For formats that store the capacity. @throws error  incompatible: the capacity is unknown
void require_capacity(const params& p);

/// For formats that store the target FPR. @throws error  incompatible: it is not above 0 and below 1
void require_target_fpr(const params& p);

/// A number of a file, for messages: "0.01", "1e+300".
std::string text_of(double number);

/// Reverses the bytes of each word: from big-endian to little-endian and back.
void reverse_words(std::span<std::uint8_t> words) noexcept;

/// Appends a number, little-endian or big-endian.
template <class T>
void append(std::vector<std::uint8_t>& bytes, T value, byte_order order = byte_order::little_endian) {
  std::uint8_t image[sizeof value];
  std::memcpy(image, &value, sizeof value);
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes.push_back(image[order == byte_order::little_endian ? i : sizeof value - 1 - i]);
}

}  // namespace bloomery::formats
