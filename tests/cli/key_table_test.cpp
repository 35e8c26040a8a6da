// Sets of keys in memory, compared with std::unordered_set, also for colliding hashes.
#include "cli/io/key_table.hpp"

#include "support/test.hpp"

#include <thread>
#include <unordered_set>

namespace bloomery::cli {
namespace {

key_hash random_hash(std::mt19937_64& random) { return {random(), random()}; }

TEST(HashTable, AnswersAsASetOfHashesWould) {
  std::mt19937_64 random(1);
  std::vector<key_hash> hashes(300'000);
  for (key_hash& hash : hashes) hash = random_hash(random);
  key_table<hash_slot> table;
  std::unordered_set<std::uint64_t> truth;

  for (int i = 0; i < 1'000'000; ++i) {
    const key_hash hash = hashes[random() % hashes.size()];
    ASSERT_EQ(table.contains(hash), truth.contains(hash.hash64));
    ASSERT_EQ(table.insert(hash, {}), truth.insert(hash.hash64).second);
  }

  EXPECT_EQ(table.size(), truth.size());
  for (const key_hash hash : hashes) ASSERT_EQ(table.contains(hash), truth.contains(hash.hash64));
}

// Hashes that are all at one end of their partition, or equal but for the partition, find room, too.
TEST(HashTable, TakesHashesThatAreNotSpread) {
  for (const std::uint64_t base : {std::uint64_t{1}, ~std::uint64_t{0} - 50'000}) {
    key_table<hash_slot> table;
    for (std::uint64_t i = 0; i < 50'000; ++i) ASSERT_TRUE(table.insert({base + i, 0}, {}));
    for (std::uint64_t i = 0; i < 50'000; ++i) ASSERT_FALSE(table.insert({base + i, 0}, {}));
    EXPECT_EQ(table.size(), 50'000u);
  }
  key_table<hash_slot> table;
  for (std::uint64_t partition = 0; partition < 64; ++partition) EXPECT_TRUE(table.insert({4711, partition}, {}));
  for (std::uint64_t partition = 0; partition < 64; ++partition) EXPECT_FALSE(table.insert({4711, partition}, {}));
}

TEST(HashTable, TakesNoMoreMemoryThanItsHeaderSays) {
  std::mt19937_64 random(2);
  key_table<hash_slot> table;
  for (int i = 0; i < 2'000'000; ++i) table.insert(random_hash(random), {});

  const double bytes_per_key = static_cast<double>(table.bytes()) / static_cast<double>(table.size());
  EXPECT_GE(bytes_per_key, 8 / 0.9);
  EXPECT_LE(bytes_per_key, 8 / 0.59);
}

TEST(TextTable, ComparesTextsWhoseHashesAreEqual) {
  std::mt19937_64 random(3);
  key_table<text_slot> table;
  std::unordered_set<std::string> truth;

  for (int i = 0; i < 200'000; ++i) {
    const std::string text(random() % 40, static_cast<char>('a' + random() % 26));
    // A poor hash: few values for many texts.
    const key_hash hash{text.size() % 5, text.size() % 3};
    ASSERT_EQ(table.insert(hash, text), truth.insert(text).second) << text;
  }

  EXPECT_EQ(table.size(), truth.size());
  EXPECT_GT(truth.size(), 900u);
}

TEST(TextTable, KeepsTextsOfAnyLength) {
  key_table<text_slot> table;
  const std::vector<std::string> texts = {"", std::string(1, '\0'), std::string(20'000'000, 'x'),
                                          std::string(20'000'001, 'x'), "y"};
  for (const std::string& text : texts) EXPECT_TRUE(table.insert({7, 7}, text));
  for (const std::string& text : texts) EXPECT_FALSE(table.insert({7, 7}, std::string(text)));
}

TEST(TextTable, GroupsCanBeFilledByThreadsOfTheirOwn) {
  std::mt19937_64 random(4);
  std::vector<std::pair<key_hash, std::string>> keys;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t number = random() % 50'000;
    keys.emplace_back(key_hash{number * 0x9E3779B97F4A7C15u, number}, std::to_string(number));
  }
  std::unordered_set<std::string> truth;
  std::vector<bool> expected;
  for (const auto& [hash, text] : keys) expected.push_back(truth.insert(text).second);

  key_table<text_slot> table;
  std::vector<std::uint8_t> is_new(keys.size());
  std::vector<std::thread> threads;
  for (unsigned group = 0; group < key_table<text_slot>::groups; ++group) {
    threads.emplace_back([&, group] {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto& [hash, text] = keys[i];
        if (key_table<text_slot>::group_of(hash) == group) is_new[i] = table.insert(hash, text) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(is_new[i] != 0, expected[i]) << i;
}

// Birthdays: of n keys, n^2 / 2^(bits + 1) pairs agree. Measured with 64 - 34 = 30 bits of the stored hash and the 6 of
// the partition.
TEST(HashTable, LosesTheNumberOfKeysOfTheFormula) {
  constexpr int seeds = 10;
  constexpr int keys = 1'000'000;
  std::mt19937_64 random(5);
  double lost = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    key_table<hash_slot> table;
    for (int i = 0; i < keys; ++i) lost += table.insert({random() << 34, random()}, {}) ? 0 : 1;
  }
  const double expected = seeds * losses_by_hash(keys) * 0x1p34;
  EXPECT_NEAR(lost, expected, 5 * std::sqrt(expected));
}

}  // namespace
}  // namespace bloomery::cli
