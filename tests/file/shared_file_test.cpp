// Files shared by several processes: locks, and killed writers.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/mapped_storage.hpp>

#include "file/sample_file.hpp"
#include "support/processes.hpp"
#include "support/test.hpp"

#include <signal.h>
#include <unistd.h>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- locks ----------------------------------------------------------------------------------------------------------

TEST(SharedFile, HasOneWriterAndManyReaders) {
  const folder_with_sample folder;
  any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});

  const auto second = error_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); });
  const auto saved = error_of([&] { save_sample(folder / "f"); });
  const auto created = error_of([&] { any_filter::create(folder / "f", sample_params); });
  const any_filter reader = any_filter::open(folder / "f");
  writer.insert("fresh");

  ASSERT_TRUE(second && saved && created);
  EXPECT_EQ(second->code(), errc::locked);
  EXPECT_EQ(saved->code(), errc::locked);
  EXPECT_EQ(created->code(), errc::locked);
  EXPECT_THAT(second->what(), HasSubstr("another process is writing this filter"));
  EXPECT_FALSE(reader.opened_from()->clean);
  EXPECT_TRUE(reader.may_contain("fresh"));  // the same pages
  EXPECT_THAT(inspect(folder / "f").problems, ElementsAre(HasSubstr("not closed cleanly")));
  writer.close();
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); }), std::nullopt);
}

TEST(SharedFile, IsLockedFromItsCreationOn) {
  const scratch_folder folder;
  any_filter writer = any_filter::create(folder / "f", sample_params);

  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); }), errc::locked);
  EXPECT_FALSE(any_filter::open(folder / "f").opened_from()->clean);
}

TEST(SharedFile, IsWaitedFor) {
  const folder_with_sample folder;
  const message locked, release;
  const pid_t child = start_child([&] {
    any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});
    writer.insert("the child's");
    locked.say();
    release.wait();
    writer.close();
    return 0;
  });
  locked.wait();
  int calls = 0;

  any_filter second =
      any_filter::open(folder / "f", {.mode = access::read_write, .waiting = [&](const std::string& path) {
                                        EXPECT_EQ(path, folder / "f");
                                        ++calls;
                                        release.say();
                                      }});

  EXPECT_GE(calls, 1);
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_TRUE(second.may_contain("the child's"));
  EXPECT_TRUE(second.opened_from()->clean);  // the file that the child left, not the earlier one
  EXPECT_EQ(second.insert_count(), sample_filter().insert_count() + 1);
}

TEST(SharedFile, ThatWasReplacedMeanwhileIsTheNewOne) {
  const folder_with_sample folder;
  any_filter(sample_params).save(folder / "new", "the new one");
  any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});

  const any_filter waited =
      any_filter::open(folder / "f", {.mode = access::read_write, .waiting = [&](const std::string& path) {
                                        std::filesystem::rename(folder / "new", path);
                                        writer.close();
                                      }});

  EXPECT_EQ(waited.opened_from()->metadata, "the new one");
  EXPECT_EQ(waited.fill_ratio(), 0);
}

// ---- killed writers -------------------------------------------------------------------------------------------------

// A child adds keys to the file and is killed before it closes it.
void add_and_be_killed(const std::string& path) {
  const message added;
  const pid_t child = start_child([&] {
    any_filter writer = any_filter::open(path, {.mode = access::read_write});
    for (const std::string& text : sample_texts()) writer.insert(text);
    added.say();
    for (;;) ::pause();
    return 0;
  });
  added.wait();
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(wait_for(child), 128 + SIGKILL);
}

TEST(KilledWriter, LosesNoKeyAndTheCountIsEstimated) {
  const scratch_folder folder;
  any_filter(sample_params).save(folder / "f");
  add_and_be_killed(folder / "f");

  const inspection seen = inspect(folder / "f", file_check::payload);
  EXPECT_TRUE(seen.usable);
  EXPECT_FALSE(seen.info.clean);
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("not closed cleanly")));
  EXPECT_TRUE(has_all_samples(any_filter::open(folder / "f", {.check = file_check::payload})));
  const any_filter loaded = any_filter::load(folder / "f");
  EXPECT_TRUE(has_all_samples(loaded));
  EXPECT_NEAR(static_cast<double>(loaded.insert_count()), 500, 15);

  any_filter mended = any_filter::open(folder / "f", {.mode = access::read_write});
  EXPECT_NEAR(static_cast<double>(mended.insert_count()), 500, 15);
  mended.close();

  const any_filter clean = any_filter::open(folder / "f", {.check = file_check::payload});
  EXPECT_TRUE(clean.opened_from()->clean);
  EXPECT_TRUE(has_all_samples(clean));
  EXPECT_NEAR(static_cast<double>(clean.insert_count()), 500, 15);
}

// The estimate counts distinct keys, of which a tenth of the last ones were false positives when inserted. The expected
// FPR is right only if these are subtracted exactly once.
TEST(KilledWriter, AtTenPercentOfErrorsLeavesTheRateThatTheKeysHave) {
  const scratch_folder folder;
  constexpr std::uint64_t n = 100'000;
  for (const char* layout : {"split_block", "split_block512", "blocked", "blocked_page", "classic"}) {
    const params p = complete({.layout = layout, .keys = key_kind::u64le, .capacity = n, .target_fpr = 0.1});
    any_filter(p).save(folder / "f");
    const pid_t child = start_child([&] {
      any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});
      for (std::uint64_t key = 0; key < n; ++key) writer.insert(key);
      ::kill(::getpid(), SIGKILL);
      return 0;
    });
    ASSERT_EQ(wait_for(child), 128 + SIGKILL);
    const double exact = expected_fpr(p, n);

    const any_filter loaded = any_filter::load(folder / "f");
    any_filter mended = any_filter::open(folder / "f", {.mode = access::read_write});
    const double mended_rate = mended.expected_fpr();
    mended.close();
    const any_filter reopened = any_filter::open(folder / "f");

    EXPECT_NEAR(loaded.expected_fpr(), exact, 0.02 * exact) << layout;
    EXPECT_NEAR(mended_rate, exact, 0.02 * exact) << layout;
    EXPECT_NEAR(reopened.expected_fpr(), exact, 0.02 * exact) << layout;
    EXPECT_TRUE(loaded.count_is_estimate() && reopened.count_is_estimate()) << layout;
  }
}

TEST(KilledWriter, LeavesTheSameEstimateToAFilterOfKnownType) {
  const scratch_folder folder;
  any_filter(sample_params).save(folder / "f");
  add_and_be_killed(folder / "f");
  using known = filter<std::string_view, layouts::classic>;

  const known loaded = known::load(folder / "f");

  EXPECT_TRUE(loaded.count_is_estimate());
  EXPECT_EQ(loaded.insert_count(), any_filter::load(folder / "f").insert_count());
}

TEST(KilledWriter, OfANewFileLeavesItUsable) {
  const scratch_folder folder;
  const message added;
  const pid_t child = start_child([&] {
    any_filter writer = any_filter::create(folder / "f", sample_params);
    writer.insert("key");
    added.say();
    for (;;) ::pause();
    return 0;
  });
  added.wait();
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  wait_for(child);

  any_filter filter = any_filter::open(folder / "f", {.mode = access::read_write});

  EXPECT_FALSE(filter.opened_from()->clean);
  EXPECT_TRUE(filter.may_contain("key"));
  EXPECT_EQ(filter.insert_count(), 1u);
}

// A refused open() must not mark the file clean with an outdated count.
TEST(KilledWriter, LeavesAFileThatARefusedOneDoesNotTouch) {
  const scratch_folder folder;
  any_filter(sample_params).save(folder / "f");
  add_and_be_killed(folder / "f");
  const bytes before = read_file(folder / "f");

  using other = filter<std::string_view, layouts::split_block, xxh3, mapped_storage>;
  EXPECT_EQ(code_of([&] { other::open(folder / "f", {.mode = access::read_write}); }), errc::incompatible);

  EXPECT_EQ(read_file(folder / "f"), before);
  EXPECT_FALSE(inspect(folder / "f").info.clean);
}

TEST(KilledWriter, WithAUserDefinedHashLeavesAFileThatAnyFilterRefuses) {
  const scratch_folder folder;
  const params p{.layout = "classic", .hash = "acme/1", .geometry = {800, 7}, .capacity = 50, .target_fpr = 0.01};
  const pid_t child = start_child([&] {
    mapped_storage bytes_of_file = mapped_storage::create(folder / "f", p);
    bytes_of_file.data()[0] = 0xFF;
    bytes_of_file.counts().inserted = 1;
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  ASSERT_EQ(wait_for(child), 128 + SIGKILL);
  const bytes before = read_file(folder / "f");

  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); }), errc::incompatible);

  EXPECT_EQ(read_file(folder / "f"), before);
}

}  // namespace
}  // namespace bloomery
