// A non-blocking connection to one server, by TCP, TLS or a Unix socket. It transports bytes, independent of commands.
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

/// The location of a server.
struct place {
  std::string host = {};
  std::uint16_t port = 0;
  std::string socket = {};  ///< path of a Unix socket; otherwise empty

  std::string text() const;
  friend bool operator==(const place&, const place&) = default;
};

/// The TLS context of a router's connections, created for the first one.
class tls_settings {
 public:
  /// @throws error  not_found, invalid_argument: a certificate file is missing or is not a certificate
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

  /// Starts connecting; failure() reports errors. A host name is resolved synchronously, which may block. Each of its
  /// addresses gets an equal share of `time` to answer, and the last one the remaining time.
  void open(const place& where, const tls_settings* tls, std::chrono::milliseconds time);
  void close() noexcept;

  bool is_open() const noexcept { return static_cast<bool>(socket_); }

  /// Whether data can be transferred: connected, and the TLS handshake complete.
  bool is_ready() const noexcept { return ready_; }

  /// Why the connection failed; empty if it did not.
  const std::string& failure() const noexcept { return failure_; }
  /// Whether the failure is permanent, so that a retry is useless (an untrusted certificate).
  bool failed_permanently() const noexcept { return failed_permanently_; }

  /// Whether nothing is there to connect to: the name has no address, or every address refused the connection.
  bool found_no_server() const noexcept { return found_no_server_; }

  /// Whether the host name has no address.
  bool found_no_address() const noexcept { return found_no_address_; }

  /// Whether the server answered the TLS handshake with something else.
  bool speaks_no_tls() const noexcept { return speaks_no_tls_; }

  /// Whether the connection waits for the server's part of the TLS handshake.
  bool waits_for_tls() const noexcept { return socket_ && tls_ != nullptr && !connecting_ && !ready_; }

  int descriptor() const noexcept { return socket_.get(); }

  /// The events for poll().
  short wanted_events() const noexcept;

  /// Continues connecting and writing, with the events returned by poll().
  void on_events(short events);

  /// The time at which try_next_address() should be called if there is no event before.
  moment address_deadline() const noexcept { return connecting_ && !candidates_.empty() ? next_at_ : moment::max(); }

  /// Tries the next address if the time of an unresponsive one is over.
  void try_next_address(moment now);

  /// Queues bytes. flush() writes them as far as the system accepts them, and on_events() the rest.
  void write(std::string_view bytes) {
    waiting_.append(bytes);
    queued_ += bytes.size();
  }
  void flush();

  /// Number of bytes given to write() since open(), and of those that may have left this process.
  std::uint64_t queued() const noexcept { return queued_; }
  std::uint64_t maybe_sent() const noexcept { return maybe_sent_; }

  /// Reads available bytes from the server; 0: none now, or closed.
  std::size_t read(std::span<char> into);

  /// Whether read() may return more immediately, from TLS buffers that poll() does not see.
  bool has_more() const noexcept { return has_more_; }

 private:
  struct secured;

  void fail(std::string why);
  void connect_next();
  void refused_by_address(int number);
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
  std::vector<candidate> candidates_;  // untried addresses
  std::chrono::milliseconds time_of_each_{};
  moment next_at_{};  // end of the time for the present address
  std::string last_refusal_;
  bool connecting_ = false;
  bool ready_ = false;
  bool has_more_ = false;
  bool failed_permanently_ = false;
  bool found_no_server_ = false;
  bool found_no_address_ = false;
  bool speaks_no_tls_ = false;
  bool all_refused_ = true;  // the addresses tried so far
  std::string failure_;
  const tls_settings* tls_ = nullptr;
  std::unique_ptr<secured> secured_;
  std::string waiting_;  // unencrypted
  std::size_t waiting_at_ = 0;
  std::string wire_;  // encrypted
  std::size_t wire_at_ = 0;
  std::uint64_t queued_ = 0;
  std::uint64_t maybe_sent_ = 0;
};

}  // namespace bloomery::redis
