// A client of the API that calls it without a network.
#pragma once

#include "answers.hpp"
#include "playground/api/demo_api.hpp"
#include "playground/host/own_thread.hpp"
#include "support/scheme_sizes.hpp"

#include <bloomery/layout.hpp>
#include <bloomery/processors.hpp>
#include <bloomery/scheme.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace bloomery_tests {

inline json list_of(const std::string& prefix, std::uint64_t count, std::uint64_t first = 0) {
  json keys = json::array();
  for (std::uint64_t i = first; i < first + count; ++i) keys.push_back(prefix + std::to_string(i));
  return keys;
}

class visitor {
 public:
  bloomery::playground::response ask(const std::string& method, std::string path, const std::string& body = "") {
    std::map<std::string, std::string> query;
    if (const std::size_t mark = path.find('?'); mark != std::string::npos) {
      std::string rest = path.substr(mark + 1) + "&";
      for (std::size_t end; (end = rest.find('&')) != std::string::npos; rest.erase(0, end + 1)) {
        const std::size_t is = rest.find('=');
        query.emplace(rest.substr(0, is), rest.substr(is + 1, end - is - 1));
      }
      path.erase(mark);
    }
    return api.handle({method, "/api/1/" + path, query, body});
  }

  /// The answer; asserts its status.
  json get(const std::string& path, int status = 200) { return checked(ask("GET", path), status, path); }
  json post(const std::string& path, const json& body, int status = 200) {
    return post_text(path, body.dump(), status);
  }
  json post_text(const std::string& path, const std::string& body, int status = 200) {
    return checked(ask("POST", path, body), status, path + " " + body.substr(0, 200));
  }
  std::string made(const json& wanted) { return post("filters", wanted, 201)["id"].get<std::string>(); }
  std::string bytes(const std::string& path) {
    const bloomery::playground::response r = ask("GET", path);
    EXPECT_EQ(r.status, 200) << r.body;
    return r.body;
  }

  bloomery::playground::demo_api api{{.threads = bloomery::available_processors()}};
  bloomery::playground::job_thread runs{api.rest().queued_jobs()};

 private:
  static json checked(const bloomery::playground::response& r, int status, const std::string& asked) {
    EXPECT_EQ(r.status, status) << asked << "\n" << r.body.substr(0, 500);
    return r.body.empty() ? json(nullptr) : json::parse(r.body);
  }
};

/// One small filter of each kind, with capacity `keys`.
inline std::vector<json> all_kinds(std::uint64_t keys) {
  std::vector<json> kinds;
  for (const bloomery::family f : {bloomery::family::plain, bloomery::family::counting}) {
    for (const bloomery::layout_facts& layout : bloomery::layouts_of(f)) {
      for (const char* hash : {"xxh3_64", "xxh3", "murmur3"}) {
        kinds.push_back({{"layout", layout.name}, {"capacity", keys}, {"rate", 0.05}, {"hash", hash}, {"seed", "7"}});
      }
    }
  }
  for (const bloomery::scheme& scheme : bloomery::schemes()) {
    const std::uint64_t bits = has_whole_words(scheme) ? 512 * (keys / 64 | 1) : 8 * keys + 5;
    kinds.push_back({{"scheme", scheme.name}, {"capacity", keys}, {"bits", bits}, {"probes", 4}});
  }
  for (const char* layout : {"sliding", "sliding64"}) {
    kinds.push_back({{"layout", layout}, {"capacity", keys}, {"rate", 0.05}, {"window_keys", keys}});
    kinds.push_back({{"layout", layout}, {"capacity", keys}, {"rate", 0.05}, {"window_milliseconds", 7000}});
  }
  kinds.push_back({{"grows", true}, {"capacity", std::max<std::uint64_t>(keys / 8, 1)}, {"rate", 0.05}});
  return kinds;
}

/// The name of a test of one of these kinds.
inline std::string name_of_kind(const testing::TestParamInfo<json>& kind) {
  std::string name;
  for (const char c : kind.param.dump()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}

}  // namespace bloomery_tests
