// Damaged files, files of other versions or programs, and files with false headers: the library refuses them safely.
//
// Offsets are those of docs/format.md.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/mapped_storage.hpp>

#include "file/format.hpp"
#include "file/sample_file.hpp"
#include "support/test.hpp"

#include <sys/stat.h>

#include <iterator>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- damage ---------------------------------------------------------------------------------------------------------

bool in_a_slot(std::size_t offset) {
  return std::any_of(std::begin(slot_offsets), std::end(slot_offsets),
                     [&](std::size_t at) { return offset >= at && offset < at + 64; });
}

TEST(DamagedFile, WithAnyBitOfItsHeaderFlippedIsRefusedOrServedFromTheOtherSlot) {
  const folder_with_sample folder;
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
  const folder_with_sample folder;
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
              HasSubstr("file is truncated: expected 16422 bytes, found 5000"));
}

TEST(DamagedFile, WithAPayloadByteFlippedNamesThePageWhereItIsRead) {
  const folder_with_sample folder;
  const patched_file file(folder / "f");
  for (std::size_t offset = page; offset < 4 * page;
       offset += offset % page == 0 || offset % page == page - 1 ? 1 : 91) {
    SCOPED_TRACE(offset);
    const std::size_t begin = offset / page * page;
    const std::string first = "page " + std::to_string(begin / page - 1) + " (bytes " + std::to_string(begin) + " to " +
                              std::to_string(begin + page - 1) + ") does not match its checksum";
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
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), errc::damaged);
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.check = file_check::header}); }), std::nullopt);
    file.flip(offset, 1u << offset % 8);
  }
}

TEST(DamagedFile, WithItsStateItsMetadataOrAChecksumFlippedIsRefused) {
  struct {
    const char* what;
    std::vector<std::size_t> flipped;
    bool at_once = true;  // without reading the payload
  } const cases[] = {
      {"both slots", {slot_offsets[0], slot_offsets[1] + 63}},
      {"metadata", {4 * page + 24}},
      {"first checksum", {4 * page}, false},
      {"first checksum, last byte", {4 * page + 7}, false},
      {"second checksum", {4 * page + 11}, false},
      {"last checksum", {4 * page + 23}, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const folder_with_sample folder;
    for (const std::size_t offset : c.flipped) patched_file(folder / "f").flip(offset, 1);

    EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::damaged);
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.check = file_check::payload}); }), errc::damaged);
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.check = file_check::header}); }).has_value(), c.at_once);
    EXPECT_EQ(inspect(folder / "f").usable, !c.at_once);
  }
}

// ---- other files, and false headers ---------------------------------------------------------------------------------

TEST(ForeignFile, OfAnotherVersionIsToldApart) {
  const folder_with_sample folder;
  bytes file = read_file(folder / "f");
  put<std::uint32_t>(file, 8, 3);  // no other change: a later version may have its checksum elsewhere
  write_file(folder / "f", file);

  EXPECT_ERROR(any_filter::open(folder / "f"), errc::wrong_version, "expected version 1 or 2, found 3");
}

TEST(ForeignFile, OfOtherBytesIsNotAFilter) {
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

TEST(ForeignFile, ThatIsNotARegularFileIsRefusedAtOnce) {
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

TEST(ForeignFile, WithAFalseHeaderUnderAValidChecksumIsRefused) {
  const folder_with_sample folder;
  const bytes good = read_file(folder / "f");
  const auto most = std::numeric_limits<std::uint64_t>::max();
  const auto number = [](std::size_t at, auto value) { return [=](bytes& h) { put(h, at, value); }; };
  // A geometry that needs a longer file than this one.
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
      {"another header length", u32(12, 8192)},
      {"no layout", name(16, "")},
      {"a layout and a scheme", name(48, "perl")},
      {"no hash", name(80, "")},
      {"an unreadable name", name(16, "class\nic")},
      {"a name without end", name(16, std::string(32, 'c'))},
      {"bytes after a name", [](bytes& h) { h[40] = 'x'; }},
      {"a key kind of 2", u32(112, 2)},
      {"a key kind of 2^32 - 1", u32(112, ~0u)},
      {"cells of 4 bits", u32(116, 4)},
      {"no bits", bits(0)},
      {"2^64 - 1 bits", bits(most)},
      {"2^64 - 1 bits in a header of the old length", u64(128, most)},
      {"2^63 bits", bits(std::uint64_t{1} << 63)},
      {"2^50 bits", bits(std::uint64_t{1} << 50)},
      {"a page more", bits(80'001 + 32'768)},
      {"a page less", bits(80'001 - 32'768)},
      {"no probes", u32(136, 0)},
      {"256 probes", u32(136, 256)},
      {"2^32 - 1 probes", u32(136, ~0u)},
      {"something after the probes", u32(140, 1)},
      {"a rate that is not a number", number(152, std::numeric_limits<double>::quiet_NaN())},
      {"a rate of 2", number(152, 2.0)},
      {"a rate below 0", number(152, -0.5)},
      {"a rate of infinity", number(152, std::numeric_limits<double>::infinity())},
      {"2^64 - 1 bytes of metadata", u64(160, most)},
      {"1 MiB + 1 of metadata", u64(160, (std::uint64_t{1} << 20) + 1)},
      {"1 MiB of metadata that is not there", u64(160, std::uint64_t{1} << 20)},
      {"other metadata", u64(168, 1)},
      {"another length", u64(176, 4096)},
      {"a length of 2^64 - 1", u64(176, most)},
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

// The FPR at 2^64 keys and 255 probes takes a second to compute: open() must not compute it.
TEST(ForeignFile, WithAnAbsurdCapacityOpensWithoutComputingItsRate) {
  const folder_with_sample folder;
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

// Bits after the last one should be 0, but another program may have set them.
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

}  // namespace
}  // namespace bloomery
