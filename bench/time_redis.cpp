// Benchmark of filters on Redis: time_redis [KEYS [ROUNDS]] measures the costs for server and client, at 1%.
//
// server   CPU time of the server per key in microseconds (INFO cpu), compared with the usual implementations: k
//          pipelined GETBITs or SETBITs, and a script call per key, with the same k and number of bits; minimum
// client   lookups per second of one thread, in wall-clock time
// growth   the same costs of a filter that has grown from 100 keys, with and without copies of its closed layers,
//          compared with one of fixed size
// waiting  95th percentile of another client's PINGs during continuous lookups or inserts
// memory   additional memory of the server in bits per key, with a fixed size, with growth to a declared maximum, and
//          with unlimited growth from 100 keys; and the FPR measured with absent keys
//
// Starts a redis-server (or the program that BLOOMERY_VALKEY_SERVER names) on a Unix socket and binds it to the first
// processor; this program runs on the others, if there are any.
#include <bloomery/redis.hpp>
#include <bloomery/redis/plan.hpp>

#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"
#include "redis/servers.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace bloomery;
using bloomery_tests::test_server;
using seconds = std::chrono::duration<double>;

constexpr double target_fpr = 0.01;
constexpr std::size_t batch_size = 16'384;  // keys per call

double now() { return seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The value of "name:" in the answer to INFO.
double fact(test_server& server, const char* section, const std::string& name) {
  const std::string text = server.command({"INFO", section}).text();
  const std::size_t at = text.find("\n" + name + ":");
  return at == std::string::npos ? std::nan("") : std::stod(text.substr(at + name.size() + 2));
}

double server_seconds(test_server& server) {
  return fact(server, "cpu", "used_cpu_user") + fact(server, "cpu", "used_cpu_sys");
}

std::vector<std::uint64_t> numbers(std::uint64_t from, std::uint64_t count) {
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = from + i;
  return keys;
}

template <class Work>
void in_calls(const std::vector<std::uint64_t>& keys, Work work) {
  for (std::size_t first = 0; first < keys.size(); first += batch_size) {
    work(std::span(keys).subspan(first, std::min(batch_size, keys.size() - first)));
  }
}

void insert(redis_filter& f, const std::vector<std::uint64_t>& keys) {
  in_calls(keys, [&](auto some) { f.insert(some); });
}

std::uint64_t count(redis_filter& f, const std::vector<std::uint64_t>& keys) {
  std::vector<std::uint64_t> bitmap(batch_size / 64);
  std::uint64_t hits = 0;
  in_calls(keys, [&](auto some) {
    f.may_contain(some, bitmap);
    for (std::size_t i = 0; i < some.size(); ++i) hits += bitmap[i / 64] >> i % 64 & 1;
  });
  return hits;
}

// The usual implementations: the positions of a classic filter with the same number of bits, in one string.
struct bit_commands {
  redis::router& router;
  std::string key;
  std::uint64_t bits;
  std::uint32_t probes;
  redis::batch commands = {};

  std::uint64_t position(std::uint64_t number, std::uint32_t i) const {
    const key_hash h = mix{}(number);
    return multiply_high(h.hash64 + i * (h.high64 | 1), bits);
  }

  void run() {
    router.run(commands, [](std::size_t, redis::reply r) {
      if (r.is_error()) throw std::runtime_error(std::string(r.text()));
    });
    commands.clear();
  }

  // k commands per key, in groups of 100 keys.
  void bit_by_bit(std::span<const std::uint64_t> keys, bool set) {
    for (std::size_t n = 0; n < keys.size(); ++n) {
      if (n % 100 == 0) commands.begin(0, set ? redis::mode::write : redis::mode::read);
      for (std::uint32_t i = 0; i < probes; ++i) {
        commands.start(set ? 4 : 3);
        commands.word(set ? "SETBIT" : "GETBIT");
        commands.word(key);
        commands.word(position(keys[n], i));
        if (set) commands.word("1");
      }
    }
    run();
  }

  void by_script(std::span<const std::uint64_t> keys) {
    static constexpr redis::script look{R"lua(
for i = 1, #ARGV do
  if redis.call('GETBIT', KEYS[1], ARGV[i]) == 0 then return 0 end
end
return 1
)lua"};
    for (const std::uint64_t number : keys) {
      commands.begin(0, redis::mode::read);
      commands.start_script(look, 1, probes);
      commands.word(key);
      for (std::uint32_t i = 0; i < probes; ++i) commands.word(position(number, i));
    }
    run();
  }
};

struct way {
  const char* name;
  std::function<void()> work;
  double least = std::numeric_limits<double>::infinity();  // CPU time of the server per key, in microseconds
  double wall = std::numeric_limits<double>::infinity();
};

// Measures all in turn, round by round, so that other load affects all alike.
void measure(test_server& server, std::vector<way>& ways, double keys, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (way& w : ways) {
      const double before = server_seconds(server);
      const double begin = now();
      w.work();
      w.wall = std::min(w.wall, (now() - begin) / keys * 1e6);
      w.least = std::min(w.least, (server_seconds(server) - before) / keys * 1e6);
    }
  }
}

void bind_to(pid_t pid, bool first) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const long all = sysconf(_SC_NPROCESSORS_ONLN);
  if (all < 2) return;
  for (long i = first ? 0 : 1; i < (first ? 1 : all); ++i) CPU_SET(static_cast<std::size_t>(i), &set);
  sched_setaffinity(pid, sizeof set, &set);
}

void row(const char* what, double ours, const char* peer, double theirs, const char* target) {
  std::printf("%-28s %7.3f us   %-24s %7.3f us   ratio %5.2f   (target %s)\n", what, ours, peer, theirs, theirs / ours,
              target);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

double measured_fpr(redis_filter& f) {
  constexpr std::uint64_t absent = 500'000;
  return static_cast<double>(count(f, numbers(std::uint64_t{1} << 40, absent))) / absent;
}

void memory_of_growth(test_server& server, const char* name, redis_params wanted, std::uint64_t keys) {
  const double before = fact(server, "memory", "used_memory");
  redis_filter f = redis_filter::create(server.address(name), wanted);
  // A layer is full where the bits per key stop falling; worst_full is the highest such value while the filter grows
  // from keys / 10 to keys. The mean is over all inserted keys.
  double mean = 0, lowest = std::numeric_limits<double>::infinity(), worst_full = 0, most = 0, last = 0;
  std::uint64_t in = 0;
  while (in < keys) {
    const std::uint64_t some = std::min(keys - in, std::max<std::uint64_t>(100, in / 20));
    insert(f, numbers(in, some));
    in += some;
    last = 8 * (fact(server, "memory", "used_memory") - before) / static_cast<double>(in);
    mean += last * static_cast<double>(some);
    if (in < keys / 10) continue;
    most = std::max(most, last);
    if (last > 1.05 * lowest) {
      worst_full = std::max(worst_full, lowest);
      lowest = std::numeric_limits<double>::infinity();
    } else {
      lowest = std::min(lowest, last);
    }
  }
  if (worst_full == 0) worst_full = last;
  std::printf("%-44s when full %5.2f, mean %5.2f, maximum %5.2f, at the end %5.2f bits per key; FPR %.3f%%\n", name,
              worst_full, mean / static_cast<double>(keys), most, last, 100 * measured_fpr(f));
  f.drop();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::uint64_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  test_server server;
  if (!server.is_there()) {
    std::fprintf(stderr, "time_redis: %s\n", test_server::how_to_get_one);
    return 77;
  }
  bind_to(server.pid(), true);
  bind_to(0, false);
  redis_params wanted{.filter = {.keys = key_kind::u64le, .capacity = keys, .target_fpr = target_fpr}};
  redis_filter f = redis_filter::create(server.address("ours"), wanted);
  const params& p = f.parameters().filter;
  const std::uint64_t measured = std::min<std::uint64_t>(keys, 1'000'000) / 2;
  std::printf("%llu keys at 1%%: %s, k = %u, %llu shards; calls of %zu keys; minimum of %d rounds\n\n",
              static_cast<unsigned long long>(keys), p.layout.c_str(), p.geometry.probes,
              static_cast<unsigned long long>(f.parameters().shards), batch_size, rounds);

  redis::router router(server.address(), {});
  bit_commands peer{router, "peer", p.geometry.bits, p.geometry.probes};
  const auto present = numbers(0, keys);
  insert(f, present);
  in_calls(present, [&](auto some) { peer.bit_by_bit(some, true); });
  std::vector<std::uint64_t> hits(measured);  // spread over all keys, and so over all layers of a scalable filter
  for (std::uint64_t i = 0; i < measured; ++i) hits[i] = i * 0x9E3779B97F4A7C15u % keys;
  const auto misses = numbers(std::uint64_t{1} << 41, measured);

  std::vector<way> reads = {
      {"ours, hits", [&] { count(f, hits); }},
      {"ours, misses", [&] { count(f, misses); }},
      {"GETBIT", [&] { in_calls(hits, [&](auto some) { peer.bit_by_bit(some, false); }); }},
      {"script, hits", [&] { in_calls(hits, [&](auto some) { peer.by_script(some); }); }},
      {"script, misses", [&] { in_calls(misses, [&](auto some) { peer.by_script(some); }); }},
  };
  measure(server, reads, static_cast<double>(measured), rounds);
  row("lookup, present", reads[0].least, "k GETBITs, pipelined", reads[2].least, "5");
  row("lookup, absent", reads[1].least, "k GETBITs, pipelined", reads[2].least, "5");
  row("lookup, present", reads[0].least, "EVALSHA per key", reads[3].least, "10");
  row("lookup, absent", reads[1].least, "EVALSHA per key", reads[4].least, "7");
  std::printf("%-28s %7.2f million lookups per second by one thread, present; %.2f absent (target 1.5)\n", "client",
              1 / reads[0].wall, 1 / reads[1].wall);

  // New keys in each round, into a filter with enough capacity and a string of the same size.
  const std::uint64_t fresh = measured / 4;
  std::uint64_t next = std::uint64_t{1} << 42;
  redis_filter empty = redis_filter::create(server.address("empty"), wanted);
  bit_commands empty_peer{router, "empty peer", p.geometry.bits, p.geometry.probes};
  std::vector<way> writes = {
      {"ours", [&] { insert(empty, numbers(next, fresh)); }},
      {"SETBIT",
       [&] {
         in_calls(numbers(next, fresh), [&](auto some) { empty_peer.bit_by_bit(some, true); });
         next += fresh;
       }},
  };
  measure(server, writes, static_cast<double>(fresh), rounds);
  row("insert, new", writes[0].least, "k SETBITs, pipelined", writes[1].least, "1.35");
  const double changes = fact(server, "persistence", "rdb_changes_since_last_save");
  insert(f, hits);
  std::printf("%-28s %.0f changes to replicate (target 0)\n", "insert, repeated",
              fact(server, "persistence", "rdb_changes_since_last_save") - changes);

  for (const bool adding : {false, true}) {
    std::atomic<bool> done = false;
    std::thread load([&] {
      redis_filter g = redis_filter::open(server.address(adding ? "empty" : "ours"));
      for (std::uint64_t i = 0; !done; ++i) {
        if (adding) {
          insert(g, numbers((std::uint64_t{1} << 43) + i * batch_size, batch_size));
        } else {
          count(g, misses);
        }
      }
    });
    std::vector<double> waits;
    while (waits.size() < 2000) {
      const double begin = now();
      server.command({"PING"});
      waits.push_back(now() - begin);
    }
    done = true;
    load.join();
    std::sort(waits.begin(), waits.end());
    std::printf("%-28s %7.3f ms at the 95th percentile, %.3f at the median (target 1)\n",
                adding ? "PING during inserts" : "PING during lookups", 1e3 * waits[1900], 1e3 * waits[1000]);
  }

  redis_params from_100 = wanted;
  from_100.filter.capacity = 100;
  from_100.shards = 0;
  from_100.growth = redis_growth::unlimited;
  redis_filter grown = redis_filter::create(server.address("grown"), from_100);
  const double before_growth = server_seconds(server);
  insert(grown, present);
  const double growing_us = (server_seconds(server) - before_growth) / static_cast<double>(keys) * 1e6;
  redis_options nothing_kept;
  nothing_kept.closed_layers_bytes = 0;
  redis_filter without_copies = redis_filter::open(server.address("grown"), nothing_kept);
  redis_filter with_copies = redis_filter::open(server.address("grown"));
  std::vector<way> of_growth = {
      {"fixed, hits", [&] { count(f, hits); }},
      {"fixed, misses", [&] { count(f, misses); }},
      {"grown, hits", [&] { count(with_copies, hits); }},
      {"grown, misses", [&] { count(with_copies, misses); }},
      {"without copies, hits", [&] { count(without_copies, hits); }},
      {"without copies, misses", [&] { count(without_copies, misses); }},
  };
  // The first round fetches the copies, so it is reported by itself.
  measure(server, of_growth, static_cast<double>(measured), 1);
  const double first_round = of_growth[2].least;
  for (way& w : of_growth) w.least = std::numeric_limits<double>::infinity();
  measure(server, of_growth, static_cast<double>(measured), rounds);
  std::printf("\ngrown from 100 keys to %llu: %llu layers; ratio: of a fixed size's cost\n",
              static_cast<unsigned long long>(keys), static_cast<unsigned long long>(grown.info().layers));
  for (std::size_t i = 2; i < of_growth.size(); ++i) {
    std::printf("%-28s %7.3f us   %-24s %7.3f us   ratio %5.2f   (target 2.5)\n", of_growth[i].name, of_growth[i].least,
                of_growth[i % 2].name, of_growth[i % 2].least, of_growth[i].least / of_growth[i % 2].least);
  }
  std::printf("%-28s %7.3f us for each of the first %llu keys\n", "fetching the copies", first_round,
              static_cast<unsigned long long>(measured));
  std::printf("%-28s %7.3f us   %-24s %7.3f us   ratio %5.2f\n\n", "insert while it grows", growing_us, "fixed, new",
              writes[0].least, growing_us / writes[0].least);

  std::printf("\nadditional memory of the server\n");
  const double before = fact(server, "memory", "used_memory");
  wanted.shards = 0;
  redis_filter fixed = redis_filter::create(server.address("fixed"), wanted);
  insert(fixed, present);
  std::printf("%-44s %5.2f bits per key (target 11.5); FPR %.3f%%\n", "fixed size",
              8 * (fact(server, "memory", "used_memory") - before) / static_cast<double>(keys),
              100 * measured_fpr(fixed));
  redis_params growing = wanted;
  growing.filter.capacity = 100;
  growing.growth = redis_growth::to_maximum;
  growing.maximum = keys;
  memory_of_growth(server, "grown to a declared maximum (14 at the end)", growing, keys);
  growing.growth = redis_growth::unlimited;
  growing.maximum = 0;
  memory_of_growth(server, "grown from 100 (19.5 when full, mean 25)", growing, keys);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_redis: %s\n", e.what());
  return 1;
}
