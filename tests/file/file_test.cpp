// Filter files: what is written is what is read; what is broken is refused, and nothing is lost on the way.
//
// Offsets are those of docs/format.md. A file here has header (4096 bytes), pages of payload, 8 bytes a page, metadata.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/scheme.hpp>

#include "file/format.hpp"
#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/processes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {
namespace {

using namespace std::string_literals;
using bloomery_tests::bytes;
using bloomery_tests::code_of;
using bloomery_tests::error_of;
using bloomery_tests::message;
using bloomery_tests::read_file;
using bloomery_tests::scratch_folder;
using bloomery_tests::start_child;
using bloomery_tests::status_of_child;
using bloomery_tests::wait_for;
using bloomery_tests::write_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t page = 4096;
constexpr std::size_t slot_offsets[] = {512, 1024};

bytes copy_of(std::span<const std::uint8_t> view) { return {view.begin(), view.end()}; }

std::vector<std::string> sample_texts(std::size_t count = 500) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back("key-" + std::to_string(i));
  return texts;
}

// Three pages of payload, the last one partly used.
const params sample_params =
    complete({.layout = "classic", .hash = "xxh3", .geometry = {80'001, 7}, .capacity = 8000, .target_fpr = 0.01});

any_filter sample_filter() {
  any_filter sample(sample_params);
  for (const std::string& text : sample_texts()) sample.insert(text);
  return sample;
}

void save_sample(const std::string& path) { sample_filter().save(path, "made by a test"); }

bool has_all_samples(const any_filter& filter) {
  const auto texts = sample_texts();
  return std::all_of(texts.begin(), texts.end(), [&](const std::string& text) { return filter.may_contain(text); });
}

// A file whose bytes can be changed one at a time.
class patched_file {
 public:
  explicit patched_file(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
  patched_file(const patched_file&) = delete;
  patched_file& operator=(const patched_file&) = delete;
  ~patched_file() { ::close(fd_); }

  void flip(std::size_t offset, unsigned mask) const {
    std::uint8_t byte = 0;
    ASSERT_EQ(::pread(fd_, &byte, 1, static_cast<off_t>(offset)), 1);
    byte ^= static_cast<std::uint8_t>(mask);
    ASSERT_EQ(::pwrite(fd_, &byte, 1, static_cast<off_t>(offset)), 1);
  }
  void truncate(std::size_t length) const { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(length)), 0); }

 private:
  int fd_;
};

template <class T>
void put(bytes& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

template <class T>
T get(const bytes& file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

// The sample file with a header that was tampered with, under a checksum that is right again.
bytes with_header(bytes file, const std::function<void(bytes&)>& tamper) {
  tamper(file);
  put(file, 504, format::checksum(std::span(file).first(504)));
  return file;
}

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

TEST(File, IsAddedToInPlace) {
  const scratch_folder folder;
  save_sample(folder / "f");
  any_filter expected = sample_filter();
  for (int session = 0; session < 3; ++session) {
    any_filter filter = any_filter::open(folder / "f", {.mode = access::read_write});
    EXPECT_EQ(filter.insert_count(), expected.insert_count());
    const std::string key = "session " + std::to_string(session);

    EXPECT_TRUE(filter.insert(key));
    EXPECT_TRUE(expected.insert(key));
    filter.close();

    const any_filter reopened = any_filter::open(folder / "f", {.check = file_check::payload});
    EXPECT_TRUE(reopened.opened_from()->clean);
    EXPECT_EQ(reopened.opened_from()->metadata, "made by a test");
    EXPECT_EQ(reopened.insert_count(), expected.insert_count());
    EXPECT_EQ(copy_of(reopened.bytes()), copy_of(expected.bytes()));
  }
}

TEST(File, IsClosedByTheDestructorToo) {
  const scratch_folder folder;
  { any_filter::create(folder / "f", sample_params).insert("key"); }

  const any_filter reopened = any_filter::open(folder / "f", {.check = file_check::payload});
  EXPECT_TRUE(reopened.opened_from()->clean);
  EXPECT_TRUE(reopened.may_contain("key"));
  EXPECT_EQ(reopened.insert_count(), 1u);
}

TEST(File, IsClearedInPlace) {
  const scratch_folder folder;
  save_sample(folder / "f");
  any_filter filter = any_filter::open(folder / "f", {.mode = access::read_write});

  filter.clear();
  filter.close();

  const any_filter reopened = any_filter::open(folder / "f", {.check = file_check::payload});
  EXPECT_EQ(reopened.insert_count(), 0u);
  EXPECT_EQ(reopened.fill_ratio(), 0);
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
  const scratch_folder folder;
  save_sample(folder / "f");
  const any_filter old = any_filter::open(folder / "f");
  any_filter empty(sample_params);

  empty.save(folder / "f");

  EXPECT_TRUE(has_all_samples(old));
  EXPECT_EQ(any_filter::open(folder / "f").fill_ratio(), 0);
  const auto files = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  EXPECT_EQ(files, 1);  // no temporary stays
}

TEST(File, BehindALinkIsReplacedNotTheLink) {
  const scratch_folder folder;
  save_sample(folder / "f");
  std::filesystem::create_symlink(folder / "f", folder / "link");

  any_filter(sample_params).save(folder / "link");

  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(any_filter::open(folder / "f").fill_ratio(), 0);
}

TEST(File, CreatedOverAnOldOneStartsEmpty) {
  const scratch_folder folder;
  save_sample(folder / "f");

  any_filter::create(folder / "f", sample_params).close();

  EXPECT_EQ(any_filter::load(folder / "f").fill_ratio(), 0);
}

// ---- golden files ---------------------------------------------------------------------------------------------------

struct golden {
  const char* name;
  params parameters;
  const char* metadata = "";
};

// tests/golden/make_golden.py has the same table.
std::vector<golden> golden_files() {
  const auto layout = [](const char* name, const char* hash, key_kind keys, geometry g, std::uint64_t seed = 0) {
    return params{
        .layout = name, .hash = hash, .keys = keys, .seed = seed, .geometry = g, .capacity = 150, .target_fpr = 0.01};
  };
  const auto scheme = [](const char* name, std::uint64_t bits) {
    return params{.scheme = name, .geometry = {bits, 7}, .capacity = 150, .target_fpr = 0.01};
  };
  const auto keyed = [](const char* name, key_kind keys, geometry g) {
    return complete({.layout = name,
                     .keys = keys,
                     .geometry = g,
                     .capacity = 150,
                     .target_fpr = 0.01,
                     .secret = secret_key{0x0706050403020100, 0x0F0E0D0C0B0A0908}});
  };
  const geometry blocks{2048, 8};
  return {
      {"split_block-bytes-xxh3", layout("split_block", "xxh3", key_kind::bytes, blocks)},
      {"split_block-bytes-murmur3", layout("split_block", "murmur3", key_kind::bytes, blocks, 7)},
      {"split_block-u64-mix", layout("split_block", "mix", key_kind::u64le, blocks, 42)},
      {"split_block-u64-xxh3", layout("split_block", "xxh3", key_kind::u64le, blocks)},
      {"split_block-u64-murmur3", layout("split_block", "murmur3", key_kind::u64le, blocks)},
      {"split_block512-bytes-xxh3", layout("split_block512", "xxh3", key_kind::bytes, blocks)},
      {"split_block512-bytes-murmur3", layout("split_block512", "murmur3", key_kind::bytes, blocks, 7)},
      {"split_block512-u64-mix", layout("split_block512", "mix", key_kind::u64le, blocks, 42)},
      {"blocked-bytes-xxh3", layout("blocked", "xxh3", key_kind::bytes, {2560, 6})},
      {"blocked-u64-mix", layout("blocked", "mix", key_kind::u64le, {1536, 9}, ~std::uint64_t{0})},
      {"blocked-u64-murmur3", layout("blocked", "murmur3", key_kind::u64le, {1536, 1})},
      {"blocked_page-bytes-xxh3", layout("blocked_page", "xxh3", key_kind::bytes, {3 * 32'768, 7}, 11)},
      {"blocked_page-u64-mix", layout("blocked_page", "mix", key_kind::u64le, {2 * 32'768, 17})},
      {"blocked_page-u64-xxh3", layout("blocked_page", "xxh3", key_kind::u64le, {32'768, 40})},
      {"classic-bytes-xxh3", layout("classic", "xxh3", key_kind::bytes, {40'003, 7}, ~std::uint64_t{0}),
       R"({"source": "tests/golden/make_golden.py"})"},
      {"classic-bytes-murmur3", layout("classic", "murmur3", key_kind::bytes, {1447, 7})},
      {"classic-u64-mix", layout("classic", "mix", key_kind::u64le, {1447, 7})},
      {"classic-u64-xxh3", layout("classic", "xxh3", key_kind::u64le, {1447, 20}, 3)},
      {"classic-u64-murmur3", layout("classic", "murmur3", key_kind::u64le, {1447, 1})},
      {"split_block-bytes-siphash", keyed("split_block", key_kind::bytes, blocks)},
      {"classic-u64-siphash", keyed("classic", key_kind::u64le, {1447, 7})},
      {"counting-bytes-xxh3", layout("counting", "xxh3", key_kind::bytes, {8192, 6})},
      {"counting-u64-mix", layout("counting", "mix", key_kind::u64le, {2560, 9}, 42)},
      {"guava", scheme("guava", 1472)},
      {"pharo", scheme("pharo", 1438)},
      {"python", scheme("python", 1447)},
      {"perl", scheme("perl", 1440)},
  };
}

std::vector<std::string> golden_texts() {
  std::vector<std::string> texts = {"", "\0"s, "Bücher"};
  for (const std::size_t length : {1u, 2u, 3u, 4u, 8u, 9u, 16u, 17u, 32u, 33u, 64u, 65u, 96u, 97u, 128u}) {
    texts.emplace_back(length, 'x');
  }
  for (const std::string& text : sample_texts(100)) texts.push_back(text);
  return texts;
}

std::vector<std::uint64_t> golden_integers() {
  std::vector<std::uint64_t> integers;
  for (std::uint64_t i = 0; i < 10; ++i) integers.push_back(i);
  integers.push_back(~std::uint64_t{0});
  for (std::uint64_t i = 10; i < 100; ++i) integers.push_back(i * 0x9E3779B97F4A7C15);
  return integers;
}

void insert_golden_keys(any_filter& filter) {
  if (filter.parameters().keys == key_kind::u64le) {
    for (const std::uint64_t key : golden_integers()) filter.insert(key);
  } else {
    for (const std::string& key : golden_texts()) filter.insert(key);
  }
}

bool has_golden_keys(const any_filter& filter) {
  bool all = true;
  if (filter.parameters().keys == key_kind::u64le) {
    for (const std::uint64_t key : golden_integers()) all &= filter.may_contain(key);
  } else {
    for (const std::string& key : golden_texts()) all &= filter.may_contain(key);
  }
  return all;
}

std::string golden_path(const golden& file) { return BLOOMERY_SOURCE_DIR "/tests/golden/"s + file.name + ".bloom"; }

class GoldenFile : public testing::TestWithParam<golden> {};
INSTANTIATE_TEST_SUITE_P(Each, GoldenFile, testing::ValuesIn(golden_files()), [](const auto& each) {
  std::string name = each.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(GoldenFile, IsSavedByteForByte) {
  const scratch_folder folder;
  any_filter filter(GetParam().parameters);

  insert_golden_keys(filter);
  filter.save(folder / "f", GetParam().metadata);

  EXPECT_EQ(read_file(folder / "f"), read_file(golden_path(GetParam())));
}

TEST_P(GoldenFile, OpensAndAnswers) {
  const auto& secret = GetParam().parameters.secret;
  const any_filter opened = any_filter::open(golden_path(GetParam()), {.check = file_check::payload, .secret = secret});
  const any_filter loaded = any_filter::load(golden_path(GetParam()), {.secret = secret});

  EXPECT_EQ(opened.parameters(), GetParam().parameters);
  EXPECT_EQ(opened.opened_from()->metadata, GetParam().metadata);
  EXPECT_TRUE(opened.opened_from()->clean);
  EXPECT_TRUE(has_golden_keys(opened));
  EXPECT_TRUE(has_golden_keys(loaded));
  EXPECT_LT(opened.fill_ratio(), 0.8);
}

TEST(GoldenFiles, AreAllTested) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BLOOMERY_SOURCE_DIR "/tests/golden")) {
    files += entry.path().extension() == ".bloom";
  }

  EXPECT_EQ(files, golden_files().size());
}

// ---- damage ---------------------------------------------------------------------------------------------------------

bool in_a_slot(std::size_t offset) {
  return std::any_of(std::begin(slot_offsets), std::end(slot_offsets),
                     [&](std::size_t at) { return offset >= at && offset < at + 64; });
}

TEST(DamagedFile, WithAnyBitOfItsHeaderFlippedIsRefusedOrServedFromTheOtherSlot) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const patched_file file(folder / "f");
  const bytes payload = copy_of(sample_filter().bytes());
  for (std::size_t offset = 0; offset < page; ++offset) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE("byte " + std::to_string(offset) + ", bit " + std::to_string(bit));
      file.flip(offset, 1u << bit);

      if (in_a_slot(offset)) {
        const any_filter filter = any_filter::open(folder / "f");
        ASSERT_TRUE(filter.opened_from()->slot_damaged);
        ASSERT_FALSE(filter.opened_from()->clean);
        ASSERT_EQ(filter.insert_count(), sample_filter().insert_count());
        ASSERT_TRUE(std::equal(payload.begin(), payload.end(), filter.bytes().begin(), filter.bytes().end()));
      } else {
        const errc expected = offset < 8 ? errc::not_a_filter : offset < 12 ? errc::wrong_version : errc::damaged;
        ASSERT_EQ(code_of([&] { any_filter::open(folder / "f"); }), expected);
      }
      if (bit == offset % 8) {
        const inspection seen = inspect(folder / "f", file_check::payload);
        ASSERT_EQ(seen.usable, in_a_slot(offset));
        ASSERT_FALSE(seen.problems.empty());
        ASSERT_EQ(code_of([&] { any_filter::load(folder / "f"); }).has_value(), !in_a_slot(offset));
      }

      file.flip(offset, 1u << bit);
    }
  }
  EXPECT_THAT(inspect(folder / "f", file_check::payload).problems, IsEmpty());
}

TEST(DamagedFile, WithBothSlotsGoneIsRefused) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const patched_file file(folder / "f");

  file.flip(slot_offsets[0], 1);
  file.flip(slot_offsets[1] + 63, 1);

  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), errc::damaged);
  EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::damaged);
}

TEST(DamagedFile, WithOneSlotGoneIsMendedByTheNextWriter) {
  const scratch_folder folder;
  for (const std::size_t at : slot_offsets) {
    save_sample(folder / "f");
    patched_file(folder / "f").flip(at + 8, 0xFF);
    any_filter filter = any_filter::open(folder / "f", {.mode = access::read_write});

    filter.insert("one more");
    filter.close();

    const inspection seen = inspect(folder / "f", file_check::payload);
    EXPECT_THAT(seen.problems, IsEmpty()) << at;
    EXPECT_FALSE(seen.info.slot_damaged);
    EXPECT_TRUE(any_filter::open(folder / "f").may_contain("one more"));
  }
}

TEST(DamagedFile, CutShortAnywhereIsRefused) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const std::size_t whole = std::filesystem::file_size(folder / "f");
  const patched_file file(folder / "f");
  const auto expect_refused = [&](std::size_t length) {
    const errc expected = length == 0 ? errc::not_a_filter : errc::damaged;
    ASSERT_EQ(code_of([&] { any_filter::open(folder / "f"); }), expected) << length;
    ASSERT_EQ(code_of([&] { any_filter::load(folder / "f"); }), expected) << length;
    ASSERT_FALSE(inspect(folder / "f", file_check::payload).usable) << length;
  };

  file.truncate(whole + 1);
  expect_refused(whole + 1);
  for (std::size_t length = whole - 1; length > page; length -= length % 4096 <= 40 ? 1 : 37) {
    file.truncate(length);
    expect_refused(length);
  }
  for (std::size_t length = page; length + 1 > 0; --length) {
    file.truncate(length);
    expect_refused(length);
  }

  save_sample(folder / "f");
  EXPECT_THAT(error_of([&] {
                patched_file(folder / "f").truncate(5000);
                any_filter::open(folder / "f");
              })->what(),
              HasSubstr("file is cut short: expected 16422 bytes, found 5000"));
}

TEST(DamagedFile, WithAPayloadByteFlippedNamesThePageWhereItIsRead) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const patched_file file(folder / "f");
  for (std::size_t offset = page; offset < 4 * page;
       offset += offset % page == 0 || offset % page == page - 1 ? 1 : 91) {
    SCOPED_TRACE(offset);
    const std::string first = "1 page, the first at byte " + std::to_string(offset / page * page);
    file.flip(offset, 1u << offset % 8);

    const auto opened = error_of([&] { any_filter::open(folder / "f", {.check = file_check::payload}); });
    const auto loaded = error_of([&] { any_filter::load(folder / "f"); });
    const inspection seen = inspect(folder / "f", file_check::payload);

    ASSERT_TRUE(opened && loaded);
    EXPECT_EQ(opened->code(), errc::damaged);
    EXPECT_EQ(loaded->code(), errc::damaged);
    EXPECT_THAT(opened->what(), HasSubstr(first));
    EXPECT_THAT(loaded->what(), HasSubstr(first));
    EXPECT_TRUE(seen.usable);
    EXPECT_THAT(seen.problems, ElementsAre(HasSubstr(first)));
    EXPECT_THAT(inspect(folder / "f", file_check::header).problems, IsEmpty());
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), std::nullopt);
    file.flip(offset, 1u << offset % 8);
  }
}

TEST(DamagedFile, WithAChecksumFlippedIsFoundOut) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const patched_file file(folder / "f");
  for (std::size_t offset = 4 * page; offset < 4 * page + 24; ++offset) {
    file.flip(offset, 0x10);
    EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::damaged) << offset;
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.check = file_check::payload}); }), errc::damaged);
    file.flip(offset, 0x10);
  }
}

TEST(DamagedFile, WithMetadataFlippedIsRefused) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const patched_file file(folder / "f");

  file.flip(4 * page + 24, 1);

  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), errc::damaged);
  EXPECT_FALSE(inspect(folder / "f").usable);
}

// ---- other files, and liars -----------------------------------------------------------------------------------------

TEST(ForeignFile, OfAnotherVersionIsToldApart) {
  const scratch_folder folder;
  save_sample(folder / "f");
  bytes file = read_file(folder / "f");
  put<std::uint32_t>(file, 8, 2);  // and nothing else: a later version's checksum may lie elsewhere
  write_file(folder / "f", file);

  const auto refused = error_of([&] { any_filter::open(folder / "f"); });

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::wrong_version);
  EXPECT_THAT(refused->what(), HasSubstr("expected version 1, found 2"));
}

TEST(ForeignFile, OfOtherBytesIsNoFilter) {
  const scratch_folder folder;
  for (const std::string& content :
       {""s, "x"s, "not a filter\n"s, std::string(10'000, '\0'), std::string(5000, '\x89')}) {
    write_file(folder / "f", content);

    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), errc::not_a_filter) << content.size();
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); }), errc::not_a_filter);
    EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::not_a_filter);
    EXPECT_FALSE(inspect(folder / "f").usable);
  }
}

TEST(ForeignFile, ThatIsNoRegularFileIsRefusedAtOnce) {
  const scratch_folder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder.path(), folder / "fifo", "/dev/zero"s}) {
    for (const access mode : {access::read_only, access::read_write}) {
      EXPECT_EQ(code_of([&] { any_filter::open(path, {.mode = mode}); }), errc::not_a_filter) << path;
    }
    EXPECT_EQ(code_of([&] { any_filter::load(path); }), errc::not_a_filter) << path;
    EXPECT_FALSE(inspect(path).usable) << path;
  }
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "missing"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "fifo/f"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { any_filter::open(""); }), errc::not_found);
  EXPECT_FALSE(inspect(folder / "missing").usable);
}

TEST(ForeignFile, WithAHeaderThatLiesUnderARightChecksumIsRefused) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const bytes good = read_file(folder / "f");
  const auto most = std::numeric_limits<std::uint64_t>::max();
  const auto name = [](std::size_t at, const std::string& text) {
    return [=](bytes& h) {
      std::fill_n(h.begin() + static_cast<std::ptrdiff_t>(at), 32, 0);
      std::copy(text.begin(), text.end(), h.begin() + static_cast<std::ptrdiff_t>(at));
    };
  };
  const auto number = [](std::size_t at, auto value) { return [=](bytes& h) { put(h, at, value); }; };
  // A geometry whose file would be of such a length, in a file that is not.
  const auto bits = [](std::uint64_t count) {
    return [=](bytes& h) {
      put(h, 128, count);
      put(h, 176, format::extents_for(count, get<std::uint64_t>(h, 160)).file_bytes);
    };
  };
  struct {
    const char* what;
    std::function<void(bytes&)> tamper;
    errc code = errc::damaged;
  } const cases[] = {
      {"another header length", number(12, std::uint32_t{8192})},
      {"no layout", name(16, "")},
      {"a layout and a scheme", name(48, "perl")},
      {"no hash", name(80, "")},
      {"an unreadable name", name(16, "class\nic")},
      {"a name without end", name(16, std::string(32, 'c'))},
      {"bytes after a name", [](bytes& h) { h[40] = 'x'; }},
      {"a key kind of 2", number(112, std::uint32_t{2})},
      {"a key kind of 2^32 - 1", number(112, ~std::uint32_t{0})},
      {"cells of 4 bits", number(116, std::uint32_t{4})},
      {"no bits", bits(0)},
      {"2^64 - 1 bits", bits(most)},
      {"2^64 - 1 bits in a header of the old length", number(128, most)},
      {"2^63 bits", bits(std::uint64_t{1} << 63)},
      {"2^50 bits", bits(std::uint64_t{1} << 50)},
      {"a page more", bits(80'001 + 32'768)},
      {"a page less", bits(80'001 - 32'768)},
      {"no probes", number(136, std::uint32_t{0})},
      {"256 probes", number(136, std::uint32_t{256})},
      {"2^32 - 1 probes", number(136, ~std::uint32_t{0})},
      {"something after the probes", number(140, std::uint32_t{1})},
      {"a rate that is not a number", number(152, std::numeric_limits<double>::quiet_NaN())},
      {"a rate of 2", number(152, 2.0)},
      {"a rate below 0", number(152, -0.5)},
      {"a rate of infinity", number(152, std::numeric_limits<double>::infinity())},
      {"2^64 - 1 bytes of metadata", number(160, most)},
      {"1 MiB + 1 of metadata", number(160, (std::uint64_t{1} << 20) + 1)},
      {"1 MiB of metadata that is not there", number(160, std::uint64_t{1} << 20)},
      {"other metadata", number(168, std::uint64_t{1})},
      {"another length", number(176, std::uint64_t{4096})},
      {"a length of 2^64 - 1", number(176, most)},
      {"a check value without a secret", [](bytes& h) { h[184] = 1; }},
      {"a keyed hash without a check value", name(80, "siphash")},
      {"bytes in the reserved part", [](bytes& h) { h[192] = 1; }},
      {"bytes between the slots", [](bytes& h) { h[600] = 1; }},
      {"bytes at the end", [](bytes& h) { h[4095] = 1; }},
      {"a hash for integers with bytes", name(80, "mix")},
      {"a seed that murmur3 cannot have",
       [&](bytes& h) { name(80, "murmur3")(h), put(h, 120, std::uint64_t{1} << 32); }},
      {"half a block", name(16, "split_block")},
      {"integers for a scheme",
       [&](bytes& h) { name(16, "")(h), name(80, "")(h), name(48, "perl")(h), put(h, 112, std::uint32_t{1}); }},
      {"a layout of tomorrow", name(16, "tomorrow"), errc::incompatible},
      {"a hash of tomorrow", name(80, "tomorrow"), errc::incompatible},
      {"a scheme of tomorrow", [&](bytes& h) { name(16, "")(h), name(80, "")(h), name(48, "tomorrow")(h); },
       errc::incompatible},
  };
  for (const auto& c : cases) {
    write_file(folder / "f", with_header(good, c.tamper));

    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), c.code) << c.what;
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); }), c.code) << c.what;
    EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), c.code) << c.what;
  }
  write_file(folder / "f", with_header(good, [](bytes&) {}));
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), std::nullopt);
}

// The rate at 2^64 keys and 255 probes takes a second to compute: opening does not.
TEST(ForeignFile, WithAnAbsurdCapacityOpensWithoutComputingItsRate) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const bytes file = with_header(read_file(folder / "f"), [](bytes& h) {
    put(h, 136, std::uint32_t{255});
    put(h, 144, ~std::uint64_t{0});
    put(h, 152, 0.0);
  });
  write_file(folder / "f", file);
  const auto processor_time = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };

  const double before = processor_time();
  for (int i = 0; i < 100; ++i) any_filter::open(folder / "f");

  EXPECT_LT(processor_time() - before, 5);
}

// Bits after the last one should be 0; in a stranger's file they may not be.
TEST(ForeignFile, WithBitsBeyondItsLastIsCountedSanely) {
  const scratch_folder folder;
  const bytes payload = {0xFF, 0xFF};
  const params p{.layout = "classic", .hash = "mix", .keys = key_kind::u64le, .geometry = {9, 2}};
  save_file(folder / "f", p, payload, {.inserted = 3});

  const any_filter any = any_filter::load(folder / "f");
  const auto fixed = filter<std::uint64_t, layouts::classic>::load(folder / "f");

  EXPECT_EQ(any.fill_ratio(), 1);
  EXPECT_EQ(fixed.fill_ratio(), 1);
  EXPECT_EQ(any.approximate_size(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(fixed.approximate_size(), std::numeric_limits<double>::infinity());
}

// ---- where it cannot be written -------------------------------------------------------------------------------------

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
  const scratch_folder folder;
  save_sample(folder / "f");
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
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;  // root may do anything: be somebody else
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

// ---- several processes ----------------------------------------------------------------------------------------------

TEST(SharedFile, HasOneWriterAndManyReaders) {
  const scratch_folder folder;
  save_sample(folder / "f");
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
  const scratch_folder folder;
  save_sample(folder / "f");
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
  EXPECT_TRUE(second.opened_from()->clean);  // what the child left, not what was there before
  EXPECT_EQ(second.insert_count(), sample_filter().insert_count() + 1);
}

TEST(SharedFile, IsNotWaitedForByWhoThrows) {
  const scratch_folder folder;
  save_sample(folder / "f");
  any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});
  const auto give_up = [](const std::string&) { throw std::runtime_error("no patience"); };

  EXPECT_THROW(any_filter::open(folder / "f", {.mode = access::read_write, .waiting = give_up}), std::runtime_error);
}

TEST(SharedFile, ThatWasReplacedMeanwhileIsTheNewOne) {
  const scratch_folder folder;
  save_sample(folder / "f");
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

// The estimate is one of distinct keys, and of these a tenth of the last ones was not counted as new: the rate is right
// if that is taken off once, neither never nor twice.
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

// Whoever is refused must not pass the file off as clean with a count of long ago.
TEST(KilledWriter, LeavesAFileThatARefusedOneDoesNotTouch) {
  const scratch_folder folder;
  any_filter(sample_params).save(folder / "f");
  add_and_be_killed(folder / "f");
  const bytes before = read_file(folder / "f");

  using other = filter<std::string_view, layouts::split_block, xxh3, mapped_storage>;
  EXPECT_EQ(code_of([&] { other::open(folder / "f", access::read_write); }), errc::incompatible);

  EXPECT_EQ(read_file(folder / "f"), before);
  EXPECT_FALSE(inspect(folder / "f").info.clean);
}

TEST(KilledWriter, OfAStrangersHashLeavesAFileThatAnyFilterDoesNotTouch) {
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

// ---- clean close ----------------------------------------------------------------------------------------------------

TEST(CleanClose, WritesChecksumsOfExactlyThePagesThatChanged) {
  const scratch_folder folder;
  const geometry g{4 * page * 8, 8};
  using numbers = filter<std::uint64_t, layouts::split_block, mix, mapped_storage>;
  numbers::create(folder / "f", g, 1000).close();
  bytes file = read_file(folder / "f");
  for (std::size_t at = 5 * page; at < 5 * page + 4 * 8; ++at) file[at] = 0xEE;  // no page is what its checksum says
  write_file(folder / "f", file);
  std::uint64_t key = 0;
  while (layouts::split_block::cells(g, mix{}(key)).next() / 8 / page != 2) ++key;

  numbers filter = numbers::open(folder / "f", access::read_write);
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

TEST(CleanClose, OfSchemesAndBatchesLeavesEveryPageRight) {
  const scratch_folder folder;
  const auto texts = sample_texts(3000);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  for (const char* name : {"guava", "pharo", "python", "perl", "classic", "split_block"}) {
    params p{.geometry = {640'000, 8}, .capacity = 50'000, .target_fpr = 0.01};
    const bool is_scheme = find_scheme(name) != nullptr;
    (is_scheme ? p.scheme : p.layout) = name;
    any_filter created = any_filter::create(folder / name, complete(p));
    created.close();
    any_filter filter = any_filter::open(folder / name, {.mode = access::read_write});

    filter.insert(std::span(keys));
    filter.close();

    EXPECT_THAT(inspect(folder / name, file_check::payload).problems, IsEmpty()) << name;
    const any_filter reopened = any_filter::load(folder / name);
    EXPECT_TRUE(std::all_of(keys.begin(), keys.end(), [&](auto key) { return reopened.may_contain(key); })) << name;
  }
}

TEST(CleanClose, WritesItsStateIntoTheOtherSlotEachTime) {
  const scratch_folder folder;
  save_sample(folder / "f");
  for (std::uint64_t session = 1; session <= 3; ++session) {
    any_filter::open(folder / "f", {.mode = access::read_write}).close();
    const bytes file = read_file(folder / "f");

    // Saved with sequence 1 in both; each session marks dirty (2, 4, ..), then clean (3, 5, ..).
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

TEST(Count, StaysAnEstimateInTheFileWhoeverOpensIt) {
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

TEST(Count, OfAKindThatNobodyKnowsIsADamagedSlot) {
  const scratch_folder folder;
  save_sample(folder / "f");
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

TEST(File, OpenedForReadingRefusesToBeChanged) {
  const scratch_folder folder;
  save_sample(folder / "f");
  any_filter reader = any_filter::open(folder / "f");

  EXPECT_EQ(code_of([&] { reader.insert("key"); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { reader.merge(sample_filter()); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { reader.clear(); }), errc::not_permitted);
  EXPECT_TRUE(has_all_samples(reader));
}

TEST(CleanClose, OfAReaderChangesNothing) {
  const scratch_folder folder;
  save_sample(folder / "f");
  const bytes before = read_file(folder / "f");

  any_filter::open(folder / "f").close();

  EXPECT_EQ(read_file(folder / "f"), before);
}

// ---- the largest sizes ----------------------------------------------------------------------------------------------

// 2^36 bits are 8 GiB, nearly all of it holes.
void expect_huge_filter_works(const params& p, const std::string& path) {
  const auto texts = sample_texts(300);
  std::optional<any_filter> created;
  try {
    created.emplace(any_filter::create(path, p, {.reserve = false}));
  } catch (const error& e) {
    if (e.code() != errc::io) throw;  // only what the file system itself refuses
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
    filter.emplace(numbers::create(folder / "f", g, 1000, {}, {.reserve = false}));
  } catch (const error& e) {
    if (e.code() != errc::io) throw;  // only what the file system itself refuses
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
    if (e.code() != errc::io) throw;  // only what the file system itself refuses
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
