// Filter files: saving, reading back, changing in place and replacing; what close() writes, and the count of keys in a
// file.
//
// Offsets are those of docs/format.md.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/scheme.hpp>

#include "file/format.hpp"
#include "file/sample_file.hpp"
#include "support/test.hpp"

#include <iterator>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- round trips ----------------------------------------------------------------------------------------------------

TEST(File, GivesBackWhatWasSaved) {
  const scratch_folder folder;
  const any_filter saved = sample_filter();
  const std::string metadata = "free bytes: \0\xFF\n"s;

  saved.save(folder / "f", metadata);
  const any_filter opened = any_filter::open(folder / "f", {.check = file_check::payload});
  const any_filter loaded = any_filter::load(folder / "f");
  const inspection seen = inspect(folder / "f", file_check::payload);

  for (const any_filter* filter : {&opened, &loaded}) {
    EXPECT_EQ(copy_of(filter->bytes()), copy_of(saved.bytes()));
    EXPECT_EQ(filter->parameters(), sample_params);
    EXPECT_EQ(filter->insert_count(), saved.insert_count());
    ASSERT_NE(filter->opened_from(), nullptr);
    EXPECT_EQ(filter->opened_from()->metadata, metadata);
  }
  EXPECT_EQ(saved.opened_from(), nullptr);
  EXPECT_TRUE(seen.usable);
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_EQ(seen.info.parameters, sample_params);
  EXPECT_EQ(seen.info.counts.inserted, saved.insert_count());
  EXPECT_TRUE(seen.info.clean);
  EXPECT_FALSE(seen.info.slot_damaged);
  EXPECT_EQ(seen.info.metadata, metadata);
  EXPECT_EQ(seen.info.file_bytes, page + 3 * page + 3 * 8 + metadata.size());
  EXPECT_EQ(seen.info.file_bytes, std::filesystem::file_size(folder / "f"));
}

TEST(File, MadeInPlaceEqualsASavedOneButForItsSlots) {
  const scratch_folder folder;
  any_filter created = any_filter::create(folder / "created", sample_params, {.metadata = "made by a test"});
  for (const std::string& text : sample_texts()) created.insert(text);
  created.close();
  save_sample(folder / "saved");
  bytes expected = read_file(folder / "saved");
  bytes actual = read_file(folder / "created");

  for (bytes* file : {&expected, &actual}) {
    for (const std::size_t at : slot_offsets) std::fill_n(file->begin() + static_cast<std::ptrdiff_t>(at), 64, 0);
  }

  EXPECT_EQ(actual, expected);
  const inspection seen = inspect(folder / "created", file_check::payload);
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_EQ(seen.info.counts.inserted, sample_filter().insert_count());
}

TEST(File, IsClosedByTheDestructorToo) {
  const scratch_folder folder;
  { any_filter::create(folder / "f", sample_params).insert("key"); }

  const any_filter reopened = any_filter::open(folder / "f", {.check = file_check::payload});
  EXPECT_TRUE(reopened.opened_from()->clean);
  EXPECT_TRUE(reopened.may_contain("key"));
  EXPECT_EQ(reopened.insert_count(), 1u);
}

TEST(File, TakesMetadataUpToAMebibyte) {
  const scratch_folder folder;
  const std::string most(1 << 20, 'm');
  sample_filter().save(folder / "f", most);

  EXPECT_EQ(any_filter::open(folder / "f").opened_from()->metadata, most);
  EXPECT_EQ(code_of([&] { sample_filter().save(folder / "g", most + "m"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { any_filter::create(folder / "g", sample_params, {.metadata = most + "m"}); }),
            errc::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "g"));
}

TEST(File, RefusesToWriteAHeaderItWouldNotRead) {
  const scratch_folder folder;
  const bytes payload(100);
  const auto code = [&](params p) {
    return code_of([&] { save_file(folder / "f", p, std::span(payload).first(bytes_for(p.geometry.bits)), {}); });
  };
  const params good{.layout = "classic", .hash = "xxh3", .geometry = {800, 7}};
  ASSERT_EQ(code(good), std::nullopt);
  std::filesystem::remove(folder / "f");

  EXPECT_EQ(code({.hash = "xxh3", .geometry = {800, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "classic", .geometry = {800, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "classic", .scheme = "perl", .geometry = {800, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "two words", .hash = "xxh3", .geometry = {800, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = std::string(32, 'l'), .hash = "xxh3", .geometry = {800, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "classic", .hash = "xxh3", .geometry = {0, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "classic", .hash = "xxh3", .geometry = {800, 256}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "classic", .hash = "xxh3", .geometry = {800, 7}, .target_fpr = 2}), errc::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
}

// ---- replacing ------------------------------------------------------------------------------------------------------

TEST(File, IsReplacedAsAWholeWhileOthersReadTheOldOne) {
  const folder_with_sample folder;
  const any_filter old = any_filter::open(folder / "f");
  any_filter empty(sample_params);

  empty.save(folder / "f");

  EXPECT_TRUE(has_all_samples(old));
  EXPECT_EQ(any_filter::open(folder / "f").fill_ratio(), 0);
  const auto files = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  EXPECT_EQ(files, 1);  // no temporary file remains
}

TEST(File, BehindALinkIsReplacedNotTheLink) {
  const folder_with_sample folder;
  std::filesystem::create_symlink(folder / "f", folder / "link");

  any_filter(sample_params).save(folder / "link");

  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(any_filter::open(folder / "f").fill_ratio(), 0);
}

// ---- clean close ----------------------------------------------------------------------------------------------------

TEST(CleanClose, WritesChecksumsOfExactlyThePagesThatChanged) {
  const scratch_folder folder;
  const geometry g{4 * page * 8, 8};
  using numbers = filter<std::uint64_t, layouts::split_block, mix, mapped_storage>;
  numbers::create(folder / "f", g, 1000).close();
  bytes file = read_file(folder / "f");
  for (std::size_t at = 5 * page; at < 5 * page + 4 * 8; ++at) file[at] = 0xEE;  // no page matches its checksum
  write_file(folder / "f", file);
  std::uint64_t key = 0;
  while (layouts::split_block::cells(g, mix{}(key)).next() / 8 / page != 2) ++key;

  numbers filter = numbers::open(folder / "f", {.mode = access::read_write, .check = file_check::header});
  filter.insert(key);
  filter.insert(key);
  filter.close();

  const bytes after = read_file(folder / "f");
  const auto third = std::span(after).subspan(3 * page).first<page>();
  const bytes untouched(8, 0xEE);
  for (std::size_t number = 0; number < 4; ++number) {
    const auto stored = std::span(after).subspan(5 * page + 8 * number, 8);
    if (number == 2)
      EXPECT_EQ(get<std::uint64_t>(after, 5 * page + 16), format::page_checksum(third));
    else
      EXPECT_EQ(copy_of(stored), untouched) << number;
  }
}

TEST(CleanClose, WritesItsStateIntoTheOtherSlotEachTime) {
  const folder_with_sample folder;
  for (std::uint64_t session = 1; session <= 3; ++session) {
    any_filter::open(folder / "f", {.mode = access::read_write}).close();
    const bytes file = read_file(folder / "f");

    // save() writes sequence 1 to both slots; each session marks dirty (2, 4, ..), then clean (3, 5, ..).
    std::vector<std::uint64_t> sequences;
    for (const std::size_t at : slot_offsets) sequences.push_back(get<std::uint64_t>(file, at));
    EXPECT_THAT(sequences, testing::UnorderedElementsAre(2 * session, 2 * session + 1));
  }
}

TEST(Count, IsAnEstimateFromAMergeUntilItIsCleared) {
  const scratch_folder folder;
  any_filter merged = sample_filter();
  EXPECT_FALSE(merged.count_is_estimate());
  merged.merge(sample_filter());
  merged.save(folder / "f");
  filter<std::string_view, layouts::classic> known = filter<std::string_view, layouts::classic>::load(folder / "f");

  EXPECT_TRUE(merged.count_is_estimate() && known.count_is_estimate());
  EXPECT_TRUE(inspect(folder / "f").info.counts.is_estimate);
  EXPECT_EQ(get<std::uint32_t>(read_file(folder / "f"), 512 + 20), 1u);
  known.clear();
  merged.clear();
  EXPECT_FALSE(merged.count_is_estimate() || known.count_is_estimate());
  EXPECT_EQ(merged.insert_count(), 0u);
}

TEST(Count, StaysAnEstimateInTheFileForEveryWriter) {
  const scratch_folder folder;
  any_filter merged = sample_filter();
  merged.merge(sample_filter());
  merged.save(folder / "f");

  any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});
  const bool while_open = inspect(folder / "f").info.counts.is_estimate;
  writer.insert("one more");
  writer.close();

  EXPECT_TRUE(while_open);
  EXPECT_TRUE(any_filter::open(folder / "f").count_is_estimate());
  any_filter cleared = any_filter::open(folder / "f", {.mode = access::read_write});
  cleared.clear();
  cleared.close();
  EXPECT_FALSE(any_filter::open(folder / "f").count_is_estimate());
}

TEST(Count, OfANewFileIsCounted) {
  const scratch_folder folder;
  any_filter writer = any_filter::create(folder / "f", sample_params);
  writer.insert("key");
  writer.close();

  EXPECT_FALSE(any_filter::open(folder / "f").count_is_estimate());
  EXPECT_FALSE(any_filter::load(folder / "f").count_is_estimate());
}

TEST(Count, OfAnUnknownKindIsADamagedSlot) {
  const folder_with_sample folder;
  const auto with_count = [&](std::uint32_t count) {
    bytes file = read_file(folder / "f");
    for (const std::size_t slot : slot_offsets) {
      put(file, slot + 20, count);
      put(file, slot + 56, format::checksum(std::span(file).subspan(slot, 56)));
    }
    write_file(folder / "g", file);
    return code_of([&] { any_filter::open(folder / "g"); });
  };

  EXPECT_EQ(with_count(0), std::nullopt);
  EXPECT_EQ(with_count(1), std::nullopt);
  EXPECT_EQ(with_count(2), errc::damaged);
  EXPECT_EQ(with_count(0x100), errc::damaged);
}

}  // namespace
}  // namespace bloomery
