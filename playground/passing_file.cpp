#include "playground/passing_file.hpp"

#include <bloomery/error.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <system_error>

namespace bloomery::playground {

passing_file::passing_file() {
  std::error_code problem;
  path_ = (std::filesystem::temp_directory_path(problem) / "bloomery-XXXXXX").string();
  if (problem) no_room(problem.message());
  const int fd = ::mkstemp(path_.data());
  if (fd < 0) no_room(std::strerror(errno));
  ::close(fd);
}

passing_file::~passing_file() { ::unlink(path_.c_str()); }

void passing_file::write(std::string_view bytes) const {
  std::ofstream out(path_, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) no_room("it cannot be written");
}

std::string passing_file::read() const {
  std::ifstream in(path_, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void no_room(const std::string& why) {
  throw error(errc::io, {"no room for a temporary file", "", "", why,
                         "make room, or set TMPDIR to a folder that has some, and start the playground again"});
}

}  // namespace bloomery::playground
