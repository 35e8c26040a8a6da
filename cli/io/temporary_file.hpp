// An unnamed temporary file in TMPDIR, for data that does not fit in memory. It disappears with the process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace bloomery::cli {

class temporary_file {
 public:
  /// @throws error  not_found, not_permitted, io: no file can be created in the temporary folder
  temporary_file();
  temporary_file(temporary_file&& other) noexcept;
  temporary_file& operator=(temporary_file&&) = delete;
  ~temporary_file();

  /// Appends, buffered. @throws error io (disk full)
  void append(std::span<const char> bytes);

  /// Ends writing and starts reading from the beginning; may be called again.
  void rewind();

  /// Fills the span, buffered; fewer bytes at the end of the file. Requires rewind().
  std::size_t read(std::span<char> to);

  /// Frees the disk space before the destructor does.
  void discard();

  std::uint64_t size() const noexcept { return size_; }

  /// A path by which this process can open the file again.
  std::string path() const;

  /// The temporary folder: TMPDIR, else /tmp.
  static std::string folder();

  /// Free bytes in the temporary folder.
  static std::uint64_t room();

 private:
  void write_out();
  bool read_ahead();

  int fd_ = -1;
  std::uint64_t size_ = 0;
  bool reading_ = false;
  std::string gathered_;   // writing: bytes not yet written; reading: bytes read ahead
  std::size_t taken_ = 0;  // reading: bytes of gathered_ given out
};

}  // namespace bloomery::cli
