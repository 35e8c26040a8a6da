// The number of processors: read from simulated control groups, and under a real affinity mask.
#include "platform/processors.hpp"

#include "support/processes.hpp"
#include "support/test.hpp"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace bloomery {
namespace {

class ProcessorsOfAGroup : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  unsigned available() const { return available_processors({folder_ / "proc", folder_ / "groups"}); }
  unsigned all() const { return available_processors({folder_ / "none", folder_ / "none"}); }

 private:
  bloomery_tests::scratch_folder folder_;
};

TEST_F(ProcessorsOfAGroup, WithoutGroupsTheAffinityMaskDecides) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(all(), static_cast<unsigned>(CPU_COUNT(&before)));

  unsigned under_one = 0;
  std::thread([&] {  // the mask belongs to a thread
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) under_one = all();
  })
      .join();
  EXPECT_EQ(under_one, 1u);
}

TEST_F(ProcessorsOfAGroup, AQuotaIsRoundedDownToAtLeastOne) {
  put("proc/self/cgroup", "0::/service\n");
  put("groups/service/cpu.max", "150000 100000\n");
  EXPECT_EQ(available(), 1u);
  put("groups/service/cpu.max", "50000 100000\n");
  EXPECT_EQ(available(), 1u);
  put("groups/service/cpu.max", "200000 100000\n");
  EXPECT_EQ(available(), std::min(2u, all()));
}

TEST_F(ProcessorsOfAGroup, AGroupAboveMayAllowLess) {
  put("proc/self/cgroup", "0::/slice/service\n");
  put("groups/slice/service/cpu.max", "max 100000\n");
  EXPECT_EQ(available(), all());
  put("groups/slice/cpu.max", "100000 100000\n");
  EXPECT_EQ(available(), 1u);
}

TEST_F(ProcessorsOfAGroup, GroupsOfVersion1) {
  put("proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n2:memory:/docker/0123\n");
  put("groups/cpu/cpu.cfs_quota_us", "-1\n");  // a container sees its own group as the root
  put("groups/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(available(), all());
  put("groups/cpu/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(available(), 1u);
}

TEST_F(ProcessorsOfAGroup, UnreadableQuotasAreIgnored) {
  put("proc/self/cgroup", "0::/service\nnothing\n");
  for (const char* text : {"", "max", "100000", "100000 0", "-5 100000", "x y"}) {
    put("groups/service/cpu.max", text);
    EXPECT_EQ(available(), all()) << text;
  }
}

}  // namespace
}  // namespace bloomery
