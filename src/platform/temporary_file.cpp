#include "platform/temporary_file.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace bloomery::posix {

descriptor temporary_file(const std::string& folder) {
  descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string name = folder + "/bloomery.XXXXXX";
  file = descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) fail("create a temporary file in", folder);
  ::unlink(name.c_str());
  return file;
}

std::string temporary_folder(const std::string& path) {
  if (const char* chosen = std::getenv("TMPDIR"); chosen != nullptr && *chosen != '\0') return chosen;
  const std::string folder = std::filesystem::path(behind_links(path)).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::uint64_t free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) fail("read the free space of", folder);
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace bloomery::posix
