// The two files of a rebuilding filter: opening, refusing, salvaging and recovering them when the filter or its key log
// is missing, old, damaged or of another generation.
#include <bloomery/any_filter.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "filters/rebuilding_filters.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using bloomery_tests::file_bytes;

TEST(RebuildingFilter, OpensCleanAndSaysNothing) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers, {.metadata = "a remark"});
    add(filter, 0, 5000);
    filter.close();
  }
  std::string notes;

  rebuilding_filter filter = rebuilding_filter::open(
      folder / "f", {.mode = access::read_write, .check = file_check::payload, .notes = [&](const std::string& text) {
                       notes += text;
                     }});

  EXPECT_EQ(notes, "");
  EXPECT_EQ(filter.view().opened_from()->metadata, "a remark");
  add(filter, 5000, 5000);
  filter.close();
  EXPECT_EQ(any_filter::open(folder / "f").opened_from()->metadata, "a remark");
  EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
}

// The remains of a build that was killed before its log got its name.
TEST(RebuildingFilter, AnUnfinishedFilterWhoseLogIsUnfinishedTooReplacesNothing) {
  const scratch_folder folder;
  for (const auto& [name, first] : {std::pair("f", 0), std::pair("g", 5000)}) {
    rebuilding_filter filter = rebuilding_filter::create(folder / name, of_integers);
    add(filter, static_cast<std::uint64_t>(first), 3000);
    filter.close();
  }
  std::filesystem::rename(folder / "g", folder / "f.unfinished");
  std::filesystem::rename(folder / "g.log", folder / "f.log.unfinished");

  const rebuilding_filter filter = open_to_write(folder / "f");

  EXPECT_EQ(count_found(filter.view(), numbers(0, 3000)), 3000u);
  EXPECT_FALSE(std::filesystem::exists(folder / "f.unfinished"));
}

TEST(RebuildingFilter, AnyFilterReadsItAndDoesNotWriteIt) {
  const scratch_folder folder;
  make_rebuilding(folder / "f", 5000);

  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 5000)), 5000u);
  EXPECT_ERROR(any_filter::open(folder / "f", {.mode = access::read_write}), errc::incompatible,
               "open the filter together with its log");
  EXPECT_TRUE(inspect(folder / "f").info.clean);
}

// Keys that a file_edit commits would be missing from the log and lost at the next rebuild.
TEST(RebuildingFilter, IsNotEditedPastItsLog) {
  const scratch_folder folder;
  make_rebuilding(folder / "f", 100);

  EXPECT_ERROR(file_edit(folder / "f"), errc::incompatible, "open the filter together with its log");
  rebuilding_filter again = rebuilding_filter::open(folder / "f");  // no process holds its lock
}

TEST(RebuildingFilter, ACopyHasNoLog) {
  const scratch_folder folder;
  make_rebuilding(folder / "f", 5000);

  any_filter::load(folder / "f").save(folder / "copy");

  EXPECT_EQ(inspect(folder / "copy").info.parameters.log_id(), 0u);
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "copy", {.mode = access::read_write}); }), std::nullopt);
  EXPECT_EQ(code_of([&] { open_to_write(folder / "copy"); }), errc::incompatible);
}

TEST(RebuildingFilter, WithoutItsLogItAnswersAndTakesNoKeys) {
  const scratch_folder folder;
  for (const char* name : {"f", "other"}) {
    rebuilding_filter filter = rebuilding_filter::create(folder / name, of_integers);
    add(filter, 0, 3000);
  }
  const auto is_refused_with = [&](errc code) {
    EXPECT_EQ(code_of([&] { open_to_write(folder / "f"); }), code);
    EXPECT_EQ(count_found(rebuilding_filter::open(folder / "f").view(), numbers(0, 3000)), 3000u);
    EXPECT_TRUE(inspect(folder / "f").usable);
  };

  std::filesystem::rename(folder / "f.log", folder / "hidden");
  is_refused_with(errc::not_found);
  std::filesystem::copy(folder / "other.log", folder / "f.log");
  is_refused_with(errc::incompatible);
  std::filesystem::rename(folder / "hidden", folder / "f.log");
  EXPECT_EQ(code_of([&] { open_to_write(folder / "f"); }), std::nullopt);
}

TEST(RebuildingFilter, InsertsWhatALogOfAnotherGenerationHas) {
  const scratch_folder folder;
  make_rebuilding(folder / "f", 3000);
  // A rewritten log with more keys, beside the earlier filter.
  {
    key_log log = key_log::open(folder / "f.log", {.mode = access::read_write});
    log.remove_duplicates();
    std::vector<std::uint64_t> hash64s;
    for (std::uint64_t key = 3000; key < 3500; ++key) hash64s.push_back(mix{}(key).hash64);
    log.append(hash64s);
  }

  const rebuilding_filter filter = open_to_write(folder / "f");

  EXPECT_EQ(count_found(filter.view(), numbers(0, 3500)), 3500u);
}

TEST(RebuildingFilter, ATornLogIsCutAndSaid) {
  const scratch_folder folder;
  make_rebuilding(folder / "f", 3000);
  bytes log = read_file(folder / "f.log");
  const std::size_t whole = log.size();
  log.resize(whole + 40, 7);
  write_file(folder / "f.log", log);
  std::string notes;

  rebuilding_filter filter = rebuilding_filter::open(
      folder / "f", {.mode = access::read_write, .check = file_check::payload, .notes = [&](const std::string& text) {
                       notes += text;
                     }});

  EXPECT_THAT(notes, HasSubstr("is incomplete (40 bytes)"));
  EXPECT_EQ(file_bytes(folder / "f.log"), whole);
}

TEST(RebuildingFilter, ADamagedLogIsRefusedAndSalvaged) {
  const scratch_folder folder;
  make_rebuilding(folder / "f", 50'000, 1000);
  bytes log = read_file(folder / "f.log");
  log[log.size() / 2] ^= 1;
  write_file(folder / "f.log", log);

  EXPECT_ERROR(open_verified(folder / "f"), errc::damaged, "lost in 1 place");
  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 50'000)), 50'000u);
  EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f"); }), errc::damaged);
  EXPECT_EQ(read_file(folder / "f.log"), log);

  rebuilding_filter filter = rebuilding_filter::recover(folder / "f", {.salvage = true});

  EXPECT_GT(filter.lost_keys(), 0u);
  EXPECT_LE(filter.lost_keys(), 1000u);
  const std::uint64_t found = count_found(filter.view(), numbers(0, 50'000));
  EXPECT_GE(found, 50'000 - filter.lost_keys());
  EXPECT_LE(found, 50'000 - filter.lost_keys() + 60);  // except for false positives among the lost keys
  filter.close();
  // The earlier files still have all keys, and are never overwritten.
  EXPECT_EQ(read_file(folder / "f.damaged.log"), log);
  EXPECT_EQ(count_found(any_filter::open(folder / "f.damaged"), numbers(0, 50'000)), 50'000u);
  const auto salvaged = read_file(folder / "f.log");
  write_file(folder / "f.log", log);
  EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f", {.salvage = true}); }), errc::already_exists);
  EXPECT_EQ(read_file(folder / "f.log"), log);
  write_file(folder / "f.log", salvaged);
  EXPECT_EQ(code_of([&] { open_verified(folder / "f"); }), std::nullopt);
}

TEST(RebuildingFilter, ALogThatLostItsEndIsRefused) {
  const scratch_folder folder;
  make_rebuilding(folder / "f", 5000, 500);
  bytes log = read_file(folder / "f.log");
  log.resize(log.size() - 100);
  write_file(folder / "f.log", log);

  EXPECT_EQ(code_of([&] { open_to_write(folder / "f"); }), errc::damaged);
  EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f"); }), errc::damaged);
  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 5000)), 5000u);
}

TEST(RebuildingFilter, AnOlderLogIsRefusedAndSalvaged) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  filter.close();
  std::filesystem::copy(folder / "f.log", folder / "older");
  {
    key_log repetitive = key_log::open(folder / "older", {.mode = access::read_write});
    std::vector<std::uint64_t> hash64s;
    repetitive.read(
        0, [&](std::span<const std::uint64_t> some) { hash64s.insert(hash64s.end(), some.begin(), some.end()); });
    std::filesystem::copy(folder / "older", folder / "as it was");
    repetitive.append(hash64s);  // 6000 records of 3000 distinct keys
  }
  key_log::open(folder / "f.log", {.mode = access::read_write}).remove_duplicates();
  filter = open_to_write(folder / "f");
  add(filter, 3000, 2000);
  filter.close();
  const bytes whole = read_file(folder / "f");

  for (const char* older : {"as it was", "older"}) {
    std::filesystem::copy(folder / older, folder / "f.log", std::filesystem::copy_options::overwrite_existing);
    EXPECT_ERROR(open_to_write(folder / "f"), errc::damaged, "only 3000 keys, but the filter has");
    EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f"); }), errc::damaged) << older;
    EXPECT_EQ(read_file(folder / "f"), whole) << older;
  }
  std::string notes;
  filter =
      rebuilding_filter::recover(folder / "f", {.salvage = true}, {.notes = [&](const std::string& t) { notes += t; }});

  EXPECT_THAT(notes, HasSubstr("continuing without the lost keys"));
  EXPECT_GE(filter.lost_keys(), 1900u);
  EXPECT_LE(filter.lost_keys(), 2000u);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 3000)), 3000u);
}

TEST(RebuildingFilter, SalvageCountsTheKeysOfALostEnd) {
  const scratch_folder folder;
  {
    params roomy = of_integers;
    roomy.capacity = 10'000;  // no batch is divided
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", roomy);
    add(filter, 0, 5000, 500);
  }
  std::filesystem::resize_file(folder / "f.log", file_bytes(folder / "f.log") - 100);

  EXPECT_EQ(rebuilding_filter::recover(folder / "f", {.salvage = true}).lost_keys(), 500u);
}

TEST(RebuildingFilter, AnOpeningThatIsRefusedDoesNotMarkItDirty) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 5000, 500);
    params other = of_integers;
    other.seed = 5;
    rebuilding_filter::create(folder / "other", other);
  }
  const bytes filter = read_file(folder / "f");
  const bytes log = read_file(folder / "f.log");
  const auto is_refused = [&](const bytes& instead) {
    write_file(folder / "f.log", instead);
    EXPECT_NE(code_of([&] { open_verified(folder / "f"); }), std::nullopt);
    EXPECT_TRUE(read_file(folder / "f") == filter);
    EXPECT_TRUE(inspect(folder / "f").info.clean);
  };

  is_refused(read_file(folder / "other.log"));
  is_refused(bytes(log.begin(), log.end() - 100));
  bytes spoiled = log;
  spoiled[log.size() / 2] ^= 1;
  is_refused(spoiled);
}

TEST(RebuildingFilter, IsRecoveredAsItIsWhenTheLockIsFree) {
  const scratch_folder folder;
  rebuilding_filter writer = rebuilding_filter::create(folder / "f", of_integers);
  add(writer, 0, 3000);
  bool waited = false;

  const rebuilding_filter filter =
      rebuilding_filter::recover(folder / "f", {}, {.waiting = [&](const std::string&) {
                                   if (std::exchange(waited, true)) return;
                                   writer.rebuild({.rate = 0.001, .layout = "blocked_page"});
                                   writer.close();
                                 }});

  EXPECT_TRUE(waited);
  EXPECT_EQ(filter.parameters().target_fpr, 0.001);
  EXPECT_EQ(filter.parameters().layout, "blocked_page");
}

TEST(RebuildingFilter, IsRecoveredFromItsLogAlone) {
  const scratch_folder folder;
  params p = of_integers;
  p.target_fpr = 0.001;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);
    add(filter, 0, 5000);
    filter.close();
  }
  const bytes whole = read_file(folder / "f");
  const auto recovers = [&] {
    rebuilding_filter filter = rebuilding_filter::recover(folder / "f");
    EXPECT_EQ(count_found(filter.view(), numbers(0, 5000)), 5000u);
    EXPECT_EQ(filter.parameters().target_fpr, 0.001);
    filter.close();
    EXPECT_EQ(code_of([&] { open_verified(folder / "f"); }), std::nullopt);
  };

  std::filesystem::remove(folder / "f");
  recovers();
  bytes spoiled = whole;
  spoiled[100] ^= 1;
  write_file(folder / "f", spoiled);
  recovers();
}

TEST(RebuildingFilter, ReplacesAnOldOneWithItsLogOrNothing) {
  const scratch_folder folder;
  rebuilding_filter old = rebuilding_filter::create(folder / "f", of_integers);
  add(old, 0, 3000);

  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers); }), errc::locked);
  old.close();
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers, {.replace = false}); }),
            errc::already_exists);
  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 3000)), 3000u);
  std::filesystem::copy(folder / "f", folder / "old");
  {
    rebuilding_filter fresh = rebuilding_filter::create(folder / "f", of_integers);
    add(fresh, 10'000, 2000);
  }

  rebuilding_filter fresh = open_verified(folder / "f");
  EXPECT_EQ(count_found(fresh.view(), numbers(10'000, 2000)), 2000u);
  EXPECT_LT(count_found(fresh.view(), numbers(0, 3000)), 200u);
}

TEST(RebuildingFilter, ReplacesNoOtherFileThanALog) {
  const scratch_folder folder;
  { rebuilding_filter::create(folder / "made", of_integers); }
  const bytes letter = {'D', 'e', 'a', 'r', ' ', 'S', 'i', 'r', ',', ' ', 'y', 'o', 'u', 'r', 's'};
  write_file(folder / "f.log", letter);
  const auto is_refused = [&] {
    EXPECT_ERROR(rebuilding_filter::create(folder / "f", of_integers), errc::not_a_filter, "f.log");
    EXPECT_EQ(code_of([&] { rebuilding_filter::build(folder / "f", of_integers, [](const auto&) {}); }),
              errc::not_a_filter);
  };

  is_refused();

  EXPECT_EQ(read_file(folder / "f.log"), letter);
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
  EXPECT_FALSE(std::filesystem::exists(folder / "f.log.rebuild"));
  EXPECT_TRUE(std::filesystem::exists(folder / "made"));
  EXPECT_TRUE(std::filesystem::exists(folder / "made.log"));
  write_file(folder / "f.log", bytes());
  is_refused();

  // A damaged log counts as a log.
  bytes damaged = read_file(folder / "made.log");
  damaged[30] ^= 1;
  write_file(folder / "f.log", damaged);
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers); }), std::nullopt);
  write_file(folder / "f.log", damaged);
  EXPECT_EQ(code_of([&] { rebuilding_filter::build(folder / "f", of_integers, [](const auto&) {}); }), std::nullopt);
}

TEST(RebuildingFilter, ACreationThatIsRefusedLeavesTheRebuildOfTheWriter) {
  const scratch_folder folder;
  rebuilding_filter writer = rebuilding_filter::create(folder / "f", of_integers);
  write_file(folder / "f.rebuild", bytes{1, 2, 3});

  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers); }), errc::locked);
  EXPECT_TRUE(std::filesystem::exists(folder / "f.rebuild"));
  writer.abandon();
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers, {.replace = false}); }),
            errc::already_exists);
  EXPECT_TRUE(std::filesystem::exists(folder / "f.rebuild"));
}

TEST(RebuildingFilter, KeepsItsTargetAfterAKillBeforeGrowth) {
  const scratch_folder folder;
  const any_filter hasher(
      complete({.layout = "split_block512", .keys = key_kind::u64le, .capacity = 1, .target_fpr = 0.5}));
  std::vector<key_hash> hashes(300'000);
  hasher.hash(std::span<const std::uint64_t>(numbers(0, hashes.size())), hashes);
  rebuilding_filter killed = rebuilding_filter::create(folder / "f", of_integers);
  killed.record(hashes);
  killed.abandon();

  rebuilding_filter filter = open_to_write(folder / "f");

  EXPECT_EQ(filter.rebuilds(), 1u);
  EXPECT_GE(filter.capacity(), hashes.size());
  filter.close();
  const any_filter closed = any_filter::open(folder / "f");
  EXPECT_EQ(count_found(closed, numbers(0, hashes.size())), hashes.size());
  EXPECT_LE(closed.expected_fpr(), 0.01);
  expect_rate_kept(closed, 0.01);
}

}  // namespace
}  // namespace bloomery
