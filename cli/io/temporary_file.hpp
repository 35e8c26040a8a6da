// A file without a name, in TMPDIR: what does not fit in memory for a while. It vanishes with the process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace bloomery::cli {

class temporary_file {
 public:
  /// @throws error  not_found, not_permitted, io: the folder for temporary files refuses
  temporary_file();
  temporary_file(temporary_file&& other) noexcept;
  temporary_file& operator=(temporary_file&&) = delete;
  ~temporary_file();

  /// Appends; gathered into large writes. @throws error io (disk full)
  void append(std::span<const char> bytes);

  /// Ends writing and goes back to the start, for reading; may be called again to read again.
  void rewind();

  /// Reads up to the whole span, gathered from large reads; fewer bytes at the end. After rewind().
  std::size_t read(std::span<char> to);

  /// Gives its room back before its time.
  void discard();

  std::uint64_t size() const noexcept { return size_; }

  /// A path under which this process can open it again.
  std::string path() const;

  /// The folder: TMPDIR, else /tmp.
  static std::string folder();

  /// Bytes free there.
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
