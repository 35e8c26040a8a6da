// HTTP/1.1 messages (RFC 9112): parses the head of a request and formats the head of a response.
//
// The parser is strict: a head that two programs could read differently is refused as a whole. It does not read from the
// network; http/connection.hpp does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::playground::http {

/// Header fields, or the parameters of a query, in the order in which they were sent.
using fields = std::vector<std::pair<std::string, std::string>>;

/// The request line and the header fields of a request.
struct request_head {
  static constexpr std::size_t most_target = 8192;  ///< bytes of path and query together

  std::string method;  ///< "GET"
  std::string path;    ///< percent-decoded, begins with '/'
  fields query;        ///< percent-decoded, '+' is a space
  int minor_version;   ///< of HTTP/1: 0 or 1
  fields headers;      ///< names in lower case, values without the spaces around them

  bool has(std::string_view name) const { return count(name) != 0; }
  std::size_t count(std::string_view name) const;       ///< fields of this name, which is in lower case
  std::string_view value(std::string_view name) const;  ///< of the first such field; "" if there is none

  /// Whether the client asks to close the connection after this request.
  bool closes() const;
};

/// Parses a request's head: all before the empty line that ends it.
///
/// @throws error  invalid_argument: not HTTP/1.0 or HTTP/1.1, or malformed; too_large: the target is longer than
///                most_target
///
/// Example:
///     const request_head head = parse_request_head("GET /a%20b?key=x+y HTTP/1.1\r\nHost: localhost");
///     assert(head.path == "/a b" && head.query.front().second == "x y" && head.value("host") == "localhost");
request_head parse_request_head(std::string_view head);

/// A response's head with the empty line that ends it. A control character in a value is written as a space, so that no
/// value can add a header of its own.
///
/// Example:
///     assert(format_response_head(204, {{"Cache-Control", "no-store"}}) ==
///            "HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\n\r\n");
std::string format_response_head(int status, const fields& headers);

/// ASCII letters in lower case, all else unchanged.
std::string to_lower(std::string_view text);

}  // namespace bloomery::playground::http
