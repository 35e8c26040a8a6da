// Requirements of a filter, checked: what advise() starts from. Contradictions are refused here.
#pragma once

#include <bloomery/advice.hpp>

#include <cstdint>
#include <string>

namespace bloomery {

/// Requirements with what follows from them.
struct demand {
  requirements w;
  bool unbounded;        ///< the number of keys is unknown
  std::uint64_t fewest;  ///< distinct keys, of a window those in it; 0 if unbounded and not known
  std::uint64_t most;    ///< the keys that figures are for

  bool windowed() const { return w.window_keys != 0 || w.window_milliseconds != 0; }
  bool range() const { return !unbounded && fewest != most; }
};

/// @throws error  invalid_argument: a rate outside (0, 1), most_keys below keys, requirements that contradict each
///        other
demand demand_of(const requirements& w);

// Numbers in the sentences of errors.
std::string rate_text(double rate);
std::string bytes_text(std::uint64_t bytes);
std::string keys_text(std::uint64_t keys);

}  // namespace bloomery
