// A way to one server: TCP, TLS or a Unix socket, never blocking. It carries bytes and knows nothing of commands.
#pragma once

#include <bloomery/redis.hpp>

#include "platform/posix.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

using moment = std::chrono::steady_clock::time_point;

/// Where a server is.
struct place {
  std::string host = {};
  std::uint16_t port = 0;
  std::string socket = {};  ///< path; empty unless it is one

  std::string text() const;
  friend bool operator==(const place&, const place&) = default;
};

/// What TLS needs to know, for all connections of a router; made at the first.
class tls_settings {
 public:
  /// @throws error  not_found, invalid_argument: a certificate's file is not there or is none
  explicit tls_settings(const redis_connection_options& options);
  ~tls_settings();
  tls_settings(tls_settings&&) = delete;

  struct context;
  context& get() const noexcept { return *context_; }

 private:
  std::unique_ptr<context> context_;
};

class connection {
 public:
  connection();
  ~connection();
  connection(connection&&) = delete;

  /// Begins to connect; what fails is told by failure(). A host's name is looked up at once, which may take its time;
  /// of its addresses each gets an equal part of `time` to answer, and the last one whatever is left.
  void open(const place& where, const tls_settings* tls, std::chrono::milliseconds time);
  void close() noexcept;

  bool is_open() const noexcept { return static_cast<bool>(socket_); }

  /// Whether bytes can go through: connected, and TLS agreed upon.
  bool is_through() const noexcept { return through_; }

  /// Why it closed by itself; empty while it did not.
  const std::string& failure() const noexcept { return failure_; }
  /// Whether it failed so that trying again is of no use (a certificate that is not trusted).
  bool failed_for_good() const noexcept { return failed_for_good_; }

  int descriptor() const noexcept { return socket_.get(); }

  /// For poll().
  short wanted_events() const noexcept;

  /// After poll(), with what it found: connects, and writes what is to be written.
  void go_on(short events);

  /// When hurry() is to be called at the latest, if nothing happens before.
  moment patient_until() const noexcept { return connecting_ && !candidates_.empty() ? next_at_ : moment::max(); }

  /// Leaves an address that is silent for the next one, if its time is over.
  void hurry(moment now);

  /// Bytes to be written. Written at once as far as the system takes them by flush(), the rest by go_on().
  void write(std::string_view bytes) {
    waiting_.append(bytes);
    queued_ += bytes.size();
  }
  void flush();

  /// Bytes that write() was given, and those of them that may have left this program, since open().
  std::uint64_t queued() const noexcept { return queued_; }
  std::uint64_t maybe_sent() const noexcept { return maybe_sent_; }

  /// Bytes from the server, as far as there are some; 0: none now, or closed.
  std::size_t read(std::span<char> into);

  /// Whether read() may have more at once, of which poll() knows nothing: TLS has it already.
  bool has_more() const noexcept { return has_more_; }

 private:
  struct secured;

  void fail(std::string why);
  void connect_next();
  void connected();
  void shake_hands();
  bool encrypt();
  bool send_from(std::string& bytes, std::size_t& at);
  void fail_by_tls();

  struct candidate {
    std::vector<char> address;  // a sockaddr
    int family;
  };

  posix::descriptor socket_;
  place where_;
  std::vector<candidate> candidates_;  // addresses yet to be tried
  std::chrono::milliseconds time_of_each_{};
  moment next_at_{};  // the address that is tried now has had its time
  std::string last_refusal_;
  bool connecting_ = false;
  bool through_ = false;
  bool has_more_ = false;
  bool failed_for_good_ = false;
  std::string failure_;
  const tls_settings* tls_ = nullptr;
  std::unique_ptr<secured> secured_;
  std::string waiting_;  // in the clear
  std::size_t waiting_at_ = 0;
  std::string wire_;  // encrypted
  std::size_t wire_at_ = 0;
  std::uint64_t queued_ = 0;
  std::uint64_t maybe_sent_ = 0;
};

}  // namespace bloomery::redis
