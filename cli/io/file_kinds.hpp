// Recognition of inputs by their first bytes: compression, and files that are not lists of keys.
#pragma once

#include "cli/io/decompress.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace bloomery::cli {

/// A kind of file, known by its first bytes.
struct file_kind {
  std::string name;                        ///< "a zip archive"
  std::optional<compression> format = {};  ///< its compression; none: it is refused
  std::string hint = {};                   ///< advice for a refused file
  bool is_skippable = false;               ///< a frame of other data, before those of zstd or LZ4
};

/// The result of recognise().
struct recognition {
  const file_kind* kind = nullptr;  ///< null: unknown kind
  bool needs_more = false;          ///< the bytes are the beginning of a magic number
};

/// Recognizes the kind of an input by the bytes that it begins with. Text is never recognized as another kind.
recognition recognise(std::string_view start);

/// Refuses an input that is not a text file. @throws error invalid_argument, always
[[noreturn]] void refuse_kind(const file_kind& kind, const std::string& input);

/// Refuses decompressed or uncompressed input that is not text: an archive, compressed data, a NUL byte among the first
/// 64 KiB, or more than 64 NUL bytes within 64 KiB of the rest. Text in UTF-8, Latin-1 or another single-byte encoding
/// has no NUL bytes.
class binary_check {
 public:
  /// @param input       its name, for messages
  /// @param allows_nul  keys end with NUL
  binary_check(std::string input, bool allows_nul) : input_(std::move(input)), allows_nul_(allows_nul) {}

  /// The next bytes of the input. @throws error invalid_argument
  void look_at(std::string_view bytes);

 private:
  static constexpr std::uint64_t window = std::uint64_t{64} << 10;

  void look_at_start(std::string_view bytes) const;
  void look_at_rest(std::string_view bytes);

  std::string input_;
  bool allows_nul_;
  std::uint64_t seen_ = 0;       // bytes
  std::uint64_t lines_ = 0;      // that end among them
  std::uint64_t nuls_ = 0;       // in the present 64 KiB, and the first of them
  std::uint64_t first_nul_ = 0;  // its offset
  std::uint64_t line_of_first_nul_ = 0;
};

}  // namespace bloomery::cli
