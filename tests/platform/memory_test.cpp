// The memory that a process may still allocate: read from simulated system folders, and under real limits.
#include "platform/memory.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/layouts/classic.hpp>

#include "support/processes.hpp"
#include "support/test.hpp"

#include <sys/resource.h>

#include <fstream>

namespace bloomery {
namespace {

constexpr std::uint64_t mib = 1024 * 1024;

// Folders in place of /proc and /sys/fs/cgroup, on a machine with 100 MiB available.
class MadeUpSystem : public testing::Test {
 protected:
  MadeUpSystem() { put("proc/meminfo", "MemTotal: 999999 kB\nMemAvailable:     102400 kB\n"); }

  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void put_group(const std::string& folder, std::uint64_t most, std::uint64_t used,
                 const std::string& stat = {}) const {
    put(folder + "/memory.max", std::to_string(most) + "\n");
    put(folder + "/memory.current", std::to_string(used) + "\n");
    put(folder + "/memory.stat", stat);
  }
  system_folders folders() const { return {folder_ / "proc", folder_ / "groups"}; }
  memory_budget available() const { return available_memory(folders()); }

 private:
  bloomery_tests::scratch_folder folder_;
};

TEST_F(MadeUpSystem, WithoutControlGroupsMemAvailableDecides) {
  EXPECT_EQ(available(), (memory_budget{100 * mib, memory_limit::machine}));
}

TEST_F(MadeUpSystem, AGroupLeavesItsLimitMinusWhatIsUsedAndNotCached) {
  put("proc/self/cgroup", "0::/service\n");
  put_group("groups/service", 64 * mib, 50 * mib, "anon 1\nactive_file 10485760\ninactive_file 20971520\n");

  EXPECT_EQ(available(), (memory_budget{44 * mib, memory_limit::control_group}));
  EXPECT_EQ(memory_capacity(folders()), (memory_budget{64 * mib, memory_limit::control_group}));
}

TEST_F(MadeUpSystem, AGroupAboveMayLeaveLess) {
  put("proc/self/cgroup", "0::/slice/service/worker\n");
  put("groups/slice/service/worker/memory.max", "max\n");
  put_group("groups/slice/service", 64 * mib, 4 * mib);
  put_group("groups/slice", 80 * mib, 73 * mib);

  EXPECT_EQ(available(), (memory_budget{7 * mib, memory_limit::control_group}));
  EXPECT_EQ(memory_capacity(folders()), (memory_budget{64 * mib, memory_limit::control_group}));
}

TEST_F(MadeUpSystem, AContainerSeesItsGroupAsTheRootWhateverItsPathOnTheHost) {
  put("proc/self/cgroup", "12:cpu,cpuacct:/docker/0123\n4:memory:/docker/0123\n0::/docker/0123\n");
  put("groups/memory/memory.limit_in_bytes", std::to_string(32 * mib));
  put("groups/memory/memory.usage_in_bytes", std::to_string(30 * mib));
  put("groups/memory/memory.stat", "cache 5242880\ntotal_active_file 1048576\ntotal_inactive_file 4194304\n");

  EXPECT_EQ(available(), (memory_budget{7 * mib, memory_limit::control_group}));
}

TEST_F(MadeUpSystem, AFullGroupLeavesNothing) {
  put("proc/self/cgroup", "0::/\n");
  put_group("groups", 32 * mib, 33 * mib);

  EXPECT_EQ(available(), (memory_budget{0, memory_limit::control_group}));
}

TEST_F(MadeUpSystem, ALimitBeyondTheMachineLimitsNothing) {
  put("proc/self/cgroup", "4:memory:/\n");
  put("groups/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("groups/memory/memory.usage_in_bytes", "1\n");

  EXPECT_EQ(available(), (memory_budget{100 * mib, memory_limit::machine}));
}

TEST_F(MadeUpSystem, PromisedMemoryCountsIfTheSystemPromisesNoMoreThanItHas) {
  put("proc/meminfo", "MemAvailable: 102400 kB\nCommitLimit: 51200 kB\nCommitted_AS: 40960 kB\n");
  EXPECT_EQ(available(), (memory_budget{100 * mib, memory_limit::machine}));

  put("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(available(), (memory_budget{10 * mib, memory_limit::commit}));
}

TEST_F(MadeUpSystem, TextsThatAreNoSystemFilesAreNoLimits) {
  put("proc/self/cgroup", "\nnonsense\n0:\n::\n0::../../..\n4:memory:/x");
  put("groups/memory/x/memory.limit_in_bytes", "-");
  put("proc/self/status", "VmSize:\nVmData: much kB\n");

  EXPECT_EQ(available(), (memory_budget{100 * mib, memory_limit::machine}));
}

void limit_to(decltype(RLIMIT_AS) resource, std::uint64_t more, const char* counted) {
  std::ifstream status("/proc/self/status");
  std::uint64_t kibibytes = 0;
  for (std::string word; status >> word;) {
    if (word == counted) status >> kibibytes;
  }
  const rlimit limit{(kibibytes << 10) + more, RLIM_INFINITY};
  if (::setrlimit(resource, &limit) != 0) std::abort();
}

// "Huge" in these names excludes them from sanitizer builds, which need extra memory.
TEST(HugeNeedOfMemory, IsRefusedByTheLimitThatDecides) {
  const auto refusal_under = [](decltype(RLIMIT_AS) resource, const char* counted, memory_limit expected) {
    return bloomery_tests::status_of_child([=] {
      limit_to(resource, 45 * mib, counted);
      const memory_budget left = available_memory();
      if (left.limit != expected || left.bytes > 45 * mib || left.bytes < 41 * mib) return 1;
      try {
        const filter<> far_too_large(200'000'000, 0.01);
        return 2;
      } catch (const error& e) {
        const std::string text = e.what();
        if (e.code() != errc::too_large) return 3;
        if (text.find(" MiB of memory needed, 4") == std::string::npos) return 4;
        if (text.find(name_of(expected)) == std::string::npos) return 5;
      }
      const filter<> fits(20'000'000, 0.01);  // 24 MiB
      return fits.parameters().geometry.bits > 8 * 20 * mib ? 0 : 6;
    });
  };

  EXPECT_EQ(refusal_under(RLIMIT_AS, "VmSize:", memory_limit::address_space), 0);
  EXPECT_EQ(refusal_under(RLIMIT_DATA, "VmData:", memory_limit::data_segment), 0);
}

TEST(HugeNeedOfMemory, BeyondTheMachineIsRefusedBeforeItIsTaken) {
  try {
    const filter<std::uint64_t, layouts::classic> beyond(geometry{std::uint64_t{1} << 52, 1});
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::too_large);
    EXPECT_NE(std::string(e.what()).find(name_of(memory_capacity().limit)), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("536870912 MiB of memory needed, "), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace bloomery
