// A filter that was named when the playground was started, looked into while others may be filling it.
#pragma once

#include "playground/json.hpp"

#include "cli/commands/commands.hpp"

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

  /// What is known; waits up to `most` for something newer than version `after`. Version 0 is nothing at all.
  virtual json look(std::uint64_t after, std::chrono::milliseconds most) = 0;

  /// The API's answer for keys. @throws error  as the filter; unavailable: its server is away, or too many ask
  virtual json ask(const key_list& keys) = 0;

  /// The program ends: nobody waits any more, and nothing is read anew.
  virtual void stop() = 0;
};

/// Starts to read a filter's file, or a filter on Redis.
/// @throws error  not_found, not_permitted: it is no file and no address
std::unique_ptr<inspection> inspect_filter(const std::string& name, const cli::playground_options& options);

}  // namespace bloomery::playground
