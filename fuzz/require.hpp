// What a fuzz target promises of any input.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program unless it is true, with words that tools/fuzz repeats at the end.
inline void require(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}
