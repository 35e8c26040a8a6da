// Inspections: filters named on the command line, read again and again while other processes may change them.
#pragma once

#include "playground/json/json.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace bloomery::playground {

/// A filter that is read again whenever it has changed. Any number of threads may ask.
class inspection {
 public:
  virtual ~inspection() = default;
  virtual const std::string& name() const noexcept = 0;  ///< as it was given
  virtual const char* kind() const noexcept = 0;         ///< "file" or "redis"

  /// What was read last. If another thread reads it, waits up to `most` for something newer than version `after`.
  /// Version 0 is nothing at all.
  virtual json look(std::uint64_t after, std::chrono::milliseconds most) = 0;

  /// The API's answer for keys. @throws error  as the filter; unavailable: its server is away, or too many ask
  virtual json ask(const key_list& keys) = 0;

  /// The program ends: look() returns at once, and the filter is not read again.
  virtual void stop() = 0;
};

}  // namespace bloomery::playground
