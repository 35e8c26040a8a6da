// hash_span: a view of keys as hashes, as hash64s, or as integers that are hashed when they are read.
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/hash.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

TEST(HashSpan, GivesTheHashesItWasMadeOf) {
  const std::vector<key_hash> hashes = {{1, 2}, {3, 4}, {~std::uint64_t{0}, 0}};

  const hash_span source = hash_span::hashes(hashes);

  ASSERT_EQ(source.size(), 3u);
  EXPECT_EQ(source.form(), hash_span::kind::hashes);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(source.hash(i), hashes[i]);
    EXPECT_EQ(source.hash64(i), hashes[i].hash64);
  }
  EXPECT_EQ(hash_span::hashes({}).size(), 0u);
}

TEST(HashSpan, GivesHash64sWithoutTheHighBits) {
  const std::vector<std::uint64_t> hash64s = {5, 0, ~std::uint64_t{0}};

  const hash_span source = hash_span::hash64s(hash64s);

  ASSERT_EQ(source.size(), 3u);
  EXPECT_EQ(source.form(), hash_span::kind::hash64s);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(source.hash(i), (key_hash{hash64s[i], 0}));
    EXPECT_EQ(source.hash64(i), hash64s[i]);
  }
}

TEST(HashSpan, HashesIntegersAsTheirHashDoes) {
  const std::vector<std::uint64_t> keys = {0, 1, 42, ~std::uint64_t{0}};
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    const hash_span source = hash_span::mixed(keys, mix(seed));

    ASSERT_EQ(source.size(), keys.size());
    EXPECT_EQ(source.form(), hash_span::kind::mixed);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(source.hash(i), mix(seed)(keys[i]));
      EXPECT_EQ(source.hash64(i), mix(seed)(keys[i]).hash64);
    }
  }
}

TEST(HashSpan, HasPartsOfTheSameForm) {
  const std::vector<key_hash> hashes = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  const std::vector<std::uint64_t> words = {1, 3, 5, 7};
  for (const hash_span& whole :
       {hash_span::hashes(hashes), hash_span::hash64s(words), hash_span::mixed(words, mix(9))}) {
    for (std::size_t first = 0; first <= 4; ++first) {
      for (std::size_t count = 0; first + count <= 4; ++count) {
        const hash_span part = whole.part(first, count);

        ASSERT_EQ(part.size(), count);
        ASSERT_EQ(part.form(), whole.form());
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(part.hash(i), whole.hash(first + i));
          ASSERT_EQ(part.hash64(i), whole.hash64(first + i));
        }
      }
    }
  }
}

}  // namespace
}  // namespace bloomery
