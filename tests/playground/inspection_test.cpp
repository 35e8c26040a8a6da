// Filters that are looked into while others change, replace, damage or remove them; on disk, and on servers that the
// tests start.
#include "playground/inspection.hpp"

#include "documented.hpp"

#include "playground/api.hpp"

#include "app/signals.hpp"

#include "redis/cluster.hpp"
#include "redis/fixtures.hpp"
#include "redis/servers.hpp"
#include "support/errors.hpp"
#include "support/files.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/fill_statistics.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis_chain.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::any_filter;
using bloomery::params;
using bloomery::redis_filter;
using bloomery::redis_growth;
using bloomery::redis_params;
using bloomery::playground::inspect_filter;
using bloomery::playground::inspection;
using bloomery::playground::json;
using bloomery::playground::key_list;
using namespace std::chrono_literals;

// Follows the versions until one is as wanted.
json follow(inspection& i, const std::string& what, const std::function<bool(const json&)>& wanted) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  json seen = i.look(0, 0ms);
  while (!wanted(seen)) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("waited in vain: " + what + seen.dump());
    seen = i.look(seen["version"].get<std::uint64_t>(), 500ms);
  }
  return seen;
}

json ready(inspection& i) {
  return follow(i, "ready", [](const json& seen) { return seen["state"] == "ready"; });
}

json failed(inspection& i, const std::string& code) {
  return follow(i, code, [&](const json& seen) { return seen["state"] == "failed" && seen["error"]["code"] == code; });
}

std::uint64_t sum_of(const json& numbers) {
  std::uint64_t sum = 0;
  for (const json& one : numbers) sum += one.get<std::uint64_t>();
  return sum;
}

std::unique_ptr<inspection> inspect_on_server(const std::string& address) {
  bloomery::redis::open_options options;
  options.connection.time = bloomery::playground::usual_server_time;
  return inspect_filter(address, options);
}

params usual(std::uint64_t capacity = 20'000) {
  return bloomery::complete({.layout = "blocked", .capacity = capacity, .target_fpr = 0.01});
}

std::vector<std::string> texts(std::uint64_t first, std::uint64_t count) {
  std::vector<std::string> keys;
  for (std::uint64_t i = first; i < first + count; ++i) keys.push_back("key " + std::to_string(i));
  return keys;
}

template <class Filter>
void insert(Filter& filter, std::uint64_t first, std::uint64_t count) {
  const std::vector<std::string> keys = texts(first, count);
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  filter.insert(std::span<const std::string_view>(views));
}

any_filter made(std::uint64_t keys, const params& p = usual()) {
  any_filter filter(p);
  insert(filter, 0, keys);
  return filter;
}

class InspectedFile : public testing::Test {
 protected:
  std::unique_ptr<inspection> inspect() { return inspect_filter(path, {}); }

  scratch_folder folder;
  std::string path = folder / "seen.bloom";
};

TEST_F(InspectedFile, IsToldAsItsBitsAre) {
  const any_filter filter = made(10'000);
  filter.save(path, "a note");
  const auto i = inspect();

  const json seen = ready(*i);

  const bloomery::fill_statistics bits = measure_fill(filter.parameters(), filter.bytes());
  EXPECT_EQ(seen["promised"], 0.01);
  EXPECT_EQ(seen["certified"].get<double>(), bits.current_fpr);
  EXPECT_EQ(seen["facts"]["ones"], bits.ones);
  EXPECT_EQ(sum_of(seen["heat"]["ones"]), bits.ones);
  EXPECT_EQ(sum_of(seen["histogram"]["blocks"]), seen["filter"]["cells"].get<std::uint64_t>() / 512);
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_EQ(seen["verdict"]["code"], "keeps");
  EXPECT_LE(seen["measured"]["low"], bits.current_fpr * 1.5);
  EXPECT_EQ(seen["note"], "a note");
  ASSERT_EQ(seen["forecast"].size(), 4);
  const std::uint64_t twice = seen["forecast"][3]["keys"].get<std::uint64_t>();
  EXPECT_NEAR(static_cast<double>(twice), 2e4, 20);
  EXPECT_DOUBLE_EQ(seen["forecast"][3]["rate"].get<double>(), filter.expected_fpr(twice));
  EXPECT_EQ(seen["shards"], nullptr);
}

TEST_F(InspectedFile, OfEachKindIsReady) {
  for (const params& p :
       {bloomery::complete({.layout = "counting", .capacity = 500, .target_fpr = 0.01}),
        bloomery::complete({.scheme = "pharo", .capacity = 10, .target_fpr = 0.1}),
        bloomery::complete({.layout = "sliding", .capacity = 500, .target_fpr = 0.01, .window_keys = 500}),
        bloomery::complete({.layout = "blocked_page", .capacity = 5, .target_fpr = 0.01})}) {
    SCOPED_TRACE(p.layout + p.scheme);
    std::filesystem::remove(path);
    made(8, p).save(path);
    const auto i = inspect();

    const json seen = ready(*i);

    EXPECT_EQ(sum_of(seen["heat"]["ones"]), seen["facts"]["ones"]);
    EXPECT_EQ(seen["verdict"]["level"], "good") << seen["verdict"];
  }
}

TEST_F(InspectedFile, ShowsWhatAnotherWritesIntoIt) {
  any_filter::create(path, usual()).close();
  const auto i = inspect();
  const json before = ready(*i);
  any_filter writer = any_filter::open(path, bloomery::access::read_write);

  insert(writer, 0, 5000);
  const json meanwhile = follow(*i, "new bits", [](const json& seen) { return seen["facts"]["ones"] > 0; });
  writer.close();
  const json closed =
      follow(*i, "closed", [](const json& seen) { return seen["clean"] == true && seen["facts"]["ones"] > 0; });

  EXPECT_EQ(before["verdict"]["code"], "empty");
  EXPECT_EQ(meanwhile["clean"], false);
  EXPECT_GT(meanwhile["version"], before["version"]);
  EXPECT_GE(meanwhile["changed_at"], before["changed_at"]);
  EXPECT_NEAR(closed["keys"].get<double>(), 5000, 50);
}

TEST_F(InspectedFile, OfAnIdleWriterIsNoNews) {
  any_filter writer = any_filter::create(path, usual());
  insert(writer, 0, 100);
  const auto i = inspect();
  const json seen = ready(*i);

  const json later = i->look(seen["version"].get<std::uint64_t>(), 2500ms);  // two looks

  EXPECT_EQ(later["version"], seen["version"]);
}

TEST_F(InspectedFile, ThatVanishesIsStillShownUntilItIsBack) {
  made(1000).save(path);
  const auto i = inspect();
  const json before = ready(*i);

  std::filesystem::rename(path, path + ".away");
  const json gone = failed(*i, "not_found");
  std::filesystem::rename(path + ".away", path);
  const json back = ready(*i);

  EXPECT_EQ(gone["facts"], before["facts"]);
  EXPECT_GE(gone["failed_at"], before["changed_at"]);
  EXPECT_EQ(back["facts"], before["facts"]);
  EXPECT_EQ(back["changed_at"], before["changed_at"]);
  EXPECT_EQ(back["failed_at"], nullptr);
  EXPECT_EQ(back["error"], nullptr);
}

TEST_F(InspectedFile, ThatBecomesAnotherIsToldInWords) {
  made(1000).save(path);
  const bytes whole = read_file(path);
  const auto i = inspect();
  ready(*i);

  // Another file in its place, as programs replace files; to cut short the one that is read is another matter.
  const auto replace = [&](const bytes& content) {
    write_file(path + ".new", content);
    std::filesystem::rename(path + ".new", path);
  };
  replace(bytes(5000, 'x'));
  EXPECT_NE(failed(*i, "not_a_filter")["error"]["what"], "");
  replace(bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2)));
  EXPECT_NE(failed(*i, "damaged")["error"]["what"], "");
  made(2000).save(path);
  EXPECT_NEAR(ready(*i)["keys"].get<double>(), 2000, 30);
}

TEST_F(InspectedFile, FullerThanItsCountIsBad) {
  any_filter filter = made(2000);
  any_filter stranger = made(9000);
  std::vector<std::uint8_t> bits(stranger.bytes().begin(), stranger.bytes().end());
  filter.save(path);
  bytes file = read_file(path);
  const auto at = std::search(file.begin(), file.end(), filter.bytes().begin(), filter.bytes().end());
  ASSERT_NE(at, file.end());
  std::copy(bits.begin(), bits.end(), at);
  write_file(path, file);
  const auto i = inspect();

  const json seen = ready(*i);

  EXPECT_EQ(seen["verdict"]["level"], "bad");
  EXPECT_EQ(seen["verdict"]["code"], "fuller");
  EXPECT_EQ(seen["histogram"]["fits"], true);  // many keys, but nobody chose them
}

TEST_F(InspectedFile, OfChosenKeysIsUneven) {
  any_filter filter(usual());
  for (std::uint64_t i = 0; filter.size() < 3000; ++i) {
    const std::string key = std::to_string(i);
    if (filter.cells(std::string_view(key)).front() < 40 * 512) filter.insert(std::string_view(key));
  }
  filter.save(path);
  const auto i = inspect();

  const json seen = ready(*i);

  EXPECT_EQ(seen["verdict"]["level"], "bad");
  EXPECT_EQ(seen["histogram"]["fits"], false);
}

TEST_F(InspectedFile, AnswersForKeysByTheirCells) {
  const any_filter filter = made(1000);
  filter.save(path);
  const auto i = inspect();

  const json answer = i->ask(std::vector<std::string>{"key 7", "a stranger"});

  EXPECT_EQ(answer["keys"][0]["answer"], "maybe");
  EXPECT_EQ(answer["keys"][0]["truth"], nullptr);
  EXPECT_EQ(answer["keys"][0]["cells"].size(), filter.parameters().geometry.probes);
  EXPECT_EQ(answer["keys"][0]["cells"][0]["cell"], filter.cells(std::string_view("key 7")).front());
  EXPECT_EQ(answer["keys"][1]["answer"], filter.may_contain(std::string_view("a stranger")) ? "maybe" : "no");
  EXPECT_THROW(i->ask(bloomery::playground::address_range{}), bloomery::error);
}

TEST_F(InspectedFile, WithASecretIsReadWithoutIt) {
  const bloomery::secret_key key = bloomery::random_secret();
  bloomery::params p = bloomery::complete({.capacity = 5000, .target_fpr = 0.01, .secret = key});
  made(4000, p).save(path);
  const auto i = inspect();

  const json seen = ready(*i);

  EXPECT_NEAR(seen["keys"].get<double>(), 4000, 50);
  EXPECT_EQ(seen["verdict"]["code"], "keeps");
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_EQ(seen["measured"], nullptr);
  const auto asked = error_of([&] { i->ask(std::vector<std::string>{"key 1"}); });
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->code(), bloomery::errc::incompatible);
}

TEST_F(InspectedFile, OfATimeLongGoneHasNoKeys) {
  any_filter filter(
      bloomery::complete({.layout = "sliding", .capacity = 500, .target_fpr = 0.01, .window_milliseconds = 60'000}));
  std::uint64_t now = 1'000'000'000'000;
  filter.set_clock([&] { return now; });
  insert(filter, 0, 50);
  filter.save(path);
  const auto i = inspect();

  const json seen = ready(*i);

  EXPECT_EQ(seen["keys"], 0);
  EXPECT_EQ(seen["facts"]["ones"], 0);
  EXPECT_EQ(seen["certified"], 0);
  EXPECT_EQ(seen["verdict"]["code"], "empty");
  EXPECT_EQ(i->ask(std::vector<std::string>{"key 7"})["keys"][0]["answer"], "no");
}

TEST_F(InspectedFile, OfATimeForgetsWhileNobodyWrites) {
  any_filter filter(
      bloomery::complete({.layout = "sliding", .capacity = 500, .target_fpr = 0.01, .window_milliseconds = 2000}));
  insert(filter, 0, 50);
  filter.save(path);
  const auto i = inspect();

  const json seen =
      follow(*i, "nothing left", [](const json& one) { return one.contains("keys") && one["facts"]["ones"] == 0; });

  EXPECT_EQ(seen["certified"], 0);
}

TEST_F(InspectedFile, OfASchemeAsItWasPlannedIsNotBroken) {
  const params p = bloomery::complete({.scheme = "pharo", .capacity = 20'000, .target_fpr = 0.01});
  ASSERT_GT(expected_fpr(p, p.capacity), 0.0101);  // its rule of sizes knows the probes only as a real number
  any_filter filter(p);
  for (std::uint64_t k = 0; filter.size() < 19'900; ++k) filter.insert("key " + std::to_string(k));
  filter.save(path);
  const auto i = inspect();

  const json seen = ready(*i);

  EXPECT_EQ(seen["verdict"]["level"], "watch") << seen["verdict"] << seen["certified"];
  EXPECT_EQ(seen["verdict"]["code"], "scheme");
}

TEST_F(InspectedFile, WithTooManyKeysInAGenerationIsOverfull) {
  made(454,
       bloomery::complete({.layout = "sliding", .capacity = 600, .target_fpr = 0.01, .window_milliseconds = 3'600'000}))
      .save(path);
  const auto i = inspect();

  const json seen = ready(*i);

  EXPECT_EQ(seen["verdict"]["level"], "bad");
  EXPECT_EQ(seen["verdict"]["code"], "overfull");
  for (const json& one : seen["facts"]["window"]["generations"]) EXPECT_EQ(one["capacity"], 86);  // 600 / 7, rounded up
}

TEST_F(InspectedFile, WasChangedWhenItsTimeSays) {
  made(1000).save(path);
  const auto then = std::chrono::file_clock::now() - 48h;
  std::filesystem::last_write_time(path, then);
  const auto i = inspect();

  const json seen = ready(*i);

  const auto expected = std::chrono::file_clock::to_sys(then).time_since_epoch();
  EXPECT_NEAR(seen["changed_at"].get<double>(),
              static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(expected).count()), 2);
}

TEST_F(InspectedFile, IsDocumented) {
  made(1000).save(path);
  made(50, bloomery::complete({.layout = "sliding", .capacity = 500, .target_fpr = 0.01, .window_keys = 500}))
      .save(path + ".window");
  made(8, bloomery::complete({.scheme = "pharo", .capacity = 10, .target_fpr = 0.1})).save(path + ".pharo");
  std::vector<std::unique_ptr<inspection>> all;
  for (const char* end : {"", ".window", ".pharo"}) all.push_back(inspect_filter(path + end, {}));
  for (const auto& i : all) ready(*i);
  bloomery::playground::api answers(std::move(all));
  shapes known;

  for (const char* number : {"0", "1", "2"}) {
    const json seen = json::parse(answers.handle({"GET", std::string("/api/1/inspections/") + number, {}, ""}).body);
    known.check(seen, "INSPECTION");
    EXPECT_EQ(seen["session"], json::parse(answers.handle({"GET", "/api/1/about", {}, ""}).body)["session"]);
  }
}

TEST_F(InspectedFile, ThatIsALogIsRefusedWithItsFilter) {
  made(10).save(path);
  write_file(path + ".log", bytes(100, 'x'));

  const auto refused = error_of([&] { inspect_filter(path + ".log", {}); });

  ASSERT_TRUE(refused);
  EXPECT_NE(refused->text().hint.words().find("name " + path + ":"), std::string::npos) << refused->text().hint.words();
}

TEST_F(InspectedFile, ThatBecomesADirectoryHasAWayOut) {
  made(10).save(path);
  const auto i = inspect();
  ready(*i);

  std::filesystem::rename(path, path + ".away");
  std::filesystem::create_directory(path);

  EXPECT_NE(failed(*i, "not_a_filter")["error"]["way_out"], "");
}

TEST_F(InspectedFile, CanBeCutShortWhileItIsRead) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  write_file(path, bytes(20 * page, 'x'));
  std::FILE* file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  void* const mapped = ::mmap(nullptr, 20 * page, PROT_READ, MAP_SHARED, ::fileno(file), 0);
  std::fclose(file);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span<const std::uint8_t> all(static_cast<const std::uint8_t*>(mapped), 20 * page);
  {
    const bloomery::app::readable_while_cut readable(all);
    EXPECT_FALSE(readable.was_cut());

    std::filesystem::resize_file(path, page);

    EXPECT_EQ(std::count(all.begin(), all.end(), 'x'), static_cast<std::ptrdiff_t>(page));
    EXPECT_TRUE(readable.was_cut());
  }
  ::munmap(mapped, 20 * page);
}

TEST_F(InspectedFile, ThatIsNoneIsRefusedAtOnce) { EXPECT_THROW(inspect(), bloomery::error); }

// ---- on Redis -------------------------------------------------------------------------------------------------------

class InspectedOnRedis : public on_a_server<InspectedOnRedis> {
 public:
  static server_options options() { return {.append_only = true}; }

 protected:
  static std::unique_ptr<inspection> inspect(const std::string& name) { return inspect_on_server(at(name).text()); }

  static redis_params of(std::uint64_t capacity) {
    return {.filter = {.capacity = capacity, .target_fpr = 0.01}, .shards = 4};
  }
};

TEST_F(InspectedOnRedis, IsToldShardByShard) {
  redis_filter filter = redis_filter::create(at("a"), of(20'000));
  insert(filter, 0, 8000);
  const auto i = inspect("a");

  const json seen = ready(*i);

  const any_filter local = filter.pull();
  const std::uint64_t ones = measure_fill(local.parameters(), local.bytes()).ones;
  EXPECT_EQ(seen["facts"]["ones"], ones);
  EXPECT_EQ(sum_of(seen["heat"]["ones"]), ones);
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_EQ(seen["certified"].get<double>(), local.current_fpr());
  ASSERT_EQ(seen["shards"].size(), 4);
  const std::uint64_t of_shard = local.byte_size() / 4;
  for (std::uint64_t s = 0; s < 4; ++s) {
    const json& shard = seen["shards"][s];
    const std::uint64_t expected = bloomery::count_ones(local.bytes().subspan(s * of_shard, of_shard));
    EXPECT_EQ(
        shard,
        json({{"shard", s}, {"node", server->socket()}, {"layers", 1}, {"ones", expected}, {"cells", 8 * of_shard}}));
  }
  EXPECT_EQ(
      seen["nodes"],
      json::array(
          {{{"node", server->socket()}, {"shards", 4}, {"layers", 4}, {"ones", ones}, {"cells", 32 * of_shard}}}));
}

TEST_F(InspectedOnRedis, ThatGrowsTellsItsLayersAndTheirBits) {
  redis_params wanted = of(1000);
  wanted.growth = redis_growth::unlimited;
  redis_filter filter = redis_filter::create(at("a"), wanted);
  insert(filter, 0, 6000);
  const auto i = inspect("a");

  const json seen = ready(*i);

  const bloomery::redis_info now = filter.info();
  EXPECT_EQ(seen["filter"]["family"], "growing");
  EXPECT_EQ(sum_of(seen["heat"]["ones"]), now.ones);
  EXPECT_EQ(sum_of(seen["heat"]["read"]), now.bits);
  EXPECT_EQ(sum_of(seen["histogram"]["blocks"]), now.bits / 512);
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_EQ(seen["facts"]["layers"].size(), now.layers);
  EXPECT_GT(now.layers, 1);
  std::uint64_t cells = 0;
  std::uint64_t keys = 0;
  for (const json& layer : seen["facts"]["layers"]) {
    cells += layer["cells"].get<std::uint64_t>();
    keys += layer["keys"].get<std::uint64_t>();
  }
  EXPECT_EQ(cells, now.bits);
  EXPECT_NEAR(static_cast<double>(keys), 6000, 200);
  EXPECT_EQ(seen["facts"]["keys_left"], nullptr);
  EXPECT_EQ(seen["growth"]["most_keys"], nullptr);
  EXPECT_EQ(seen["verdict"]["code"], "keeps");
}

TEST_F(InspectedOnRedis, ThatForgetsTellsItsGenerations) {
  redis_params wanted = of(10'000);
  wanted.filter.window_milliseconds = 3'600'000;
  redis_filter filter = redis_filter::create(at("a"), wanted);
  insert(filter, 0, 500);
  const auto i = inspect("a");

  const json seen = ready(*i);

  EXPECT_EQ(seen["filter"]["family"], "windowed");
  EXPECT_EQ(seen["facts"]["ones"], filter.info().ones);
  EXPECT_EQ(sum_of(seen["heat"]["ones"]), filter.info().ones);
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_GE(seen["facts"]["layers"].size(), 1);
  EXPECT_EQ(seen["forecast"], nullptr);
}

TEST_F(InspectedOnRedis, ThatGrowsWithManyShardsIsFilledAsChanceHasIt) {
  redis_params wanted = of(8000);
  wanted.growth = redis_growth::unlimited;
  wanted.shards = 32;
  redis_filter filter = redis_filter::create(at("a"), wanted);
  insert(filter, 0, 150'000);
  const auto i = inspect("a");

  const json seen = ready(*i);

  EXPECT_GT(filter.info().layers, 3);
  ASSERT_FALSE(seen["histogram"]["expected"].is_null());
  double expected = 0;
  for (const json& blocks : seen["histogram"]["expected"]) expected += blocks.get<double>();
  EXPECT_NEAR(expected, static_cast<double>(sum_of(seen["histogram"]["blocks"])), 0.01);
  EXPECT_EQ(seen["histogram"]["fits"], true) << seen["histogram"]["chance"];
}

TEST_F(InspectedOnRedis, ThatGrowsAndIsPollutedIsUneven) {
  redis_params wanted = of(20'000);
  wanted.growth = redis_growth::unlimited;
  redis_filter filter = redis_filter::create(at("a"), wanted);
  insert(filter, 0, 30'000);
  for (const char* line : {"64", "6400", "12800"}) {
    server->command({"SETRANGE", server->shard("a", 1) + ":0", line, std::string(64, '\xff')});
  }
  const auto i = inspect("a");

  const json seen = ready(*i);

  EXPECT_EQ(seen["histogram"]["fits"], false);
  EXPECT_EQ(seen["verdict"]["code"], "uneven");
}

TEST_F(InspectedOnRedis, ThatIsLargeIsReadInPart) {
  redis_filter filter = redis_filter::create(at("a"), of(60'000'000));
  insert(filter, 0, 200'000);
  const auto i = inspect("a");

  const json seen = ready(*i);

  const std::uint64_t bits = filter.info().bits;
  ASSERT_GT(bits / 8, 64 << 20);
  const std::uint64_t read = sum_of(seen["heat"]["read"]);
  EXPECT_LE(read, 8 * (16 << 20));
  EXPECT_GT(read, 8 * (15 << 20));
  EXPECT_EQ(seen["heat"]["read"].size(), seen["heat"]["ones"].size());
  for (const json& cells : seen["heat"]["read"]) EXPECT_GT(cells, 0);
  const double share = static_cast<double>(sum_of(seen["heat"]["ones"])) / static_cast<double>(read);
  const double fill = seen["facts"]["fill"];
  EXPECT_NEAR(share, fill, 0.03 * fill) << "some 40,000 keys are in what was read";
  EXPECT_EQ(sum_of(seen["histogram"]["blocks"]), read / 512);
  EXPECT_EQ(seen["histogram"]["fits"], true) << seen["histogram"]["chance"];
}

TEST_F(InspectedOnRedis, ShowsWhatOthersInsert) {
  redis_filter filter = redis_filter::create(at("a"), of(20'000));
  const auto i = inspect("a");
  ready(*i);

  insert(filter, 0, 1000);
  const json seen = follow(*i, "keys", [](const json& now) { return now.contains("keys") && now["keys"] > 900; });

  EXPECT_EQ(seen["state"], "ready");
}

TEST_F(InspectedOnRedis, IsStillShownWhileTheServerIsAway) {
  redis_filter::create(at("a"), of(20'000));
  const auto i = inspect("a");
  const json before = ready(*i);

  server->kill_hard();
  const json away = failed(*i, "unavailable");
  server->restart();
  const json back = ready(*i);

  EXPECT_EQ(away["facts"], before["facts"]);
  EXPECT_GE(away["failed_at"], before["changed_at"]);
  EXPECT_EQ(back["changed_at"], before["changed_at"]);
}

TEST_F(InspectedOnRedis, ThatIsNotThereYetIsReadWhenItIs) {
  const auto i = inspect("a");
  const json none = failed(*i, "not_found");

  redis_filter::create(at("a"), of(1000));
  const json there = ready(*i);

  EXPECT_FALSE(none.contains("facts"));
  EXPECT_EQ(there["verdict"]["code"], "empty");
}

TEST_F(InspectedOnRedis, OfNumbersTakesNoOtherKeys) {
  redis_params wanted = of(1000);
  wanted.filter.keys = bloomery::key_kind::u64le;
  redis_filter filter = redis_filter::create(at("a"), wanted);
  filter.insert(std::uint64_t{42});
  const auto i = inspect("a");

  EXPECT_EQ(i->ask(std::vector<std::string>{"42"})["keys"][0]["answer"], "maybe");
  for (const char* none : {"x", "42x", "-1", ""}) {
    try {
      i->ask(std::vector<std::string>{none});
      ADD_FAILURE() << none;
    } catch (const bloomery::error& e) {
      EXPECT_EQ(e.code(), bloomery::errc::invalid_argument);
    }
  }
}

TEST_F(InspectedOnRedis, ThatIsAGuavaChainIsRefusedWithAHint) {
  bloomery::redis_chain::create(at("chain"), {1000, 0.01}).insert("Madrid");
  const auto i = inspect("chain");

  const json seen = failed(*i, "incompatible");

  EXPECT_EQ(seen["error"]["found"], "a Guava chain");
  EXPECT_EQ(i->ask(std::vector<std::string>{"Madrid"})["keys"][0]["answer"], "maybe");
}

// Takes connections, and says nothing on them.
class silent_server {
 public:
  silent_server() = default;
  silent_server(const silent_server&) = delete;
  silent_server& operator=(const silent_server&) = delete;
  ~silent_server() { connections(); }

  std::string address() const { return "redis://127.0.0.1:" + std::to_string(listening_.port()) + "/a"; }

  // That have come since the last time; they are closed.
  int connections() const {
    int count = 0;
    for (int one; (one = ::accept(listening_.fd(), nullptr, nullptr)) >= 0; ++count) ::close(one);
    return count;
  }

 private:
  loopback_listener listening_{1000, SOCK_NONBLOCK};
};

TEST(InspectedOnSilentServer, IsNotTriedForEveryOneWhoAsks) {
  const silent_server server;
  const auto i = inspect_on_server(server.address());
  constexpr std::size_t many = 40;
  std::array<bool, many> unavailable{};

  {
    std::vector<std::jthread> asking;
    for (bool& told : unavailable) {
      asking.emplace_back([&] {
        const auto problem = error_of([&] { i->ask(std::vector<std::string>{"key"}); });
        told = problem && problem->code() == bloomery::errc::unavailable && !problem->text().hint.empty();
      });
    }
  }

  EXPECT_EQ(std::count(unavailable.begin(), unavailable.end(), true), many);
  EXPECT_LE(server.connections(), 10);  // one try, the reader's, and what a slow machine adds
}

class InspectedInCluster : public on_a_cluster<InspectedInCluster> {
 public:
  static cluster_options options() { return {.masters = 3, .replicas = 0}; }
};

TEST_F(InspectedInCluster, IsToldByTheNodesThatHaveItsShards) {
  redis_filter filter =
      redis_filter::create(cluster->address("a"), {.filter = {.capacity = 10'000, .target_fpr = 0.01}, .shards = 24});
  const auto i = inspect_on_server(cluster->address("a").text());

  const json seen = ready(*i);

  std::map<std::string, std::uint64_t> by_node;
  for (const json& shard : seen["shards"]) ++by_node[shard["node"].get<std::string>()];
  ASSERT_EQ(seen["nodes"].size(), by_node.size());
  EXPECT_EQ(by_node.size(), 3);
  for (const json& node : seen["nodes"]) EXPECT_EQ(node["shards"], by_node[node["node"].get<std::string>()]);
}

}  // namespace
}  // namespace bloomery_tests
