// Out-of-line errors of argument checks.
#include <bloomery/detail/checks.hpp>

#include <bloomery/error.hpp>

#include <string>
#include <utility>

namespace bloomery::detail {

void refuse(errc code, error_text text) { throw error(code, std::move(text)); }

void check_same_kind(const std::string& path, const std::string& reason) {
  if (!reason.empty())
    throw error(errc::incompatible, {"the file contains another kind of filter", path, "", reason, ""});
}

void refuse_output_size(const char* call, const char* output, bool at_least, std::size_t expected, std::size_t found) {
  throw error(errc::invalid_argument,
              {output, call, (at_least ? "at least " : "") + std::to_string(expected), std::to_string(found), ""});
}

void refuse_writing(const std::string& path) {
  throw error(errc::not_permitted, {"the filter was opened for reading only", path, "", "", hint::open_read_write});
}

}  // namespace bloomery::detail
