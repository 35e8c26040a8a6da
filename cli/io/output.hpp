// Results on standard output: gathered into large writes, shown at once on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace bloomery::cli {

/// The reader of our output has gone. Not an error: we stop quietly, as SIGPIPE would have stopped us.
struct reader_gone {};

/// Lines to a descriptor.
class output {
 public:
  /// @param fd    an open descriptor, not closed here
  /// @param name  for messages
  output(int fd, std::string name);

  /// @throws reader_gone, error io
  void write(std::string_view bytes) {
    if (bytes.size() >= most_gathered - gathered_.size()) return write_through(bytes);
    gathered_.append(bytes);
  }

  /// @throws reader_gone, error io
  void flush();

  /// flush(), and for a regular file waits until the bytes are on disk. @throws reader_gone, error io
  void sync();

  /// A terminal: a line should be seen as soon as it is known.
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
