#include "playground/http/message.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <optional>

namespace bloomery::playground::http {
namespace {

[[noreturn]] void malformed(const std::string& where, const std::string& expected, std::string_view found) {
  throw error(errc::invalid_argument,
              {"malformed request", where, expected, "'" + std::string(found.substr(0, 100)) + "'",
               "send a request of HTTP/1.1, with its lines separated by CR LF"});
}

bool is_token_char(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char); }

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// Bytes from 0x80 are allowed: clients send paths in UTF-8.
bool is_target_char(char c) { return !is_control(c) && c != ' ' && c != '#'; }

bool is_value_char(char c) { return !is_control(c) || c == '\t'; }

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

std::string percent_decoded(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const auto high = i + 1 < text.size() ? digit_of(text[i + 1]) : std::nullopt;
      const auto low = i + 2 < text.size() ? digit_of(text[i + 2]) : std::nullopt;
      if (!high || !low) malformed("path", "two hexadecimal digits after %", text.substr(i, 3));
      decoded += static_cast<char>(*high * 16 + *low);
      i += 2;
    }
  }
  return decoded;
}

// The text up to the separator, which is removed from `rest` together with it; all of it if there is no separator.
std::string_view take(std::string_view& rest, std::string_view separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + separator.size());
  return part;
}

fields parse_query(std::string_view text) {
  fields query;
  while (!text.empty()) {
    std::string_view value = take(text, "&");
    if (value.empty()) continue;
    const std::string_view name = take(value, "=");
    query.emplace_back(percent_decoded(name, true), percent_decoded(value, true));
  }
  return query;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

void parse_request_line(request_head& head, std::string_view line) {
  std::string_view rest = line;
  const std::string_view method = take(rest, " ");
  std::string_view target = take(rest, " ");
  if (!is_token(method)) malformed("request line", "a method, a path and a version", line);
  if (rest != "HTTP/1.0" && rest != "HTTP/1.1") malformed("request line", "HTTP/1.0 or HTTP/1.1", rest);
  if (target.size() > request_head::most_target) {
    throw error(errc::too_large, {"the path is too long", "path", std::to_string(request_head::most_target) + " bytes",
                                  std::to_string(target.size()) + " bytes", "send a long text in the body of a POST"});
  }
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), is_target_char)) {
    malformed("path", "/ and printable characters", target);
  }
  head.method = method;
  head.minor_version = rest.back() - '0';
  head.path = percent_decoded(take(target, "?"), false);
  head.query = parse_query(target);
}

std::string_view reason_of(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "";  // RFC 9112, section 4: the reason may be empty
  }
}

}  // namespace

std::size_t request_head::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const auto& field) { return field.first == name; }));
}

std::string_view request_head::value(std::string_view name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const auto& field) { return field.first == name; });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

bool request_head::closes() const {
  bool keeps = false;
  for (const auto& [name, text] : headers) {
    if (name != "connection") continue;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string option = to_lower(trimmed(take(rest, ",")));
      if (option == "close") return true;
      if (option == "keep-alive") keeps = true;
    }
  }
  return minor_version == 0 && !keeps;
}

request_head parse_request_head(std::string_view head) {
  request_head parsed{};
  parse_request_line(parsed, take(head, "\r\n"));
  while (!head.empty()) {
    const std::string_view line = take(head, "\r\n");
    std::string_view value = line;
    const std::string_view name = take(value, ":");
    // Without a colon, the name is the whole line. A line that continues the one before begins with a space.
    if (name.size() == line.size() || !is_token(name)) malformed("headers", "a name and a colon", line);
    if (!std::all_of(value.begin(), value.end(), is_value_char)) {
      malformed("headers", "a value without control characters", line);
    }
    parsed.headers.emplace_back(to_lower(name), trimmed(value));
  }
  return parsed;
}

std::string format_response_head(int status, const fields& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " ";
  head.append(reason_of(status)).append("\r\n");
  for (const auto& [name, value] : headers) {
    head.append(name).append(": ").append(value);
    std::replace_if(head.end() - static_cast<std::ptrdiff_t>(value.size()), head.end(), is_control, ' ');
    head.append("\r\n");
  }
  return head.append("\r\n");
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace bloomery::playground::http
