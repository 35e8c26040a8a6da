// Golden files, which tests/golden/make_golden.py wrote from docs/format.md: the library saves the same bytes and reads
// the files.
#include <bloomery/any_filter.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layered_filter.hpp>

#include "file/sample_file.hpp"
#include "support/test.hpp"

#include <map>

namespace bloomery {
namespace {

using namespace bloomery_tests;

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
  const auto with_salts = [](params p) {
    p.extra = salt_list{{"0.482176318740254", "0.0913", "", "9.87e-05", "7", "\0\xFF"s, std::string(20, 'x')}};
    return p;
  };
  const geometry blocks{2048, 8};
  return {
      {"split_block-bytes-xxh3_64", layout("split_block", "xxh3_64", key_kind::bytes, blocks)},
      {"split_block512-bytes-xxh3_64", layout("split_block512", "xxh3_64", key_kind::bytes, blocks, ~std::uint64_t{0})},
      {"blocked-u64-xxh3_64", layout("blocked", "xxh3_64", key_kind::u64le, {1536, 9}, 7)},
      {"counting-bytes-xxh3_64", layout("counting", "xxh3_64", key_kind::bytes, {8192, 6})},
      {"classic-bytes-xxh3_64", layout("classic", "xxh3_64", key_kind::bytes, {1447, 7})},
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
      {"quotient7-bytes-xxh3_64", layout("quotient7", "xxh3_64", key_kind::bytes, {512 * 3, 2})},
      {"quotient13-u64-mix", layout("quotient13", "mix", key_kind::u64le, {512 * 6, 2}, 42)},
      {"counting-u64-mix", layout("counting", "mix", key_kind::u64le, {2560, 9}, 42)},
      {"guava", scheme("guava", 1472)},
      {"pharo", scheme("pharo", 1438)},
      {"python", scheme("python", 1447)},
      {"perl", scheme("perl", 1440)},
      {"perl-salts", with_salts(scheme("perl", 1440))},
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

struct golden_layers {
  std::string name;
  layered_params parameters;
  std::vector<filter_layer> layers;  // with the number of keys that the script counted
};

// tests/golden/make_golden.py has the same table.
std::vector<golden_layers> golden_files_of_layers() {
  const params scalable = {.layout = "split_block512", .hash = "xxh3", .seed = 7, .capacity = 30, .target_fpr = 0.01};
  const params shared = {
      .layout = "blocked", .hash = "mix", .keys = key_kind::u64le, .seed = 42, .capacity = 80, .target_fpr = 0.01};
  const params window = {.layout = "split_block512",
                         .hash = "xxh3_64",
                         .capacity = 100,
                         .target_fpr = 0.01,
                         .extra = window_of_milliseconds(3'600'000)};
  constexpr std::uint64_t slice = 514'286;
  const geometry small = {512, 7}, large = {1024, 6}, of_window = {2048, 8};
  return {
      {"scalable-bytes-xxh3",
       {.filter = scalable, .metadata = "two layers of one shard"},
       {{0, {1024, 8}, 30, 0}, {0, {2048, 8}, 90, 0}}},
      {"shared-u64-mix",
       {.filter = shared, .shards = 4, .is_shared = true, .maximum = 200},
       {{0, small, 20, 0},
        {1, small, 20, 0},
        {1, large, 40, 0},
        {2, small, 20, 0},
        {3, small, 20, 0},
        {3, large, 40, 0}}},
      {"window-bytes-xxh3_64",
       {.filter = window,
        .shards = 3,
        .is_shared = true,
        .metadata = "six slices of three shards",
        .copied_at = 3'400'008 * slice + 4'998},
       {{0, of_window, 100, 0, 3'400'000 * slice},
        {0, of_window, 100, 0, 3'400'006 * slice},
        {0, of_window, 100, 0, 3'400'007 * slice},
        {1, of_window, 100, 0, 3'400'007 * slice},
        {2, of_window, 100, 0, 3'400'001 * slice},
        {2, of_window, 100, 0, 3'400'003 * slice}}},
  };
}

std::vector<key_hash> golden_hashes(const params& p) {
  std::vector<key_hash> hashes;
  if (p.keys == key_kind::u64le) {
    for (const std::uint64_t key : golden_integers()) hashes.push_back(mix{p.seed}(key));
  } else {
    for (const std::string& key : golden_texts())
      hashes.push_back(p.has_window() ? xxh3_64{p.seed}(key) : xxh3{p.seed}(key));
  }
  return hashes;
}

// The layers with the golden keys, each in the first layer of its shard that has room; in a window each in the slice
// whose turn it is.
layered_filter filled(const golden_layers& file) {
  std::vector<filter_layer> layers = file.layers;
  layered_filter bits(file.parameters, layers);
  const bool is_window = file.parameters.filter.has_window();
  std::map<std::uint64_t, std::size_t> turns;
  for (const key_hash hash : golden_hashes(file.parameters.filter)) {
    const std::uint64_t shard = bits.shard_of(hash);
    std::size_t i = bits.first_of(shard);
    if (is_window) {
      i += turns[shard]++ % (bits.first_of(shard + 1) - i);
      for (const std::uint64_t cell : bits.cells(i, hash))
        bits.bytes_of(i)[cell / 8] |= static_cast<std::uint8_t>(1u << cell % 8);
      continue;
    }
    if (bits.may_contain(hash)) continue;
    while (layers[i].keys == layers[i].capacity && i + 1 < bits.first_of(shard + 1)) ++i;
    ++layers[i].keys;
    for (const std::uint64_t cell : bits.cells(i, hash))
      bits.bytes_of(i)[cell / 8] |= static_cast<std::uint8_t>(1u << cell % 8);
  }
  layered_filter result(file.parameters, layers);
  for (std::size_t i = 0; i < layers.size(); ++i) std::ranges::copy(bits.bytes_of(i), result.bytes_of(i).begin());
  return result;
}

TEST(GoldenFiles, OfLayersAreSavedByteForByteAndHaveTheirKeys) {
  for (const golden_layers& file : golden_files_of_layers()) {
    SCOPED_TRACE(file.name);
    const std::string path = BLOOMERY_SOURCE_DIR "/tests/golden/"s + file.name + ".layers";
    const scratch_folder folder;

    filled(file).save(folder / "f");
    const layered_filter opened = layered_filter::open(path);

    EXPECT_EQ(read_file(folder / "f"), read_file(path));
    EXPECT_EQ(opened.parameters().metadata, file.parameters.metadata);
    EXPECT_EQ(opened.parameters().maximum, file.parameters.maximum);
    EXPECT_EQ(opened.parameters().copied_at, file.parameters.copied_at);
    EXPECT_EQ(opened.parameters().filter.window(), file.parameters.filter.window());
    for (const key_hash hash : golden_hashes(file.parameters.filter)) ASSERT_TRUE(opened.may_contain(hash));
  }
}

TEST(GoldenFiles, AreAllTested) {
  std::size_t files = 0;
  std::size_t files_of_layers = 0;
  std::vector<std::string> others;
  for (const auto& entry : std::filesystem::directory_iterator(BLOOMERY_SOURCE_DIR "/tests/golden")) {
    const auto name = entry.path().filename();
    if (name.extension() == ".bloom") {
      ++files;
    } else if (name.extension() == ".layers") {
      ++files_of_layers;
    } else {
      others.push_back(name);
    }
  }

  EXPECT_EQ(files, golden_files().size());
  EXPECT_EQ(files_of_layers, golden_files_of_layers().size());
  // Not a corpus that a fuzz target left there.
  EXPECT_THAT(others, testing::UnorderedElementsAre("foreign", "make_golden.py", "sealed"));
}

}  // namespace
}  // namespace bloomery
