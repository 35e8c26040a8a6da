// The playground's API as a program, for tests that compare its answers with those of the command and of the page's
// module: reads requests, one JSON object per line, and writes one response per line.
//
//   {"method": "POST", "path": "/api/1/filters", "body": "{\"capacity\": 10}"}      or "base64" in place of "body"
//   {"status": 201, "base64": "..."}
#include "playground/api/demo_api.hpp"
#include "playground/json/base64.hpp"

#include <iostream>
#include <map>
#include <string>

namespace {

using namespace bloomery::playground;

std::map<std::string, std::string> query_of(const std::string& text) {
  std::map<std::string, std::string> query;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('&', at), text.size());
    const std::size_t middle = std::min(text.find('=', at), end);
    query.emplace(text.substr(at, middle - at), middle == end ? "" : text.substr(middle + 1, end - middle - 1));
    at = end + 1;
  }
  return query;
}

}  // namespace

int main() {
  demo_api playground({});
  for (std::string line; std::getline(std::cin, line);) {
    const json asked = json::parse(line);
    const std::string path = asked["path"];
    const std::size_t mark = std::min(path.find('?'), path.size());
    const std::string body = asked.contains("base64") ? bytes_of_base64(asked["base64"].get<std::string>()).value()
                                                      : asked.value("body", std::string());
    const response answer = playground.handle(
        {asked["method"], path.substr(0, mark), query_of(path.substr(std::min(mark + 1, path.size()))), body});
    std::cout << json{{"status", answer.status}, {"base64", base64_of(answer.body)}}.dump() << std::endl;
    while (playground.rest().queued_jobs().run_one()) continue;
  }
}
