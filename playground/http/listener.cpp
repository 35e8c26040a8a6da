#include "playground/http/listener.hpp"

#include <bloomery/error.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

namespace bloomery::playground::http {
namespace {

constexpr int backlog = 1024;              // connections that the kernel keeps for accept()
constexpr std::size_t most_waiting = 512;  // accepted ones that wait for a thread

[[noreturn]] void cannot_listen(const std::string& address, int problem) {
  throw error(errc::io, {"cannot listen there", address, "", std::strerror(problem),
                         problem == EADDRINUSE ? "another program has this port: leave out --port, or name another"
                                               : "name another --host or --port"});
}

struct address_list {
  addrinfo* first = nullptr;
  ~address_list() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

std::uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  std::uint16_t port = 0;
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    port = v6.sin6_port;
  } else {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    port = v4.sin_port;
  }
  return ntohs(port);
}

// A socket that is bound there, or -1 with errno.
int bound_socket(const addrinfo& to) {
  const int made = ::socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol);
  if (made < 0) return -1;
  // Without SO_REUSEPORT, which would let a second server share the port.
  const int yes = 1;
  ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const int no = 0;  // "::" is every address of this machine, of version 4 as well
  if (to.ai_family == AF_INET6) ::setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(made, to.ai_addr, to.ai_addrlen) == 0 && ::listen(made, backlog) == 0) return made;
  const int problem = errno;
  ::close(made);
  errno = problem;
  return -1;
}

}  // namespace

listener::listener(const std::string& host, std::uint16_t port) : address_(host + ":" + std::to_string(port)) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  address_list found;
  const int lookup = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found.first);
  if (lookup != 0) {
    throw error(errc::invalid_argument,
                {"no such host", "--host", "an address or a name of this machine",
                 "'" + host + "' (" + ::gai_strerror(lookup) + ")", "leave out --host to listen on 127.0.0.1"});
  }
  int problem = 0;
  for (const addrinfo* to = found.first; to != nullptr && socket_ < 0; to = to->ai_next) {
    socket_ = bound_socket(*to);
    if (socket_ < 0) problem = errno;
  }
  if (socket_ < 0) cannot_listen(address_, problem);
  port_ = port_of(socket_);
}

listener::~listener() {
  stop();
  if (socket_ >= 0) ::close(socket_);
}

void listener::start(std::size_t threads, std::function<void(int socket)> serve) {
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) cannot_listen(address_, errno);
  workers_ = std::make_unique<worker_pool>(threads, most_waiting, std::move(serve));
  thread_ = std::thread([this] { accept_all(); });
}

void listener::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  while (::write(wake_, &one, sizeof one) < 0 && errno == EINTR) continue;
  workers_->stop();  // the listener's thread may wait for room there
  thread_.join();
  ::close(std::exchange(socket_, -1));
  ::close(std::exchange(wake_, -1));
}

void listener::accept_all() {
  for (;;) {
    pollfd ready[] = {{wake_, POLLIN, 0}, {socket_, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0) continue;
    if (ready[0].revents != 0) return;
    const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) {
      const int yes = 1;
      ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      workers_->add(client);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until a connection ends
    }
  }
}

}  // namespace bloomery::playground::http
