#include "playground/http/connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace bloomery::playground::http {
namespace {

using std::chrono::milliseconds;

constexpr auto step = milliseconds(100);              // after which a waiting connection looks at crowded and stopping
constexpr auto transfer_time = milliseconds(10'000);  // for a body or a response, besides what its bytes earn
constexpr auto crowded_time = milliseconds(500);
constexpr std::uint64_t least_rate = 64;  // bytes per millisecond, of bodies and responses
constexpr std::uint64_t most_dropped = std::uint64_t{32} << 20;
constexpr std::string_view end_of_head = "\r\n\r\n";

}  // namespace

connection::connection(int socket, std::function<bool()> crowded, const std::atomic<bool>& stopping)
    : socket_(socket), crowded_(std::move(crowded)), stopping_(stopping) {}

connection::~connection() {
  ::shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
}

bool connection::wait(short events, const progress& made, milliseconds patience) const {
  const milliseconds earned(made.bytes / least_rate);
  for (;;) {
    // The time is looked at even if there is something to read: a client that sends single bytes is slow, too.
    const bool hurry = crowded_() || stopping_;
    if (clock::now() - made.begun > earned + (hurry ? std::min(patience, crowded_time) : patience)) return false;
    pollfd ready{socket_, events, 0};
    const int found = ::poll(&ready, 1, static_cast<int>(step.count()));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

bool connection::receive(progress& made, std::string& into) const {
  std::array<char, 16'384> bytes;
  const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  into.append(bytes.data(), static_cast<std::size_t>(size));
  made.bytes += static_cast<std::uint64_t>(size);
  return true;
}

connection::head_state connection::read_head(milliseconds patience) {
  received_.erase(0, std::exchange(used_, 0));
  head_size_ = 0;
  progress made;
  for (;;) {
    const std::size_t end = received_.find(end_of_head);
    if (end != std::string::npos && end + end_of_head.size() <= most_head) {
      head_size_ = end;
      used_ = end + end_of_head.size();
      return head_state::complete;
    }
    if (received_.size() >= most_head) return head_state::too_long;
    const bool silent = received_.empty();
    made.bytes = 0;  // a head is short: its bytes earn no time
    if (!wait(POLLIN, made, silent ? patience : head_time) || !receive(made, received_)) return head_state::none;
    if (silent && !received_.empty()) made = {};
  }
}

bool connection::read_body(std::uint64_t bytes, std::string& body) {
  const std::size_t here = std::min<std::uint64_t>(bytes, received_.size() - used_);
  body.assign(received_, used_, here);
  used_ += here;
  progress made;
  while (body.size() < bytes) {
    if (!wait(POLLIN, made, transfer_time) || !receive(made, body)) return false;
  }
  // What follows the body begins the next request.
  received_.append(body, bytes);
  body.resize(bytes);
  return true;
}

bool connection::write(std::string_view bytes) {
  progress made;
  while (!bytes.empty()) {
    if (!wait(POLLOUT, made, transfer_time)) return false;
    const ssize_t size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (size <= 0) continue;
    bytes.remove_prefix(static_cast<std::size_t>(size));
    made.bytes += static_cast<std::uint64_t>(size);
  }
  return true;
}

void connection::drop_rest() {
  ::shutdown(socket_, SHUT_WR);
  progress made;
  std::string dropped;
  while (made.bytes < most_dropped && wait(POLLIN, made, crowded_time) && receive(made, dropped)) dropped.clear();
}

}  // namespace bloomery::playground::http
