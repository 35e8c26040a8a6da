// Rebuilding filters on disks that fail, and in processes that are killed: no acknowledged key is lost.
#include <bloomery/rebuilding_filter.hpp>

#include "filters/rebuilding_filters.hpp"
#include "support/long_tests.hpp"
#include "support/processes.hpp"
#include "support/syncs.hpp"
#include "support/test.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <new>
#include <stdexcept>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- disks that fail ------------------------------------------------------------------------------------------------

TEST(RebuildingFilter, TheDiskHasTheLogBeforeTheFilterThatCountsIt) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 900);
  const ino_t old = number_of(folder / "f");
  const ino_t log = number_of(folder / "f.log");
  bool log_first = false;
  {
    const watched_syncs watched([&](int fd) {
      struct stat status {};
      if (::fstat(fd, &status) == 0 && status.st_ino == log && number_of(folder / "f") == old) log_first = true;
      return 0;
    });
    filter.rebuild({.rate = 0.001});
  }

  EXPECT_NE(number_of(folder / "f"), old);
  EXPECT_EQ(number_of(folder / "f.log"), log);
  EXPECT_TRUE(log_first);
}

TEST(RebuildingFilter, KeysGoToTheNewLogThoughItsFolderCannotBeSynced) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  const ino_t log = number_of(folder / "f.log");
  {
    const watched_syncs watched([&](int fd) {
      struct stat status {};
      const bool is_folder = ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
      return is_folder && number_of(folder / "f.log") != log ? EIO : 0;
    });
    EXPECT_EQ(code_of([&] { filter.rebuild({.salvage = true}); }), errc::io);  // this rewrites the log
  }
  EXPECT_NE(number_of(folder / "f.log"), log);

  add(filter, 3000, 3000);
  filter.abandon();

  filter = open_verified(folder / "f");
  EXPECT_EQ(count_found(filter.view(), numbers(0, 6000)), 6000u);
  EXPECT_EQ(filter.log().keys(), 6000u);
}

TEST(RebuildingFilter, WhatAFailedRebuildMadeIsRemoved) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  {
    // When both files are written: the new log, while it is published.
    bool seen = false;
    const watched_syncs watched([&](int fd) {
      struct stat status {};
      if (::fstat(fd, &status) != 0 || status.st_ino != number_of(folder / "f.log.rebuild")) return 0;
      if (!std::exchange(seen, true)) return 0;
      return std::filesystem::exists(folder / "f.rebuild") ? EIO : 0;
    });
    EXPECT_EQ(code_of([&] { filter.rebuild({.salvage = true}); }), errc::io);
  }

  EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
  EXPECT_FALSE(std::filesystem::exists(folder / "f.log.rebuild"));
  add(filter, 3000, 3000);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 6000)), 6000u);
}

TEST(RebuildingFilter, ARebuildEndsWhenItsWatchThrows) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000, 100);
  const ino_t old = number_of(folder / "f");
  const ino_t log = number_of(folder / "f.log");
  for (const int last : {1, 10, 1000}) {  // of some 30 records
    int calls = 0;
    const auto watch = [&] {
      if (++calls == last) throw std::runtime_error("enough");
    };
    if (last < 1000) {
      EXPECT_THROW(filter.rebuild({.salvage = true, .watch = watch}), std::runtime_error);
    } else {
      filter.rebuild({.salvage = true, .watch = watch});
    }
    EXPECT_EQ(number_of(folder / "f") == old, last < 1000);
    EXPECT_EQ(number_of(folder / "f.log") == log, last < 1000);
    EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
    EXPECT_FALSE(std::filesystem::exists(folder / "f.log.rebuild"));
    EXPECT_EQ(count_found(filter.view(), numbers(0, 3000)), 3000u);
  }
}

TEST(RebuildingFilter, ARebuildKeepsThePermissionsOfTheFilter) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  for (const char* name : {"f", "f.log"}) ::chmod((folder / name).c_str(), 0600);
  int looks = 0;
  {
    const watched_syncs watched([&](int) {
      for (const char* name : {"f.rebuild", "f.log.rebuild"}) {
        struct stat status {};
        if (::stat((folder / name).c_str(), &status) != 0 || status.st_size <= 256) continue;
        // (A new file without keys is a header of 256 bytes or an empty filter.)
        if (inspect(folder / name).usable && inspect(folder / name).info.clean) continue;
        EXPECT_EQ(status.st_mode & 0777, 0600u) << name;
        ++looks;
      }
      return 0;
    });
    filter.rebuild({.salvage = true});
  }

  EXPECT_GT(looks, 0);
}

// At such a low FPR a split_block filter is larger than its log: the first file beyond the limit is a new filter.
TEST(RebuildingFilter, ADiskThatFillsDuringARebuildLeavesTheOldFilter) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  params p = of_integers;
  p.target_fpr = 1e-7;
  p.layout = "split_block";
  rebuilding_filter::create(path, p).close();

  const int status = status_of_child([&] {
    std::string notes;
    rebuilding_filter filter = rebuilding_filter::open(
        path, {.mode = access::read_write, .check = file_check::payload, .notes = [&](const std::string& text) {
                 notes += text;
               }});
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    add(filter, 0, 2000, 100);
    if (!notes.empty() || filter.capacity() < 2000) return 2;
    if (code_of([&] { filter.rebuild({.capacity = 1'000'000}); }) != errc::io) return 3;
    if (count_found(filter.view(), numbers(0, 2000)) != 2000) return 4;
    add(filter, 2000, 8000, 100);
    if (notes.find("could not be enlarged") == std::string::npos) return 5;
    if (notes.find("could not be enlarged") != notes.rfind("could not be enlarged")) return 6;  // reported once
    if (filter.capacity() >= 10'000 || count_found(filter.view(), numbers(0, 10'000)) != 10'000) return 7;
    if (filter.expected_fpr() <= p.target_fpr) return 8;
    if (code_of([&] { filter.settle(); }) != errc::io) return 9;
    if (code_of([&] { filter.settle(); }) != std::nullopt) return 10;  // thrown once
    add(filter, 10'000, 1900, 100);                                    // tries again, and fails again
    const auto failed = error_of([&] { filter.close(); });
    if (!failed || failed->code() != errc::io) return 11;
    if (failed->text().where != path || std::string(failed->what()).find("has all keys") == std::string::npos)
      return 12;
    return 0;
  });

  EXPECT_EQ(status, 0);
  EXPECT_TRUE(inspect(path, file_check::payload).problems.empty());
  EXPECT_FALSE(std::filesystem::exists(path + ".rebuild"));
  rebuilding_filter filter = open_verified(path);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 11'900)), 11'900u);
  add(filter, 11'900, 100);
  EXPECT_GT(filter.capacity(), 12'000u);
  EXPECT_LE(filter.expected_fpr(), p.target_fpr);
  filter.close();  // the rebuild that succeeded has made up for those that failed
}

// A filter whose bits are nearly all set counts hardly any key as new.
TEST(RebuildingFilter, ThatCouldNotGrowGrowsLaterHoweverFullItIs) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  rebuilding_filter filter = rebuilding_filter::create(path, of_integers);
  std::filesystem::create_directory(path + ".rebuild");
  add(filter, 0, 100'000);
  ASSERT_GT(filter.expected_fpr(), 0.9);
  EXPECT_THROW(filter.settle(), error);

  std::filesystem::remove(path + ".rebuild");
  add(filter, 100'000, 20'000);
  filter.settle();

  EXPECT_GT(filter.capacity(), 100'000u);
  EXPECT_LE(filter.expected_fpr(), of_integers.target_fpr);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 120'000)), 120'000u);
}

// ---- killed processes -----------------------------------------------------------------------------------------------

// Counts that a child process and its parent share.
struct shared_counts {
  std::atomic<std::uint64_t> acknowledged = 0;
  std::atomic<std::uint64_t> wanted = 0;
};

class shared_memory {
 public:
  shared_memory()
      : at_(::mmap(nullptr, sizeof(shared_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
    new (at_) shared_counts;
  }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory() { ::munmap(at_, sizeof(shared_counts)); }
  shared_counts* operator->() { return static_cast<shared_counts*>(at_); }

 private:
  void* at_;
};

// Runs rounds of work in a child process that is killed at a random point; each round continues from the previous one.
void expect_nothing_lost(void (*work)(rebuilding_filter& filter, std::uint64_t first, shared_counts& counts)) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  { rebuilding_filter::create(path, of_integers).close(); }
  shared_memory counts;
  std::mt19937_64 random(7);
  int killed = 0;
  const int rounds = bloomery_tests::repetitions(20, 8, 100);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = counts->acknowledged;
    counts->wanted = first + random() % 3000;
    const std::uint64_t spins = random() % 2'000'000;
    const pid_t child = start_child([&] {
      rebuilding_filter filter = open_verified(path);
      work(filter, first, *counts.operator->());
      return 0;
    });
    while (counts->acknowledged < counts->wanted) ::sched_yield();
    for (volatile std::uint64_t i = 0; i < spins;) i = i + 1;
    ::kill(child, SIGKILL);
    killed += wait_for(child) == 128 + SIGKILL ? 1 : 0;

    const std::uint64_t there = counts->acknowledged;
    rebuilding_filter filter = open_verified(path);
    ASSERT_EQ(count_found(filter.view(), numbers(0, there)), there) << "round " << round;
    ASSERT_TRUE(filter.log().read(0, [](std::span<const std::uint64_t>) {}).whole());
    ASSERT_GE(filter.log().keys(), there);
    if (round % 3 == 0) filter.rebuild();
    ASSERT_EQ(count_found(filter.view(), numbers(0, there)), there) << "round " << round << ", rebuilt";
    if (round % 2 == 0) filter.close();
  }
  EXPECT_EQ(killed, rounds);
}

TEST(RebuildingFilter, KilledDuringRebuildsItHasAllThatWasAcknowledged) {
  expect_nothing_lost([](rebuilding_filter& filter, std::uint64_t first, shared_counts& counts) {
    for (std::uint64_t at = first;; at += 300) {
      filter.insert(std::span<const std::uint64_t>(numbers(at, 300)));
      counts.acknowledged = at + 300;
      filter.rebuild();
    }
  });
}

// Each key ten times, so that the log is rewritten and both files are swapped.
TEST(RebuildingFilter, KilledDuringSwapsItHasAllThatWasAcknowledged) {
  expect_nothing_lost([](rebuilding_filter& filter, std::uint64_t first, shared_counts& counts) {
    for (std::uint64_t at = first;; at += 300) {
      for (int copy = 0; copy < 40; ++copy) filter.insert(std::span<const std::uint64_t>(numbers(at, 300)));
      counts.acknowledged = at + 300;
      filter.rebuild({.salvage = true});  // this always rewrites the log
    }
  });
}

}  // namespace
}  // namespace bloomery
