// Inspections: filters named on the command line, polled while other processes may change them.
#pragma once

#include "playground/json.hpp"

#include <bloomery/redis/handle.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace bloomery::playground {

/// Reads a filter in a thread of its own, again whenever the filter has changed. Thread-safe.
class inspection {
 public:
  virtual ~inspection() = default;
  virtual const std::string& name() const noexcept = 0;  ///< as given by the user
  virtual const char* kind() const noexcept = 0;         ///< "file" or "redis"

  /// The last reading; waits up to `most` for a version newer than `after`. Version 0 precedes the first reading.
  virtual json look(std::uint64_t after, std::chrono::milliseconds most) = 0;

  /// The lookup results for keys.
  /// @throws error  as the filter; unavailable: its server is down, or too many requests wait
  virtual json ask(const key_list& keys) = 0;

  /// Stops reading; look() returns at once from now on.
  virtual void stop() = 0;
};

/// Default timeout of a server: short, because the page should soon report a server that does not answer, and the
/// inspection retries anyway.
inline constexpr std::chrono::seconds usual_server_time{3};

/// Starts the inspection of a filter in a file or on Redis.
/// @param options  connection options, and the secret of a keyed filter, without which keys cannot be looked up
/// @throws error  not_found, not_permitted, not_a_filter: no such file; invalid_argument: a malformed address
std::unique_ptr<inspection> inspect_filter(const std::string& name, const redis::open_options& options);

}  // namespace bloomery::playground
