#include "file/new_filter_file.hpp"

#include <bloomery/error.hpp>

namespace bloomery::format {
namespace {

// Returns `path`, after files that killed processes left there were removed.
const std::string& cleaned_up(const std::string& path, posix::locking how) {
  clean_up(posix::behind_links(path), how);
  return path;
}

}  // namespace

new_filter_file::new_filter_file(const std::string& path, const create_options& options)
    : path_(path),
      lock_(locking_of(options.no_lock)),
      file_(cleaned_up(path, lock_), {.replace = options.replace, .lock = lock_}),
      old_log_(path, lock_) {
  check_no_renames(path);
  if (options.expected && !(version_of(path) == *options.expected)) {
    throw error(errc::locked,
                {"another process has changed this file meanwhile; it is kept", path, "", "", hint::try_again});
  }
}

void new_filter_file::publish() {
  file_.sync_now();  // first, because other processes miss the log while it is retired
  check_no_renames(path_);
  old_log_.retire();
  file_.publish();
  old_log_.remove();
}

}  // namespace bloomery::format
