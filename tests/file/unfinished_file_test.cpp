// Unfinished files and the leftovers of killed processes: fixed names, locks, foreign links, file systems without locks
// or without unnamed files; and sequence numbers near their maximum.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/new_file.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "file/sample_file.hpp"
#include "platform/posix.hpp"
#include "support/processes.hpp"
#include "support/test.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <functional>
#include <utility>

namespace {

int lock_failure = 0;                 // errno value with which every flock fails; 0: none
bool has_unnamed_files = true;        // whether O_TMPFILE works
std::function<void()> before_access;  // called once, before the next call of access

}  // namespace

// These replace the functions of the C library in the whole program.
extern "C" int flock(int fd, int operation) noexcept {
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
