// file_edit: an atomic change of a filter file.
#include <bloomery/any_filter.hpp>

#include "file/open_file.hpp"
#include "file/publish.hpp"
#include "file/unfinished.hpp"
#include "platform/posix.hpp"

#include <cassert>
#include <utility>

namespace bloomery {

struct file_edit::state {
  std::string path;
  posix::descriptor locked;
  any_filter filter;
  posix::locking lock;
};

namespace {

open_options for_writing(open_options options) {
  options.mode = access::read_write;
  return options;
}

}  // namespace

// Lock first, so that no other process changes the file after it is loaded.
file_edit::file_edit(const std::string& path, const open_options& options)
    : file_edit(path, format::open(path, for_writing(options)), options) {}

file_edit::file_edit(const std::string& path, format::open_file locked, const open_options& options) {
  any_filter filter = any_filter::loaded(format::load(locked, path), options, path);
  refuse_log(filter.parameters(), path);
  state_ = std::make_unique<state>(
      state{path, std::move(locked.file), std::move(filter), format::locking_of(options.no_lock)});
}

file_edit::file_edit(file_edit&&) noexcept = default;
file_edit& file_edit::operator=(file_edit&&) noexcept = default;
file_edit::~file_edit() = default;

any_filter& file_edit::filter() noexcept { return state_->filter; }

void file_edit::commit() {
  assert(state_ != nullptr);
  const std::unique_ptr<state> s = std::move(state_);
  posix::replacement file(s->path, std::move(s->locked), s->lock);
  format::write(file.fd(), s->path, s->filter.parameters(), s->filter.bytes(), s->filter.counts(),
                s->filter.opened_from()->metadata);
  file.publish();
}

}  // namespace bloomery
