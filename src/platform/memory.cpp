// The errors if a size exceeds the memory.
#include "platform/memory.hpp"

#include <bloomery/error.hpp>

#include <string>
#include <utility>

namespace bloomery {
namespace {

// A size in whole MiB, or KiB if it is small. Needed sizes are rounded up, available sizes down.
std::string size_text(std::uint64_t bytes, bool up) {
  const bool small = bytes < std::uint64_t{10} << 20;
  const std::uint64_t unit = std::uint64_t{1} << (small ? 10 : 20);
  return std::to_string(bytes / unit + (up && bytes % unit != 0 ? 1 : 0)) + (small ? " KiB" : " MiB");
}

[[noreturn]] void refuse(const std::string& what, std::uint64_t bytes, const memory_budget& most) {
  const std::string needed = size_text(bytes, true) + " of memory needed";
  if (bytes <= most.bytes) {
    throw error(errc::too_large,
                {needed + ", but the system refused to allocate it", what, "", "", hint::use_fewer_keys});
  }
  error_hint remedy = hint::use_fewer_keys;
  if (most.limit != memory_limit::machine) remedy.own_words = remedy.words() + ", or raise the limit";
  throw error(errc::too_large,
              {needed + ", " + size_text(most.bytes, false) + " available (" + name_of(most.limit) + ")", what, "", "",
               std::move(remedy)});
}

}  // namespace

const char* name_of(memory_limit limit) noexcept {
  switch (limit) {
    case memory_limit::machine: return "memory of this machine";
    case memory_limit::control_group: return "limit of the control group";
    case memory_limit::address_space: return "address-space limit, ulimit -v";
    case memory_limit::data_segment: return "data limit, ulimit -d";
    case memory_limit::commit: return "commit limit, vm.overcommit_memory";
  }
  return "";
}

memory_budget available_memory() { return available_memory(system_folders{}); }

void check_memory_capacity(const std::string& what, std::uint64_t bytes) {
  constexpr std::uint64_t always_fits = std::uint64_t{16} << 20;  // avoids reading the limits for small filters
  if (bytes <= always_fits) return;
  if (const memory_budget most = memory_capacity(); bytes > most.bytes) refuse(what, bytes, most);
}

void refuse_memory(const std::string& what, std::uint64_t bytes) { refuse(what, bytes, available_memory()); }

}  // namespace bloomery
