// Unfinished files and the leftovers of killed processes: fixed names, locks, foreign links, several processes at once,
// file systems without locks or without unnamed files; and sequence numbers near their maximum.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/new_file.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "file/sample_file.hpp"
#include "file/unfinished.hpp"
#include "platform/posix.hpp"
#include "support/processes.hpp"
#include "support/test.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <functional>
#include <thread>
#include <utility>

namespace {

int lock_failure = 0;                 // errno value with which every flock fails; 0: none
bool has_unnamed_files = true;        // whether O_TMPFILE works
std::function<void()> before_access;  // called once, before the next call of access
std::function<void()> before_lock;    // called once, before the next call of flock
std::function<void()> before_rename;  // called once, before the next call of rename

}  // namespace

// These replace the functions of the C library in the whole program.
extern "C" int flock(int fd, int operation) noexcept {
  if (before_lock) std::exchange(before_lock, nullptr)();
  if (lock_failure != 0) {
    errno = lock_failure;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

extern "C" int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | __O_TMPFILE)) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  if ((flags & O_TMPFILE) == O_TMPFILE && !has_unnamed_files) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (before_rename) std::exchange(before_rename, nullptr)();
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" int access(const char* path, int mode) noexcept {
  if (before_access) std::exchange(before_access, nullptr)();
  return static_cast<int>(::syscall(SYS_faccessat, AT_FDCWD, path, mode));
}

namespace bloomery {
namespace {

using namespace bloomery_tests;

class failing_locks {
 public:
  explicit failing_locks(int number) { lock_failure = number; }
  failing_locks(const failing_locks&) = delete;
  failing_locks& operator=(const failing_locks&) = delete;
  ~failing_locks() { lock_failure = 0; }
};

class no_unnamed_files {
 public:
  no_unnamed_files() { has_unnamed_files = false; }
  no_unnamed_files(const no_unnamed_files&) = delete;
  no_unnamed_files& operator=(const no_unnamed_files&) = delete;
  ~no_unnamed_files() { has_unnamed_files = true; }
};

std::vector<std::string> names_in(const scratch_folder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// ---- unfinished files -----------------------------------------------------------------------------------------------

TEST(UnfinishedFile, OfAKilledProcessIsReplacedOrRemoved) {
  for (const bool unnamed : {true, false}) {
    const folder_with_sample folder;
    has_unnamed_files = unnamed;

    write_file(folder / "f.unfinished", bytes(100'000, 7));
    save_sample(folder / "f");
    EXPECT_THAT(names_in(folder), testing::ElementsAre("f"));

    write_file(folder / "f.unfinished", bytes(100'000, 7));
    any_filter::open(folder / "f", {.mode = access::read_write}).close();
    EXPECT_THAT(names_in(folder), testing::ElementsAre("f"));
    has_unnamed_files = true;
  }
}

TEST(UnfinishedFile, OfALivingProcessStaysAndKeepsOthersOut) {
  const scratch_folder folder;
  const no_unnamed_files none;
  const message begun;
  const message end;
  const pid_t child = start_child([&] {
    posix::replacement file(folder / "f");
    begun.say();
    end.wait();
    file.publish();
    return 0;
  });
  begun.wait();

  EXPECT_TRUE(std::filesystem::exists(folder / "f.unfinished"));
  EXPECT_FALSE(posix::remove_abandoned(folder / "f.unfinished"));
  EXPECT_EQ(code_of([&] { save_sample(folder / "f"); }), errc::locked);
  end.say();

  EXPECT_EQ(wait_for(child), 0);
  EXPECT_THAT(names_in(folder), testing::ElementsAre("f"));
}

TEST(UnfinishedFile, LosesItsNameWhileAnotherProcessLooksAtIt) {
  const scratch_folder folder;
  const no_unnamed_files none;
  posix::replacement file(folder / "f");
  before_access = [&] { file.publish(); };

  EXPECT_NO_THROW(posix::free_name(folder / "f.unfinished", folder / "f"));

  EXPECT_FALSE(before_access);
  EXPECT_THAT(names_in(folder), testing::ElementsAre("f"));
}

TEST(UnfinishedFile, IsRemovedByAnotherProcessThatHasLockedIt) {
  const scratch_folder folder;
  write_file(folder / "f.unfinished", bytes(100, 7));
  posix::opened locked = posix::open_regular(folder / "f.unfinished", true);
  ASSERT_TRUE(posix::try_lock(locked.file.get(), folder / "f.unfinished", posix::locking::required));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::filesystem::remove(folder / "f.unfinished");
    locked.file = {};
  });

  EXPECT_NO_THROW(posix::free_name(folder / "f.unfinished", folder / "f"));

  other.join();
}

TEST(UnfinishedFile, ReplacesAFileThatWasReplacedBeforeItWasLocked) {
  const folder_with_sample folder;
  write_file(folder / "other", bytes(100, 7));
  before_lock = [&] { std::filesystem::rename(folder / "other", folder / "f"); };
  posix::replacement file(folder / "f");
  EXPECT_FALSE(before_lock);

  EXPECT_NO_THROW(file.publish());

  EXPECT_TRUE(read_file(folder / "f").empty());
}

TEST(UnfinishedFile, IsNeverALinkToAnotherFile) {
  for (const bool unnamed : {true, false}) {
    const scratch_folder folder;
    has_unnamed_files = unnamed;
    write_file(folder / "foreign", std::string("do not touch"));
    save_sample(folder / "f");
    for (const char* name : {"f.unfinished", "f.log.unfinished"}) {
      std::filesystem::create_symlink(folder / "foreign", folder / name);
    }

    const auto saved = error_of([&] { save_sample(folder / "f"); });
    const auto built = error_of([&] { rebuilding_filter::create(folder / "f", {.target_fpr = 0.01}); });

    ASSERT_TRUE(saved && built);
    EXPECT_EQ(saved->code(), errc::already_exists);
    EXPECT_EQ(built->code(), errc::already_exists);
    EXPECT_THAT(saved->what(), HasSubstr("f.unfinished"));
    EXPECT_EQ(read_file(folder / "foreign").size(), 12u);
    EXPECT_TRUE(has_all_samples(any_filter::open(folder / "f")));
    has_unnamed_files = true;
  }
}

TEST(UnfinishedFile, IsAbsentAfterAReplacementThatIsNotPublished) {
  const folder_with_sample folder;
  const bytes before = read_file(folder / "f");
  for (const bool unnamed : {true, false}) {
    has_unnamed_files = unnamed;
    { const posix::replacement file(folder / "f"); }
    has_unnamed_files = true;
    EXPECT_THAT(names_in(folder), testing::ElementsAre("f"));
    EXPECT_EQ(read_file(folder / "f"), before);
  }
}

TEST(UnfinishedFile, DoesNotReplaceAFileThatWasMadeMeanwhile) {
  for (const bool unnamed : {true, false}) {
    const scratch_folder folder;
    has_unnamed_files = unnamed;
    posix::replacement file(folder / "f");
    has_unnamed_files = true;
    const std::string content = "of another process";
    write_file(folder / "f", content);

    EXPECT_EQ(code_of([&] { file.publish(); }), errc::already_exists);

    EXPECT_EQ(read_file(folder / "f"), bytes(content.begin(), content.end()));
  }
}

TEST(UnfinishedFile, OfSomeOtherKindHasItsModeAndReplacesNothingUnasked) {
  const scratch_folder folder;
  {
    detail::new_file file(folder / "chart", false, 0600);
    file.write("<svg>");
    file.write("</svg>");
    EXPECT_FALSE(std::filesystem::exists(folder / "chart"));
    file.publish();
  }
  struct stat status {};
  ASSERT_EQ(::stat((folder / "chart").c_str(), &status), 0);

  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(read_file(folder / "chart").size(), 11u);
  EXPECT_EQ(code_of([&] { detail::new_file(folder / "chart", false); }), errc::already_exists);
}

// ---- several processes that create or change a filter of the same name --------------------------------------------

posix::descriptor lock_on(const std::string& path) {
  posix::opened opened = posix::open_regular(path, true);
  EXPECT_TRUE(posix::try_lock(opened.file.get(), path, posix::locking::required));
  return std::move(opened.file);
}

// What a process leaves that is killed while it replaces the filter "f" by one with a log, between the two renames.
class folder_between_renames : public folder_with_sample {
 public:
  folder_between_renames() {
    rebuilding_filter filter = rebuilding_filter::create(*this / "g", {.target_fpr = 0.01});
    filter.insert("of the killed process");
    filter.close();
    std::filesystem::rename(*this / "g", *this / "f.unfinished");
    std::filesystem::rename(*this / "g.log", *this / "f.log");
  }
};

TEST(ConcurrentProcesses, AFilterMadeWhileOneWithALogIsCreatedIsKept) {
  const scratch_folder folder;
  before_rename = [&] { save_sample(folder / "f"); };

  const auto code = code_of([&] { rebuilding_filter::create(folder / "f", {.target_fpr = 0.01}, {.replace = false}); });

  EXPECT_FALSE(before_rename);
  EXPECT_EQ(code, errc::already_exists);
  EXPECT_TRUE(has_all_samples(any_filter::open(folder / "f")));
  for (const char* name : {"f.log", "f.unfinished", "f.log.unfinished"})
    EXPECT_FALSE(std::filesystem::exists(folder / name)) << name;
}

TEST(ConcurrentProcesses, AFilterIsNotReplacedWhileItIsWritten) {
  const folder_between_renames folder;
  posix::descriptor writer = lock_on(folder / "f");
  EXPECT_FALSE(format::finish_renames(folder / "f", posix::locking::required));
  EXPECT_TRUE(std::filesystem::exists(folder / "f.unfinished"));
  EXPECT_EQ(code_of([&] { save_sample(folder / "f"); }), errc::locked);

  writer = {};

  EXPECT_TRUE(format::finish_renames(folder / "f", posix::locking::required));
  EXPECT_TRUE(any_filter::open(folder / "f").may_contain("of the killed process"));
}

// A filter without a log must not be written once another one is to take its name.
TEST(ConcurrentProcesses, AWriterThatWaitsDoesNotWriteAFilterThatWillBeReplaced) {
  const folder_between_renames folder;
  posix::descriptor log = lock_on(folder / "f.log"), filter = lock_on(folder / "f");
  const auto killed = [&](const std::string&) {
    log = {};
    filter = {};
  };

  const auto code = code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write, .waiting = killed}); });

  EXPECT_EQ(code, errc::incompatible) << "the new filter has a log";
  EXPECT_TRUE(any_filter::open(folder / "f").may_contain("of the killed process"));
  EXPECT_FALSE(std::filesystem::exists(folder / "f.unfinished"));
}

TEST(ConcurrentProcesses, AFilterIsNotSavedBetweenTheRenamesOfAnotherProcess) {
  const folder_between_renames folder;
  std::filesystem::remove(folder / "f");
  const posix::descriptor log = lock_on(folder / "f.log");

  EXPECT_EQ(code_of([&] { save_sample(folder / "f"); }), errc::locked);
  EXPECT_EQ(code_of([&] { any_filter::create(folder / "f", sample_params); }), errc::locked);

  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
}

TEST(ConcurrentProcesses, AFileIsReplacedOnlyIfItIsOfTheExpectedVersion) {
  const folder_with_sample folder;
  const file_version absent = version_of(folder / "g");
  const file_version before = version_of(folder / "f");
  const auto save = [&](const char* name, const file_version& expected) {
    return code_of([&] { sample_filter().save(folder / name, create_options{.expected = expected}); });
  };
  EXPECT_EQ(absent, file_version{});
  EXPECT_EQ(version_of(folder.path()), file_version{});
  EXPECT_EQ(save("f", before), std::nullopt);
  const file_version replaced = version_of(folder / "f");
  EXPECT_NE(replaced, before) << "another file";
  EXPECT_EQ(save("f", before), errc::locked);
  EXPECT_EQ(save("f", absent), errc::locked);

  any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});
  writer.insert("late");
  writer.close();

  EXPECT_EQ(save("f", replaced), errc::locked);
  EXPECT_TRUE(any_filter::open(folder / "f").may_contain("late"));
  EXPECT_EQ(save("g", absent), std::nullopt);
  EXPECT_EQ(save("g", absent), errc::locked);
}

TEST(ConcurrentProcesses, ACountIsAnEstimateIfKeysAreInsertedWhileBitsAreRead) {
  const folder_with_sample folder;
  const std::unique_ptr<filter_handle> reader = open_filter(folder / "f");
  EXPECT_FALSE(reader->info(info_depth::everything).count_is_estimate);
  EXPECT_FALSE(reader->local()->has_changed());

  any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});
  for (int i = 0; i < 5000; ++i) writer.insert("late " + std::to_string(i));
  EXPECT_FALSE(writer.has_changed());
  writer.close();

  EXPECT_TRUE(reader->local()->has_changed());
  const filter_facts facts = reader->info(info_depth::everything);
  EXPECT_TRUE(facts.count_is_estimate);
  EXPECT_FALSE(facts.consistency->alarm);
  EXPECT_NEAR(static_cast<double>(facts.distinct_keys), 5500, 200);
}

// ---- file systems without locks -------------------------------------------------------------------------------------

TEST(FileSystemWithoutLocks, IsReportedAndNotTakenForAnotherWriter) {
  const folder_with_sample folder;
  for (const int number : {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL}) {
    const failing_locks failing(number);
    const auto opened = error_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); });
    const auto saved = error_of([&] { save_sample(folder / "f"); });
    const auto grown = error_of([&] { rebuilding_filter::create(folder / "g", {.target_fpr = 0.01}); });

    EXPECT_FALSE(has_locks(folder / "f"));
    ASSERT_TRUE(opened && saved && grown);
    for (const auto& e : {opened, saved, grown}) {
      EXPECT_EQ(e->code(), errc::io);
      EXPECT_EQ(e->text().hint.code, hint::allow_no_lock);
      EXPECT_THAT(e->what(), HasSubstr("this file system has no locks"));
    }
  }
  EXPECT_TRUE(has_locks(folder / "f"));
  EXPECT_THAT(names_in(folder), testing::ElementsAre("f"));
}

TEST(FileSystemWithoutLocks, IsUsedWhereTheCallerAllowsIt) {
  const scratch_folder folder;
  for (const bool unnamed : {true, false}) {
    const failing_locks failing(ENOLCK);
    has_unnamed_files = unnamed;
    write_file(folder / "f.unfinished", bytes(10, 7));
    bloomery_tests::sample_filter().save(folder / "f", create_options{.no_lock = true});
    any_filter::open(folder / "f", {.mode = access::read_write, .no_lock = true}).close();
    {
      rebuilding_filter filter =
          rebuilding_filter::create(folder / "g", {.keys = key_kind::u64le, .target_fpr = 0.01}, {.no_lock = true});
      for (std::uint64_t i = 0; i < 5000; ++i) filter.insert(i);
      filter.close();
    }
    rebuilding_filter again = rebuilding_filter::open(folder / "g", {.mode = access::read_write, .no_lock = true});
    again.rebuild();
    EXPECT_TRUE(again.may_contain(std::uint64_t{4999}));
    again.close();
    has_unnamed_files = true;
    EXPECT_TRUE(has_all_samples(any_filter::open(folder / "f")));
    EXPECT_THAT(names_in(folder), testing::ElementsAre("f", "g", "g.log"));
  }
}

TEST(FileSystemWithLocks, UsesThemThoughTheCallerNeedsNone) {
  const folder_with_sample folder;
  const any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write, .no_lock = true});

  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write, .no_lock = true}); }),
            errc::locked);
}

// ---- sequence numbers -----------------------------------------------------------------------------------------------

TEST(SequenceNumber, StartsAgainAfterItsEnd) {
  const scratch_folder folder;
  constexpr std::uint64_t last = (std::uint64_t{1} << 63) - 1;
  for (const std::uint64_t sequence : {last, last - 1, last - 2, last / 2, last / 2 + 1}) {
    save_sample(folder / "f");
    bytes file = read_file(folder / "f");
    for (const std::size_t slot : slot_offsets) {
      put(file, slot, sequence);
      put(file, slot + 56, format::checksum(std::span(file).subspan(slot, 56)));
    }
    write_file(folder / "f", file);

    for (unsigned session = 1; session <= 4; ++session) {
      any_filter filter = any_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload});
      EXPECT_TRUE(filter.opened_from()->clean) << sequence;
      EXPECT_EQ(filter.insert_count(), bloomery_tests::sample_filter().insert_count() + session - 1);
      filter.insert("in session " + std::to_string(session));
      filter.close();
    }

    const any_filter filter = any_filter::open(folder / "f", {.check = file_check::payload});
    EXPECT_TRUE(filter.opened_from()->clean) << sequence;
    EXPECT_TRUE(has_all_samples(filter) && filter.may_contain("in session 4"));
    for (const std::size_t slot : slot_offsets) EXPECT_LE(get<std::uint64_t>(read_file(folder / "f"), slot), last);
  }
}

}  // namespace
}  // namespace bloomery
