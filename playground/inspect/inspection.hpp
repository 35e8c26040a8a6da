// Inspections: filters named on the command line, read again and again while other processes may change them.
#pragma once

#include "playground/json/json.hpp"

#include <bloomery/redis/handle.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace bloomery::playground {

/// Reads its filter in a thread of its own, again whenever it has changed. Any number of threads may ask.
class inspection {
 public:
  virtual ~inspection() = default;
  virtual const std::string& name() const noexcept = 0;  ///< as it was given
  virtual const char* kind() const noexcept = 0;         ///< "file" or "redis"

  /// What was read last; waits up to `most` for something newer than version `after`. Version 0 is nothing at all.
  virtual json look(std::uint64_t after, std::chrono::milliseconds most) = 0;

  /// The API's answer for keys. @throws error  as the filter; unavailable: its server is away, or too many ask
  virtual json ask(const key_list& keys) = 0;

  /// The program ends: look() returns at once, and the filter is not read again.
  virtual void stop() = 0;
};

/// Time for an exchange with a server unless the user gives another: a page should show soon that a server does not
/// answer, and the inspection tries again anyway.
inline constexpr std::chrono::seconds usual_server_time{3};

/// Starts to read a filter in a file or on Redis.
/// @param options  how to reach its server; its secret, without which no key is looked up in a keyed filter
/// @throws error  not_found, not_permitted, not_a_filter: no such file; invalid_argument: a malformed address
std::unique_ptr<inspection> inspect_filter(const std::string& name, const redis::open_options& options);

}  // namespace bloomery::playground
