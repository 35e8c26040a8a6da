// The choice of a set of kernels by processor and by BLOOMERY_KERNEL.
#include <bloomery/filter.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "support/test.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iterator>

namespace bloomery {
namespace {

using kernels::kernel_set;

// Kernels are chosen when a program starts, so each of these runs in a new process, which inherits BLOOMERY_KERNEL.
// Exit status 0: the kernels named `expected` were chosen. 3: they were, and BLOOMERY_KERNEL is reported as refused.
[[noreturn]] void report_and_exit(const std::string& requested, const std::string& expected) {
  const kernel_choice choice = kernel_info();
  std::fprintf(stderr, "chosen: %s, requested: '%s'\n", choice.name.c_str(), choice.requested.c_str());
  if (choice.name != expected || kernel_name() != expected || chosen_kernels().name != expected) ::_exit(1);
  if (choice.requested != requested) ::_exit(2);
  if (kernel_is_forced() != (!choice.requested.empty() && !choice.refused)) ::_exit(4);
  ::_exit(choice.refused ? 3 : 0);
}

// BLOOMERY_KERNEL for the processes that are started while it exists; null: none.
class with_request {
 public:
  explicit with_request(const char* wish) {
    if (const char* const present = std::getenv("BLOOMERY_KERNEL")) before_ = present;
    set(wish);
  }
  with_request(const with_request&) = delete;
  with_request& operator=(const with_request&) = delete;
  ~with_request() { set(before_ ? before_->c_str() : nullptr); }

 private:
  static void set(const char* value) {
    if (value == nullptr)
      ::unsetenv("BLOOMERY_KERNEL");
    else
      ::setenv("BLOOMERY_KERNEL", value, 1);
  }

  std::optional<std::string> before_;
};

class KernelChoice : public testing::Test {
 protected:
  // Restarts the program for each death test, so that nothing has been chosen yet.
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  void TearDown() override { testing::FLAGS_gtest_death_test_style = "fast"; }
};

std::string best_supported() {
  std::string best;
  for (const kernel_set* set : kernels::kernel_sets) {
    if (set->supported()) best = set->name;
  }
  return best;
}

void expect_choice(const char* wish, const std::string& expected, int status) {
  const with_request request(wish);
  EXPECT_EXIT(report_and_exit(wish == nullptr ? "" : wish, expected), testing::ExitedWithCode(status), "");
}

TEST_F(KernelChoice, IsTheBestThatTheProcessorSupports) {
  expect_choice(nullptr, best_supported(), 0);
  expect_choice("", best_supported(), 0);
}

TEST_F(KernelChoice, ObeysTheEnvironment) {
  for (const kernel_set* set : kernels::kernel_sets) {
    if (set->supported()) expect_choice(set->name, set->name, 0);
  }
}

TEST_F(KernelChoice, OfAnUnknownNameIsRefused) {
  for (const char* wish : {"nonesuch", "AVX2", "scalar ", "avx"}) expect_choice(wish, best_supported(), 3);
}

TEST_F(KernelChoice, OfWhatTheProcessorLacksIsRefused) {
  bool lacks_one = false;
  for (const kernel_set* set : kernels::kernel_sets) {
    if (set->supported()) continue;
    lacks_one = true;
    expect_choice(set->name, best_supported(), 3);
  }
  if (!lacks_one) GTEST_SKIP() << "SKIP: this processor supports every set of this build";
}

// The first 63 bytes of a request are reported; a longer one is refused, even if it begins with a known name.
TEST_F(KernelChoice, OfAVeryLongNameIsRefusedAndReportedInPart) {
  const with_request request(("scalar" + std::string(1000, ' ')).c_str());
  const auto choose = [] {
    const kernel_choice choice = kernel_info();
    std::_Exit(choice.refused && choice.requested == "scalar" + std::string(57, ' ') ? 0 : 1);
  };

  EXPECT_EXIT(choose(), testing::ExitedWithCode(0), "");
}

// Calls on keys cannot throw, and a library must not end its host program: the best kernels run instead.
TEST_F(KernelChoice, OfAnUnknownNameDoesNotEndCallsOnKeys) {
  const with_request request("nonesuch");
  const auto use = [] {
    filter<std::uint64_t, layouts::split_block512> one_by_one(1000, 0.01);
    filter<std::uint64_t, layouts::split_block512> batch(1000, 0.01);
    std::vector<std::uint64_t> keys(100);
    for (std::uint64_t key = 0; key < keys.size(); ++key) one_by_one.insert(keys[key] = 3 * key);
    batch.insert(keys);
    bool right = std::ranges::equal(one_by_one.bytes(), batch.bytes()) && batch.fill_ratio() > 0;
    for (const std::uint64_t key : keys) right = right && one_by_one.may_contain(key);
    std::_Exit(right && batch.insert_count() == one_by_one.insert_count() && kernel_info().refused ? 0 : 1);
  };

  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "");
}

TEST_F(KernelChoice, OfAnUnknownNameDoesNotEndACountOfBits) {
  const with_request request("nonesuch");
  const auto count = [] {
    const std::vector<std::uint8_t> bits(1001, 0x11);
    const filter<std::uint64_t, layouts::classic> empty(geometry{1000, 7}, 100);
    std::_Exit(count_ones(bits) == 2002 && empty.fill_ratio() == 0 && empty.approximate_size() == 0 ? 0 : 1);
  };

  EXPECT_EXIT(count(), testing::ExitedWithCode(0), "");
}

// Calls on single keys select a set by its position.
TEST(Kernels, StandInTheirOrder) {
  ASSERT_GE(std::size(kernels::kernel_sets), 1u);
  EXPECT_EQ(kernels::kernel_sets[0], &kernels::scalar);
#if defined(__x86_64__)
  ASSERT_EQ(std::size(kernels::kernel_sets), 3u);
  EXPECT_EQ(kernels::kernel_sets[1], &kernels::avx2);
  EXPECT_EQ(kernels::kernel_sets[2], &kernels::avx512);
#elif defined(__aarch64__)
  ASSERT_EQ(std::size(kernels::kernel_sets), 2u);
  EXPECT_EQ(kernels::kernel_sets[1], &kernels::neon);
#endif
}

TEST(Kernels, AreListedWithTheChosenOne) {
  const std::vector<kernel_description> list = kernel_list();

  ASSERT_EQ(list.size(), std::size(kernels::kernel_sets));
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].name, kernels::kernel_sets[i]->name);
    EXPECT_EQ(list[i].supported, kernels::kernel_sets[i]->supported());
    EXPECT_FALSE(list[i].needs.empty());
    if (!list[i].chosen) continue;
    ++chosen;
    EXPECT_EQ(list[i].name, kernel_name());
    EXPECT_TRUE(list[i].supported);
  }
  EXPECT_EQ(chosen, 1u);
  EXPECT_EQ(list.front().name, "scalar");
  EXPECT_TRUE(list.front().supported);
}

}  // namespace
}  // namespace bloomery
