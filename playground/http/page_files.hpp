// The page, as it was built from playground/page: files in the program itself.
#pragma once

#include <span>
#include <string_view>

namespace bloomery::playground {

struct page_file {
  std::string_view path;     ///< "/index.html"
  std::string_view type;     ///< "text/html; charset=utf-8"
  std::string_view gzipped;  ///< its bytes, compressed
};

/// All files; none if the program was built without its page.
std::span<const page_file> page_files() noexcept;

}  // namespace bloomery::playground
