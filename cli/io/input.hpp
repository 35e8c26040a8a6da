// Key input from files and pipes: inputs are read in chunks of complete records. A record is a line, or in CSV a record
// of RFC 4180. records.hpp splits chunks into records, keys and times.
//
// One thread at a time reads; several threads may split chunks. Compressed inputs are recognized by their first bytes,
// and inputs that are not text are refused.
#pragma once

#include "cli/io/byte_source.hpp"
#include "cli/io/csv.hpp"
#include "cli/io/fields.hpp"
#include "cli/io/file_kinds.hpp"
#include "cli/io/json_lines.hpp"
#include "cli/io/times.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// The place of a record's time.
struct time_option {
  std::optional<field_range> field;  ///< of text and CSV
  std::optional<json_path> path;     ///< of JSON Lines
  time_format format;

  bool is_set() const { return field || path; }
};

/// Counters for warnings at the end of a command, for each list of inputs.
struct input_notes {
  std::map<std::vector<std::string>, std::uint64_t> lacking;  ///< records of CSV or JSON Lines without a field
  std::uint64_t late = 0;                                     ///< records older than the window
};

/// The inputs, the format of their records, and the position of keys and times in them.
struct input_options {
  std::vector<std::string> files;   ///< "-" is standard input, as is an empty list
  bool nul_separated = false;       ///< lines end with NUL, not LF
  bool crlf = false;                ///< removes a CR at the end of a line
  std::string delimiter;            ///< separator of fields; empty: TAB, in CSV a comma
  std::vector<field_range> fields;  ///< the key is these fields; none: the whole line
  bool csv = false;
  bool header = false;           ///< the first record of each CSV file names its columns; implied by a name
  std::vector<json_path> paths;  ///< lines are JSON, and the key is these values; none: not JSON
  time_option time;
  bool format_is_set = false;                                            ///< --time-format
  std::shared_ptr<input_notes> notes = std::make_shared<input_notes>();  ///< shared with copies

  bool as_text = false;  ///< reads archives and binary data as lines, too
  bool quiet = false;    ///< does not report that keys are read from a terminal

  char line_end() const { return nul_separated ? '\0' : '\n'; }
  bool has_header() const;
  std::string_view separator() const { return !delimiter.empty() ? std::string_view(delimiter) : csv ? "," : "\t"; }
};

/// @throws error invalid_argument: options that contradict each other
void check(const input_options& options);

/// Complete records of one input. The buffer is reused by the next chunk.
struct chunk {
  std::unique_ptr<char[]> buffer;
  std::size_t room = 0;
  std::size_t size = 0;
  const std::string* source = nullptr;       ///< the input's name, for messages
  bool may_wait = false;                     ///< the next chunk may be delayed: flush results
  std::uint64_t first_line = 1;              ///< number of its first line, if the record format or a time needs it
  std::shared_ptr<const csv_header> header;  ///< of the input, if it has one

  std::string_view text() const { return {buffer.get(), size}; }
};

class record_frame;

/// Reads all inputs in order.
class reader {
 public:
  /// @throws error not_found, not_permitted: an input cannot be read; checked before reading begins
  explicit reader(const input_options& options);
  reader(const reader&) = delete;
  ~reader();

  /// The next chunk of complete records; the last one of an input may lack its end. False at the end. A chunk without
  /// records brings the header of an input that has nothing else.
  /// @throws error  io; as decompress(); invalid_argument: not text, a CSV quote that is never closed, a header
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
  std::string carry_;                         // start of a record that ends in the next chunk
  std::unique_ptr<record_frame> frame_;       // null: records are lines, and their numbers are not needed
  std::atomic<std::uint64_t> bytes_read_{0};  // also read by the progress bar's thread
  std::uint64_t bytes_total_ = 0;
};

/// Whether all inputs are regular files, standard input included, and can be read again.
bool can_reread(const input_options& options);

/// Replaces standard input by a name for it, if it is a regular file at its start, so that it can be read more than
/// once. False if some input can be read only once.
bool name_standard_input(input_options& options);

/// Totals of all inputs, decompressed.
struct text_size {
  std::uint64_t lines = 0;  ///< records
  std::uint64_t bytes = 0;
};

/// Reads all inputs; restores the position of standard input. Requires can_reread().
text_size measure_text(const input_options& options, unsigned threads = 1);

/// measure_text().lines
inline std::uint64_t count_lines(const input_options& options, unsigned threads = 1) {
  return measure_text(options, threads).lines;
}

}  // namespace bloomery::cli
