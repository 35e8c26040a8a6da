// Boundaries of records that are not single lines: ends of records, line numbers, byte order mark and header.
#pragma once

#include "cli/io/input.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bloomery::cli {

class record_frame {
 public:
  /// The maximum size of a CSV record in bytes. An unclosed quote would extend a record to the end of the file.
  static constexpr std::size_t most_record_bytes = std::size_t{64} << 20;

  /// Null if records are lines and their numbers are not needed.
  static std::unique_ptr<record_frame> make(const input_options& options);

  explicit record_frame(const input_options& options);

  void begin_source(const std::string& name);

  /// The end of the last complete record in the text, or 0. The text begins where the last call's result was, or with
  /// the text of the last call if that was 0.
  /// @throws error invalid_argument: a record is too large
  std::size_t last_end(std::string_view text);

  /// @param rest  the text after the last end @throws error invalid_argument: a quote is not closed
  void end_source(std::string_view rest) const;

  /// Numbers the lines of a chunk, and takes the byte order mark and the header from the first one. False if nothing is
  /// left, not even a header.
  bool deliver(chunk& piece);

 private:
  std::uint64_t line_of(std::string_view text, std::size_t at) const;

  const input_options& options_;
  std::string name_;
  std::uint64_t next_line_ = 1;  // of the next chunk
  bool at_start_ = true;         // no chunk of the source was delivered yet
  std::size_t scanned_ = 0;      // bytes after the last end that the scanner has seen
  csv_scanner scanner_;
  std::shared_ptr<const csv_header> header_;
};

}  // namespace bloomery::cli
