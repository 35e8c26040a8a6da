// The number of processors that this process may use: the machine's, its affinity mask, and CPU quotas.
#include "platform/processors.hpp"

#if defined(__linux__)

#include "platform/control_groups.hpp"

#include <sched.h>

#endif

#include <algorithm>
#include <thread>

namespace bloomery {

#if defined(__linux__)
namespace {

// The affinity mask of the calling thread; 0: more processors than a cpu_set_t has.
unsigned processors_of_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<unsigned>(CPU_COUNT(&mask)) : 0;
}

// Microseconds of processor time that a group may use per period of real time. Negative: no limit.
struct cpu_quota {
  double quota = -1;
  double period = 0;
};

cpu_quota quota_of(const control_group& group) {
  cpu_quota result;
  if (group.is_version_2) {
    std::ifstream file(group.folder + "/cpu.max");  // "150000 100000", or "max 100000"
    if (double quota = 0, period = 0; file >> quota >> period) result = {quota, period};
  } else {
    result.quota = number_in<double>(group.folder + "/cpu.cfs_quota_us").value_or(-1);
    result.period = number_in<double>(group.folder + "/cpu.cfs_period_us").value_or(0);
  }
  return result;
}

}  // namespace

unsigned available_processors(const system_folders& from) {
  unsigned result = std::max(1u, std::thread::hardware_concurrency());
  if (const unsigned mask = processors_of_mask(); mask != 0) result = std::min(result, mask);
  for_each_control_group(from, "cpu", [&](const control_group& group) {
    const auto [quota, period] = quota_of(group);
    if (quota > 0 && period > 0 && quota / period < result) result = static_cast<unsigned>(quota / period);
  });
  return std::max(1u, result);
}

#else

unsigned available_processors(const system_folders&) { return std::max(1u, std::thread::hardware_concurrency()); }

#endif

unsigned available_processors() { return available_processors(system_folders{}); }

}  // namespace bloomery
