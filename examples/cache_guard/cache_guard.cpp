// cache_guard: an HTTP lookup service for a table of users, with a Bloom filter on Redis in front.
//
//   cache_guard --table users.db --filter redis://127.0.0.1/users
//   curl -X POST -d 'Alice' localhost:8080/users/alice;  curl localhost:8080/users/alice;  curl localhost:8080/metrics
//
// Read guard.hpp first: the rest is HTTP.
#include "guard.hpp"

#include <bloomery/error.hpp>

#include <httplib.h>

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>

namespace {

constexpr const char* usage =
    R"(usage: cache_guard (--table FILE | --postgres CONNINFO) (--filter ADDRESS | --no-filter) [options]
  --table FILE          SQLite database with the table users (key, value); created if missing
  --postgres CONNINFO   the same table in PostgreSQL
  --filter ADDRESS      redis://host:port/NAME, unix:///path?name=NAME or another form described in redis/address.hpp
  --no-filter           every lookup queries the database
  --port N              port on 127.0.0.1; 0: any free port  [8080]
  --rate P              target false-positive rate of the filter  [0.01]
  --filter-time MS      time limit of the filter, after which a lookup queries the database  [250]
  --pause MS            time between two attempts to reach a filter that has failed  [1000]
)";

struct arguments {
  cache_guard::table_opener table;
  cache_guard::guard_options guard;
  int port = 8080;
};

arguments parse(int argc, char** argv) {
  arguments a;
  bool no_filter = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) throw std::invalid_argument(option + " requires a value");
      return argv[i];
    };
    const auto number = [&](double most) {
      const std::string text = value();
      char* end = nullptr;
      const double n = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0' || !(n >= 0 && n <= most)) throw std::invalid_argument(option + ": " + text);
      return n;
    };
    if (option == "--table") {
      a.table = cache_guard::sqlite_table(value());
    } else if (option == "--postgres") {
      a.table = cache_guard::postgres_table(value());
    } else if (option == "--filter") {
      a.guard.filter = bloomery::redis_address::parse(value());
    } else if (option == "--no-filter") {
      no_filter = true;
    } else if (option == "--port") {
      a.port = static_cast<int>(number(65535));
    } else if (option == "--rate") {
      a.guard.rate = number(1);
    } else if (option == "--filter-time") {
      a.guard.filter_time = std::chrono::milliseconds(static_cast<std::int64_t>(number(1e6)));
    } else if (option == "--pause") {
      a.guard.pause = std::chrono::milliseconds(static_cast<std::int64_t>(number(1e6)));
    } else {
      throw std::invalid_argument("unknown option '" + option + "'");
    }
  }
  if (!a.table) throw std::invalid_argument("missing option: --table or --postgres");
  if (no_filter == a.guard.filter.has_value()) throw std::invalid_argument("give either --filter or --no-filter");
  return a;
}

// Waits for SIGINT or SIGTERM, which all other threads block.
void serve(const arguments& a) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  cache_guard::guard guard(a.table, a.guard);
  httplib::Server server;
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(1'000'000);
  server.Get("/users/(.+)", [&](const httplib::Request& request, httplib::Response& response) {
    const std::optional<std::string> value = guard.find(request.matches[1]);
    response.status = value ? 200 : 404;
    response.set_content(value.value_or(""), "text/plain");
  });
  server.Post("/users/(.+)", [&](const httplib::Request& request, httplib::Response& response) {
    guard.put(request.matches[1], request.body);
    response.status = 201;
  });
  server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(guard.metrics(), "text/plain; version=0.0.4");
  });
  server.set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr thrown) {
    response.status = 503;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      std::cerr << "cache_guard: " << e.what() << std::endl;
    }
  });

  const int port = a.port == 0 ? server.bind_to_any_port("127.0.0.1") : a.port;
  if (port <= 0 || (a.port != 0 && !server.bind_to_port("127.0.0.1", port))) {
    throw std::runtime_error("cannot listen on 127.0.0.1:" + std::to_string(a.port));
  }
  std::cout << "listening on 127.0.0.1:" << port << (guard.filter_is_up() ? "" : ", without a filter") << std::endl;
  std::thread ender([&] {
    int signal = 0;
    sigwait(&ends, &signal);
    server.stop();
  });
  server.listen_after_bind();
  ender.join();
}

}  // namespace

int main(int argc, char** argv) {
  arguments a;
  try {
    a = parse(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "cache_guard: " << e.what() << "\n" << usage;
    return 2;
  }
  try {
    serve(a);
  } catch (const std::exception& e) {
    std::cerr << "cache_guard: " << e.what() << "\n";
    return 1;
  }
}
