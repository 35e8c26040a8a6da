#include "cli/io/whole_file.hpp"

#include "cli/io/system_error.hpp"

#include <bloomery/detail/new_file.hpp>
#include <bloomery/error.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace bloomery::cli {
namespace {

// Follows links: the target of a link is replaced, not the link.
std::string behind_links(const std::string& path) {
  std::error_code missing;
  const auto real = std::filesystem::canonical(path, missing);
  return missing ? path : real.string();
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

void check_can_write(const std::string& path) {
  const std::string real = behind_links(path);
  struct stat status {};
  if (::stat(real.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) {
      throw error(errc::not_permitted,
                  {"cannot write to this path", path, "a file name",
                   S_ISDIR(status.st_mode) ? "a directory" : "not a regular file", "choose another name"});
    }
    if (::access(real.c_str(), W_OK) != 0) fail("replace", path);
  } else if (errno != ENOENT) {
    fail("create", path);
  }
  if (::access(folder_of(real).c_str(), W_OK | X_OK) != 0) fail("create", path);
}

void write_whole(const std::string& path, std::string_view bytes) {
  check_can_write(path);
  detail::new_file file(path);
  file.write(bytes);
  file.publish();
}

}  // namespace bloomery::cli
