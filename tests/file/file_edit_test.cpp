// file_edit, which replaces a file at commit(), and files of counting filters, which are changed by it.
#include <bloomery/any_filter.hpp>
#include <bloomery/measure.hpp>

#include "support/processes.hpp"
#include "support/test.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- files of counting filters --------------------------------------------------------------------------------------

any_filter saved(const std::string& path) {
  any_filter f(complete({.layout = "counting", .capacity = 10'000, .target_fpr = 0.01}));
  for (int i = 0; i < 10'000; ++i) f.insert(std::to_string(i));
  f.save(path, "a note");
  return f;
}

TEST(CountingFile, WithAnyDamagedPageIsNotLoaded) {
  const scratch_folder folder;
  saved(folder / "f");
  const bloomery_tests::bytes good = read_file(folder / "f");
  const std::size_t pages = (good.size() - 4096 - 6) / (4096 + 8);
  ASSERT_GT(pages, 10u);

  for (std::size_t page = 0; page < pages; ++page) {
    bloomery_tests::bytes bad = good;
    bad[4096 + 4096 * page + 17 * page % 4096] ^= 0x10;
    write_file(folder / "f", bad);

    EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::damaged) << page;
    EXPECT_EQ(code_of([&] { file_edit(folder / "f"); }), errc::damaged) << page;
  }
}

TEST(CountingFile, HasTheWidthOfItsCells) {
  const scratch_folder folder;
  saved(folder / "f");

  EXPECT_EQ(read_file(folder / "f")[116], 4);
  EXPECT_EQ(any_filter::open(folder / "f").parameters().layout, "counting");
  EXPECT_EQ(family_of({.layout = "counting"}), family::counting);
  EXPECT_EQ(cell_bits_of({.layout = "counting"}), 4u);
  EXPECT_EQ(block_bits_of({.layout = "counting"}), 512u);
  EXPECT_THAT(layout_names(), testing::Not(HasSubstr("counting")));
}

TEST(CountingFile, KilledWhileItIsWrittenEstimatesItsCopiesFromTheCounters) {
  const scratch_folder folder;
  saved(folder / "f");
  bloomery_tests::message filled;

  const pid_t child = bloomery_tests::start_child([&] {
    any_filter f = any_filter::open(folder / "f", {.mode = access::read_write});
    for (int i = 0; i < 10'000; ++i) f.insert(std::to_string(i % 5000));
    for (int i = 0; i < 2000; ++i) f.remove(std::to_string(i));
    filled.say();
    ::pause();
    return 0;
  });
  filled.wait();
  ::kill(child, SIGKILL);
  bloomery_tests::wait_for(child);

  any_filter f = any_filter::open(folder / "f", {.mode = access::read_write});
  EXPECT_TRUE(f.count_is_estimate());
  EXPECT_NEAR(static_cast<double>(f.insert_count()), 18'000, 200);
  const any_filter loaded = any_filter::load(folder / "f");
  EXPECT_NEAR(static_cast<double>(loaded.insert_count()), 18'000, 200);
}

TEST(CountingFile, MayNotSayThatAFilterOfBitsRefusedARemoval) {
  const scratch_folder folder;
  any_filter bits(complete({.capacity = 1000, .target_fpr = 0.01}));
  const params& p = bits.parameters();
  save_file(folder / "f", p, bits.bytes(), {.inserted = 5, .refused_removals = 1});

  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), errc::damaged);
}

// ---- file_edit ------------------------------------------------------------------------------------------------------

TEST(FileEdit, ChangesNothingBeforeItsCommitAndAllWithIt) {
  const scratch_folder folder;
  any_filter truth = saved(folder / "f");
  ASSERT_EQ(::chmod((folder / "f").c_str(), 0640), 0);
  const bloomery_tests::bytes before = read_file(folder / "f");
  for (int i = 0; i < 5000; ++i) truth.remove(std::to_string(i));
  truth.remove("nobody");
  truth.save(folder / "truth", "a note");

  {
    file_edit forgotten(folder / "f");
    forgotten.filter().clear();
    EXPECT_EQ(read_file(folder / "f"), before);
  }
  EXPECT_EQ(read_file(folder / "f"), before);
  file_edit edit(folder / "f");
  for (int i = 0; i < 5000; ++i) edit.filter().remove(std::to_string(i));
  edit.filter().remove("nobody");
  EXPECT_EQ(read_file(folder / "f"), before);
  const any_filter reader = any_filter::open(folder / "f");
  edit.commit();

  EXPECT_EQ(read_file(folder / "f"), read_file(folder / "truth"));
  EXPECT_TRUE(reader.may_contain("1"));  // the reader keeps the file that it opened
  struct stat status {};
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()),
            2);
}

TEST(FileEdit, KeepsOtherWritersOutUntilItIsDone) {
  const scratch_folder folder;
  const any_filter old = saved(folder / "f");
  const auto others_are_locked_out = [&] {
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); }), errc::locked);
    EXPECT_EQ(code_of([&] { file_edit(folder / "f"); }), errc::locked);
    EXPECT_EQ(code_of([&] { old.save(folder / "f"); }), errc::locked);
  };
  {
    file_edit edit(folder / "f");
    others_are_locked_out();
    edit.commit();
  }
  {
    any_filter in_place = any_filter::open(folder / "f", {.mode = access::read_write});
    others_are_locked_out();
  }

  file_edit(folder / "f").commit();
  any_filter::open(folder / "f", {.mode = access::read_write}).close();
}

TEST(FileEdit, WaitsForAWriterAndThenHasTheFileThatItLeft) {
  const scratch_folder folder;
  saved(folder / "f");
  std::optional<file_edit> first(folder / "f");
  first->filter().insert("new");
  int waited = 0;

  file_edit second(folder / "f", {.waiting = [&](const std::string&) {
                     if (++waited == 2) {
                       first->commit();
                       first.reset();
                     }
                   }});

  EXPECT_EQ(waited, 2);
  EXPECT_TRUE(second.filter().may_contain("new"));
  second.filter().insert("newer");
  second.commit();
  EXPECT_EQ(any_filter::load(folder / "f").insert_count(), 10'002u);
}

TEST(FileEdit, OpensOnlyWhatItCanRead) {
  const scratch_folder folder;
  write_file(folder / "text", std::string("no filter"));
  any_filter(complete({.layout = "counting", .capacity = 10, .target_fpr = 0.01, .secret = secret_key{1, 2}}))
      .save(folder / "keyed");

  EXPECT_EQ(code_of([&] { file_edit(folder / "none"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { file_edit(folder / "text"); }), errc::not_a_filter);
  EXPECT_EQ(code_of([&] { file_edit(folder / "keyed"); }), errc::incompatible);
  file_edit edit(folder / "keyed", {.secret = secret_key{1, 2}});
  edit.filter().insert("Madrid");
  edit.commit();
  EXPECT_EQ(any_filter::load(folder / "keyed", {.secret = secret_key{1, 2}}).insert_count(), 1u);
}

}  // namespace
}  // namespace bloomery
