// Secrets: SipHash, compared with its published vectors and with OpenSSL; keys, key files and check values; keyed
// filters in memory and in files, which open only with their key and contain no part of it.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/secret.hpp>

#include "file/format.hpp"
#include "hash/siphash.hpp"
#include "support/test.hpp"

#include <sys/stat.h>

#include <cctype>
#include <cstdio>
#include <set>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using testing::AllOf;
using testing::Not;

// The key of the published vectors: bytes 0 to 15.
constexpr secret_key counting_key{0x0706050403020100, 0x0F0E0D0C0B0A0908};
constexpr secret_key some_key{0x3C5F3386603EE380, 0xFFBA723213D451F4};
constexpr secret_key other_key{0x3C5F3386603EE380, 0xFFBA723213D451F5};

// Bytes 0, 1, 2 ..., as in the published vectors.
std::string counting_message(std::size_t length) {
  std::string message;
  for (std::size_t i = 0; i < length; ++i) message += static_cast<char>(i);
  return message;
}

std::string hex(std::span<const std::uint8_t> content) {
  std::string digits;
  for (const std::uint8_t byte : content) {
    for (const int shift : {4, 0}) digits += "0123456789abcdef"[byte >> shift & 15];
  }
  return digits;
}

template <class T>
std::string hex_of(const T& value) {
  return hex({reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
}

// ---- SipHash --------------------------------------------------------------------------------------------------------

TEST(SipHash, HasThePublishedVectors) {
  // The paper's appendix: SipHash-2-4 of fifteen bytes.
  EXPECT_EQ((hashes::siphash<2, 4, 8>(counting_message(15), counting_key)), 0xA129CA6149BE45E5u);
  // The tables of the authors' reference code, 64 and 128 bits.
  struct {
    std::size_t length;
    const char* of_64;
    const char* of_128;
  } const published[] = {
      {0, "310e0edd47db6f72", "a3817f04ba25a8e66df67214c7550293"},
      {1, "fd67dc93c539f874", "da87c1d86b99af44347659119b22fc45"},
      {7, "37d1018bf50002ab", "a1f1ebbed8dbc153c0b84aa61ff08239"},
      {8, "6224939a79f5f593", "3b62a9ba6258f5610f83e264f31497b4"},
      {9, "b0e4a90bdf82009e", "264499060ad9baabc47f8b02bb6d71ed"},
      {16, "db9bc2577fcc2a3f", "6ee2a4ca67b054bbfd3315bf85230577"},
      {63, "724506eb4c328a95", "5150d1772f50834a503e069a973fbd7c"},
  };
  for (const auto& p : published) {
    const std::string message = counting_message(p.length);
    EXPECT_EQ(hex_of(hashes::siphash<2, 4, 8>(message, counting_key)), p.of_64) << p.length;
    EXPECT_EQ(hex_of(hashes::siphash<2, 4, 16>(message, counting_key)), p.of_128) << p.length;
  }
}

// Frozen: these were OpenSSL's answers.
TEST(SipHash, OfOneAndThreeRoundsHasOpenSSLsAnswers) {
  const std::pair<std::size_t, const char*> answers[] = {
      {0, "e77ebcb22788a5befd62db6add303001"},  {1, "fc6f370460d3eda85e0573cc2b2ff063"},
      {7, "1084b923f2aae0c3a62f2ec80848ab77"},  {8, "aa12fee1d5e3dab4724f16ab35f9c799"},
      {9, "81ddb8042cf33994f4720e0094137c42"},  {15, "c17e5505b2bd526c2921cdec1e7e0109"},
      {16, "d0a8d95715518eebb513b0f83d9e1793"}, {17, "234126f93fbb668d975112e8febdf7ec"},
      {63, "4c5800e34efe426f079f6b0aa75260ad"}, {64, "1253def24b4aa5364ec8a759ba6a66c2"},
      {200, "59301d38dad5fb4a7d555582d6b70ee6"}};
  for (const auto& [length, answer] : answers) {
    EXPECT_EQ(hex_of(siphash(counting_key)(counting_message(length))), answer) << length;
  }
}

std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, size);
  pclose(pipe);
  return output;
}

// SipHash-1-3-128 of a file by OpenSSL 3, in lower case; empty if OpenSSL is not installed.
std::string by_openssl(const secret_key& key, const std::string& path) {
  std::string answer = output_of("openssl mac -macopt hexkey:" + hex_of(key) +
                                 " -macopt c-rounds:1 -macopt d-rounds:3 -macopt size:16 -in '" + path + "' SIPHASH");
  answer.erase(std::remove(answer.begin(), answer.end(), '\n'), answer.end());
  for (char& c : answer) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return answer;
}

TEST(SipHashPeer, AgreesWithOpenSSLForRandomKeysAndMessages) {
  const scratch_folder folder;
  std::mt19937_64 random(1);
  write_file(folder / "message", counting_message(15));
  if (by_openssl(counting_key, folder / "message").empty()) GTEST_SKIP() << "SKIP peer openssl 3 is not installed";
  for (std::size_t length = 0; length < 40; ++length) {
    const secret_key key{random(), random()};
    std::string message;
    for (std::size_t i = 0; i < length; ++i) message += static_cast<char>(random());
    write_file(folder / "message", message);

    EXPECT_EQ(hex_of(siphash(key)(message)), by_openssl(key, folder / "message")) << length;
  }
}

TEST(SipHash, HashesAnIntegerAsItsEightLittleEndianBytes) {
  const siphash hash(some_key);

  EXPECT_EQ(hash(std::uint64_t{0x0807060504030201}), hash("\1\2\3\4\5\6\7\10"));
}

TEST(SipHash, HashesManyKeysAsOneByOne) {
  const siphash hash(some_key);
  const std::vector<std::uint64_t> numbers{0, 1, ~std::uint64_t{0}};
  const std::vector<std::string_view> texts{"", "a", "a longer key, of more than sixteen bytes"};
  std::vector<key_hash> of_numbers(3), of_texts(3);

  hash_each(hash, std::span<const std::uint64_t>(numbers), of_numbers.data());
  hash_each(hash, std::span<const std::string_view>(texts), of_texts.data());

  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(of_numbers[i], hash(numbers[i]));
    EXPECT_EQ(of_texts[i], hash(texts[i]));
  }
}

TEST(SipHash, DependsOnEveryBitOfItsKey) {
  std::set<std::uint64_t> seen{siphash(some_key)("key").hash64};
  for (int bit = 0; bit < 128; ++bit) {
    secret_key key = some_key;
    (bit < 64 ? key.k0 : key.k1) ^= std::uint64_t{1} << bit % 64;
    EXPECT_TRUE(seen.insert(siphash(key)("key").hash64).second) << bit;
  }
}

// ---- keys and their files -------------------------------------------------------------------------------------------

TEST(Secret, IsAnotherOneEachTime) {
  std::set<std::uint64_t> hash64s;
  for (int i = 0; i < 100; ++i) {
    const secret_key key = random_secret();
    hash64s.insert({key.k0, key.k1});
  }

  EXPECT_EQ(hash64s.size(), 200u);
}

// SipHash-2-4-128 of the label by OpenSSL begins with db11d19ae6d2f822.
TEST(Secret, HasACheckValueThatIsNoHashOfTheFilters) {
  EXPECT_EQ(key_check(counting_key), 0x22F8D2E69AD111DBu);
  EXPECT_EQ(key_check_text(key_check(counting_key)), "22F8D2E69AD111DB");
  EXPECT_EQ(key_check_text(0), "none");
  EXPECT_NE(key_check(some_key), key_check(other_key));
  EXPECT_NE(key_check(some_key), siphash(some_key)("bloomery key check").hash64);
}

TEST(KeyFile, GivesBackTheKeyAndIsItsOwnersAlone) {
  const scratch_folder folder;
  bool others = true;

  write_secret(folder / "key", counting_key);

  EXPECT_EQ(read_secret(folder / "key", &others), counting_key);
  EXPECT_FALSE(others);
  const bytes text = read_file(folder / "key");
  EXPECT_EQ(std::string(text.begin(), text.end()), "000102030405060708090A0B0C0D0E0F\n");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST(KeyFile, IsNeverReplaced) {
  const scratch_folder folder;
  write_secret(folder / "key", some_key);

  EXPECT_EQ(code_of([&] { write_secret(folder / "key", other_key); }), errc::already_exists);
  EXPECT_EQ(code_of([&] { write_secret(folder / "none/key", other_key); }), errc::not_found);

  EXPECT_EQ(read_secret(folder / "key"), some_key);
}

TEST(KeyFile, ReportsWhetherOthersMayReadIt) {
  const scratch_folder folder;
  write_secret(folder / "key", some_key);
  for (const auto& [mode, expected] : {std::pair{0600, false}, {0400, false}, {0640, true}, {0604, true}}) {
    ASSERT_EQ(::chmod((folder / "key").c_str(), static_cast<mode_t>(mode)), 0);
    bool others = !expected;

    read_secret(folder / "key", &others);

    EXPECT_EQ(others, expected) << std::oct << mode;
  }
}

TEST(KeyFile, OfAnyUsualSpellingIsRead) {
  const scratch_folder folder;
  for (const char* text : {"000102030405060708090a0b0c0d0e0f\n", "000102030405060708090A0B0C0D0E0F",
                           "000102030405060708090a0b0c0d0E0F\r\n"}) {
    write_file(folder / "key", std::string(text));

    EXPECT_EQ(read_secret(folder / "key"), counting_key) << text;
  }
}

TEST(KeyFile, OfAnythingElseIsRefusedWithoutShowingIt) {
  const scratch_folder folder;
  const std::pair<std::string, const char*> cases[] = {
      {"", "found 0 digits"},
      {"\n", "found 0 digits"},
      {"000102030405060708090a0b0c0d0e0", "found 31 digits"},
      {"000102030405060708090a0b0c0d0e0f0", "found 33 digits"},
      {"000102030405060708090a0b0c0d0e0f\n\n", "another character at position 33"},
      {"000102030405060708090a0b0c0d0e0g", "another character at position 32"},
      {" 000102030405060708090a0b0c0d0e0f", "another character at position 1"},
      {std::string(100'000, 'a'), "4096 or more bytes"},
  };
  for (const auto& [text, found] : cases) {
    write_file(folder / "key", text);

    const auto thrown = error_of([&] { read_secret(folder / "key"); });

    ASSERT_TRUE(thrown) << text.substr(0, 40);
    EXPECT_EQ(thrown->code(), errc::invalid_argument);
    EXPECT_THAT(thrown->what(), AllOf(HasSubstr(found), HasSubstr("expected 32 hexadecimal digits"),
                                      HasSubstr(folder / "key"), HasSubstr("create a new secret")));
    EXPECT_THAT(thrown->what(), Not(HasSubstr("0102")));
  }
  EXPECT_EQ(code_of([&] { read_secret(folder / "missing"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { read_secret(folder.path()); }), errc::io);
}

// ---- params ---------------------------------------------------------------------------------------------------------

const params keyed_params = complete({.layout = "classic", .capacity = 500, .target_fpr = 0.01, .secret = some_key});

TEST(KeyedParams, AreCompletedByTheSecret) {
  EXPECT_EQ(keyed_params.hash, "siphash");
  EXPECT_EQ(keyed_params.key_check, key_check(some_key));
  EXPECT_EQ(complete(keyed_params), keyed_params);
  const params integers = complete({.keys = key_kind::u64le, .capacity = 500, .target_fpr = 0.01, .secret = some_key});
  EXPECT_EQ(integers.hash, "siphash");
  EXPECT_EQ(complete({.capacity = 500, .target_fpr = 0.01}).key_check, 0u);
}

TEST(KeyedParams, ThatContradictThemselvesAreRefused) {
  const auto refusal = [](params p) {
    p.capacity = 500;
    p.target_fpr = 0.01;
    const auto thrown = error_of([&] { complete(p); });
    EXPECT_TRUE(thrown);
    return thrown ? std::pair(thrown->code(), std::string(thrown->what())) : std::pair(errc::io, std::string());
  };

  EXPECT_THAT(refusal({.hash = "siphash"}), testing::Pair(errc::invalid_argument, HasSubstr("needs a secret key")));
  EXPECT_THAT(refusal({.hash = "siphash"}).second, HasSubstr("give a secret"));
  EXPECT_THAT(refusal({.hash = "xxh3", .secret = some_key}),
              testing::Pair(errc::invalid_argument, HasSubstr("does not use a secret")));
  EXPECT_THAT(refusal({.scheme = "guava", .secret = some_key}),
              testing::Pair(errc::invalid_argument, HasSubstr("do not use a secret")));
  EXPECT_THAT(refusal({.seed = 1, .secret = some_key}), testing::Pair(errc::invalid_argument, HasSubstr("seed")));
  EXPECT_THAT(refusal({.secret = some_key, .key_check = key_check(other_key)}),
              testing::Pair(errc::incompatible, HasSubstr(key_check_text(key_check(other_key)))));
}

TEST(KeyedParams, DifferByCheckValuesAndNeverNameTheKey) {
  params other = keyed_params;
  other.secret = other_key;
  other.key_check = 0;
  other = complete(other);

  const std::string reason = difference(keyed_params, other);

  EXPECT_EQ(reason, "secret: " + key_check_text(key_check(some_key)) + " and " + key_check_text(key_check(other_key)));
  EXPECT_EQ(difference(keyed_params, keyed_params), "");
  any_filter a(keyed_params);
  EXPECT_THAT(error_of([&] { a.merge(any_filter(other)); })->what(), HasSubstr(reason));
}

// ---- keyed filters --------------------------------------------------------------------------------------------------

any_filter keyed_filter(params p = keyed_params) {
  any_filter filter(std::move(p));
  for (int i = 0; i < 300; ++i) filter.insert("key-" + std::to_string(i));
  return filter;
}

int found_in(const any_filter& filter) {
  int found = 0;
  for (int i = 0; i < 300; ++i) found += filter.may_contain("key-" + std::to_string(i)) ? 1 : 0;
  return found;
}

any_filter opened(const std::string& path, const std::optional<secret_key>& key, access mode = access::read_only) {
  return any_filter::open(path, {.mode = mode, .secret = key});
}

TEST(KeyedFile, OpensWithItsKey) {
  const scratch_folder folder;
  keyed_filter().save(folder / "f");

  any_filter writer = opened(folder / "f", some_key, access::read_write);
  writer.insert("one more");
  writer.close();

  EXPECT_EQ(found_in(opened(folder / "f", some_key)), 300);
  EXPECT_EQ(found_in(any_filter::load(folder / "f", {.secret = some_key})), 300);
  EXPECT_TRUE(opened(folder / "f", some_key).may_contain("one more"));
  EXPECT_EQ(opened(folder / "f", some_key).parameters(), keyed_params);
  EXPECT_EQ(opened(folder / "f", some_key).opened_from()->parameters.secret, std::nullopt);
  EXPECT_EQ(inspect(folder / "f", file_check::payload).info.parameters.key_check, key_check(some_key));
}

TEST(KeyedFile, OpensWithNothingElse) {
  const scratch_folder folder;
  keyed_filter().save(folder / "f");
  any_filter(complete({.capacity = 500, .target_fpr = 0.01})).save(folder / "plain");
  any_filter(complete({.scheme = "guava", .capacity = 500, .target_fpr = 0.01})).save(folder / "guava");
  const bytes before = read_file(folder / "f");
  struct {
    const char* file;
    std::optional<secret_key> key;
    std::vector<std::string> says;
  } const cases[] = {
      {"f", std::nullopt, {"the filter is keyed with a secret", "give the filter's secret"}},
      {"f", other_key, {key_check_text(key_check(some_key)), key_check_text(key_check(other_key))}},
      {"plain", some_key, {"the filter is not keyed"}},
      {"guava", some_key, {"the filter is not keyed"}},
  };
  for (const auto& c : cases) {
    for (const auto& way : {0, 1, 2}) {
      const auto thrown = error_of([&] {
        if (way == 2)
          any_filter::load(folder / c.file, {.secret = c.key});
        else
          opened(folder / c.file, c.key, way == 0 ? access::read_only : access::read_write);
      });
      ASSERT_TRUE(thrown) << c.file;
      EXPECT_EQ(thrown->code(), errc::incompatible);
      for (const std::string& words : c.says) EXPECT_THAT(thrown->what(), HasSubstr(words));
      EXPECT_THAT(thrown->what(), HasSubstr(folder / c.file));
    }
  }
  EXPECT_EQ(read_file(folder / "f"), before);
}

// ... nor its text, in either case, nor its halves: not when saved, made in place, added to.
TEST(KeyedFile, HasNoByteOfTheKeyInIt) {
  const scratch_folder folder;
  keyed_filter().save(folder / "saved");
  any_filter::create(folder / "made", keyed_params).close();
  any_filter writer = opened(folder / "made", some_key, access::read_write);
  writer.insert("key");
  writer.close();
  const std::string key(reinterpret_cast<const char*>(&some_key), sizeof some_key);
  const std::string text = hex_of(some_key);
  std::string capitals = text;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));

  for (const char* name : {"saved", "made"}) {
    const bytes content = read_file(folder / name);
    const std::string file(content.begin(), content.end());
    for (const std::string& part : {key.substr(0, 8), key.substr(8), text.substr(0, 16), text.substr(16),
                                    capitals.substr(0, 16), capitals.substr(16)}) {
      EXPECT_EQ(file.find(part), std::string::npos) << name;
    }
  }
}

TEST(KeyedFile, WhoseHashAndCheckValueContradictEachOtherIsDamaged) {
  const scratch_folder folder;
  keyed_filter().save(folder / "keyed");
  any_filter(complete({.capacity = 500, .target_fpr = 0.01})).save(folder / "plain");
  const auto tampered = [&](const char* name, std::uint64_t check) {
    bytes file = read_file(folder / name);
    std::memcpy(file.data() + 184, &check, sizeof check);
    const std::uint64_t sum = format::checksum(std::span(file).first(504));
    std::memcpy(file.data() + 504, &sum, sizeof sum);
    write_file(folder / "f", file);
  };

  tampered("keyed", 0);
  EXPECT_EQ(code_of([&] { opened(folder / "f", some_key); }), errc::damaged);
  tampered("plain", key_check(some_key));
  EXPECT_EQ(code_of([&] { opened(folder / "f", some_key); }), errc::damaged);
  tampered("keyed", key_check(other_key));
  EXPECT_EQ(code_of([&] { opened(folder / "f", some_key); }), errc::incompatible);
  params liar = keyed_params;
  liar.key_check = 0;
  EXPECT_EQ(code_of([&] { save_file(folder / "f", liar, keyed_filter().bytes(), {}); }), errc::invalid_argument);
}

TEST(KeyedFilter, OfOtherKeysHasOtherBits) {
  const any_filter one = keyed_filter();
  params p = keyed_params;
  p.secret = other_key;
  p.key_check = 0;
  const any_filter two = keyed_filter(p);

  EXPECT_FALSE(std::equal(one.bytes().begin(), one.bytes().end(), two.bytes().begin()));
  EXPECT_FALSE(one.compatible_with(two));
}

TEST(KeyedFilter, OfKnownTypeOpensFilesOfItsKeyAlone) {
  using keyed = filter<std::string_view, layouts::classic, siphash, mapped_storage>;
  const scratch_folder folder;
  keyed_filter().save(folder / "f");

  const auto same = keyed::open(folder / "f", {.check = file_check::payload}, siphash(some_key));
  EXPECT_TRUE(same.may_contain("key-7"));
  EXPECT_EQ(same.parameters(), keyed_params);
  EXPECT_ERROR(keyed::open(folder / "f", {}, siphash(other_key)), errc::incompatible,
               "secret: " + key_check_text(key_check(some_key)) + " and " + key_check_text(key_check(other_key)));
  EXPECT_EQ(code_of([&] { filter<std::string_view, layouts::classic>::load(folder / "f"); }), errc::incompatible);
}

// Keys chosen such that each sets k new bits of an unkeyed filter. In a keyed filter, whose cells an attacker cannot
// compute, they set no more bits than other keys.
TEST(KeyedFilter, CannotBePollutedByChosenKeys) {
  const params open = complete({.layout = "classic", .geometry = {9585, 7}, .capacity = 1000});
  params closed = open;
  closed.hash = "siphash";
  closed.secret = some_key;
  any_filter victim(open), keyed(closed);
  std::set<std::uint64_t> taken;  // the attacker's model of the unkeyed filter

  for (int i = 0, chosen = 0; chosen < 1000; ++i) {
    const std::string key = "try-" + std::to_string(i);
    std::set<std::uint64_t> fresh;
    layouts::classic::cells cells(open.geometry, xxh3{}(key));
    for (int probe = 0; probe < 7; ++probe) {
      const std::uint64_t cell = cells.next();
      if (taken.contains(cell) || !fresh.insert(cell).second) break;
    }
    if (fresh.size() < 7) continue;
    ++chosen;
    taken.merge(fresh);
    victim.insert(key);
    keyed.insert(key);
  }

  EXPECT_NEAR(victim.fill_ratio(), 7000.0 / 9585, 1e-9);  // its FPR is the 7th power: 11.1%
  EXPECT_NEAR(keyed.fill_ratio(), 0.518, 0.015);          // 1 - e^(-7000/9585), as with any keys: 1%
}

}  // namespace
}  // namespace bloomery
