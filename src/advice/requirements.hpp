// Validation of the requirements for advise().
#pragma once

#include <bloomery/advice.hpp>

#include <cstdint>
#include <string>

namespace bloomery {

/// Requirements with derived values.
struct demand {
  requirements w;
  bool unbounded;        ///< the number of keys is unknown
  std::uint64_t fewest;  ///< minimum number of distinct keys, per window if there is one; 0 if unbounded and unknown
  std::uint64_t most;    ///< the number of keys that the figures assume

  bool has_window() const { return w.window.count != 0; }
  bool range() const { return !unbounded && fewest != most; }
};

/// @throws error  invalid_argument: a rate outside (0, 1), most_keys below keys, or requirements that contradict each
///                other
demand demand_of(const requirements& w);

// An FPR as text, for errors.
std::string rate_text(double rate);
std::string bytes_text(std::uint64_t bytes);
std::string keys_text(std::uint64_t keys);

}  // namespace bloomery
