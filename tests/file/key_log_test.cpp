// The key log: complete records are read; torn and damaged records are counted, and no other record is lost.
#include <bloomery/detail/key_log.hpp>

#include <bloomery/hash.hpp>

#include "support/processes.hpp"
#include "support/test.hpp"

#include <sys/resource.h>

#include <initializer_list>

namespace bloomery {
namespace {

using namespace bloomery_tests;

using hashes = std::vector<std::uint64_t>;

const params some_params = complete({.layout = "split_block512", .seed = 7, .capacity = 1000, .target_fpr = 0.01});

hashes numbers(std::uint64_t first, std::size_t count) {
  hashes hash64s(count);
  std::iota(hash64s.begin(), hash64s.end(), first);
  for (std::uint64_t& hash64 : hash64s) hash64 = mix64(hash64);
  return hash64s;
}

hashes joined(std::initializer_list<hashes> parts) {
  hashes all;
  for (const hashes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

struct contents {
  hashes hash64s;
  log_reading seen;
};

contents read_all(const key_log& log, std::uint64_t from = 0, std::uint64_t to = key_log::all) {
  contents c;
  c.seen = log.read(
      from, [&](std::span<const std::uint64_t> some) { c.hash64s.insert(c.hash64s.end(), some.begin(), some.end()); },
      to);
  return c;
}

contents read_all(const std::string& path) { return read_all(key_log::open(path)); }

std::uint64_t record(std::size_t keys) { return key_log::record_header_bytes + 8 * keys; }

TEST(KeyLog, GivesBackWhatWasAppendedInItsOrder) {
  const scratch_folder folder;
  key_log log = key_log::create(folder / "log", some_params);
  const hashes a = numbers(0, 3), b = numbers(0, 200'000), c = numbers(9, 1);

  log.append(a);
  log.append({});
  log.append(b);
  const std::uint64_t here = log.bytes();
  log.append(c);

  EXPECT_EQ(read_all(log).hash64s, joined({a, b, c}));
  EXPECT_EQ(read_all(log, here).hash64s, c);
  EXPECT_EQ(read_all(log, 0, here).hash64s, joined({a, b}));
  EXPECT_TRUE(read_all(log, 0, here).seen.whole());
  EXPECT_EQ(log.keys(), 200'004u);
  EXPECT_EQ(log.bytes(), read_file(folder / "log").size());
}

TEST(KeyLog, OpensWhereItEndedAndGoesOn) {
  const scratch_folder folder;
  key_log::create(folder / "log", some_params).append(numbers(0, 70'000));

  {
    key_log log = key_log::open(folder / "log", {.mode = access::read_write});
    EXPECT_EQ(log.keys(), 70'000u);
    log.append(numbers(70'000, 5));
  }

  const key_log log = key_log::open(folder / "log");
  EXPECT_EQ(read_all(log).hash64s, numbers(0, 70'005));
  EXPECT_EQ(log.parameters().hash, "xxh3_64");
  EXPECT_EQ(log.parameters().seed, 7u);
  EXPECT_EQ(log.parameters().layout, "split_block512");
  EXPECT_EQ(log.parameters().target_fpr, 0.01);
  EXPECT_NE(log.parameters().log_id(), 0u);
  EXPECT_EQ(log.generation(), 1u);
}

TEST(KeyLog, AnotherLogHasAnotherNumber) {
  const scratch_folder folder;

  const key_log a = key_log::create(folder / "a", some_params), b = key_log::create(folder / "b", some_params);

  EXPECT_NE(a.parameters().log_id(), b.parameters().log_id());
}

TEST(KeyLog, LocksOutASecondWriterAndNoReader) {
  const scratch_folder folder;
  const key_log log = key_log::create(folder / "log", some_params);

  EXPECT_EQ(code_of([&] { key_log::open(folder / "log", {.mode = access::read_write}); }), errc::locked);
  EXPECT_EQ(code_of([&] { key_log::create(folder / "log", some_params); }), errc::locked);
  EXPECT_EQ(code_of([&] { key_log::open(folder / "log"); }), std::nullopt);
}

TEST(KeyLog, TornAtAnyByteOfItsLastRecordLosesThatRecordAlone) {
  const scratch_folder folder;
  {
    key_log log = key_log::create(folder / "log", some_params);
    log.append(numbers(0, 10));
    log.append(numbers(10, 5));
  }
  const bytes whole = read_file(folder / "log");
  const std::size_t first_end = key_log::header_bytes + record(10);

  for (std::size_t length = first_end; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    write_file(folder / "torn", bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));

    key_log log = key_log::open(folder / "torn", {.mode = access::read_write});
    ASSERT_EQ(log.keys(), 10u);
    ASSERT_EQ(log.torn_bytes(), length - first_end);
    const contents before = read_all(log);
    ASSERT_EQ(before.hash64s, numbers(0, 10));
    ASSERT_TRUE(before.seen.whole());
    ASSERT_EQ(before.seen.torn_bytes, length - first_end);
    log.append(numbers(50, 2));

    ASSERT_EQ(read_all(folder / "torn").hash64s, joined({numbers(0, 10), numbers(50, 2)}));
    ASSERT_EQ(read_file(folder / "torn").size(), first_end + record(2));
  }
}

TEST(KeyLog, CutWithinItsHeaderIsRefused) {
  const scratch_folder folder;
  key_log::create(folder / "log", some_params);
  const bytes whole = read_file(folder / "log");

  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    write_file(folder / "torn", bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    const auto code = code_of([&] { key_log::open(folder / "torn"); });
    ASSERT_TRUE(code == errc::not_a_filter || code == errc::damaged);
  }
}

TEST(KeyLog, EveryBitOfTheHeaderIsNoticed) {
  const scratch_folder folder;
  key_log::create(folder / "log", some_params);
  const bytes whole = read_file(folder / "log");

  for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 7) {
    bytes spoiled = whole;
    spoiled[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    write_file(folder / "spoiled", spoiled);
    ASSERT_TRUE(code_of([&] { key_log::open(folder / "spoiled"); })) << bit;
  }
}

TEST(KeyLog, AFlippedBitInTheMiddleCostsItsRecordAndIsCounted) {
  const scratch_folder folder;
  const std::size_t sizes[] = {4, 1, 30, 7, 12};
  {
    key_log log = key_log::create(folder / "log", some_params);
    std::uint64_t first = 0;
    for (const std::size_t size : sizes) {
      log.append(numbers(first, size));
      first += size;
    }
  }
  const bytes whole = read_file(folder / "log");
  std::size_t start = key_log::header_bytes;
  std::uint64_t first = 0;

  for (std::size_t number = 0; number + 1 < std::size(sizes); ++number) {
    for (std::size_t bit = 0; bit < 8 * record(sizes[number]); bit += 11) {
      SCOPED_TRACE(testing::Message() << "record " << number << ", bit " << bit);
      bytes spoiled = whole;
      spoiled[start + bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      write_file(folder / "spoiled", spoiled);

      const contents c = read_all(folder / "spoiled");

      ASSERT_EQ(c.seen.lost_keys, sizes[number]);
      ASSERT_EQ(c.seen.damaged_places, 1u);
      ASSERT_EQ(c.seen.first_damage, start);
      ASSERT_EQ(c.hash64s, joined({numbers(0, first), numbers(first + sizes[number], 54 - first - sizes[number])}));
      ASSERT_EQ(key_log::open(folder / "spoiled").keys(), 54u);
    }
    start += record(sizes[number]);
    first += sizes[number];
  }
}

TEST(KeyLog, SeveralDamagedPlacesAreCountedApart) {
  const scratch_folder folder;
  {
    key_log log = key_log::create(folder / "log", some_params);
    for (std::uint64_t i = 0; i < 10; ++i) log.append(numbers(100 * i, 100));
  }
  bytes spoiled = read_file(folder / "log");
  for (const std::size_t number : {2u, 3u, 7u}) spoiled[key_log::header_bytes + number * record(100) + 60] ^= 1;
  write_file(folder / "log", spoiled);

  const contents c = read_all(folder / "log");

  EXPECT_EQ(c.seen.damaged_places, 2u);
  EXPECT_EQ(c.seen.lost_keys, 300u);
  EXPECT_EQ(c.seen.keys, 700u);
  EXPECT_EQ(c.seen.first_damage, key_log::header_bytes + 2 * record(100));
  EXPECT_THAT(c.seen.damage_in_words(), HasSubstr("300 keys lost in 2 places, the first at byte 1904"));
}

TEST(KeyLog, ARecordThatIsTakenOutIsMissed) {
  const scratch_folder folder;
  {
    key_log log = key_log::create(folder / "log", some_params);
    for (std::uint64_t i = 0; i < 3; ++i) log.append(numbers(10 * i, 10));
  }
  bytes shorter = read_file(folder / "log");
  const auto second = shorter.begin() + static_cast<std::ptrdiff_t>(key_log::header_bytes + record(10));
  shorter.erase(second, second + static_cast<std::ptrdiff_t>(record(10)));
  write_file(folder / "log", shorter);

  const contents c = read_all(folder / "log");

  EXPECT_EQ(c.seen.lost_keys, 10u);
  EXPECT_EQ(c.seen.damaged_places, 1u);
  EXPECT_EQ(c.hash64s, joined({numbers(0, 10), numbers(20, 10)}));
}

TEST(KeyLog, ARecordOfAnotherLogIsNone) {
  const scratch_folder folder;
  key_log::create(folder / "other", some_params).append(numbers(0, 10));
  {
    key_log log = key_log::create(folder / "log", some_params);
    log.append(numbers(0, 10));
    log.append(numbers(10, 10));
  }
  bytes mixed = read_file(folder / "log");
  const bytes other = read_file(folder / "other");
  std::copy(other.begin() + key_log::header_bytes, other.end(), mixed.begin() + key_log::header_bytes);
  write_file(folder / "log", mixed);

  EXPECT_EQ(read_all(folder / "log").hash64s, numbers(10, 10));
}

TEST(KeyLog, DamageInALargeLogIsFoundByReadingItThrough) {
  const scratch_folder folder;
  {
    key_log log = key_log::create(folder / "log", some_params);
    log.append(numbers(0, 500'000));
  }
  bytes spoiled = read_file(folder / "log");
  spoiled[spoiled.size() / 3] ^= 4;
  write_file(folder / "log", spoiled);

  const key_log log = key_log::open(folder / "log");
  const contents c = read_all(log);

  EXPECT_EQ(log.keys(), 500'000u);
  EXPECT_EQ(c.seen.lost_keys, key_log::most_keys_of_record);
  EXPECT_EQ(c.hash64s.size(), 500'000 - key_log::most_keys_of_record);
}

// A hostile file: a record header of maximum size at every word.
TEST(KeyLog, DoesNotSearchAFileFullOfRecordHeadersEndlessly) {
  const scratch_folder folder;
  key_log::create(folder / "log", some_params);
  bytes file = read_file(folder / "log");
  const std::uint64_t heading = std::uint64_t{65'536} << 32 | 0x52474F4C;
  file.resize(file.size() + (std::size_t{2} << 20));
  for (std::size_t at = key_log::header_bytes; at < file.size(); at += 8) std::memcpy(file.data() + at, &heading, 8);
  write_file(folder / "log", file);

  const key_log log = key_log::open(folder / "log");

  EXPECT_EQ(log.keys(), 0u);
  EXPECT_EQ(log.torn_bytes(), std::uint64_t{2} << 20);
}

TEST(KeyLog, RemovingDuplicatesKeepsEachKeyOnce) {
  const scratch_folder folder;
  std::mt19937_64 random(1);
  hashes hash64s(2'200'000);
  for (std::uint64_t& hash64 : hash64s) hash64 = mix64(random() % 400'000);
  hashes truth = hash64s;
  std::sort(truth.begin(), truth.end());
  truth.erase(std::unique(truth.begin(), truth.end()), truth.end());
  key_log log = key_log::create(folder / "log", some_params);
  for (std::size_t at = 0; at < hash64s.size(); at += 100'000) log.append(std::span(hash64s).subspan(at, 100'000));
  const std::uint64_t id = log.parameters().log_id();
  EXPECT_NEAR(static_cast<double>(log.estimate_distinct()), static_cast<double>(truth.size()), 8000);

  log.remove_duplicates();

  hashes left = read_all(log).hash64s;
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, truth);
  EXPECT_EQ(log.generation(), 2u);
  EXPECT_EQ(log.parameters().log_id(), id);
  const key_log again = key_log::open(folder / "log");
  EXPECT_EQ(again.keys(), truth.size());
  EXPECT_EQ(again.generation(), 2u);
  EXPECT_EQ(code_of([&] { key_log::open(folder / "log", {.mode = access::read_write}); }), errc::locked);
}

TEST(KeyLog, DuplicatesOfADamagedLogAreNotRemoved) {
  const scratch_folder folder;
  {
    key_log log = key_log::create(folder / "log", some_params);
    log.append(numbers(0, 10));
    log.append(numbers(0, 10));
  }
  bytes spoiled = read_file(folder / "log");
  spoiled[300] ^= 1;
  write_file(folder / "log", spoiled);

  key_log log = key_log::open(folder / "log", {.mode = access::read_write});

  EXPECT_EQ(code_of([&] { log.remove_duplicates(); }), errc::damaged);
  EXPECT_EQ(read_file(folder / "log"), spoiled);
  EXPECT_FALSE(std::filesystem::exists(folder / "log.rebuild"));
}

TEST(KeyLog, KeysAreEstimatedWithinThreeTenthsOfAPercent) {
  const scratch_folder folder;
  key_log log = key_log::create(folder / "log", some_params);
  log.append(numbers(0, 2'000'000));

  EXPECT_NEAR(static_cast<double>(log.estimate_distinct()), 2e6, 4 * 2e6 / std::sqrt(400'000.0));
}

TEST(KeyLog, FewKeysAreCountedExactlyHoweverOftenTheyAreRepeated) {
  const scratch_folder folder;
  key_log log = key_log::create(folder / "log", some_params);
  EXPECT_EQ(log.estimate_distinct(), 0u);
  const auto hash64s = numbers(0, 20'001);  // numbers(0) is 0, too
  for (int i = 0; i < 1000; ++i) log.append(hash64s);

  EXPECT_EQ(log.estimate_distinct(), 20'001u);
  EXPECT_EQ(log.estimate_distinct(key_log::header_bytes + record(20'001)), 20'001u);
}

TEST(KeyLog, RepetitionsDoNotBlurTheEstimate) {
  const scratch_folder folder;
  key_log log = key_log::create(folder / "log", some_params);
  for (int i = 0; i < 2; ++i) log.append(numbers(0, 2'500'000));

  EXPECT_NEAR(static_cast<double>(log.estimate_distinct()), 2.5e6, 4 * 2.5e6 / std::sqrt(500'000.0));
}

// One key, so often that its copies would take 96 MB.
TEST(KeyLog, RepetitionsAreRemovedInTheMemoryOfTheDistinctKeys) {
  const scratch_folder folder;
  const std::string path = folder / "log";
  {
    key_log log = key_log::create(path, some_params);
    const hashes copies(1'000'000, 17);
    for (int i = 0; i < 12; ++i) log.append(copies);
  }

  const int status = status_of_child([&] {
    const auto most_kilobytes = [] {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss;
    };
    const auto before = most_kilobytes();
    key_log log = key_log::open(path, {.mode = access::read_write});
    log.remove_duplicates();
    if (log.keys() != 1) return 1;
    return most_kilobytes() - before < 80'000 ? 0 : 2;
  });

  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace bloomery
