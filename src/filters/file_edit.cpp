#include <bloomery/any_filter.hpp>

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
file_edit::file_edit(const std::string& path, const open_options& options) {
  posix::opened opened = posix::open_locked(path, options.waiting);
  state_ = std::make_unique<state>(state{path, std::move(opened.file), any_filter::load(path, options)});
  refuse_log(state_->filter.parameters(), path);
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
