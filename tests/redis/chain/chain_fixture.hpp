// A server for tests of Guava chains, ways to inspect its keys, and the original implementation as a client.
#pragma once

#include <bloomery/redis/chain.hpp>

#include "redis/chain/chain_model.hpp"
#include "redis/fixtures.hpp"

namespace bloomery_tests {

inline constexpr bloomery::redis_chain_params published = {10'000, 0.0005};  // with exact figures
inline constexpr bloomery::redis_chain_params small = {300, 0.01};

class RedisChain : public on_a_server<RedisChain> {
 protected:
  void SetUp() override {
    on_a_server::SetUp();
    if (server != nullptr) reset_calls();
  }

  static std::string value(const std::string& key) { return server->command({"GET", key}).text(); }

  static bloomery::redis_chain filled(const texts& keys) {
    bloomery::redis_chain chain = bloomery::redis_chain::create(at("filter"), small);
    chain.insert(views(keys));
    return chain;
  }

  // All bitmaps of a chain up to its cursor.
  static texts bitmaps(const std::string& name, const std::string& cursor) {
    texts all;
    const std::string last = value(cursor);
    for (int i = 0; i <= std::stoi(last.empty() ? "0" : last); ++i)
      all.push_back(value(name + "-" + std::to_string(i)));
    return all;
  }
};

// The original as a client: SETBIT, BITCOUNT and INCR, one key at a time, with any number of round trips.
class original {
 public:
  original(test_server& server, const bloomery::redis_chain_params& p, std::string name, std::string cursor)
      : server_(server), rules_(p), name_(std::move(name)), cursor_(std::move(cursor)) {
    if (ones() == 0) begin();
  }

  void put(const std::string& key) {
    const auto at = rules_.positions(key);
    const std::uint64_t last = cursor();
    bool present = false;
    for (std::uint64_t i = 0; i <= last && !present; ++i) {
      present = std::all_of(at.begin(), at.end(), [&](std::uint64_t x) {
        return server_.command({"GETBIT", bitmap(i), std::to_string(x)}).integer() == 1;
      });
    }
    for (const std::uint64_t x : at) {
      if (!present) server_.command({"SETBIT", bitmap(last), std::to_string(x), "1"});
    }
    if (2 * ones() > rules_.geometry().bits) {
      server_.command({"INCR", cursor_});
      begin();
    }
  }

 private:
  std::string bitmap(std::uint64_t i) const { return name_ + "-" + std::to_string(i); }
  std::uint64_t cursor() const {
    const std::string text = server_.command({"GET", cursor_}).text();
    return text.empty() ? 0 : std::stoull(text);
  }
  std::uint64_t ones() const {
    return static_cast<std::uint64_t>(server_.command({"BITCOUNT", bitmap(cursor())}).integer());
  }
  void begin() { server_.command({"SETBIT", bitmap(cursor()), std::to_string(rules_.geometry().bits - 1), "0"}); }

  test_server& server_;
  chain_model rules_;
  std::string name_;
  std::string cursor_;
};

}  // namespace bloomery_tests
