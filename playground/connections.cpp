#include "playground/connections.hpp"

#include "playground/json.hpp"

#include <bloomery/error.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace bloomery::playground {
namespace {

using std::chrono::milliseconds;

constexpr auto step = milliseconds(100);  // after which a waiting connection looks around
constexpr auto between_requests = milliseconds(2000);
constexpr auto for_a_head = milliseconds(10'000);
constexpr auto for_bytes = milliseconds(10'000);
constexpr auto in_a_hurry = milliseconds(500);
constexpr std::uint64_t least_rate = 64;  // bytes a millisecond, of bodies and answers
constexpr std::uint64_t most_dropped = std::uint64_t{32} << 20;

// Answers are always whole: the library would answer a list of a thousand ranges with a thousand copies.
void hide_ranges(std::string& head) {
  constexpr std::string_view name = "\nrange:";
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (auto at = head.begin();;) {
    at = std::search(at, head.end(), name.begin(), name.end(), same);
    if (at == head.end()) return;
    at[1] = 'x';
  }
}

std::string answer_to_long_head() {
  const error problem(errc::too_large, {"the request's head is too long", "headers",
                                        "at most " + std::to_string(visit::most_head) + " bytes", "more",
                                        "send fewer headers, and what is long in the body"});
  return "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n" +
         text_of(json_of(problem));
}

}  // namespace

crew::crew(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

void crew::enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(turn_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void crew::shutdown() {
  {
    const std::lock_guard lock(turn_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool crew::crowded() const {
  const std::lock_guard lock(turn_);
  return tasks_.size() > free_;
}

void crew::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(turn_);
      ++free_;
      changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
      --free_;
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

visit::visit(socket_t socket, std::function<bool()> hurry, const std::atomic<bool>& over)
    : socket_(socket), hurry_(std::move(hurry)), over_(over) {}

visit::~visit() {
  ::shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
}

bool visit::wait(short events, clock::time_point start, std::uint64_t bytes, milliseconds patience) const {
  const milliseconds earned(bytes / least_rate);
  for (;;) {
    pollfd ready{socket_, events, 0};
    const int found = ::poll(&ready, 1, static_cast<int>(step.count()));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
    const auto waited = clock::now() - start;
    if (waited > earned + (hurry_() || over_ ? std::min(patience, in_a_hurry) : patience)) return false;
  }
}

bool visit::receive() {
  if (read_ == held_.size()) {
    held_.clear();
    read_ = 0;
  }
  char bytes[16'384];
  const ssize_t size = ::recv(socket_, bytes, sizeof bytes, 0);
  if (size <= 0) return false;
  held_.append(bytes, static_cast<std::size_t>(size));
  received_ += static_cast<std::uint64_t>(size);
  return true;
}

visit::head visit::read_head(milliseconds patience) {
  held_.erase(0, std::exchange(read_, 0));
  in_body_ = false;
  received_ = sent_ = 0;
  begun_ = clock::now();
  for (;;) {
    const std::size_t end = held_.find("\r\n\r\n");
    if (end != std::string::npos && end <= most_head) {
      std::string start = held_.substr(0, end);
      hide_ranges(start);
      held_.replace(0, end, start);
      return head::complete;
    }
    if (held_.size() > most_head) return head::too_long;
    const bool silent = held_.empty();
    // Of a head no byte earns time: it is short.
    if (!wait(POLLIN, begun_, 0, silent ? patience : for_a_head) || !receive()) return head::none;
    if (silent) begun_ = clock::now();
  }
}

void visit::begin_body(std::uint64_t bytes) {
  in_body_ = true;
  body_left_ = bytes;
  received_ = 0;
  begun_ = answered_ = clock::now();
}

void visit::part() {
  ::shutdown(socket_, SHUT_WR);
  held_.clear();
  read_ = 0;
  received_ = 0;
  begun_ = clock::now();
  while (received_ < most_dropped && wait(POLLIN, begun_, received_, in_a_hurry) && receive()) held_.clear();
}

bool visit::is_readable() const { return read_ < held_.size() || wait(POLLIN, begun_, received_, for_bytes); }

bool visit::is_writable() const { return wait(POLLOUT, answered_, sent_, for_bytes); }

ssize_t visit::read(char* to, std::size_t size) {
  if (read_ == held_.size() && (!is_readable() || !receive())) return -1;
  const std::size_t some = std::min(size, held_.size() - read_);
  std::memcpy(to, held_.data() + read_, some);
  read_ += some;
  if (in_body_) body_left_ -= std::min<std::uint64_t>(body_left_, some);
  return static_cast<ssize_t>(some);
}

ssize_t visit::write(const char* from, std::size_t size) {
  if (sent_ == 0) answered_ = clock::now();
  if (!is_writable()) return -1;
  const ssize_t some = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (some < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (some > 0) sent_ += static_cast<std::uint64_t>(some);
  return some;
}

http_server::http_server(std::size_t threads) {
  new_task_queue = [this, threads] {
    crew* const made = new crew(threads);
    crew_ = made;
    return made;
  };
}

bool http_server::process_and_close_socket(socket_t socket) {
  const crew& others = *crew_.load();
  visit v(
      socket, [&] { return others.crowded(); }, over_);
  milliseconds patience = for_a_head;
  for (std::size_t left = keep_alive_max_count_; left > 0; --left) {
    const visit::head found = v.read_head(patience);
    if (found == visit::head::too_long) {
      v.httplib::Stream::write(answer_to_long_head());
      v.part();
    }
    if (found != visit::head::complete) return false;
    bool closed = false;
    const bool last = left == 1 || over_ || others.crowded();
    const bool answered = process_request(v, last, closed, [&](httplib::Request& r) {
      // The library would compress what is compressed already.
      const std::string accepted = r.get_header_value("Accept-Encoding");
      r.headers.erase("Accept-Encoding");
      r.headers.emplace(accepted_encodings, accepted);
      // A body that is not read would be taken for the next request.
      const std::string length = r.get_header_value("Content-Length");
      const bool is_said = !r.has_header("Transfer-Encoding") && r.get_header_value_count("Content-Length") < 2 &&
                           length.find_first_not_of("0123456789") == std::string::npos;
      v.begin_body(is_said ? r.get_header_value<std::uint64_t>("Content-Length") : ~std::uint64_t{0});
    });
    if (!v.at_next_request()) {
      v.part();
      return false;
    }
    if (!answered || closed || last) return answered;
    patience = between_requests;
  }
  return true;
}

}  // namespace bloomery::playground
