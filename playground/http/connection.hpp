// One TCP connection of a client, with a time limit for everything that the client sends or receives.
//
// A request's head has a total time; bodies and responses must keep a minimum rate. While other connections wait for a
// thread, a silent client is dropped much sooner.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace bloomery::playground::http {

class connection {
 public:
  static constexpr std::size_t most_head = 16'384;                         ///< bytes, with the empty line
  static constexpr std::chrono::milliseconds head_time{10'000};            ///< from a head's first byte to its last
  static constexpr std::chrono::milliseconds time_between_requests{2000};  ///< of silence

  /// Takes over the socket, and closes it in the end.
  /// @param crowded   whether other connections wait for this thread
  /// @param stopping  whether the server ends
  connection(int socket, std::function<bool()> crowded, const std::atomic<bool>& stopping);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  enum class head_state { complete, none, too_long };

  /// Reads the next request's head.
  /// @param patience  how long the client may stay silent before it
  /// @return          none: the client closed the connection or was too slow
  head_state read_head(std::chrono::milliseconds patience);

  /// The head read last, without the empty line. Valid until the next read.
  std::string_view head() const { return std::string_view(received_).substr(0, head_size_); }

  /// Reads the body of the request, which is so many bytes long, into `body`.
  /// @return  false: the client closed the connection or was too slow; `body` has what came
  bool read_body(std::uint64_t bytes, std::string& body);

  /// Sends all of it. @return false: the client is gone or reads too slowly
  bool write(std::string_view bytes);

  /// Reads and drops what the client still sends, for a short time, so that the client can read its response: closing a
  /// socket with unread data would make the kernel drop the response, too.
  void drop_rest();

 private:
  using clock = std::chrono::steady_clock;

  // What the client has done since `begun`, which earns it time.
  struct progress {
    clock::time_point begun = clock::now();
    std::uint64_t bytes = 0;
  };

  bool wait(short events, const progress& made, std::chrono::milliseconds patience) const;  // false: out of time
  bool receive(progress& made, std::string& into) const;

  int socket_;
  std::function<bool()> crowded_;
  const std::atomic<bool>& stopping_;
  std::string received_;       // from the head on
  std::size_t head_size_ = 0;  // of the request that is being answered
  std::size_t used_ = 0;       // bytes of received_ that belong to that request
};

}  // namespace bloomery::playground::http
