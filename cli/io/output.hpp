// Buffered output of results: large writes, or each line at once on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace bloomery::cli {

/// Thrown when the reader has closed the pipe. Not an error: the command ends silently, as by SIGPIPE.
struct reader_gone {};

/// Writes lines to a descriptor.
class output {
 public:
  /// @param fd    an open descriptor; stays open
  /// @param name  for messages
  output(int fd, std::string name);

  /// @throws reader_gone, error io
  void write(std::string_view bytes) {
    if (bytes.size() >= most_gathered - gathered_.size()) return write_through(bytes);
    gathered_.append(bytes);
  }

  /// @throws reader_gone, error io
  void flush();

  /// Flushes; a regular file is also synced to disk. @throws reader_gone, error io
  void sync();

  /// Whether the output is a terminal, which shows each line at once.
  bool watched() const noexcept { return terminal_; }

  bool regular_file() const noexcept { return regular_; }
  int fd() const noexcept { return fd_; }

 private:
  static constexpr std::size_t most_gathered = std::size_t{256} << 10;

  void write_through(std::string_view bytes);
  void write_now(std::string_view bytes) const;

  int fd_;
  std::string name_;
  bool terminal_ = false;
  bool regular_ = false;
  std::string gathered_;
};

/// An output file by name, for --suspects and the like.
class output_file {
 public:
  /// Creates or empties the file. @throws error not_permitted, not_found
  explicit output_file(const std::string& path);
  output_file(const output_file&) = delete;
  ~output_file();

  output& lines() noexcept { return lines_; }

 private:
  int fd_;
  output lines_;
};

}  // namespace bloomery::cli
