// bloomery::error: the sentence that what() returns.
#include <bloomery/error.hpp>

#include <cstddef>
#include <utility>

namespace bloomery {
namespace {

std::string sentence(const error_text& t) {
  std::string s = t.where;
  if (!s.empty()) s += ": ";
  s += t.what;
  if (!t.expected.empty()) s += ": expected " + t.expected;
  if (!t.found.empty()) s += (t.expected.empty() ? ": found " : ", found ") + t.found;
  if (!t.hint.empty()) s += "; " + t.hint.words();
  return s;
}

}  // namespace

const char* name_of(errc code) noexcept {
  constexpr const char* names[] = {"invalid_argument",
                                   "too_large",
                                   "not_found",
                                   "not_permitted",
                                   "not_a_filter",
                                   "wrong_version",
                                   "damaged",
                                   "incompatible",
                                   "already_exists",
                                   "locked",
                                   "io",
                                   "unavailable",
                                   "full"};
  return names[static_cast<std::size_t>(code)];
}

error::error(errc code, error_text text) : std::runtime_error(sentence(text)), code_(code), text_(std::move(text)) {}
error::~error() = default;

}  // namespace bloomery
