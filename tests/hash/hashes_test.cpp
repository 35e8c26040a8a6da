// Hashes against published vectors, and the integer mix against what its documentation promises.
#include <bloomery/hash.hpp>

#include "hash/murmur3.hpp"
#include "hash/sha1.hpp"
#include "support/md5.hpp"
#include "support/test.hpp"

#include <cstdio>

namespace bloomery {
namespace {

using namespace std::string_view_literals;

std::string hex_of_bytes(key_hash hash) {
  std::string hex;
  for (const std::uint64_t half : {hash.hash64, hash.high64}) {
    for (int byte = 0; byte < 8; ++byte) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(half >> (8 * byte) & 0xFF));
      hex += digits;
    }
  }
  return hex;
}

std::string bytes_of(std::uint64_t number, int count) {
  std::string bytes;
  for (int byte = 0; byte < count; ++byte) bytes += static_cast<char>(number >> (8 * byte) & 0xFF);
  return bytes;
}

std::string bytes_of(key_hash hash) { return bytes_of(hash.hash64, 8) + bytes_of(hash.high64, 8); }

// ---- murmur3 --------------------------------------------------------------------------------------------------------

// SMHasher's check of a hash: the results for the keys {}, {0}, {0, 1}, ... {0 .. 254} with the seeds 256, 255, ... 1,
// as bytes one after the other. Hashed again with seed 0, their first four bytes are known. It covers every length of
// tail.
template <class Hash>
std::string smhasher_results(Hash bytes_of_hash) {
  std::string key, results;
  for (std::uint32_t i = 0; i < 256; ++i) {
    results += bytes_of_hash(key, 256 - i);
    key += static_cast<char>(i);
  }
  return results;
}

TEST(Murmur3, HasSMHashersVerificationValueIn128Bits) {
  const std::string results = smhasher_results(
      [](std::string_view key, std::uint32_t seed) { return bytes_of(hashes::murmur3_x64_128(key, seed)); });

  EXPECT_EQ(static_cast<std::uint32_t>(hashes::murmur3_x64_128(results, 0).hash64), 0x6384BA69u);
}

TEST(Murmur3, HasSMHashersVerificationValueIn32Bits) {
  const std::string results = smhasher_results(
      [](std::string_view key, std::uint32_t seed) { return bytes_of(hashes::murmur3_x86_32(key, seed), 4); });

  EXPECT_EQ(hashes::murmur3_x86_32(results, 0), 0xB0F57EE3u);
}

TEST(Murmur3, EqualsGuavaOnItsStrings) {
  EXPECT_EQ(hex_of_bytes(murmur3{}("hello")), "029bbd41b3a7d8cb191dae486a901e5b");
  EXPECT_EQ(hex_of_bytes(murmur3{}("")), "00000000000000000000000000000000");
  EXPECT_EQ(hex_of_bytes(murmur3{}("a")), "897859f6655555855a890e51483ab5e6");
  EXPECT_EQ(hex_of_bytes(murmur3{}("Madrid")), "ec924b7bfaa84b50bb602256fc80b526");
  EXPECT_EQ(hex_of_bytes(murmur3{}("布隆过滤器")), "b80c3561e0c3cbde29069669ade81100");
}

TEST(Murmur3, EqualsTheWellKnownVectorsIn32Bits) {
  EXPECT_EQ(hashes::murmur3_x86_32("", 0), 0u);
  EXPECT_EQ(hashes::murmur3_x86_32("", 1), 0x514E28B7u);
  EXPECT_EQ(hashes::murmur3_x86_32("", 0xFFFFFFFF), 0x81F16F39u);
  EXPECT_EQ(hashes::murmur3_x86_32("\xFF\xFF\xFF\xFF", 0), 0x76293B50u);
  EXPECT_EQ(hashes::murmur3_x86_32("\x21\x43\x65\x87", 0), 0xF55B516Bu);
  EXPECT_EQ(hashes::murmur3_x86_32("\x21\x43\x65", 0), 0x7E4A8634u);
  EXPECT_EQ(hashes::murmur3_x86_32("\x21\x43", 0), 0xA0F7B07Au);
  EXPECT_EQ(hashes::murmur3_x86_32("\x21", 0), 0x72661CF4u);
  EXPECT_EQ(hashes::murmur3_x86_32("\0\0\0\0"sv, 0), 0x2362F9DEu);
  EXPECT_EQ(hashes::murmur3_x86_32("\0\0\0"sv, 0), 0x85F0B427u);
  EXPECT_EQ(hashes::murmur3_x86_32("The quick brown fox jumps over the lazy dog", 0x9747B28C), 0x2FA826CDu);
  EXPECT_EQ(hashes::murmur3_x86_32("Madrid", 0), 0xDA3791CAu);
  EXPECT_EQ(hashes::murmur3_x86_32("Barcelona", 0), 0x12BA5D05u);
  EXPECT_EQ(hashes::murmur3_x86_32("Berlin", 0), 0xF093CDF7u);
  EXPECT_EQ(hashes::murmur3_x86_32("Roma", 0), 0x9690B8A3u);
}

TEST(Murmur3, HashesAnIntegerAsItsEightLittleEndianBytes) {
  const std::uint64_t key = 0x0807060504030201;

  EXPECT_EQ(murmur3{}(key), murmur3{}("\1\2\3\4\5\6\7\10"));
  EXPECT_EQ(murmur3{7}(key), murmur3{7}("\1\2\3\4\5\6\7\10"));
}

TEST(Murmur3, DependsOnItsSeedsLower32BitsOnly) {
  EXPECT_NE(murmur3{1}("key"), murmur3{2}("key"));
  EXPECT_EQ(murmur3{1}("key"), murmur3{(std::uint64_t{5} << 32) + 1}("key"));
}

TEST(Murmur3, ReadsBytesFromAnyAddress) {
  const std::string text = "0123456789abcdef0123456789abcdef012";

  for (std::size_t offset = 0; offset < 16; ++offset) {
    const std::string shifted = std::string(offset, ' ') + text;
    EXPECT_EQ(murmur3{}(std::string_view(shifted).substr(offset)), murmur3{}(text)) << offset;
  }
}

// ---- SHA-1 and the tests' own MD5 -----------------------------------------------------------------------------------

using words = std::array<std::uint32_t, 5>;

TEST(Sha1, EqualsTheExamplesOfItsStandard) {
  EXPECT_EQ(hashes::sha1("abc"), (words{0xA9993E36, 0x4706816A, 0xBA3E2571, 0x7850C26C, 0x9CD0D89D}));
  EXPECT_EQ(hashes::sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            (words{0x84983E44, 0x1C3BD26E, 0xBAAE4AA1, 0xF95129E5, 0xE54670F1}));
  EXPECT_EQ(hashes::sha1(""), (words{0xDA39A3EE, 0x5E6B4B0D, 0x3255BFEF, 0x95601890, 0xAFD80709}));
  EXPECT_EQ(hashes::sha1(std::string(1'000'000, 'a')),
            (words{0x34AA973C, 0xD4C4DAA4, 0xF61EEB2B, 0xDBAD2731, 0x6534016F}));
}

// Lengths around the end of a block, where padding needs one block more. Values of sha1sum(1).
TEST(Sha1, PadsMessagesOfEveryLength) {
  EXPECT_EQ(hashes::sha1(std::string(55, 'a'))[0], 0xC1C8BBDCu);
  EXPECT_EQ(hashes::sha1(std::string(56, 'a'))[0], 0xC2DB330Fu);
  EXPECT_EQ(hashes::sha1(std::string(63, 'a'))[0], 0x03F09F5Bu);
  EXPECT_EQ(hashes::sha1(std::string(64, 'a'))[0], 0x0098BA82u);
  EXPECT_EQ(hashes::sha1(std::string(119, 'a'))[0], 0xEE971065u);
  EXPECT_EQ(hashes::sha1(std::string(120, 'a'))[0], 0xF34C1488u);
}

TEST(Md5OfTheTests, EqualsTheExamplesOfRfc1321) {
  using bloomery_tests::md5_hex;
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(md5_hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  EXPECT_EQ(md5_hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

// ---- xxh3 -----------------------------------------------------------------------------------------------------------

// The input of the reference's own self-test, cli/xsum_sanity_check.c.
std::string self_test_bytes(std::size_t length) {
  std::string bytes;
  for (std::uint64_t x = 0x9E3779B1; bytes.size() < length; x *= 0x9E3779B185EBCA8D) {
    bytes += static_cast<char>(x >> 56);
  }
  return bytes;
}

struct xxh3_vector {
  std::size_t length;
  std::uint64_t seed;
  key_hash hash;
};

// Vectors of the reference's self-test; each length takes another path through the algorithm.
constexpr xxh3_vector xxh3_vectors[] = {
    {0, 0x0000000000000000, {0x6001C324468D497F, 0x99AA06D3014798D8}},
    {0, 0x000000009E3779B1, {0x5444F7869C671AB0, 0x92220AE55E14AB50}},
    {0, 0x9E3779B185EBCA8D, {0xA986DFC5D7605BFE, 0x00FEAA732A3CE25E}},
    {1, 0x0000000000000000, {0xC44BDFF4074EECDB, 0xA6CD5E9392000F6A}},
    {1, 0x000000009E3779B1, {0xB53D5557E7F76F8D, 0x89B99554BA22467C}},
    {1, 0x9E3779B185EBCA8D, {0x032BE332DD766EF8, 0x20E49ABCC53B3842}},
    {6, 0x0000000000000000, {0x3E7039BDDA43CFC6, 0x082AFE0B8162D12A}},
    {6, 0x000000009E3779B1, {0x269D8F70BE98856E, 0x5A865B5389ABD2B1}},
    {6, 0x9E3779B185EBCA8D, {0xC5B54D56038E4E40, 0x014BD95A51CA5DDB}},
    {12, 0x0000000000000000, {0x061A192713F69AD9, 0x6E3EFD8FC7802B18}},
    {12, 0x000000009E3779B1, {0x9BE9F9A67F3C7DFB, 0xD7E09D518A3405D3}},
    {12, 0x9E3779B185EBCA8D, {0x5D92B5D7190B12D1, 0xFF0D60ACD02ED401}},
    {24, 0x0000000000000000, {0x1E7044D28B1B901D, 0x0CE966E4678D3761}},
    {24, 0x000000009E3779B1, {0xD7304C54EBAD40A9, 0x3162026714A6A243}},
    {24, 0x9E3779B185EBCA8D, {0xC6CBF92A70680B19, 0xD7895DED1F62559D}},
    {48, 0x0000000000000000, {0xF942219AED80F67B, 0xA002AC4E5478227E}},
    {48, 0x000000009E3779B1, {0x7BA3C3E453A1934E, 0x163ADDE36C072295}},
    {48, 0x9E3779B185EBCA8D, {0x3A94D91333ED395A, 0xBC689F4C0152FB44}},
    {81, 0x0000000000000000, {0x5E8BAFB9F95FB803, 0x4952F58181AB0042}},
    {81, 0x000000009E3779B1, {0x703FBB3D7A5F755C, 0x2724EC7ADC750FB6}},
    {81, 0x9E3779B185EBCA8D, {0xDC50FEB227515233, 0x941E9469C46EDD08}},
    {222, 0x0000000000000000, {0xF1AEBD597CEC6B3A, 0x337E09641B948717}},
    {222, 0x000000009E3779B1, {0xAE995BB8AF917A8D, 0x91820016621E97F1}},
    {222, 0x9E3779B185EBCA8D, {0xC5871B3BE4506A30, 0x4740AF1AE0618B49}},
    {403, 0x0000000000000000, {0xCDEB804D65C6DEA4, 0x1B6DE21E332DD73D}},
    {403, 0x000000009E3779B1, {0x1FEF87BD75DBE404, 0x1EF41459552CB839}},
    {403, 0x9E3779B185EBCA8D, {0x6259F6ECFD6443FD, 0xBED311971E0BE8F2}},
    {512, 0x0000000000000000, {0x617E49599013CB6B, 0x18D2D110DCC9BCA1}},
    {512, 0x000000009E3779B1, {0x545F610E9F5A78EC, 0x06EEB0D56508040F}},
    {512, 0x9E3779B185EBCA8D, {0x3CE457DE14C27708, 0x925D06B8EC5B8040}},
    {2048, 0x0000000000000000, {0xDD59E2C3A5F038E0, 0xF736557FD47073A5}},
    {2048, 0x000000009E3779B1, {0x230D43F30206260B, 0x7FB03F7E7186C3EA}},
    {2048, 0x9E3779B185EBCA8D, {0x66F81670669ABABC, 0x23CC3A2E75EBAAEA}},
    {2240, 0x0000000000000000, {0x6E73A90539CF2948, 0xCCB134FBFA7CE49D}},
    {2240, 0x000000009E3779B1, {0xED385111126FBA6F, 0x50A1FE17B338995F}},
    {2240, 0x9E3779B185EBCA8D, {0x757BA8487D1B5247, 0xE40842F585875BA9}},
    {2367, 0x0000000000000000, {0xCB37AEB9E5D361ED, 0xE89C0F6FF369B427}},
    {2367, 0x000000009E3779B1, {0x6F5360AE69C2F406, 0xD23AAE4B76C31ECB}},
    {2367, 0x9E3779B185EBCA8D, {0xD2DB3415B942B42A, 0xCCB7A94CCA1A6496}},
};

TEST(Xxh3, EqualsTheReferencesSelfTest) {
  for (const xxh3_vector& vector : xxh3_vectors) {
    const std::string bytes = self_test_bytes(vector.length);

    EXPECT_EQ(xxh3{vector.seed}(bytes), vector.hash) << vector.length << " bytes, seed " << vector.seed;
  }
}

TEST(Xxh3, EqualsTheCommandXxhsum) {  // printf %s hello | xxhsum -H2: high half first
  EXPECT_EQ(xxh3{}("hello"), (key_hash{0xC779CFAA5E523818, 0xB5E9C1AD071B3E7F}));
  EXPECT_EQ(xxh3{}("abc"), (key_hash{0x78AF5F94892F3950, 0x06B05AB6733A6185}));
}

TEST(Xxh3, HashesAnIntegerAsItsEightLittleEndianBytes) {
  const std::uint64_t key = 0x0807060504030201;

  EXPECT_EQ(xxh3{}(key), xxh3{}("\1\2\3\4\5\6\7\10"));
  EXPECT_EQ(xxh3{7}(key), xxh3{7}("\1\2\3\4\5\6\7\10"));
}

// ---- identity -------------------------------------------------------------------------------------------------------

TEST(Identity, IsTheKeyAndKeepsItsHighWordApart) {
  static_assert(!hash_of<identity, std::string_view>);
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    EXPECT_EQ(identity{}(key).hash64, key);
    EXPECT_EQ(identity{}(key).high64, mix64(key + 0x9E3779B97F4A7C15));
  }
}

// ---- xxh3_64 --------------------------------------------------------------------------------------------------------

struct xxh3_64_vector {
  std::size_t length;
  std::uint64_t seed;
  std::uint64_t hash64;
};

// Vectors of the reference's self-test; each length takes another path through the algorithm.
constexpr xxh3_64_vector xxh3_64_vectors[] = {
    {0, 0x0000000000000000, 0x2D06800538D394C2},    {0, 0x9E3779B185EBCA8D, 0xA8A6B918B2F0364A},
    {1, 0x0000000000000000, 0xC44BDFF4074EECDB},    {1, 0x9E3779B185EBCA8D, 0x032BE332DD766EF8},
    {6, 0x0000000000000000, 0x27B56A84CD2D7325},    {6, 0x9E3779B185EBCA8D, 0x84589C116AB59AB9},
    {12, 0x0000000000000000, 0xA713DAF0DFBB77E7},   {12, 0x9E3779B185EBCA8D, 0xE7303E1B2336DE0E},
    {24, 0x0000000000000000, 0xA3FE70BF9D3510EB},   {24, 0x9E3779B185EBCA8D, 0x850E80FC35BDD690},
    {48, 0x0000000000000000, 0x397DA259ECBA1F11},   {48, 0x9E3779B185EBCA8D, 0xADC2CBAA44ACC616},
    {80, 0x0000000000000000, 0xBCDEFBBB2C47C90A},   {80, 0x9E3779B185EBCA8D, 0xC6DD0CB699532E73},
    {195, 0x0000000000000000, 0xCD94217EE362EC3A},  {195, 0x9E3779B185EBCA8D, 0xBA68003D370CB3D9},
    {403, 0x0000000000000000, 0xCDEB804D65C6DEA4},  {403, 0x9E3779B185EBCA8D, 0x6259F6ECFD6443FD},
    {512, 0x0000000000000000, 0x617E49599013CB6B},  {512, 0x9E3779B185EBCA8D, 0x3CE457DE14C27708},
    {2048, 0x0000000000000000, 0xDD59E2C3A5F038E0}, {2048, 0x9E3779B185EBCA8D, 0x66F81670669ABABC},
    {2240, 0x0000000000000000, 0x6E73A90539CF2948}, {2240, 0x9E3779B185EBCA8D, 0x757BA8487D1B5247},
    {2367, 0x0000000000000000, 0xCB37AEB9E5D361ED}, {2367, 0x9E3779B185EBCA8D, 0xD2DB3415B942B42A},
};

TEST(Xxh364, EqualsTheReferencesSelfTest) {
  for (const xxh3_64_vector& vector : xxh3_64_vectors) {
    const std::string bytes = self_test_bytes(vector.length);
    const std::string_view view = bytes;
    std::uint64_t alone = 0, prefetching = 0;
    key_hash in_a_batch{};
    const std::array<std::uint8_t, 64> block{};

    xxh3_64{vector.seed}.each_hash64({&view, 1}, &alone);
    xxh3_64{vector.seed}.each_hash64({&view, 1}, &prefetching, {block.data(), 2, 32});
    xxh3_64{vector.seed}.each({&view, 1}, &in_a_batch);

    EXPECT_EQ(xxh3_64{vector.seed}(bytes).hash64, vector.hash64) << vector.length << " bytes, seed " << vector.seed;
    EXPECT_EQ(alone, vector.hash64);
    EXPECT_EQ(prefetching, vector.hash64);
    EXPECT_EQ(in_a_batch, xxh3_64{vector.seed}(bytes));
  }
}

TEST(Xxh364, DerivesTheHighWordFromTheLowOne) {
  const key_hash hash = xxh3_64{}("hello");

  EXPECT_EQ(hash.high64, mix64(hash.hash64 + 0x9E3779B97F4A7C15));
}

TEST(Xxh364, HashesAnIntegerAsItsEightLittleEndianBytes) {
  const std::uint64_t key = 0x0807060504030201;

  EXPECT_EQ(xxh3_64{}(key), xxh3_64{}("\1\2\3\4\5\6\7\10"));
  EXPECT_EQ(xxh3_64{7}(key), xxh3_64{7}("\1\2\3\4\5\6\7\10"));
}

// ---- xxh64 ----------------------------------------------------------------------------------------------------------

// Vectors of the reference's self-test, and of docs/formats.md.
TEST(Xxh64, HasTheReferencesHashes) {
  const struct {
    std::size_t length;
    std::uint64_t seed;
    std::uint64_t hash64;
  } vectors[] = {
      {0, 0, 0xEF46DB3751D8E999},           {0, 2654435761, 0xAC75FDA2929B17EF}, {1, 0, 0xE934A84ADB052768},
      {1, 2654435761, 0x5014607643A9B4C3},  {4, 0, 0x9136A0DCA57457EE},          {14, 0, 0x8282DCC4994E35C8},
      {14, 2654435761, 0xC3BD6BF63DEB6DF0}, {222, 0, 0xB641AE8CB691C174},        {222, 2654435761, 0x20CB8AB7AE10C14A}};
  const std::string all = self_test_bytes(222);
  for (const auto& [length, seed, hash64] : vectors)
    EXPECT_EQ(xxh64{seed}(std::string_view(all).substr(0, length)).hash64, hash64) << length << ", seed " << seed;
  EXPECT_EQ(xxh64{}("hello").hash64, 0x26C7827D889F6DA3);
  EXPECT_EQ(xxh64{}(std::uint64_t{42}).hash64, 0xB556806FB6D14353);
  EXPECT_EQ(xxh64{}("hello").high64, mix64(0x26C7827D889F6DA3 + 0x9E3779B97F4A7C15));
}

// ---- mix ------------------------------------------------------------------------------------------------------------

// 1 / x modulo 2^64, for an odd x: each of Newton's steps doubles the number of right bits.
constexpr std::uint64_t modular_inverse(std::uint64_t x) {
  std::uint64_t inverse = x;
  for (int step = 0; step < 6; ++step) inverse *= 2 - x * inverse;
  return inverse;
}

constexpr std::uint64_t mix64_inverse(std::uint64_t x) {
  x ^= x >> 27 ^ x >> 54;
  x *= modular_inverse(0x1C69B3F74AC4AE35u);
  x ^= x >> 33;
  x *= modular_inverse(0x3C79AC492BA7B653u);
  return x ^ x >> 27 ^ x >> 54;
}

TEST(Mix64, HasAnInverseSoNoTwoKeysMeet) {
  std::mt19937_64 random(1);

  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t x = random();
    ASSERT_EQ(mix64_inverse(mix64(i)), i);
    ASSERT_EQ(mix64_inverse(mix64(x)), x);
    ASSERT_EQ(mix64(mix64_inverse(x)), x);
  }
}

TEST(Mix64, FlipsEveryOutputBitWithProbabilityOneHalf) {
  constexpr int trials = 1 << 14;
  std::mt19937_64 random(1);
  std::vector<std::array<int, 64>> flips(64);

  for (int trial = 0; trial < trials; ++trial) {
    const std::uint64_t x = random();
    for (int in = 0; in < 64; ++in) {
      const std::uint64_t changed = mix64(x) ^ mix64(x ^ std::uint64_t{1} << in);
      for (int out = 0; out < 64; ++out)
        flips[static_cast<std::size_t>(in)][static_cast<std::size_t>(out)] += (changed >> out & 1) != 0;
    }
  }

  // Of 4096 fair binomial counts one leaves five standard deviations once in 400 runs; the seed is fixed.
  const double bound = 5 * std::sqrt(trials / 4.0);
  for (std::size_t in = 0; in < 64; ++in) {
    for (std::size_t out = 0; out < 64; ++out) {
      EXPECT_NEAR(flips[in][out], trials / 2.0, bound) << "input bit " << in << ", output bit " << out;
    }
  }
}

// Chi-square of 256 byte values in 2^18 hashes has mean 255 and standard deviation 22.6.
TEST(Mix, SpreadsSequentialKeysEvenlyOverEveryByte) {
  constexpr std::uint64_t keys = 1 << 18;
  std::vector<std::array<int, 256>> counts(16);

  for (std::uint64_t key = 0; key < keys; ++key) {
    const key_hash hash = mix{}(key);
    for (std::size_t byte = 0; byte < 8; ++byte) {
      ++counts[byte][hash.hash64 >> (8 * byte) & 0xFF];
      ++counts[8 + byte][hash.high64 >> (8 * byte) & 0xFF];
    }
  }

  for (std::size_t byte = 0; byte < 16; ++byte) {
    double chi_square = 0;
    for (const int count : counts[byte]) chi_square += std::pow(count - keys / 256.0, 2) / (keys / 256.0);
    EXPECT_GT(chi_square, 255 - 5 * 22.6) << "byte " << byte;
    EXPECT_LT(chi_square, 255 + 5 * 22.6) << "byte " << byte;
  }
}

TEST(Mix, GivesSequentialKeysTwoIndependentHalves) {
  constexpr int keys = 1 << 14;
  std::vector<std::array<int, 64>> equal(64);

  for (std::uint64_t key = 0; key < keys; ++key) {
    const key_hash hash = mix{}(key);
    for (int shift = 0; shift < 64; ++shift) {  // bit i of hash64 beside bit i + shift of hi
      const std::uint64_t same = ~(hash.hash64 ^ std::rotr(hash.high64, shift));
      for (int bit = 0; bit < 64; ++bit)
        equal[static_cast<std::size_t>(shift)][static_cast<std::size_t>(bit)] += (same >> bit & 1) != 0;
    }
  }

  const double bound = 5 * std::sqrt(keys / 4.0);
  for (std::size_t shift = 0; shift < 64; ++shift) {
    for (std::size_t bit = 0; bit < 64; ++bit) {
      EXPECT_NEAR(equal[shift][bit], keys / 2.0, bound) << "lo bit " << bit << ", hi bit " << (bit + shift) % 64;
    }
  }
}

TEST(Mix, NeverSharesAHalfBetweenKeysAndDependsOnItsSeed) {
  EXPECT_NE(mix{}(1).hash64, mix{}(2).hash64);
  EXPECT_NE(mix{}(1).high64, mix{}(2).high64);
  EXPECT_NE(mix{1}(1), mix{2}(1));
}

}  // namespace
}  // namespace bloomery
