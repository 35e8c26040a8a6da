// Files for tests: a temporary folder, and reading and writing of whole files.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace bloomery_tests {

using bytes = std::vector<std::uint8_t>;

inline bytes copy_of(std::span<const std::uint8_t> view) { return {view.begin(), view.end()}; }

/// A new folder in the current one, removed with all that is in it.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = "bloomery-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder for the test");
    path_ = std::filesystem::absolute(name);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  /// The path of a file in it.
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const bytes& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

inline void write_file(const std::string& path, const std::string& content) {
  write_file(path, bytes(content.begin(), content.end()));
}

}  // namespace bloomery_tests
