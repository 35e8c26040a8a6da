// Requests and responses of the API, and what its parts share: paths, query parameters and errors.
#pragma once

#include "playground/json/json.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bloomery::playground {

struct request {
  std::string method;  ///< "GET", "POST", "DELETE"
  std::string path;    ///< "/api/1/filters"
  std::map<std::string, std::string> query;
  std::string body;
};

struct response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};

/// Maximum size of a request's body in bytes.
inline constexpr std::size_t most_body = std::size_t{16} << 20;

/// Maximum size of a filter file in a request: the largest filter of a session plus headers.
inline constexpr std::size_t most_file = std::size_t{160} << 20;

/// Maximum number of keys in the list of a request.
inline constexpr std::uint64_t most_keys_of_call = 100'000;

response json_response(const json& value, int status = 200);

/// The response of `work`, or the one that describes its exception.
response answered(const std::function<response()>& work);

/// The path without "/api/1/": "/api/1/filters/x" has two parts. @throws error  not_found: another path
std::vector<std::string> parts_of(const request& r);

/// @throws error  too_large
void check_body(const request& r, std::size_t most);

/// A number in a path or a query. @throws error  invalid_argument: not a whole number below 2^64
std::uint64_t number_from(const std::string& name, const std::string& text);

/// The value of a query parameter, or `otherwise`. @throws error  as number_from()
std::uint64_t queried(const request& r, const std::string& name, std::uint64_t otherwise);

/// 32 random hexadecimal digits from the system.
std::string random_id();

/// @throws error  not_found
[[noreturn]] void no_such_endpoint(const request& r);

}  // namespace bloomery::playground
