#include "cli/io/system_error.hpp"

#include <bloomery/error.hpp>

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace bloomery::cli {

void fail(const std::string& verb, const std::string& name, const std::string& if_full, const std::string& otherwise) {
  const int number = errno;
  errc code = errc::io;
  std::string hint;
  if (number == ENOENT || number == ENOTDIR) code = errc::not_found;
  if (number == EACCES || number == EPERM || number == EROFS) code = errc::not_permitted;
  if (number == ENOSPC || number == EDQUOT) hint = if_full;
  if (hint.empty()) hint = otherwise;
  if (number == EFBIG && hint.empty()) hint = "raise the limit on file sizes (ulimit -f)";
  if (number == EMFILE) hint = "raise the limit on open files (ulimit -n)";
  throw error(code, {"cannot " + verb + ": " + std::strerror(number), name, "", "", hint});
}

unsigned long allow_many_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 256;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}

}  // namespace bloomery::cli
