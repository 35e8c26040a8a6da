// Key input from files and pipes: inputs are read in chunks that end at line ends, and chunks are cut into lines and
// keys.
//
// One thread at a time reads; several threads may cut. Compressed inputs are recognised by their first bytes,
// and inputs that are not text are refused.
#pragma once

#include "cli/io/byte_source.hpp"
#include "cli/io/file_kinds.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// The inputs and the position of keys in their lines.
struct input_options {
  std::vector<std::string> files;  ///< "-" is standard input; none at all means standard input
  bool nul_separated = false;      ///< lines end with NUL, not LF
  bool crlf = false;               ///< removes a CR at the end of a line
  std::string delimiter;           ///< separator of fields, one character; empty: TAB
  std::uint64_t field = 0;         ///< the key is this field, counted from 1; 0: the whole line
  bool as_text = false;            ///< reads archives and binary data as lines, too
  bool quiet = false;              ///< does not tell that keys are read from a terminal

  char line_end() const { return nul_separated ? '\0' : '\n'; }
};

/// @throws error invalid_argument: a delimiter of several characters, or without a field
void check(const input_options& options);

/// Complete lines of one input. The buffer is reused by the next chunk.
struct chunk {
  std::unique_ptr<char[]> buffer;
  std::size_t room = 0;
  std::size_t size = 0;
  const std::string* source = nullptr;  ///< the input's name, for messages
  bool may_wait = false;                ///< the next chunk may be delayed: flush results

  std::string_view text() const { return {buffer.get(), size}; }
};

/// Reads all inputs in order.
class reader {
 public:
  /// @throws error not_found, not_permitted: an input cannot be read; checked before reading begins
  explicit reader(const input_options& options);
  reader(const reader&) = delete;
  ~reader();

  /// The next chunk of complete lines; the last line of an input may lack its end. False at the end.
  /// @throws error  io; as decompress(); invalid_argument: the input is not text
  bool next(chunk& to);

  /// Makes a next() that waits in another thread, and all later calls, return false.
  void cancel() noexcept;

  /// Bytes read, before decompression, and their total if all inputs are regular files (else 0): for the progress bar.
  std::uint64_t bytes_read() const noexcept { return bytes_read_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  bool open_next();

  const input_options& options_;
  std::vector<std::string> names_;
  std::size_t opened_ = 0;
  std::unique_ptr<byte_source> source_;
  std::optional<binary_check> check_;         // of source_
  int cancel_[2] = {-1, -1};                  // a pipe, readable after cancel()
  std::string carry_;                         // start of a line that ends in the next chunk
  std::atomic<std::uint64_t> bytes_read_{0};  // also read by the progress bar's thread
  std::uint64_t bytes_total_ = 0;
};

/// Cuts a chunk into lines without their ends. `lines` point into the chunk.
void cut_lines(std::string_view text, char line_end, std::vector<std::string_view>& lines);

/// The keys of lines: the selected field, without CR if selected. A line without the field has the empty key.
void cut_keys(std::span<const std::string_view> lines, const input_options& options,
              std::vector<std::string_view>& keys);

/// Whether keys are entire lines.
inline bool keys_are_lines(const input_options& options) { return options.field == 0 && !options.crlf; }

/// Whether all inputs are regular files, standard input included, and can be read again.
bool can_reread(const input_options& options);

/// Replaces standard input by a name for it, if it is a regular file at its start, so that it can be read more than
/// once. False if some input can be read only once.
bool name_standard_input(input_options& options);

/// Totals of all inputs, decompressed.
struct text_size {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

/// Reads all inputs; restores the position of standard input. Requires can_reread().
text_size measure_text(const input_options& options, unsigned threads = 1);

/// measure_text().lines
inline std::uint64_t count_lines(const input_options& options, unsigned threads = 1) {
  return measure_text(options, threads).lines;
}

}  // namespace bloomery::cli
