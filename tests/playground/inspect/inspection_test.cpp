// Inspections of files that other processes change, replace, damage or remove.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>

#include "app/signals.hpp"
#include "playground/answers.hpp"
#include "playground/api/api.hpp"
#include "playground/documented.hpp"
#include "playground/host/inspect_filter.hpp"
#include "playground/inspect/inspected_file.hpp"
#include "playground/inspected_filters.hpp"
#include "support/errors.hpp"
#include "support/files.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery_tests {
namespace {

using namespace std::chrono_literals;
using bloomery::any_filter;
using bloomery::params;
using bloomery::window_of_keys;
using bloomery::window_of_time;
using namespace bloomery::playground;

class InspectedFile : public testing::Test {
 protected:
  std::unique_ptr<inspection> inspect() { return inspect_filter(path, {}); }

  scratch_folder folder;
  std::string path = folder / "seen.bloom";
};

TEST_F(InspectedFile, IsDescribedByItsBits) {
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

struct verdict_row {
  const char* name;
  any_filter filter;
  const char* expected;
};

params window(std::uint64_t capacity, const bloomery::window_length& length) {
  return bloomery::complete({.layout = "sliding", .capacity = capacity, .target_fpr = 0.01, .extra = length});
}

params pharo(std::uint64_t capacity, double fpr) {
  return bloomery::complete({.scheme = "pharo", .capacity = capacity, .target_fpr = fpr});
}

any_filter made_long_ago() {
  any_filter filter(window(500, window_of_time(1min)));
  filter.set_clock([] { return std::uint64_t{1'000'000'000'000}; });
  insert(filter, 0, 50);
  return filter;
}

any_filter of_chosen_keys() {
  any_filter filter(usual());
  for (std::uint64_t i = 0; filter.insert_count() < 3000; ++i) {
    const std::string key = std::to_string(i);
    if (filter.cells(std::string_view(key)).front() < 40 * 512) filter.insert(std::string_view(key));
  }
  return filter;
}

// The scheme has fewer different hashes than the filter has bits.
any_filter of_a_scheme_beyond_its_hashes() {
  const params p = pharo(200'000, 0.02);
  EXPECT_GT(expected_fpr(p, p.capacity), 0.2);
  any_filter filter(p);
  for (std::uint64_t k = 0; k < p.capacity; ++k) filter.insert("key " + std::to_string(k));
  return filter;
}

// Its sizing rule uses a real number of probes.
any_filter of_a_scheme() {
  const params p = pharo(20'000, 0.01);
  EXPECT_GT(expected_fpr(p, p.capacity), 0.0101);
  any_filter filter(p);
  for (std::uint64_t k = 0; filter.insert_count() < 19'900; ++k) filter.insert("key " + std::to_string(k));
  return filter;
}

TEST_F(InspectedFile, HasTheVerdictThatItsBitsDeserve) {
  const auto of = [](const char* layout, std::uint64_t capacity) {
    return bloomery::complete({.layout = layout, .capacity = capacity, .target_fpr = 0.01});
  };
  verdict_row rows[] = {
      {"counting", made(8, of("counting", 500)), R"({"verdict": {"level": "good"}})"},
      {"scheme", made(8, pharo(10, 0.1)), R"({"verdict": {"level": "good"}})"},
      {"window", made(8, window(500, window_of_keys(500))), R"({"verdict": {"level": "good"}})"},
      {"page", made(8, of("blocked_page", 5)), R"({"verdict": {"level": "good"}})"},
      {"overfull generation", made(1500, window(600, window_of_time(1h))),
       R"({"verdict": {"level": "bad", "code": "overfull"}})"},
      {"expired keys", made_long_ago(),
       R"({"verdict": {"code": "empty"}, "keys": 0, "certified": 0, "facts": {"ones": 0}})"},
      {"chosen keys", of_chosen_keys(), R"({"verdict": {"level": "bad"}, "histogram": {"fits": false}})"},
      {"scheme as planned", of_a_scheme(), R"({"verdict": {"level": "watch", "code": "scheme"}})"},
      {"scheme with too few hashes", of_a_scheme_beyond_its_hashes(),
       R"({"verdict": {"level": "bad", "code": "broken"}})"},
  };
  for (verdict_row& row : rows) {
    SCOPED_TRACE(row.name);
    std::filesystem::remove(path);
    row.filter.save(path);
    const auto i = inspect();

    const json seen = ready(*i);

    expect_contains(seen, json::parse(row.expected));
    EXPECT_EQ(sum_of(seen["heat"]["ones"]), seen["facts"]["ones"]);
    if (seen["keys"] == 0) {
      EXPECT_EQ(i->ask(std::vector<std::string>{"key 7"})["keys"][0]["answer"], "no");
    }
    if (seen["verdict"]["code"] == "overfull") {
      for (const json& one : seen["facts"]["window"]["generations"]) EXPECT_EQ(one["capacity"], 600);
    }
  }
}

TEST_F(InspectedFile, FullerThanItsCountIsBad) {
  save_file(path, usual(), made(9000).bytes(), made(2000).counts(), "");

  // Many keys, but not chosen ones.
  expect_contains(ready(*inspect()),
                  {{"verdict", {{"level", "bad"}, {"code", "fuller"}}}, {"histogram", {{"fits", true}}}});
}

TEST_F(InspectedFile, ShowsWhatAnotherWritesIntoIt) {
  any_filter::create(path, usual()).close();
  const auto i = inspect();
  const json before = ready(*i);
  any_filter writer = any_filter::open(path, {.mode = bloomery::access::read_write});

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

  const json later = i->look(seen["version"].get<std::uint64_t>(), 2500ms);  // two polls

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
  const json past = i->past(0)["samples"];
  json sequence = json::array();  // a time of several samples counts once
  for (const json& sample : past) {
    if (sequence.empty() || sequence.back() != sample["keys"]) sequence.push_back(sample["keys"]);
  }
  EXPECT_EQ(sequence, json({before["keys"], nullptr, before["keys"]}));
  EXPECT_EQ(past.back()["rate"], before["certified"]);
  EXPECT_GE(gone["failed_at"], before["changed_at"]);
  EXPECT_EQ(back["facts"], before["facts"]);
  EXPECT_EQ(back["changed_at"], before["changed_at"]);
  EXPECT_EQ(back["failed_at"], nullptr);
  EXPECT_EQ(back["error"], nullptr);
}

TEST_F(InspectedFile, ThatIsReplacedIsReported) {
  made(1000).save(path);
  const bytes whole = read_file(path);
  const auto i = inspect();
  ready(*i);

  // Replaces the file by another one, as programs do; another test truncates it in place.
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
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_NE(failed(*i, "not_a_filter")["error"]["way_out"], "");
}

TEST_F(InspectedFile, WithADamagedPageIsBadAndAnswersNothing) {
  const any_filter filter = made(2000);
  filter.save(path);
  const auto i = inspect();
  EXPECT_EQ(ready(*i)["verdict"]["code"], "keeps");
  bytes file = read_file(path);
  const auto at = std::search(file.begin(), file.end(), filter.bytes().begin(), filter.bytes().end());
  ASSERT_NE(at, file.end());
  *at ^= 1;

  write_file(path + ".new", file);
  std::filesystem::rename(path + ".new", path);
  const auto other = inspect();
  const json seen = ready(*other);

  EXPECT_EQ(seen["verdict"]["level"], "bad");
  EXPECT_EQ(seen["verdict"]["code"], "damaged");
  EXPECT_GT(seen["facts"].size(), 0u);
  const auto asked = error_of([&] { other->ask(std::vector<std::string>{"key 1"}); });
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->code(), bloomery::errc::damaged);
}

TEST_F(InspectedFile, AnswersForKeysByTheirCells) {
  const any_filter filter = made(1000);
  filter.save(path);
  const auto i = inspect();

  const json answer = i->ask(std::vector<std::string>{"key 7", "an absent key"});

  EXPECT_EQ(answer["keys"][0]["answer"], "maybe");
  EXPECT_EQ(answer["keys"][0]["truth"], nullptr);
  EXPECT_EQ(answer["keys"][0]["cells"].size(), filter.parameters().geometry.probes);
  EXPECT_EQ(answer["keys"][0]["cells"][0]["cell"], filter.cells(std::string_view("key 7")).front());
  EXPECT_EQ(answer["keys"][1]["answer"], filter.may_contain(std::string_view("an absent key")) ? "maybe" : "no");
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

TEST_F(InspectedFile, OfATimeWindowExpiresKeysWithoutWriters) {
  made(50, window(500, window_of_time(2s))).save(path);
  const auto i = inspect();

  const json seen =
      follow(*i, "nothing left", [](const json& one) { return one.contains("keys") && one["facts"]["ones"] == 0; });

  EXPECT_EQ(seen["certified"], 0);
}

// As `bloomery add` does it in intervals.
TEST_F(InspectedFile, ThatGrowsIsFullInTheTimeThatItsKeysLeftTake) {
  any_filter::create(path, usual()).close();
  const auto i = inspect();
  ready(*i);
  const auto begin = std::chrono::steady_clock::now();
  json past = i->past(0);

  std::uint64_t added = 0;
  for (; past["keys_per_second"].is_null(); added += 20) {
    ASSERT_LT(std::chrono::steady_clock::now(), begin + 30s) << past;
    any_filter writer = any_filter::open(path, {.mode = bloomery::access::read_write});
    insert(writer, added, 20);
    writer.close();
    std::this_thread::sleep_for(200ms);
    past = i->past(0);
  }

  const double pace = past["keys_per_second"].get<double>();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double mean = static_cast<double>(added) / took.count();
  EXPECT_GT(pace, 0.4 * mean);
  EXPECT_LT(pace, 2 * mean);
  EXPECT_NEAR(past["full_in"].get<double>() * pace, 19'000, 1100);
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
  made(50, window(500, window_of_keys(500))).save(path + ".window");
  made(8, pharo(10, 0.1)).save(path + ".pharo");
  std::vector<std::unique_ptr<inspection>> all;
  for (const char* end : {"", ".window", ".pharo"}) all.push_back(inspect_filter(path + end, {}));
  for (const auto& i : all) ready(*i);
  bloomery::playground::api answers({.inspections = std::move(all)});
  shapes known;

  for (const char* number : {"0", "1", "2"}) {
    const json seen = json::parse(answers.handle({"GET", std::string("/api/1/inspections/") + number, {}, ""}).body);
    known.check(seen, "INSPECTION");
    const std::string past = std::string("/api/1/inspections/") + number + "/history";
    const json history = json::parse(answers.handle({"GET", past, {}, ""}).body);
    known.check(history, "HISTORY");
    ASSERT_GE(history["samples"].size(), 1);
    EXPECT_EQ(history["samples"][0]["keys"], seen["keys"]);
    const std::string at = std::to_string(history["samples"][0]["at"].get<std::uint64_t>() + 60'000);
    EXPECT_EQ(json::parse(answers.handle({"GET", past, {{"after", at}}, ""}).body)["samples"], json::array());
    EXPECT_EQ(seen["session"], json::parse(answers.handle({"GET", "/api/1/about", {}, ""}).body)["session"]);
  }
}

TEST_F(InspectedFile, ThatIsALogNamesItsFilter) {
  made(10).save(path);
  write_file(path + ".log", bytes(100, 'x'));

  const json seen = failed(*inspect_filter(path + ".log", {}), "not_a_filter");

  EXPECT_EQ(seen["error"]["way_out"], "name " + path + "; this file is its log");
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

TEST_F(InspectedFile, ThatIsMissingAtFirstAppearsOnceItExists) {
  EXPECT_THROW(check_file(path), bloomery::error);
  const auto i = inspect();
  const json missing = failed(*i, "not_found");

  made(1000).save(path);

  EXPECT_FALSE(missing.contains("filter"));
  EXPECT_EQ(missing["changed_at"], nullptr);
  EXPECT_NEAR(ready(*i)["keys"].get<double>(), 1000, 30);
}

}  // namespace
}  // namespace bloomery_tests
