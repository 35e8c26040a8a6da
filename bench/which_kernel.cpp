// Build information for report headers: which_kernel prints the kernel set chosen on this machine and the compiler.
//
//   $ build/bench/bench/which_kernel
//   kernel avx2, g++ 12.2.0
#include <bloomery/kernel.hpp>

#include <cstdio>
#include <exception>

int main() try {
#if defined(__clang__)
  const char* const compiler = "clang++";
#else
  const char* const compiler = "g++";
#endif
  std::printf("kernel %s, %s %d.%d.%d\n", bloomery::kernel_name().c_str(), compiler,
#if defined(__clang__)
              __clang_major__, __clang_minor__, __clang_patchlevel__
#else
              __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__
#endif
  );
} catch (const std::exception& e) {
  std::fprintf(stderr, "which_kernel: %s\n", e.what());
  return 1;
}
