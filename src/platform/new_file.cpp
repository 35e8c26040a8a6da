// new_file and unfinished_mark: files that are complete or absent.
#include <bloomery/detail/new_file.hpp>

#include <bloomery/error.hpp>

#include "platform/posix.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

namespace bloomery::detail {
namespace {

// Files can also be written without locks: they are not filters, and the last process wins.
constexpr posix::locking how = posix::locking::if_possible;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

struct new_file::impl {
  std::string path;
  posix::replacement file;
};

new_file::new_file(const std::string& path, bool replace, std::uint32_t mode) {
  posix::remove_abandoned(posix::unfinished_name(posix::behind_links(path)), how);
  impl_.reset(new impl{path, posix::replacement(path, {.replace = replace, .lock = how, .mode = mode})});
}

new_file::new_file(new_file&&) noexcept = default;
new_file::~new_file() = default;

void new_file::write(std::string_view bytes) { posix::write_all(impl_->file.fd(), bytes_of(bytes), impl_->path); }
void new_file::sync() { posix::sync(impl_->file.fd(), impl_->path); }
void new_file::publish(bool synced) { impl_->file.publish(synced); }

struct unfinished_mark::impl {
  std::string path;
  posix::descriptor file;
  std::string text;
};

unfinished_mark::unfinished_mark(const std::string& path) {
  posix::descriptor file;
  do {
    file = posix::descriptor(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file) posix::fail("create", path);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) posix::fail("read the state of", path);
    if (!S_ISREG(status.st_mode)) {
      throw error(errc::already_exists, {"not a regular file", path, "", "", hint::move_file_away});
    }
    if (!posix::try_lock(file.get(), path, how)) {
      throw error(errc::locked, {"another process is creating these files", path, "", "", hint::wait_for_writer});
    }
  } while (!posix::same_file(file.get(), path));  // removed by the previous lock holder
  std::string text(4095, '\0');
  text.resize(posix::read_at(file.get(), {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}, 0, path));
  impl_ = std::make_unique<impl>(impl{path, std::move(file), std::move(text)});
}

unfinished_mark::unfinished_mark(unfinished_mark&&) noexcept = default;
unfinished_mark::~unfinished_mark() = default;

const std::string& unfinished_mark::text() const noexcept { return impl_->text; }

void unfinished_mark::write(std::string_view text) {
  if (::ftruncate(impl_->file.get(), 0) != 0) posix::fail("write", impl_->path);
  posix::write_at(impl_->file.get(), bytes_of(text), 0, impl_->path);
  posix::sync(impl_->file.get(), impl_->path);
  posix::sync_folder_of(impl_->path);
}

void unfinished_mark::remove() {
  if (::unlink(impl_->path.c_str()) != 0) posix::fail("remove", impl_->path);
  posix::sync_folder_of(impl_->path);
}

}  // namespace bloomery::detail
