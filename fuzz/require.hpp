// The assertion of fuzz targets.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Aborts unless the condition holds, with a message that tools/fuzz repeats at the end of its output.
inline void require(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}
