// Keys out of files and pipes: inputs are read in chunks that end at line ends, chunks are cut into lines, lines into
// keys.
//
// Reading is one thread's work at a time; cutting may be done by several. gzip and zstd are recognised by their first
// bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// Where the keys are and how to cut them out.
struct input_options {
  std::vector<std::string> files;  ///< "-" is standard input; none at all means standard input
  bool nul_separated = false;      ///< lines end with NUL, not LF
  bool crlf = false;               ///< a CR before the line's end does not belong to the key
  std::string delimiter;           ///< one character that separates fields; empty: TAB
  std::uint64_t field = 0;         ///< the key is this field, counted from 1; 0: the whole line

  char line_end() const { return nul_separated ? '\0' : '\n'; }
};

/// @throws error invalid_argument: a delimiter of several characters, or without a field
void check(const input_options& options);

/// Some whole lines of one input, as read. The buffer is reused from chunk to chunk.
struct chunk {
  std::unique_ptr<char[]> buffer;
  std::size_t room = 0;
  std::size_t size = 0;
  const std::string* source = nullptr;  ///< the input's name, for messages
  bool may_wait = false;                ///< the next chunk may be long in coming: show what there is

  std::string_view text() const { return {buffer.get(), size}; }
};

/// Bytes of an input, uncompressed.
class byte_source {
 public:
  virtual ~byte_source() = default;
  /// Reads at least one byte if there is one; 0 at the end or when a signal asks to stop. @throws error
  virtual std::size_t read(std::span<char> to) = 0;
};

/// All inputs, one after another.
class reader {
 public:
  /// @throws error not_found, not_permitted: an input that cannot be read, before anything else is done
  explicit reader(const input_options& options);
  reader(const reader&) = delete;
  ~reader();

  /// The next chunk: whole lines, the last of them perhaps without its end if the input has none. False at the end.
  /// @throws error  io, damaged (compressed data)
  bool next(chunk& to);

  /// Ends a next() that waits in another thread, and all later ones.
  void cancel() noexcept;

  /// Bytes read of the inputs as they lie on disk, and their total where all are regular files (else 0): for progress.
  std::uint64_t bytes_read() const noexcept { return bytes_read_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  bool open_next();

  const input_options& options_;
  std::vector<std::string> names_;
  std::size_t opened_ = 0;
  std::unique_ptr<byte_source> source_;
  int cancel_[2] = {-1, -1};                  // a pipe: readable once cancelled
  std::string carry_;                         // the beginning of a line whose end is in the next chunk
  std::atomic<std::uint64_t> bytes_read_{0};  // the progress bar looks from another thread
  std::uint64_t bytes_total_ = 0;
};

/// Cuts a chunk into lines without their ends. `lines` point into the chunk.
void cut_lines(std::string_view text, char line_end, std::vector<std::string_view>& lines);

/// The keys of lines: the field asked for, without CR where that is asked. A line without the field has the empty key.
void cut_keys(std::span<const std::string_view> lines, const input_options& options,
              std::vector<std::string_view>& keys);

/// True if keys are the lines themselves.
inline bool keys_are_lines(const input_options& options) { return options.field == 0 && !options.crlf; }

/// Whether all inputs can be read again from the start: regular files, standard input too if it is one.
bool can_reread(const input_options& options);

/// Lets a regular file that is standard input be opened by name, so that it can be read more than once, and again from
/// its start. False if some input can only be read once.
bool name_standard_input(input_options& options);

/// What all inputs hold, uncompressed.
struct text_size {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

/// Reads all inputs through; standard input is put back to where it was. Requires can_reread().
text_size measure_text(const input_options& options);

/// measure_text().lines
inline std::uint64_t count_lines(const input_options& options) { return measure_text(options).lines; }

}  // namespace bloomery::cli
