#include "kernels.hpp"

#include <bloomery/error.hpp>
#include <bloomery/kernel.hpp>

#include <cstdlib>
#include <string>

namespace bloomery {
namespace {

const kernels::split_block_kernel& choose() {
  const char* wanted = std::getenv("BLOOMERY_KERNEL");
  const kernels::split_block_kernel* best = nullptr;
  std::string names;
  for (const kernels::split_block_kernel* kernel : kernels::split_block_kernels) {
    if (!kernel->supported()) continue;
    names += (names.empty() ? "" : ", ") + std::string(kernel->name);
    if (wanted == nullptr || *wanted == '\0' || std::string(wanted) == kernel->name) best = kernel;
  }
  if (best != nullptr) return *best;
  throw error(errc::invalid_argument, {"no such kernel on this machine", "BLOOMERY_KERNEL", "one of " + names,
                                       "'" + std::string(wanted) + "'", "unset it to have the best one"});
}

}  // namespace

const kernels::split_block_kernel& chosen_split_block_kernel() {
  static const kernels::split_block_kernel& chosen = choose();
  return chosen;
}

std::string kernel_name() { return chosen_split_block_kernel().name; }

}  // namespace bloomery
