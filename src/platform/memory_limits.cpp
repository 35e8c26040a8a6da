// Limits on memory: MemAvailable, control groups, resource limits and the commit limit.
#include "platform/memory.hpp"

#if defined(__EMSCRIPTEN__)

#include <emscripten/heap.h>

namespace bloomery {

memory_budget memory_capacity(const system_folders&) { return {emscripten_get_heap_max(), memory_limit::machine}; }

memory_budget available_memory(const system_folders& from) { return memory_capacity(from); }

}  // namespace bloomery

#else

#include "platform/control_groups.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

namespace bloomery {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

std::uint64_t rest(std::uint64_t most, std::uint64_t used) { return most > used ? most - used : 0; }

// The named numbers of a file with lines such as "MemAvailable: 1024 kB" or "active_file 4096".
std::map<std::string, std::uint64_t> named_numbers(const std::string& path) {
  std::map<std::string, std::uint64_t> numbers;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t number = 0;
    std::string unit;
    if (!(words >> name >> number)) continue;
    if (name.ends_with(':')) name.pop_back();
    numbers[name] = words >> unit && unit == "kB" && number < unlimited >> 10 ? number << 10 : number;
  }
  return numbers;
}

std::uint64_t number_in(const std::map<std::string, std::uint64_t>& numbers, const std::string& name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}

void lower(memory_budget& budget, std::uint64_t bytes, memory_limit limit) {
  if (bytes < budget.bytes) budget = {bytes, limit};
}

// The file names of one version of control groups.
struct group_files {
  const char* most;
  const char* used;
  const char* cached[2];  // in memory.stat
};

constexpr group_files version_1{
    "/memory.limit_in_bytes", "/memory.usage_in_bytes", {"total_active_file", "total_inactive_file"}};
constexpr group_files version_2{"/memory.max", "/memory.current", {"active_file", "inactive_file"}};

// Calls `with(files, folder)` for each control group of this process that may limit memory.
template <class With>
void for_each_group(const system_folders& from, With with) {
  for_each_control_group(from, "memory", [&](const control_group& group) {
    with(group.is_version_2 ? version_2 : version_1, group.folder);
  });
}

std::uint64_t page_size() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

memory_budget physical_memory() {
  return {static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_size(), memory_limit::machine};
}

std::uint64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : unlimited;
}

}  // namespace

memory_budget memory_capacity(const system_folders& from) {
  memory_budget budget = physical_memory();
  for_each_group(from, [&](const group_files& files, const std::string& folder) {
    if (const auto most = number_in<std::uint64_t>(folder + files.most))
      lower(budget, *most, memory_limit::control_group);
  });
  return budget;
}

memory_budget available_memory(const system_folders& from) {
  memory_budget budget = physical_memory();
  const auto machine = named_numbers(from.proc + "/meminfo");
  if (machine.contains("MemAvailable")) budget.bytes = number_in(machine, "MemAvailable");
  for_each_group(from, [&](const group_files& files, const std::string& folder) {
    const auto most = number_in<std::uint64_t>(folder + files.most);
    if (!most || *most >= physical_memory().bytes) return;
    const auto facts = named_numbers(folder + "/memory.stat");
    const std::uint64_t cached = number_in(facts, files.cached[0]) + number_in(facts, files.cached[1]);
    const std::uint64_t used = rest(number_in<std::uint64_t>(folder + files.used).value_or(0), cached);
    lower(budget, rest(*most, used), memory_limit::control_group);
  });
  const auto process = named_numbers(from.proc + "/self/status");
  if (const std::uint64_t most = limit_of(RLIMIT_AS); most != unlimited) {
    lower(budget, rest(most, number_in(process, "VmSize")), memory_limit::address_space);
  }
  if (const std::uint64_t most = limit_of(RLIMIT_DATA); most != unlimited) {
    lower(budget, rest(most, number_in(process, "VmData")), memory_limit::data_segment);
  }
  if (number_in<std::uint64_t>(from.proc + "/sys/vm/overcommit_memory") == 2) {
    lower(budget, rest(number_in(machine, "CommitLimit"), number_in(machine, "Committed_AS")), memory_limit::commit);
  }
  return budget;
}

}  // namespace bloomery

#endif
