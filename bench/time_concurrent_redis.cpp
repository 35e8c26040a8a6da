// Benchmark of single keys from many threads: time_concurrent_redis [THREADS [SECONDS]] starts a redis-server on
// a Unix socket and lets threads look up and insert single keys, each thread waiting for every answer:
//
//   each its own   a redis_filter and a connection for each thread
//   one for all    a concurrent_redis_filter
//
// in turn, three times. It prints keys per second and the percentiles of the time of a call, in wall-clock time, with
// the processor time of this program and of the server per key.
#include <bloomery/redis.hpp>
#include <bloomery/redis/concurrent.hpp>

#include "redis/servers.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace bloomery;
using bloomery_tests::test_server;
using seconds = std::chrono::duration<double>;

double now() { return seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double own_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

double server_seconds(test_server& server) {
  const std::string text(server.command({"INFO", "cpu"}).text());
  const auto fact = [&](const std::string& name) {
    return std::stod(text.substr(text.find(name + ":") + name.size() + 1));
  };
  return fact("used_cpu_user") + fact("used_cpu_sys");
}

// Calls work(thread, number) again and again in all threads for a while.
void measure(test_server& server, const char* name, unsigned threads, double time,
             const std::function<void(unsigned, std::uint64_t)>& work) {
  std::vector<std::vector<float>> waits(threads);
  std::vector<std::thread> running;
  std::atomic<bool> done = false;
  const double own = own_seconds(), of_server = server_seconds(server), begin = now();
  for (unsigned t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (std::uint64_t i = 0; !done; ++i) {
        const double before = now();
        work(t, i);
        waits[t].push_back(static_cast<float>(now() - before));
      }
    });
  }
  std::this_thread::sleep_for(seconds(time));
  done = true;
  for (std::thread& t : running) t.join();
  const double elapsed = now() - begin;
  std::vector<float> all;
  for (const auto& some : waits) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  const auto at = [&](double share) {
    return 1e3 * static_cast<double>(all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))]);
  };
  const auto keys = static_cast<double>(all.size());
  std::printf(
      "%-26s %8.0f keys/s   median %6.3f ms, 99%% %7.3f, maximum %7.3f   %5.2f us here, %5.2f us of the server\n", name,
      keys / elapsed, at(0.5), at(0.99), at(1), (own_seconds() - own) / keys * 1e6,
      (server_seconds(server) - of_server) / keys * 1e6);
}

}  // namespace

int main(int argc, char** argv) try {
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 64;
  const double time = argc > 2 ? std::atof(argv[2]) : 2;
  constexpr std::uint64_t capacity = 10'000'000;
  test_server server;
  if (!server.is_there()) {
    std::fprintf(stderr, "time_concurrent_redis: %s\n", test_server::how_to_get_one);
    return 77;
  }
  const redis_params wanted{.filter = {.keys = key_kind::u64le, .capacity = capacity, .target_fpr = 0.01}};
  redis_filter::create(server.address("f"), wanted);
  std::printf("%u threads, one key per call, Unix socket, %u processors (target: 200,000 keys/s, 99%% below 5 ms)\n",
              threads, std::thread::hardware_concurrency());
  std::vector<redis_filter> own;
  for (unsigned t = 0; t < threads; ++t) own.push_back(redis_filter::open(server.address("f")));
  concurrent_redis_filter shared(redis_filter::open(server.address("f")));
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t first = static_cast<std::uint64_t>(round) << 40;
    const auto key = [&](unsigned t, std::uint64_t i) { return first + (std::uint64_t{t} << 32) + i; };
    measure(server, "each its own, lookups", threads, time,
            [&](unsigned t, std::uint64_t i) { own[t].may_contain(key(t, i)); });
    measure(server, "one for all, lookups", threads, time,
            [&](unsigned t, std::uint64_t i) { shared.may_contain(key(t, i)); });
    measure(server, "each its own, inserts", threads, time,
            [&](unsigned t, std::uint64_t i) { own[t].insert(key(t, i)); });
    measure(server, "one for all, inserts", threads, time,
            [&](unsigned t, std::uint64_t i) { shared.insert(key(t, i)); });
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_concurrent_redis: %s\n", e.what());
  return 1;
}
