// Inspections: filters named on the command line, read again and again while other processes may change them.
#pragma once

#include "playground/json/json.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace bloomery::playground {

/// A filter that is read again whenever it has changed. Any number of threads may use it at once.
class inspection {
 public:
  virtual ~inspection() = default;
  virtual const std::string& name() const noexcept = 0;  ///< as it was given
  virtual const char* kind() const noexcept = 0;         ///< "file" or "redis"

  /// The latest state. If another thread reads the filter, waits up to `most` for a version above `after`.
  /// Version 0 is before the first reading.
  virtual json look(std::uint64_t after, std::chrono::milliseconds most) = 0;

  /// The samples of the last hour that are later than `after`, in milliseconds since 1970, and the present pace.
  virtual json past(std::int64_t after) = 0;

  /// The API's answer for keys. @throws error  as the filter; unavailable: its server is away, or too many lookups
  virtual json ask(const key_list& keys) = 0;

  /// The program ends: look() returns at once, and the filter is not read again.
  virtual void stop() = 0;
};

}  // namespace bloomery::playground
