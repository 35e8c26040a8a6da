#include <bloomery/any_filter.hpp>

#include "file/open_file.hpp"
#include "file/publish.hpp"
#include "platform/posix.hpp"

#include <cassert>
#include <utility>

namespace bloomery {

struct file_edit::state {
  std::string path;
  posix::descriptor locked;
  any_filter filter;
};

// Lock first, so that no other process changes the file after it is loaded.
file_edit::file_edit(const std::string& path, const open_options& options)
    : file_edit(path, format::open(path, access::read_write, options.waiting), options) {}

file_edit::file_edit(const std::string& path, format::open_file locked, const open_options& options) {
  any_filter filter = any_filter::loaded(format::load(locked, path), options, path);
  refuse_log(filter.parameters(), path);
  state_ = std::make_unique<state>(state{path, std::move(locked.file), std::move(filter)});
}

file_edit::file_edit(file_edit&&) noexcept = default;
file_edit& file_edit::operator=(file_edit&&) noexcept = default;
file_edit::~file_edit() = default;

any_filter& file_edit::filter() noexcept { return state_->filter; }

void file_edit::commit() {
  assert(state_ != nullptr);
  const std::unique_ptr<state> s = std::move(state_);
  posix::replacement file(s->path, std::move(s->locked));
  format::publish(file, s->path, s->filter.parameters(), s->filter.bytes(), s->filter.counts(),
                  s->filter.opened_from()->metadata);
}

}  // namespace bloomery
