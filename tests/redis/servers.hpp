// Redis or Valkey servers for tests, which start and stop them.
//
// BLOOMERY_VALKEY_SERVER names another binary, with which command/another_server.py runs the same tests. Without a
// server, tests are skipped:
//
//   test_server server;  // or with options
//   if (!server.is_there()) GTEST_SKIP() << test_server::how_to_get_one;
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>

#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace bloomery_tests {

/// Options with a time limit for an exchange, including its retries.
inline bloomery::redis_connection_options within(std::chrono::milliseconds time) {
  bloomery::redis_connection_options o;
  o.time = time;
  return o;
}

/// A folder for sockets in the system's temporary folder, because socket paths must be short.
class short_folder {
 public:
  short_folder() {
    std::string name = "/tmp/bloomery-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder for the test");
    path_ = name;
  }
  short_folder(const short_folder&) = delete;
  short_folder& operator=(const short_folder&) = delete;
  ~short_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Binds a socket to 127.0.0.1. @returns its port; 0 if that fails
inline std::uint16_t bind_to_loopback(int fd) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool good = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  return good ? ntohs(address.sin_port) : std::uint16_t{0};
}

/// A socket that listens at a free port of 127.0.0.1 until the object is destroyed.
class loopback_listener {
 public:
  /// @param most_pending  maximum number of connections that are not accepted yet
  /// @param flags         SOCK_NONBLOCK: accepting a connection does not wait
  explicit loopback_listener(int most_pending, int flags = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)), port_(bind_to_loopback(fd_)) {
    if (port_ != 0 && ::listen(fd_, most_pending) == 0) return;
    ::close(fd_);
    throw std::runtime_error("cannot listen on 127.0.0.1 for the test");
  }
  loopback_listener(const loopback_listener&) = delete;
  loopback_listener& operator=(const loopback_listener&) = delete;
  ~loopback_listener() { ::close(fd_); }

  int fd() const { return fd_; }
  std::uint16_t port() const { return port_; }

 private:
  int fd_;
  std::uint16_t port_;
};

/// A port of 127.0.0.1 that was free a moment ago. It is below 55536, because the bus of a cluster node uses
/// port + 10000.
inline std::uint16_t free_port() {
  for (int i = 0; i < 100; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const std::uint16_t port = bind_to_loopback(fd);
    ::close(fd);
    if (port != 0 && port < 55'000) return port;
  }
  throw std::runtime_error("no free port for the test");
}

/// Runs one command through the router, and throws if the reply is an error.
inline std::string run(bloomery::redis::router& r, bloomery::redis::mode m,
                       std::initializer_list<std::string_view> words) {
  bloomery::redis::batch b;
  b.begin(0, m);
  b.command(words);
  std::string answer;
  r.run(b, [&](std::size_t, const bloomery::redis::reply& first) {
    bloomery::redis::throw_if_error(first, r.address(), "do it");
    answer = first.text();
  });
  return answer;
}

/// Polls until the condition is true. Throws after the time `most`.
template <class Condition>
void wait_until(const char* what, Condition condition, std::chrono::milliseconds most = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error(std::string("waited in vain: ") + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

struct server_options {
  bool tcp = false;                      ///< also listens on a free port of 127.0.0.1
  bool tls = false;                      ///< uses TLS on that port, with certificates of the server's own authority
  bool sentinel = false;                 ///< is a sentinel; `config` names the masters that it watches
  bool append_only = false;              ///< every write is on disk before its reply, and survives kill_hard()
  std::vector<std::string> config = {};  ///< further lines of its configuration
};

/// One server, on a Unix socket in its own folder.
class test_server {
 public:
  static constexpr const char* how_to_get_one =
      "NO SERVER: install redis-server, or let BLOOMERY_VALKEY_SERVER name another one";

  /// The server's program; empty if there is none.
  static std::string program() {
    if (const char* const named = std::getenv("BLOOMERY_VALKEY_SERVER"); named != nullptr && *named != '\0')
      return named;
    for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"}) {
      const std::string path = std::string(folder) + "redis-server";
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
    return "";
  }

  explicit test_server(server_options options = {}) : options_(std::move(options)) {
    if (!is_there()) return;
    if (options_.tls) make_certificates();
    // Another process may take the port before the server does.
    for (int attempt = 0; attempt < 5; ++attempt) {
      if (options_.tcp || options_.tls) port_ = free_port();
      if (start()) return;
    }
    throw std::runtime_error("the server does not start: " + log());
  }
  test_server(const test_server&) = delete;
  test_server& operator=(const test_server&) = delete;
  ~test_server() { end(); }

  bool is_there() const { return !program().empty(); }

  std::string socket() const { return folder_ / "s"; }
  std::uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  const std::string& folder() const { return folder_.path(); }

  bloomery::redis_address address(const std::string& name = "filter") const {
    bloomery::redis_address a;
    a.socket = socket();
    a.name = name;
    return a;
  }
  bloomery::redis_address tcp_address(const std::string& name = "filter") const {
    bloomery::redis_address a;
    a.endpoints = {{"127.0.0.1", port_}};
    a.tls = options_.tls;
    a.name = name;
    return a;
  }

  /// In the server's folder. With TLS: ca.crt, server.crt and server.key for localhost and 127.0.0.1, client.crt and
  /// client.key.
  std::string file(const std::string& name) const { return folder_ / name; }

  /// Runs a command and returns its reply of any type. Uses the user and password of sign_in(), if set.
  class answer {
   public:
    explicit answer(bloomery::redis::reply_list list) : list_(std::move(list)) {}
    bloomery::redis::reply reply() const { return {list_, 0}; }
    std::string text() const { return std::string(reply().text()); }
    std::int64_t integer() const { return reply().integer(); }
    bool is_error() const { return reply().is_error(); }

   private:
    bloomery::redis::reply_list list_;
  };
  answer command(std::initializer_list<std::string_view> words) {
    if (router_ == nullptr) {
      bloomery::redis_address a = address();
      a.password = password_;
      router_ = std::make_unique<bloomery::redis::router>(a, bloomery::redis_connection_options{});
    }
    return answer(std::move(router_->run_on_nodes(words).front().replies));
  }

  /// "{NAME~EPOCH:s}", the prefix of the names of a shard's keys, with the epoch of the description.
  std::string shard(const std::string& name, std::uint64_t s) {
    return shard_of(command({"GET", "{" + name + "}:m"}).text(), s);
  }
  static std::string shard_of(const std::string& description, std::uint64_t s) {
    const std::string begin = "\ninstance=";
    const std::size_t at = description.find(begin) + begin.size();
    return "{" + description.substr(at, description.find('\n', at) - at) + ":" + std::to_string(s) + "}";
  }

  void sign_in(const std::string& password) {
    password_ = password;
    router_.reset();
  }

  /// Kills the server with SIGKILL, so that it saves nothing.
  void kill_hard() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    reap();
  }

  /// Suspends the server, so that it neither replies nor closes connections, or resumes it.
  void freeze() const { ::kill(pid_, SIGSTOP); }
  void thaw() const { ::kill(pid_, SIGCONT); }

  /// Restarts the server with the data on its disk. @param wait  until it accepts connections
  void restart(bool wait = true) {
    end();
    if (!start(wait)) throw std::runtime_error("the server does not start again: " + log());
  }

  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGCONT);
    ::kill(pid_, SIGTERM);
    const auto hard = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > hard) return kill_hard();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
  }

  std::string log() const {
    std::ifstream file(folder_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Configuration lines for the next start.
  std::vector<std::string>& config() { return options_.config; }

 private:
  // Returns false if the server exits immediately.
  bool start(bool wait = true) {
    {
      std::ofstream config(folder_ / "conf");
      config << "port " << (options_.tcp && !options_.tls ? port_ : 0) << "\nbind 127.0.0.1\nunixsocket " << socket()
             << "\ndir " << folder_.path() << "\nlogfile " << (folder_ / "log")
             << "\nsave \"\"\ndatabases 16\nloglevel notice\n";
      if (options_.append_only) config << "appendonly yes\nappendfsync always\n";
      if (options_.tls) {
        config << "tls-port " << port_ << "\ntls-cert-file " << file("server.crt") << "\ntls-key-file "
               << file("server.key") << "\ntls-ca-cert-file " << file("ca.crt") << "\ntls-auth-clients no\n";
      }
      for (const std::string& line : options_.config) config << line << "\n";
    }
    std::error_code ignored;
    std::filesystem::remove(socket(), ignored);
    const std::string path = program();
    const std::string config = folder_ / "conf";
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test ends by a signal
      if (::getppid() != parent) ::_exit(1);
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, 0);
      ::dup2(null, 1);
      ::dup2(null, 2);
      ::execl(path.c_str(), path.c_str(), config.c_str(), options_.sentinel ? "--sentinel" : nullptr,
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    if (!wait) return true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return false;
      }
      bloomery::redis_address a = address();
      a.password = password_;
      try {
        bloomery::redis_connection_options quick;
        quick.time = std::chrono::milliseconds(200);
        bloomery::redis::router probe(a, quick);
        probe.run_on_nodes({"PING"});
        return true;
      } catch (const bloomery::error& e) {
        if (e.code() == bloomery::errc::not_permitted) return true;  // the server replies
      }
    }
    return false;
  }

  void make_certificates() const {
    const std::string quiet = " 2>/dev/null >/dev/null";
    const std::string made =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout ";
    const auto run = [&](const std::string& command) {
      if (std::system((command + quiet).c_str()) != 0) throw std::runtime_error("openssl makes no certificate");
    };
    const std::string by = " -CA " + file("ca.crt") + " -CAkey " + file("ca.key");
    run(made + file("ca.key") + " -out " + file("ca.crt") + " -subj /CN=authority");
    run(made + file("server.key") + " -out " + file("server.crt") + " -subj /CN=server" + by +
        " -addext basicConstraints=CA:FALSE -addext subjectAltName=DNS:localhost,IP:127.0.0.1");
    run(made + file("client.key") + " -out " + file("client.crt") + " -subj /CN=client" + by +
        " -addext basicConstraints=CA:FALSE");
  }

  void reap() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
  }

  server_options options_;
  short_folder folder_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
  std::string password_;
  std::unique_ptr<bloomery::redis::router> router_;
};

/// A master on loopback, and a replica that follows it.
struct replicated_servers {
  test_server replica;
  test_server master{{.tcp = true, .config = {"repl-diskless-sync-delay 0"}}};

  replicated_servers() {
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    wait_until("the replica follows", [&] {
      return replica.command({"INFO", "replication"}).text().find("master_link_status:up") != std::string::npos;
    });
  }
};

}  // namespace bloomery_tests
