#include <bloomery/error.hpp>

#include <utility>

namespace bloomery {
namespace {

std::string sentence(const error_text& t) {
  std::string s = t.where;
  if (!s.empty()) s += ": ";
  s += t.what;
  if (!t.expected.empty()) s += ": expected " + t.expected;
  if (!t.found.empty()) s += (t.expected.empty() ? ": found " : ", found ") + t.found;
  if (!t.way_out.empty()) s += "; " + t.way_out;
  return s;
}

}  // namespace

error::error(errc code, error_text text) : std::runtime_error(sentence(text)), code_(code), text_(std::move(text)) {}

}  // namespace bloomery
