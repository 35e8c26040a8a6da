// A file that passes by: for what the library reads and writes by a file's name alone.
#pragma once

#include <string>
#include <string_view>

namespace bloomery::playground {

/// An empty file with a name, which is gone when this is.
class passing_file {
 public:
  passing_file();  ///< @throws error io; so with the others
  passing_file(const passing_file&) = delete;
  passing_file& operator=(const passing_file&) = delete;
  ~passing_file();

  const std::string& path() const noexcept { return path_; }
  void write(std::string_view bytes) const;
  std::string read() const;

 private:
  std::string path_;
};

/// The error of a file that passes by: its name is nobody's business.
[[noreturn]] void no_room(const std::string& why);

}  // namespace bloomery::playground
