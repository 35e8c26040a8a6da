// Heads of HTTP messages of any bytes: parse_request_head() refuses a head, or gives parts that make the same head again.
//
// The way back, from parts to a head, is written here, so that the parser is not its own witness.
#include "playground/http/message.hpp"

#include "require.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace bloomery::playground::http;

std::string encoded(std::string_view text) {
  std::string all;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    all += '%';
    all += "0123456789abcdef"[byte >> 4];
    all += "0123456789ABCDEF"[byte & 15];
  }
  return all;
}

std::string text_of(const request_head& head) {
  std::string text = head.method + " /" + encoded(std::string_view(head.path).substr(1));
  char separator = '?';
  for (const auto& [name, value] : head.query) {
    text += separator + encoded(name) + "=" + encoded(value);
    separator = '&';
  }
  text += head.minor_version == 0 ? " HTTP/1.0" : " HTTP/1.1";
  for (const auto& [name, value] : head.headers) text += "\r\n" + name + ": " + value;
  return text;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

void check_parts(std::string_view text, const request_head& head) {
  require(head.path.starts_with('/'), "a path begins with /");
  require(text.substr(0, head.method.size() + 2) == head.method + " /", "a head begins with its method and path");
  const std::size_t lines = count(text, "\r\n");
  require(count(text, "\n") == lines && count(text, "\r") == lines, "lines end in CR LF, and in nothing else");
  require(head.headers.size() == lines - (text.ends_with("\r\n") ? 1 : 0), "each line is a header");
  for (const auto& [name, value] : head.headers) {
    require(!name.empty() && name.find_first_of(" \t:\r\n") == std::string::npos, "a header has a name");
    require(text.find(value) != std::string_view::npos, "a header's value is in the head");
  }
}

// Three times as long when encoded: that may be too much for a path.
void check_way_back(const request_head& head) {
  try {
    const request_head again = parse_request_head(text_of(head));
    require(again.method == head.method && again.path == head.path && again.query == head.query, "the same request");
    require(again.headers == head.headers && again.closes() == head.closes(), "the same headers");
  } catch (const bloomery::error& e) {
    require(e.code() == bloomery::errc::too_large, "a head made of parts can be parsed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const request_head head = parse_request_head(text);
    check_parts(text, head);
    check_way_back(head);
  } catch (const bloomery::error&) {
    // Refused.
  }
  const std::string response = format_response_head(200, {{"Value", std::string(text)}, {"Last", ""}});
  require(count(response, "\r\n") == 4 && response.ends_with("\r\n\r\n"), "no value ends its line");
  return 0;
}
