// Files at the limits of the system: full disks, missing permissions, and sizes beyond memory.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/mapped_storage.hpp>

#include "file/sample_file.hpp"
#include "support/processes.hpp"
#include "support/test.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <iterator>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- files that cannot be written -----------------------------------------------------------------------------------

TEST(UnwritableFile, OnAFullDiskIsAnErrorOfInputAndOutput) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";

  const auto saved = error_of([] { save_sample("/dev/full"); });
  const auto created = error_of([] { any_filter::create("/dev/full", sample_params); });

  ASSERT_TRUE(saved && created);
  EXPECT_EQ(saved->code(), errc::io);
  EXPECT_THAT(saved->what(), HasSubstr("No space left on device; free some space"));
  EXPECT_EQ(created->code(), errc::io);
}

TEST(UnwritableFile, BeyondTheLimitOnFileSizesLeavesTheOldOne) {
  const folder_with_sample folder;
  const bytes before = read_file(folder / "f");

  const int status = status_of_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{6000, 6000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    any_filter other = sample_filter();
    other.insert("other");
    const auto saved = error_of([&] { other.save(folder / "f"); });
    const auto created = error_of([&] { any_filter::create(folder / "f", sample_params); });
    if (!saved || saved->code() != errc::io || saved->text().hint.words().find("ulimit") == std::string::npos) return 2;
    if (!created || created->code() != errc::io) return 3;
    return 0;
  });

  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder / "f"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(UnwritableFile, WhereThereIsNoFolderOrAFolderIsRefused) {
  const scratch_folder folder;
  EXPECT_EQ(code_of([&] { save_sample(folder / "missing/f"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { save_sample(folder.path()); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { any_filter::create(folder.path(), sample_params); }), errc::not_permitted);
  EXPECT_THAT(error_of([&] { save_sample(folder.path()); })->what(), HasSubstr("found a directory"));
}

TEST(UnwritableFile, WithoutPermissionIsRefusedAsSuch) {
  const scratch_folder folder;
  save_sample(folder / "secret");
  save_sample(folder / "readable");
  ASSERT_EQ(::chmod((folder / "secret").c_str(), 0000), 0);
  ASSERT_EQ(::chmod((folder / "readable").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);

  const int status = status_of_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;  // root passes every permission check: use another user
    if (code_of([&] { any_filter::open(folder / "secret"); }) != errc::not_permitted) return 2;
    if (code_of([&] { any_filter::load(folder / "secret"); }) != errc::not_permitted) return 3;
    if (code_of([&] { any_filter::open(folder / "readable", {.mode = access::read_write}); }) != errc::not_permitted)
      return 4;
    if (code_of([&] { save_sample(folder / "readable"); }) != errc::not_permitted) return 5;
    if (inspect(folder / "secret").usable) return 6;
    return 0;
  });

  EXPECT_EQ(status, 0);
}

// ---- the largest sizes ----------------------------------------------------------------------------------------------

// 2^36 bits are 8 GiB, nearly all of them holes in the file.
void expect_huge_filter_works(const params& p, const std::string& path) {
  const auto texts = sample_texts(300);
  std::optional<any_filter> created;
  try {
    created.emplace(any_filter::create(path, p, {.reserve = false}));
  } catch (const error& e) {
    if (e.code() != errc::io) throw;  // skip only what the file system refuses
    GTEST_SKIP() << "SKIP: this file system takes no sparse file of 8 GiB: " << e.what();
  }
  for (const std::string& text : texts) EXPECT_TRUE(created->insert(text));
  created->close();

  const any_filter reopened = any_filter::open(path);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_TRUE(reopened.opened_from()->clean);
  EXPECT_EQ(reopened.insert_count(), texts.size());
  EXPECT_EQ(reopened.parameters(), p);
  std::size_t found = 0, wrong = 0;
  for (const std::string& text : texts) {
    found += reopened.may_contain(text) ? 1 : 0;
    wrong += reopened.may_contain("absent " + text) ? 1 : 0;
  }
  EXPECT_EQ(found, texts.size());
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(static_cast<std::uint64_t>(status.st_size), p.geometry.bits / 8);
  EXPECT_LT(status.st_blocks * 512, 64 << 20);
}

TEST(HugeFile, OfSplitBlocksHas64BitSizes) {
  const scratch_folder folder;
  expect_huge_filter_works(complete({.layout = "split_block", .geometry = {std::uint64_t{1} << 36, 8}}), folder / "f");
}

TEST(HugeFile, OfTheClassicLayoutHas64BitSizes) {
  const scratch_folder folder;
  expect_huge_filter_works(complete({.layout = "classic", .geometry = {(std::uint64_t{1} << 36) + 12'345, 7}}),
                           folder / "f");
}

TEST(HugeFile, SetsBitsInItsUpperHalf) {
  const scratch_folder folder;
  const geometry g{(std::uint64_t{1} << 36) + 12'345, 7};
  using numbers = filter<std::uint64_t, layouts::classic, mix, mapped_storage>;
  std::uint64_t key = 0;
  while (layouts::classic::cells(g, mix{}(key)).next() < std::uint64_t{1} << 35) ++key;
  const std::uint64_t cell = layouts::classic::cells(g, mix{}(key)).next();
  std::optional<numbers> filter;
  try {
    filter.emplace(numbers::create(folder / "f", g, 1000, {.reserve = false}));
  } catch (const error& e) {
    if (e.code() != errc::io) throw;  // skip only what the file system refuses
    GTEST_SKIP() << "SKIP: this file system takes no sparse file of 8 GiB: " << e.what();
  }

  filter->insert(key);
  filter->close();

  const int fd = ::open((folder / "f").c_str(), O_RDONLY | O_CLOEXEC);
  std::uint8_t byte = 0;
  EXPECT_EQ(::pread(fd, &byte, 1, static_cast<off_t>(page + cell / 8)), 1);
  ::close(fd);
  EXPECT_EQ(byte, 1u << cell % 8);
}

TEST(HugeFile, BeyondMemoryIsMappedButNotLoaded) {
  const scratch_folder folder;
  const auto memory =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const params p = complete({.layout = "classic", .geometry = {2 * 8 * memory, 7}});
  try {
    any_filter::create(folder / "f", p, {.reserve = false}).close();
  } catch (const error& e) {
    if (e.code() != errc::io) throw;  // skip only what the file system refuses
    GTEST_SKIP() << "SKIP: this file system takes no such sparse file: " << e.what();
  }

  EXPECT_FALSE(any_filter::open(folder / "f").may_contain("key"));
  EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::too_large);
}

TEST(HugeFile, BeyondTheDiskIsRefusedWhenSpaceIsReserved) {
  const scratch_folder folder;
  const params p = complete({.layout = "classic", .geometry = {std::uint64_t{1} << 60, 7}});  // 128 PiB

  EXPECT_EQ(code_of([&] { any_filter::create(folder / "f", p); }), errc::io);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace bloomery
