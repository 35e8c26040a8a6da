// Keeping filters open, and noticing that their files have changed.
#include "sqlite/connection.hpp"

#include <algorithm>

namespace bloomery::sqlite {

file_identity file_identity::of(const std::string& path) noexcept {
  struct stat s = {};
  if (::stat(path.c_str(), &s) != 0) return {};
  return {s.st_dev, s.st_ino, s.st_size, {s.st_mtim.tv_sec, s.st_mtim.tv_nsec}, {s.st_ctim.tv_sec, s.st_ctim.tv_nsec}};
}

std::shared_ptr<lookup_filter> connection::filter_in_file(const std::string& path) {
  // Read before the file is opened: if the file is replaced in between, the identity is out of date, and the next
  // statement opens the file again.
  const file_identity identity = file_identity::of(path);
  const auto found = std::find_if(files_.begin(), files_.end(), [&](const open_file& f) { return f.path == path; });
  if (found != files_.end()) {
    if (found->identity == identity) {
      std::rotate(found, found + 1, files_.end());
      return files_.back().filter;
    }
    files_.erase(found);
  }
  if (files_.size() == most_files) files_.erase(files_.begin());
  files_.push_back(
      {path, identity, std::make_shared<lookup_filter>(open_without_secret([&] { return open_filter(path); }))});
  return files_.back().filter;
}

std::shared_ptr<lookup_filter> connection::filter_in_blob(sqlite3_value* blob) {
  if (filter_of_last_blob_ == nullptr || bytes_of(blob) != last_blob_) {
    auto filter = std::make_shared<lookup_filter>(make_handle(filter_of_blob(blob, "bloom_contains: filter")));
    filter_of_last_blob_ = nullptr;  // an exception of the next line must not leave another filter's bytes
    last_blob_ = bytes_of(blob);
    filter_of_last_blob_ = std::move(filter);
  }
  return filter_of_last_blob_;
}

}  // namespace bloomery::sqlite
