// Failures of one server, or of the connections to it.
#include "faults/redis/cases.hpp"

#include "redis/filter/description_check.hpp"
#include "redis/filters.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <stdexcept>

namespace bloomery_tests {
namespace {

using bloomery::redis_filter;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Crowds of a server's filters, which are named after their kinds.
crowds on_server(fault_round& round, const test_server& server, std::span<const filter_kind> kinds = all_kinds,
                 const std::function<void(crowd_options&)>& change = nullptr) {
  return {round, kinds, [&](filter_kind kind) {
            crowd_options o;
            o.addresses = {server.address(name_of(kind))};
            o.params = params_of(kind, 1 + round.random() % 6);
            if (change) change(o);
            return o;
          }};
}

// The append-only file of a server with `appendfsync everysec`. It records how long the file was at times when all
// answered commands were in it: the server may keep commands in memory while the disk is busy.
class append_only_log {
 public:
  explicit append_only_log(const test_server& server)
      : file_(file_of(server)), thread_([this, address = server.address()] { record(address); }) {}
  ~append_only_log() { end(); }

  // When the server was killed at `crash`: removes what it had written in the last second. The result is the time from
  // which answered commands may be gone.
  steady::time_point cut(steady::time_point crash) {
    end();
    for (auto s = samples_.rbegin(); s != samples_.rend(); ++s) {
      if (s->time > crash - seconds(1)) continue;
      if (s->time < crash - seconds(2)) break;
      std::filesystem::resize_file(file_, s->bytes);
      return s->time;
    }
    return crash;  // the disk was busy for a second: cut nothing off
  }

 private:
  struct sample {
    steady::time_point time;
    std::uintmax_t bytes;
  };

  static std::string file_of(const test_server& server) {
    const std::string folder = server.file("appendonlydir");
    if (!std::filesystem::exists(folder)) return server.file("appendonly.aof");
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().string().ends_with(".incr.aof")) return entry.path();
    }
    throw std::runtime_error("the server has no append-only file");
  }

  void record(const bloomery::redis_address& address) {
    try {
      bloomery::redis::router router(address, within(milliseconds(500)));
      while (!done_) {
        const auto now = steady::now();
        const std::string about(router.run_on_nodes({"INFO", "persistence"}).front().reply().text());
        const std::uintmax_t bytes = std::filesystem::file_size(file_);
        if (about.find("aof_buffer_length:0\r") != about.npos) samples_.push_back({now, bytes});
        std::this_thread::sleep_for(milliseconds(5));
      }
    } catch (const bloomery::error&) {
      // The server was killed.
    }
  }

  void end() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::string file_;
  std::atomic<bool> done_ = false;
  std::vector<sample> samples_;
  std::thread thread_;
};

const std::vector<std::string> every_second = {"appendonly yes", "appendfsync everysec",
                                               "auto-aof-rewrite-percentage 0"};

}  // namespace

void crash_with_the_last_second_cut_off(fault_round& round) {
  test_server server({.config = every_second});
  crowds all = on_server(round, server);
  append_only_log log(server);
  round.wait(1300, 2000);
  all.wait_for_a_long_call();
  server.kill_hard();
  const auto crash = steady::now();
  const auto gone_from = log.cut(crash);
  server.restart();
  all.wait_for_keys(200);
  for (const auto& c : all.all) {
    c->excuse([=](const insertion& call) {
      // All answers of a call without a lost connection came before the crash. Later calls found the connection lost.
      const bool answered_in_last_second = call.began < crash && call.returned > gone_from && !call.reconnected;
      return answered_in_last_second || (call.in_doubt && call.began < crash);
    });
  }
  all.judge();
}

void crash_with_a_synced_log(fault_round& round) {
  test_server server({.append_only = true});
  crowds all = on_server(round, server);
  for (int i = 0; i < 3; ++i) {
    round.wait(50, 300);
    all.wait_for_a_long_call();
    server.kill_hard();
    server.restart();
    all.wait_for_keys(50);
  }
  all.judge();
}

void restart_by_a_signal(fault_round& round) {
  test_server server({.config = every_second});
  crowds all = on_server(round, server);
  for (int i = 0; i < 3; ++i) {
    round.wait(50, 300);
    server.restart();
    all.wait_for_keys(50);
  }
  all.judge();
}

// {NAME}:m or :m2 or both. If both are gone, `create` finds the shards, or clients of the crowd write them again.
void lose_the_description(fault_round& round) {
  test_server server;
  crowds all = on_server(round, server);
  for (int i = 0; i < 3; ++i) {
    round.wait(50, 200);
    for (const auto& c : all.all) {
      const std::string name = "{" + c->options().addresses.front().name + "}";
      const std::uint64_t which = round.random() % 4;
      if (which != 0) server.command({"DEL", name + ":m"});
      if (which != 1) server.command({"DEL", name + ":m2"});
      if (which != 2) continue;
      redis_filter::create(c->options().addresses.front(), c->options().params);
    }
    if (round.random() % 2 == 0) bloomery::redis::advance_check_clock(seconds(31));
  }
  // At last no client creates the filters.
  for (const auto& c : all.all) {
    const std::string name = "{" + c->options().addresses.front().name + "}";
    server.command({"DEL", name + ":m", name + ":m2"});
  }
  bloomery::redis::advance_check_clock(seconds(31));
  for (const auto& c : all.all) {
    const std::string name = "{" + c->options().addresses.front().name + "}";
    const auto is_restored = [&] { return server.command({"EXISTS", name + ":m", name + ":m2"}).integer() == 2; };
    wait_until("the clients restore the description", is_restored, seconds(20));
  }
  all.wait_for_keys(50);
  all.judge();
}

void evict_keys(fault_round& round) {
  test_server server({.config = {"maxmemory-policy allkeys-lru"}});
  crowds all = on_server(round, server, all_kinds, [](crowd_options& o) {
    o.params.filter.capacity = std::min<std::uint64_t>(o.params.filter.capacity, 2000);
    o.params.shards = 16;
    o.may_be_damaged = true;
    o.may_be_missing = true;
  });
  all.wait_for_keys(300);
  const std::string about(server.command({"INFO", "memory"}).text());
  const std::string field = "used_memory:";
  const std::uint64_t used = std::stoull(about.substr(about.find(field) + field.size()));
  server.command({"CONFIG", "SET", "maxmemory", std::to_string(used + (1 << 20))});
  bloomery::redis::router router(server.address(), {});
  const std::string value(500, 'v');
  const std::uint64_t batches = 10 + round.random() % 60;
  for (std::uint64_t i = 0; i < batches; ++i) {
    bloomery::redis::batch b;
    for (std::uint64_t j = 0; j < 200; ++j) {
      const std::string key = "other:" + std::to_string(i * 200 + j);
      b.begin(0, bloomery::redis::mode::write);
      b.command({"SET", key, value});
    }
    router.run(b, [](std::size_t, const bloomery::redis::reply&) {});
    std::this_thread::sleep_for(milliseconds(10));
  }
  bloomery::redis_options fresh;
  if (round.random() % 2 == 0) fresh.on_damage = bloomery::redis_damage::maybe;
  all.judge([&](const crowd& c) { return redis_filter::open(c.options().addresses.front(), fresh); });
}

void lose_connections(fault_round& round) {
  test_server server;
  proxy net(server.socket());
  crowds all = on_server(round, server, all_kinds, [&](crowd_options& o) {
    o.addresses.push_back(net.address(o.addresses.front().name));
    o.readers = 2;
  });
  for (int i = 0; i < 25; ++i) {
    round.wait(1, 30);
    const auto bytes = static_cast<std::int64_t>(round.random() % 5000);
    switch (round.random() % 4) {
      case 0: server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); break;
      case 1: net.cut(); break;
      case 2: net.cut_after_answers(bytes); break;
      default: net.cut_after_questions(bytes); break;
    }
  }
  net.cut_after_answers(-1);
  net.cut_after_questions(-1);
  all.wait_for_keys(50);
  all.judge();
}

// By a client outside of the crowd, which inserts meanwhile.
static void replace(fault_round& round, const crowd& c) {
  redis_filter other = redis_filter::open(c.options().addresses.front());
  other.replace(c.options().params, [&](redis_filter& next) {
    const std::vector<std::uint64_t> keys = c.begun();
    next.insert(std::span<const std::uint64_t>(keys));
    round.wait(0, 50);
  });
}

void replace_filters(fault_round& round) {
  test_server server;
  crowds all = on_server(round, server);
  for (int i = 0; i < 3; ++i) {
    for (const auto& c : all.all) {
      round.wait(20, 100);
      replace(round, *c);
    }
  }
  all.wait_for_keys(100);
  all.judge();
}

void drop_clear_and_replace(fault_round& round) {
  test_server server;
  crowds all = on_server(round, server, all_kinds, [](crowd_options& o) { o.may_be_missing = true; });
  for (int i = 0; i < 2; ++i) {
    for (const auto& c : all.all) {
      round.wait(20, 100);
      const auto& address = c->options().addresses.front();
      const std::uint64_t what = round.random() % 3;
      if (what == 2) {
        replace(round, *c);
        continue;
      }
      redis_filter other = redis_filter::open(address);
      if (what == 1)
        other.drop();
      else
        other.clear();
      // Calls that had begun may have ended before.
      c->excuse([now = steady::now()](const insertion& call) { return call.began < now; });
      if (what == 1) redis_filter::create(address, c->options().params);
    }
  }
  all.wait_for_keys(100);
  all.judge();
}

// Several writers race to add layers; readers keep copies of closed layers, and one reader keeps none. Generations of a
// short window are added likewise, and expire.
void grow_while_reading_copies(fault_round& round) {
  test_server server;
  constexpr filter_kind kinds[] = {filter_kind::growing, filter_kind::window};
  crowds all = on_server(round, server, kinds, [&](crowd_options& o) {
    if (o.params.growth == bloomery::redis_growth::none) {
      o.params.filter.extra = bloomery::window_of_milliseconds(2100);
      o.lifetime = milliseconds(2050);
    } else {
      o.params.filter.capacity = 20 + round.random() % 100;
    }
    o.writers = 4;
    o.readers = 3;
  });
  round.wait(2500, 3500);
  all.judge();
}

}  // namespace bloomery_tests
