#include "playground/http/admission.hpp"

#include "playground/api.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <charconv>
#include <limits>
#include <string_view>
#include <system_error>

namespace bloomery::playground::http {
namespace {

bool is_address(const std::string& host) {
  in6_addr any;
  const std::string bare = host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
  return ::inet_pton(AF_INET, bare.c_str(), &any) == 1 || ::inet_pton(AF_INET6, bare.c_str(), &any) == 1;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::uint64_t most_body(const request_head& head) {
  if (head.method != "POST") return 0;
  return head.path == "/api/1/files" ? api::most_file : api::most_body;
}

std::optional<refusal> foreign_page(const request_head& head, const std::string& host, std::uint16_t port) {
  const std::string host_header(head.value("host"));
  if (head.count("host") > 1 || !is_own_host(host_header, host, port)) {
    return refusal{
        403, error(errc::not_permitted, {"the request is for another host", "Host", fmt::format("{}:{}", host, port),
                                         head.count("host") > 1 ? "several" : host_header,
                                         fmt::format("go to http://127.0.0.1:{}/", port)})};
  }
  // A link from elsewhere may lead to the page, but no other page may use the API.
  const std::string origin(head.value("origin"));
  const std::string site(head.value("sec-fetch-site"));
  const bool own = site.empty() || site == "same-origin" || site == "none";
  const bool link =
      head.method == "GET" && !head.path.starts_with("/api/") && head.value("sec-fetch-mode") == "navigate";
  const bool foreign_origin = !origin.empty() && to_lower(origin) != "http://" + to_lower(host_header);
  if (head.count("origin") > 1 || head.count("sec-fetch-site") > 1 || foreign_origin || !(own || link)) {
    return refusal{403,
                   error(errc::not_permitted, {"the request comes from another page", "Origin", "http://" + host_header,
                                               origin.empty() ? site : origin, "use the playground's own page"})};
  }
  return std::nullopt;
}

std::optional<refusal> unusual_body(const request_head& head) {
  if (head.has("transfer-encoding")) {
    return refusal{411, error(errc::invalid_argument, {"the length of the body must come first", "Transfer-Encoding",
                                                       "Content-Length", std::string(head.value("transfer-encoding")),
                                                       "send the body in one piece, with its length"})};
  }
  const std::string type = to_lower(head.value("content-type"));
  if (head.has("content-encoding") || type.starts_with("multipart/")) {
    return refusal{415,
                   error(errc::invalid_argument,
                         {"the body is wrapped", "Content-Type", "JSON, or the bytes of a filter",
                          std::string(head.value(head.has("content-encoding") ? "content-encoding" : "content-type")),
                          "send the body uncompressed, in one part"})};
  }
  const std::size_t lengths = head.count("content-length");
  const std::string length(head.value("content-length"));
  // With an unclear length, it would be unclear where the next request begins.
  if (lengths > 1 || (lengths == 1 && !is_number(length))) {
    return refusal{400, error(errc::invalid_argument,
                              {"cannot use this length", "Content-Length", "one whole number of bytes",
                               lengths > 1 ? "several" : "'" + length + "'", "send the number of bytes of the body"})};
  }
  if (head.method == "POST" && lengths == 0) {
    return refusal{
        411, error(errc::invalid_argument, {"the length of the body is missing", "Content-Length", "a number of bytes",
                                            "none", "send Content-Length, which is 0 if there is no body"})};
  }
  const std::uint64_t most = most_body(head);
  if (body_size(head) > most) {
    return refusal{413, error(errc::too_large, {"the request is too long", "body",
                                                fmt::format("at most {} MiB", most >> 20), length + " bytes",
                                                most == 0 ? "send this request without a body" : "send it in parts"})};
  }
  return std::nullopt;
}

}  // namespace

std::optional<refusal> refusal_of(const request_head& head, const std::string& host, std::uint16_t port) {
  if (auto refused = foreign_page(head, host, port)) return refused;
  if (head.method != "GET" && head.method != "POST" && head.method != "DELETE" && head.method != "HEAD") {
    return refusal{405, error(errc::invalid_argument, {"no such method", "method", "GET, POST, DELETE or HEAD",
                                                       head.method, "see docs/playground-api.md"})};
  }
  if (auto refused = unusual_body(head)) return refused;
  if (head.has("expect") && to_lower(head.value("expect")) != "100-continue") {
    return refusal{417, error(errc::invalid_argument, {"cannot meet this expectation", "Expect", "100-continue",
                                                       std::string(head.value("expect")), "leave out the header"})};
  }
  return std::nullopt;
}

std::uint64_t body_size(const request_head& head) {
  const std::string_view text = head.value("content-length");
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

}  // namespace bloomery::playground::http
