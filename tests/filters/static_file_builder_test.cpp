// static_file_builder: hashes on disk give the files that hashes in memory give, and errors leave no file.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/static_file_builder.hpp>
#include <bloomery/static_filter.hpp>

#include "support/test.hpp"

#include <bit>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace {

using namespace bloomery;
using namespace bloomery_tests;

const params of_integers{.hash = "mix", .keys = key_kind::u64le};
constexpr std::uint64_t always_on_disk = 1;

// Keys 0 to n - 1, each `times` times.
std::vector<std::uint64_t> keys_up_to(std::uint64_t n, unsigned times = 1) {
  std::vector<std::uint64_t> keys;
  for (unsigned t = 0; t < times; ++t) {
    for (std::uint64_t i = 0; i < n; ++i) keys.push_back(i);
  }
  return keys;
}

std::vector<std::uint64_t> hash64s_of(std::span<const std::uint64_t> keys) {
  std::vector<std::uint64_t> hash64s;
  for (const std::uint64_t key : keys) hash64s.push_back(mix{}(key).hash64);
  return hash64s;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Builds a file on disk and returns its bytes.
std::string built(std::span<const std::uint64_t> hash64s, unsigned width, static_structure structure,
                  static_file_options options = {}) {
  options.memory = always_on_disk;
  static_file_builder builder("built", options);
  builder.append(hash64s);
  builder.build(of_integers, width, structure);
  builder.publish();
  return contents("built");
}

// The bytes by construction in memory.
std::string expected(std::span<const std::uint64_t> keys, unsigned width, static_structure structure) {
  any_filter::build_static(of_integers, keys, width, 2, structure).save("expected");
  return contents("expected");
}

TEST(StaticFileBuilder, GivesTheBytesOfConstructionInMemory) {
  for (const static_structure structure : {static_structure::fuse, static_structure::ribbon}) {
    for (const unsigned width : {1u, 7u, 8u, 13u, 16u, 32u}) {
      for (const std::uint64_t n : {0u, 1u, 2u, 300u, 20'000u}) {
        const auto keys = keys_up_to(n, 2);

        EXPECT_EQ(built(hash64s_of(keys), width, structure), expected(keys, width, structure)) << width << " " << n;
      }
    }
  }
}

// 1.4 million hashes are two partitions, but with half of them repeated, one is left.
TEST(StaticFileBuilder, GivesTheBytesOfSeveralPartitions) {
  struct test_case {
    std::uint64_t keys;
    unsigned times, width, threads;
  };
  for (const test_case c : {test_case{1'400'000, 1, 7, 2}, {700'000, 2, 7, 2}, {2'700'000, 1, 9, 3}}) {
    for (const static_structure structure : {static_structure::fuse, static_structure::ribbon}) {
      const auto keys = keys_up_to(c.keys, c.times);

      EXPECT_EQ(built(hash64s_of(keys), c.width, structure, {.threads = c.threads}), expected(keys, c.width, structure))
          << c.keys;
    }
  }
}

TEST(StaticFileBuilder, FindsEveryKey) {
  const auto keys = keys_up_to(1'500'000);
  built(hash64s_of(keys), 7, static_structure::fuse);

  const any_filter filter = any_filter::open("built", {.check = file_check::payload});
  std::vector<std::uint64_t> bitmap(keys.size() / 64 + 1);
  filter.may_contain(keys, bitmap);

  EXPECT_EQ(filter.insert_count(), keys.size());
  std::uint64_t found = 0;
  for (const std::uint64_t word : bitmap) found += static_cast<std::uint64_t>(std::popcount(word));
  EXPECT_EQ(found, keys.size());
}

TEST(StaticFileBuilder, UsesTheDiskOnlyBeyondTheMemoryLimit) {
  const auto hash64s = hash64s_of(keys_up_to(400'000));
  static_file_builder builder("built", {.memory = 20'000'000, .threads = 1});  // 77 bytes per key of a partition

  builder.append(std::span(hash64s).first(200'000));
  EXPECT_EQ(builder.temporary_bytes(), 0u);
  builder.append(std::span(hash64s).subspan(200'000));
  EXPECT_EQ(builder.temporary_bytes(), 8 * hash64s.size());
  const params p = builder.build(of_integers, 8);
  builder.publish();

  EXPECT_EQ(p.capacity, hash64s.size());
  EXPECT_EQ(contents("built"), expected(keys_up_to(400'000), 8, static_structure::fuse));
}

// A thread without a partition takes no memory.
TEST(StaticFileBuilder, KeepsOneKeyInMemoryForAnyNumberOfThreads) {
  static_file_builder builder("built", {.memory = 1'000, .threads = 1'000});

  builder.append(hash64s_of(keys_up_to(1)));

  EXPECT_EQ(builder.temporary_bytes(), 0u);
}

TEST(StaticFileBuilder, RefusesStepsInAnotherOrder) {
  for (const std::uint64_t memory : {always_on_disk, std::uint64_t{1} << 30}) {
    static_file_builder builder("built", {.memory = memory});
    builder.append(hash64s_of(keys_up_to(100)));
    EXPECT_ERROR(builder.publish(), errc::invalid_argument, "cannot publish");
    builder.build(of_integers, 8);
    EXPECT_ERROR(builder.build(of_integers, 8), errc::invalid_argument, "cannot build");
    EXPECT_ERROR(builder.append(hash64s_of(keys_up_to(1))), errc::invalid_argument, "cannot append");
    builder.publish();
    EXPECT_ERROR(builder.publish(), errc::invalid_argument, "cannot publish");

    EXPECT_EQ(contents("built"), expected(keys_up_to(100), 8, static_structure::fuse));
  }
}

TEST(StaticFileBuilder, DoesNotLockTheFileWhileItCollectsKeys) {
  for (const std::uint64_t memory : {always_on_disk, std::uint64_t{1} << 30}) {
    static_file_builder first("shared", {.memory = memory});
    first.append(hash64s_of(keys_up_to(10)));
    static_file_builder second("shared", {.memory = memory});
    second.append(hash64s_of(keys_up_to(20)));
    second.build(of_integers, 8);
    second.publish();

    first.build(of_integers, 8);
    first.publish();

    EXPECT_EQ(contents("shared"), expected(keys_up_to(10), 8, static_structure::fuse));
  }
}

TEST(StaticFileBuilder, TakesHashesOf128Bits) {
  const auto keys = keys_up_to(5000);
  std::vector<key_hash> hashes;
  for (const std::uint64_t key : keys) hashes.push_back(mix{}(key));

  static_file_builder builder("built");
  builder.append(hashes);
  builder.build(of_integers, 8);
  builder.publish();

  EXPECT_EQ(builder.size(), 5000u);
  EXPECT_EQ(contents("built"), expected(keys, 8, static_structure::fuse));
}

TEST(StaticFileBuilder, StoresTheMetadata) {
  built(hash64s_of(keys_up_to(100)), 8, static_structure::fuse, {.file = {.metadata = "of numbers"}});

  EXPECT_EQ(inspect("built", file_check::payload).problems, std::vector<std::string>());
  EXPECT_EQ(inspect("built").info.metadata, "of numbers");
}

// ---- hashes that are not uniform ------------------------------------------------------------------------------------

TEST(StaticFileBuilder, GivesTheBytesOfSkewedHashes) {
  std::vector<std::uint64_t> hash64s;
  for (std::uint64_t i = 0; i < 2'000'000; ++i) hash64s.push_back(i % 2 == 0 ? i : i << 40);
  std::vector<std::uint64_t> copy = hash64s;

  static_bytes in_memory = fuse_build(copy, 8);
  save_file("expected", static_params(of_integers, 8, in_memory), {in_memory.payload.data(), in_memory.payload.size()},
            {.inserted = in_memory.keys});

  EXPECT_EQ(built(hash64s, 8, static_structure::fuse), contents("expected"));
}

// A group is limited to 128 MiB here: 16,777,216 hashes.
TEST(StaticFileBuilder, ReadsAGroupOfManyRepetitionsInPieces) {
  std::vector<std::uint64_t> hash64s(17'500'000, 42);
  for (std::uint64_t i = 0; i < 1000; ++i) hash64s[17'000 * i] = i << 20;

  const std::string bytes = built(hash64s, 8, static_structure::fuse);

  EXPECT_EQ(inspect("built").info.parameters.capacity, 1001u);
  std::vector<std::uint64_t> distinct(1, 42);
  for (std::uint64_t i = 0; i < 1000; ++i) distinct.push_back(i << 20);
  EXPECT_EQ(bytes, built(distinct, 8, static_structure::fuse));
}

TEST(StaticFileBuilder, RefusesMoreSimilarHashesThanFitIntoMemory) {
  std::vector<std::uint64_t> hash64s(17'500'000);
  for (std::uint64_t i = 0; i < hash64s.size(); ++i) hash64s[i] = i;

  std::filesystem::remove("built");

  EXPECT_ERROR(built(hash64s, 8, static_structure::fuse), errc::too_large, "allow more memory, or use another hash");

  EXPECT_FALSE(std::filesystem::exists("built"));
}

// ---- progress and failures ------------------------------------------------------------------------------------------

TEST(StaticFileBuilder, ReportsTheKeysOfEachStep) {
  std::uint64_t counted = 0;
  std::uint64_t built_keys = 0;
  const auto watch = [&](static_step step, std::uint64_t keys) {
    (step == static_step::count ? counted : built_keys) = keys;
  };

  built(hash64s_of(keys_up_to(700'000, 2)), 8, static_structure::fuse, {.threads = 2, .watch = watch});

  EXPECT_EQ(counted, 1'400'000u);
  EXPECT_EQ(built_keys, 700'000u);
}

TEST(StaticFileBuilder, LeavesTheOldFileIfTheWatchThrows) {
  any_filter::build_static(of_integers, keys_up_to(10), 8).save("built");
  const std::string before = contents("built");
  for (const static_step step : {static_step::count, static_step::build}) {
    const auto watch = [&](static_step now, std::uint64_t) {
      if (now == step) throw std::runtime_error("stop");
    };

    EXPECT_THROW(built(hash64s_of(keys_up_to(3'000'000)), 8, static_structure::fuse, {.threads = 3, .watch = watch}),
                 std::runtime_error);

    EXPECT_EQ(contents("built"), before);
  }
  EXPECT_FALSE(std::filesystem::exists("built.unfinished"));
}

TEST(StaticFileBuilder, NamesTheFolderThatIsMissing) {
  static_file_builder builder("built", {.memory = always_on_disk, .folder = "no/such/folder"});

  EXPECT_ERROR(builder.append(hash64s_of(keys_up_to(1))), errc::not_found, "no/such/folder");
  EXPECT_ERROR(static_file_builder("no/such/folder/file"), errc::not_found, "no/such/folder/file");
}

TEST(StaticFileBuilder, ChecksTheDiskSpaceOfTheTemporaryFile) {
  const static_file_builder builder("built", {.memory = std::uint64_t{1} << 30, .folder = "."});

  builder.check_room(1000);

  EXPECT_ERROR(builder.check_room(std::uint64_t{1} << 50), errc::io, "not enough disk space");
}

TEST(StaticFileBuilder, RefusesADeviceOnlyIfTheKeysDoNotFitIntoMemory) {
  static_file_builder in_memory("/dev/null");
  in_memory.append(hash64s_of(keys_up_to(10)));
  in_memory.build(of_integers, 8);
  in_memory.publish();
  static_file_builder on_disk("/dev/null", {.memory = always_on_disk});

  EXPECT_ERROR(on_disk.append(hash64s_of(keys_up_to(10))), errc::too_large, "allow more memory, or write a file");
}

TEST(StaticFileBuilder, RefusesAnInvalidWidth) {
  static_file_builder builder("built", {.memory = always_on_disk});

  EXPECT_ERROR(builder.build(of_integers, 33), errc::invalid_argument, "33");
}

}  // namespace
