#include "playground/api/exchange.hpp"

#include <bloomery/error.hpp>
#include <bloomery/secret.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <system_error>

namespace bloomery::playground {
namespace {

response error_response(const error& e) { return json_response(json_of(e), status_of(e.code())); }

}  // namespace

response json_response(const json& value, int status) { return {status, "application/json", text_of(value)}; }

response answered(const std::function<response()>& work) {
  try {
    return work();
  } catch (const error& e) {
    return error_response(e);
  } catch (const std::bad_alloc&) {
    return error_response(
        error(errc::unavailable, {"not enough memory", "", "", "", "make a smaller request, or try again later"}));
  } catch (const std::exception& e) {
    return error_response(error(errc::io, {e.what(), "", "", "", "try again"}));
  }
}

std::vector<std::string> parts_of(const request& r) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < r.path.size();) {
    const std::size_t end = std::min(r.path.find('/', at), r.path.size());
    if (end > at) parts.push_back(r.path.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() < 3 || parts[0] != "api" || parts[1] != "1") no_such_endpoint(r);
  return {parts.begin() + 2, parts.end()};
}

void check_body(const request& r, std::size_t most) {
  if (r.body.size() <= most) return;
  throw error(errc::too_large,
              {"the request is too large", "body", "at most " + std::to_string(most >> 20) + " MiB",
               std::to_string(r.body.size()) + " bytes", "split it into several requests, or choose a smaller file"});
}

std::uint64_t number_from(const std::string& name, const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && problem == std::errc() && end == text.data() + text.size()) return number;
  throw error(errc::invalid_argument,
              {"invalid value", name, "a whole number below 2^64", "'" + text.substr(0, 40) + "'", "use digits only"});
}

std::uint64_t queried(const request& r, const std::string& name, std::uint64_t otherwise) {
  const auto at = r.query.find(name);
  return at == r.query.end() ? otherwise : number_from(name, at->second);
}

std::string random_id() {
  const secret_key chance = random_secret();
  return fmt::format("{:016x}{:016x}", chance.k0, chance.k1);
}

void no_such_endpoint(const request& r) {
  throw error(errc::not_found, {"no such endpoint", "path", "a method and path of the API",
                                r.method + " " + r.path.substr(0, 100), "see docs/playground-api.md"});
}

}  // namespace bloomery::playground
