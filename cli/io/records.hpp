// Splitting of input chunks into records, keys and times.
#pragma once

#include "cli/io/input.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// The number of occurrences of a byte.
std::uint64_t count_of(std::string_view text, char wanted);

/// Cuts a chunk into lines without their ends. `lines` point into the chunk.
void cut_lines(std::string_view text, char line_end, std::vector<std::string_view>& lines);

/// Cuts a chunk into records without their ends: lines, or records of CSV.
void cut_records(std::string_view text, const input_options& options, std::vector<std::string_view>& records);

/// The number of records, the last of which may lack its end.
std::uint64_t count_records(std::string_view text, const input_options& options);

/// The keys of lines: the selected fields, without CR if selected. A field that a line lacks is empty. Keys of several
/// fields are complete after made.settle(keys).
void cut_keys(std::span<const std::string_view> lines, const input_options& options, made_keys& made,
              std::vector<std::string_view>& keys);

/// Whether keys are entire records.
inline bool keys_are_lines(const input_options& options) {
  return options.fields.empty() && options.paths.empty() && !options.crlf && !options.csv;
}

/// The records of a chunk with their keys and times. They point into the chunk or the cutter.
struct records {
  std::vector<std::string_view> lines;     // whole records
  std::vector<std::string_view> cut;       // keys, if they are not entire records
  std::span<const std::string_view> keys;  // one per record
  std::vector<std::uint64_t> times;        // one per record, milliseconds since 1970, if --time-field is given
  std::uint64_t lacking = 0;               // records of CSV or JSON Lines that lack a field of the key
};

/// Cuts chunks. Reuses its memory: one object per thread.
class record_cutter {
 public:
  /// @param options  must outlive the object
  explicit record_cutter(const input_options& options);
  ~record_cutter();

  /// @throws error invalid_argument: a line that is not JSON, a time that cannot be read or is far in the future, a
  ///         missing column
  void cut(const chunk& piece, records& to);

 private:
  class csv_columns;

  void cut_csv(const chunk& piece, records& to);
  void cut_json(const chunk& piece, records& to);
  void add_time(const chunk& piece, std::string_view record, std::string_view text, records& to);
  void check_clock(std::uint64_t time, const chunk& piece, std::string_view record, std::string_view text);

  const input_options& options_;
  made_keys made_;
  std::vector<std::string_view> fields_;
  std::unique_ptr<csv_columns> columns_;
  std::unique_ptr<json_reader> json_;
  std::string last_time_text_;  // neighboring records often have the same time
  std::uint64_t last_time_ = 0;
  std::uint64_t latest_time_ = 0;  // that the clock allowed when it was last read
};

}  // namespace bloomery::cli
