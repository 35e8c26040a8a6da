#include "playground/http/admission.hpp"

#include "playground/api/exchange.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <system_error>

namespace bloomery::playground::http {
namespace {

constexpr std::size_t most_head = 16'384;                        // bytes of the target and all headers
constexpr std::size_t most_path = 1024;                          // bytes, decoded
constexpr std::uint64_t most_drained = std::uint64_t{32} << 20;  // bytes of a refused body

bool is_address(const std::string& host) {
  in6_addr any;
  const std::string bare = host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
  return ::inet_pton(AF_INET, bare.c_str(), &any) == 1 || ::inet_pton(AF_INET6, bare.c_str(), &any) == 1;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_name(std::string_view text) {
  return !has_control(text) && text.find_first_of(" \"(),/:;<=>?@[\\]{}") == std::string_view::npos;
}

// The library accepts lines that other programs read differently, such as "Content-Length : 1" and folded lines.
std::optional<refusal> malformed(const httplib::Request& req) {
  std::size_t bytes = req.target.size();
  for (const auto& [name, value] : req.headers) {
    bytes += name.size() + value.size();
    if (is_name(name) && !has_control(value)) continue;
    return refusal{400, error(errc::invalid_argument, {"malformed request", "headers", "a name, a colon and a value",
                                                       "'" + name + "'", "send each header on one line"})};
  }
  if (bytes > most_head) {
    return refusal{431, error(errc::too_large, {"the request's headers are too long", "headers",
                                                fmt::format("at most {} bytes", most_head), fmt::format("{}", bytes),
                                                "send fewer headers, and move long values to the body"})};
  }
  if (req.path.size() > most_path) {
    return refusal{414, error(errc::too_large, {"the path is too long", "path", fmt::format("{} bytes", most_path),
                                                fmt::format("{} bytes", req.path.size()),
                                                "send long values in the body of a POST request"})};
  }
  if (!req.path.starts_with('/') || has_control(req.path)) {
    return refusal{400, error(errc::invalid_argument, {"malformed request", "path", "/ and printable characters",
                                                       "'" + req.path + "'", "open the path /"})};
  }
  return std::nullopt;
}

std::optional<refusal> foreign_page(const httplib::Request& req, const std::string& host, std::uint16_t port) {
  const std::string host_header = req.get_header_value("Host");
  if (const auto hosts = req.get_header_value_count("Host"); hosts > 1) {
    return refusal{400, error(errc::invalid_argument, {"malformed request", "Host", "one Host header",
                                                       std::to_string(hosts), "send the header once"})};
  }
  if (!is_own_host(host_header, host, port)) {
    return refusal{
        403, error(errc::not_permitted, {"the Host header names another host", "Host", fmt::format("{}:{}", host, port),
                                         host_header, fmt::format("open http://127.0.0.1:{}/", port)})};
  }
  // Links from other pages may lead to the page, but other pages may not use the API.
  const std::string origin = req.get_header_value("Origin");
  const std::string site = req.get_header_value("Sec-Fetch-Site");
  const bool own = site.empty() || site == "same-origin" || site == "none";
  const bool link =
      req.method == "GET" && !req.path.starts_with("/api/") && req.get_header_value("Sec-Fetch-Mode") == "navigate";
  const bool foreign_origin = !origin.empty() && to_lower(origin) != "http://" + to_lower(host_header);
  if (req.get_header_value_count("Origin") > 1 || req.get_header_value_count("Sec-Fetch-Site") > 1 || foreign_origin ||
      !(own || link)) {
    return refusal{
        403, error(errc::not_permitted, {"the request comes from another page", "Origin", "http://" + host_header,
                                         origin.empty() ? site : origin, "use the page that the playground serves"})};
  }
  return std::nullopt;
}

bool is_wrapped(const httplib::Request& req) {
  return req.has_header("Content-Encoding") || to_lower(req.get_header_value("Content-Type")).starts_with("multipart/");
}

std::optional<refusal> unusual_body(const httplib::Request& req) {
  if (req.has_header("Transfer-Encoding")) {
    return refusal{
        411, error(errc::invalid_argument, {"the request must declare the length of its body", "Transfer-Encoding",
                                            "Content-Length", req.get_header_value("Transfer-Encoding"),
                                            "send the body in one piece, with a Content-Length header"})};
  }
  if (is_wrapped(req)) {
    const char* const header = req.has_header("Content-Encoding") ? "Content-Encoding" : "Content-Type";
    return refusal{
        415, error(errc::invalid_argument, {"encoded and multipart bodies are not accepted", header, "JSON",
                                            req.get_header_value(header), "send the body uncompressed, in one part"})};
  }
  const std::size_t lengths = req.get_header_value_count("Content-Length");
  const std::string length = req.get_header_value("Content-Length");
  // An ambiguous length would make the start of the next request ambiguous.
  if (lengths > 1 || (lengths == 1 && !is_number(length))) {
    return refusal{400, error(errc::invalid_argument,
                              {"invalid length", "Content-Length", "one whole number of bytes",
                               lengths > 1 ? "several" : "'" + length + "'", "send the number of bytes of the body"})};
  }
  if (req.method == "POST" && lengths == 0) {
    return refusal{
        411, error(errc::invalid_argument, {"the length of the body is missing", "Content-Length", "a number of bytes",
                                            "none", "send Content-Length, which is 0 if there is no body"})};
  }
  const std::uint64_t most = req.method == "POST" ? most_body : 0;
  if (body_size(req) > most) {
    return refusal{
        413, error(errc::too_large,
                   {"the request is too large", "body", fmt::format("at most {} MiB", most >> 20), length + " bytes",
                    most == 0 ? "send this request without a body" : "split it into several requests"})};
  }
  return std::nullopt;
}

std::optional<refusal> unusual_request(const httplib::Request& req) {
  if (req.method != "GET" && req.method != "POST" && req.method != "DELETE" && req.method != "HEAD") {
    return refusal{405, error(errc::invalid_argument, {"unsupported method", "method", "GET, POST, DELETE or HEAD",
                                                       req.method, "see docs/playground-api.md"})};
  }
  const std::string expected = req.get_header_value("Expect");
  if (!expected.empty() && to_lower(expected) != "100-continue") {
    return refusal{417, error(errc::invalid_argument,
                              {"unsupported expectation", "Expect", "100-continue", expected, "omit the header"})};
  }
  // A thousand ranges would produce a thousand copies.
  if (!req.ranges.empty()) {
    return refusal{416, error(errc::invalid_argument, {"range requests are not supported", "Range", "no such header",
                                                       req.get_header_value("Range"), "omit the header"})};
  }
  return std::nullopt;
}

}  // namespace

std::optional<refusal> refusal_of(const httplib::Request& req, const std::string& host, std::uint16_t port) {
  if (auto refused = malformed(req)) return refused;
  const auto foreign = foreign_page(req, host, port);
  const auto body = unusual_body(req);
  auto refused = foreign ? foreign : body ? body : unusual_request(req);
  if (refused) {
    refused->drains = req.method == "POST" && (!body || body->status == 413) && body_size(req) <= most_drained;
  }
  return refused;
}

std::uint64_t body_size(const httplib::Request& req) {
  const std::string text = req.get_header_value("Content-Length");
  std::uint64_t bytes = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return parsed.ec == std::errc::result_out_of_range ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

bool is_own_host(const std::string& host_header, const std::string& host, std::uint16_t port) {
  const std::string asked = to_lower(host_header);
  const std::string at_port = ":" + std::to_string(port);
  const bool names_port = asked.ends_with(at_port);
  if (!names_port && port != 80) return false;
  const std::string name = names_port ? asked.substr(0, asked.size() - at_port.size()) : asked;
  return name == "localhost" || name == to_lower(host) || name == "[" + to_lower(host) + "]" || is_address(name);
}

bool is_this_machine(const std::string& host) {
  const std::string name = to_lower(host);
  return name == "localhost" || name == "::1" || (is_address(name) && name.starts_with("127."));
}

std::string to_lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace bloomery::playground::http
