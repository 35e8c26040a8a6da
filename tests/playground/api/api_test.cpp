#include "playground/visitor.hpp"

#include "playground/words.hpp"

#include <set>

namespace bloomery_tests {
namespace {

// Cells of a key, numbered as in the original system of the scheme.
std::vector<std::uint64_t> numbered(const json& key, const json& filter) {
  std::vector<std::uint64_t> cells;
  for (const json& c : key["cells"]) {
    cells.push_back(c["cell"].get<std::uint64_t>() + filter["first_number"].get<std::uint64_t>());
  }
  return cells;
}

using cells = std::vector<std::uint64_t>;

TEST(Api, TheCitiesOfTheTutorialHaveItsBits) {
  visitor v;
  const std::string id = "filters/" + v.made({{"scheme", "pharo"}, {"capacity", 10}, {"rate", 0.1}});
  const json filter = v.get(id)["filter"];
  ASSERT_EQ(filter["cells"], 48);

  const json added = v.post(id + "/add", {{"keys", {"Madrid", "Barcelona"}}});
  const json asked = v.post(id + "/ask", {{"keys", {"Madrid", "Berlin", "Roma"}}});

  EXPECT_EQ(numbered(added["keys"][0], filter), (cells{18, 9, 48, 39}));
  EXPECT_EQ(numbered(added["keys"][1], filter), (cells{48, 42, 36, 30}));
  EXPECT_EQ(added["new"], 2);
  EXPECT_EQ(numbered(asked["keys"][1], filter), (cells{27, 30, 33, 36}));
  EXPECT_EQ(asked["keys"][1]["answer"], "no");
  EXPECT_EQ(numbered(asked["keys"][2], filter), (cells{36, 36, 36, 36}));
  EXPECT_EQ(asked["keys"][2]["answer"], "maybe");
  EXPECT_EQ(asked["keys"][2]["false_positive"], true);
  EXPECT_EQ(asked["keys"][2]["cells"][0]["owners"], json({"Barcelona"}));
  EXPECT_EQ(asked["keys"][2]["cells"][3]["again"], true);
  EXPECT_EQ(asked["false_positives"], 1);
  EXPECT_EQ(asked["maybe"], 2);
  const std::string bits = v.bytes(id + "/cells");
  std::set<std::uint64_t> set;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] != 0) set.insert(i + 1);
  }
  EXPECT_EQ(set, (std::set<std::uint64_t>{9, 18, 30, 36, 39, 42, 48}));
  EXPECT_EQ(v.get(id)["facts"]["ones"], 7);
}

struct refused {
  const char* wanted;
  const char* where;
  int status = 400;
};

class RefusedWish : public testing::TestWithParam<refused> {};

TEST_P(RefusedWish, NamesTheFieldAtFaultAndAWayOut) {
  visitor v;

  for (const char* path : {"plans", "filters"}) {
    const json answer = v.post_text(path, GetParam().wanted, GetParam().status);

    EXPECT_EQ(answer["error"]["where"], GetParam().where) << answer;
    expect_words(answer);
  }
  EXPECT_EQ(v.post_text("jobs", std::string(R"({"kind": "profile", "filter": )") + GetParam().wanted + "}",
                        GetParam().status)["error"]["where"],
            GetParam().where);
}

constexpr refused wishes[] = {
    {R"({})", "capacity"},
    {R"({"rate": 0.1})", "capacity"},
    {R"({"bits": 100})", "capacity"},
    {R"({"capacity": 0})", "capacity"},
    {R"({"capacity": -1})", "capacity"},
    {R"({"capacity": -0.0})", "capacity"},
    {R"({"capacity": 1.5})", "capacity"},
    {R"({"capacity": "10"})", "capacity"},
    {R"({"capacity": true})", "capacity"},
    {R"({"capacity": [[10]]})", "capacity"},
    {R"({"capacity": 1000000000000000000})", "capacity"},
    {R"({"capacity": 99999999999999999999999})", "capacity"},
    {R"({"capacity": 9007199254740991, "rate": 0.001})", "capacity", 413},
    {R"({"capacity": 10, "rate": 0})", "rate"},
    {R"({"capacity": 10, "rate": 1})", "rate"},
    {R"({"capacity": 10, "rate": -1})", "rate"},
    {R"({"capacity": 10, "rate": -0.0})", "rate"},
    {R"({"capacity": 10, "rate": "x"})", "rate"},
    {R"({"capacity": 10, "rate": {}})", "rate"},
    {R"({"capacity": 10, "rate": 1e-300, "layout": "split_block512"})", "rate", 413},
    {R"({"capacity": 10, "bits": 1152921504606846976})", "bits"},
    {R"({"capacity": 10, "bits": 0})", "bits"},
    {R"({"capacity": 10, "rate": 0.1, "bits": 100})", "bits"},
    {R"({"bits": 1, "rate": 0.1})", "bits"},
    {R"({"bits": 1000, "rate": 0.1, "layout": "blocked_page"})", "bits"},
    {R"({"bits": 1000, "rate": 0.1, "layout": "counting"})", "capacity"},
    {R"({"bits": 1000, "rate": 0.1, "scheme": "pharo"})", "capacity"},
    {R"({"capacity": 10, "rate": 0.1, "probes": 3})", "probes"},
    {R"({"capacity": 10, "bits": 1000, "probes": 0})", "probes"},
    {R"({"capacity": 10, "bits": 1000, "probes": 256})", "probes"},
    {R"({"capacity": 10, "bits": 1024, "probes": 3, "layout": "split_block512"})", "probes"},
    {R"({"capacity": 10, "bits": 100, "layout": "split_block512"})", "bits"},
    {R"({"capacity": 10, "bits": 100, "layout": "counting"})", "bits"},
    {R"({"capacity": 10, "layout": "nope"})", "layout"},
    {R"({"capacity": 10, "layout": "sealed"})", "layout"},
    {R"({"capacity": 10, "layout": 3})", "layout"},
    {R"({"capacity": 10, "scheme": "nope"})", "scheme"},
    {R"({"capacity": 10, "scheme": "guava-chain"})", "scheme"},
    {R"({"capacity": 10, "hash": "nope"})", "hash"},
    {R"({"capacity": 10, "hash": "mix"})", "hash"},
    {R"({"capacity": 10, "hash": "siphash"})", "hash"},
    {R"({"capacity": 10, "seed": "x"})", "seed"},
    {R"({"capacity": 10, "seed": -1})", "seed"},
    {R"({"capacity": 10, "seed": "18446744073709551616"})", "seed"},
    {R"({"capacity": 10, "seed": "1099511627776", "hash": "murmur3"})", "seed"},
    {R"({"capacity": 10, "scheme": "pharo", "layout": "split_block512"})", "layout"},
    {R"({"capacity": 10, "scheme": "pharo", "hash": "xxh3"})", "hash"},
    {R"({"capacity": 10, "scheme": "pharo", "seed": 3})", "seed"},
    {R"({"capacity": 10, "layout": "sliding"})", "layout"},
    {R"({"window_milliseconds": 1000})", "capacity"},
    {R"({"window_milliseconds": 1000, "window_keys": 10})", "window_milliseconds"},
    {R"({"window_keys": 0})", "window_keys"},
    {R"({"window_keys": 10, "bits": 100})", "bits"},
    {R"({"window_keys": 10, "probes": 3})", "probes"},
    {R"({"window_keys": 10, "scheme": "pharo"})", "scheme"},
    {R"({"window_keys": 10, "layout": "split_block512"})", "layout"},
    {R"({"grows": 1})", "grows"},
    {R"({"grows": true, "layout": "split_block512"})", "layout"},
    {R"({"grows": true, "scheme": "pharo"})", "scheme"},
    {R"({"grows": true, "bits": 1000})", "bits"},
    {R"({"grows": true, "probes": 3})", "probes"},
    {R"({"grows": true, "window_keys": 3})", "window_keys"},
    {R"({"grows": true, "window_milliseconds": 3})", "window_milliseconds"},
    {R"({"grows": true, "capacity": 10, "rate": 1e-300})", "rate", 413},
    {R"({"grow": true})", "grow"},
    {R"({"capacity": 10, "colour": "blue"})", "colour"},
    {R"({"capacity": 10, "capacity": 11})", "capacity"},
    {R"({"capacity": 1e400})", "body"},
    {R"({"capacity": NaN})", "body"},
};

INSTANTIATE_TEST_SUITE_P(Api, RefusedWish, testing::ValuesIn(wishes));

TEST(Api, BitsAndRateKeepWhatElseWasAskedFor) {
  visitor v;

  const json p = v.post(
      "plans",
      {{"layout", "split_block512"}, {"bits", 51'200}, {"rate", 0.01}, {"hash", "murmur3"}, {"seed", "5"}})["filter"];

  EXPECT_EQ(p["layout"], "split_block512");
  EXPECT_EQ(p["hash"], "murmur3");
  EXPECT_EQ(p["seed"], "5");
  EXPECT_EQ(p["bits"], 51'200);
  EXPECT_EQ(p["rate"], 0.01);
}

TEST(Api, APlanIsTheFilterThatIsMadeOfIt) {
  visitor v;
  for (const json& wanted : all_kinds(100)) {
    EXPECT_EQ(v.post("plans", wanted)["filter"], v.post("filters", wanted, 201)["filter"]) << wanted;
  }
}

TEST(Api, AnEmptyFilterHasNoRateBelowNothing) {
  visitor v;
  for (const json& wanted : all_kinds(100)) {
    const json facts = v.post("filters", wanted, 201)["facts"];
    for (const char* name : {"certified", "predicted", "fill"}) {
      EXPECT_EQ(facts[name].dump().front() == '-', false) << wanted << name << facts[name];
      EXPECT_LT(facts[name].get<double>(), 1e-9) << wanted << name;
    }
  }
}

TEST(Api, CountsAreUnknownAfterAForcedRemoval) {
  visitor v;
  const std::string id = "filters/" + v.made({{"layout", "classic"}, {"capacity", 100}, {"rate", 0.01}});
  EXPECT_EQ(v.post(id + "/add", {{"keys", list_of("k", 50)}})["state"]["facts"]["counted"], 50);

  const json facts = v.post(id + "/remove", {{"key", "k7"}, {"by_force", true}})["state"]["facts"];

  EXPECT_EQ(facts["counted"], nullptr);
  EXPECT_EQ(facts["keys"], 49);
  EXPECT_EQ(facts["alarm"], nullptr);
  EXPECT_EQ(v.post_text(id + "/undo", "")["facts"]["counted"], 50);
}

TEST(Api, EveryErrorIsInWords) {
  visitor v;
  const std::string line = v.made({{"layout", "split_block512"}, {"capacity", 10}});
  const std::string grown = v.made({{"grows", true}});
  struct trouble {
    const char* method;
    std::string path;
    std::string body;
    int status;
  };
  for (const trouble& t : std::vector<trouble>{
           {"GET", "nothing", "", 404},
           {"PUT", "about", "", 404},
           {"GET", "plans", "", 404},
           {"GET", "filters", "", 404},
           {"GET", "filters/x", "", 404},
           {"DELETE", "filters/x", "", 404},
           {"GET", "filters/" + line + "/nothing", "", 404},
           {"GET", "filters/" + line + "/cells/512000", "", 404},
           {"GET", "filters/" + line + "/cells/x", "", 400},
           {"GET", "filters/" + line + "/cells?from=5&to=5", "", 400},
           {"GET", "filters/" + line + "/cells?from=18446744073709551615", "", 400},
           {"GET", "filters/" + line + "/cells?from=-1", "", 400},
           {"GET", "filters/" + line + "/cells?to=18446744073709551616", "", 400},
           {"GET", "filters/" + line + "/fill?ranges=x", "", 400},
           {"GET", "filters/" + grown + "/file", "", 409},
           {"POST", "filters/" + line + "/undo", "", 409},
           {"POST", "filters/" + line + "/remove", R"({"key": "x"})", 409},
           {"POST", "filters/" + grown + "/remove", R"({"key": "x", "by_force": true})", 409},
           {"POST", "filters/" + line + "/tick", R"({"milliseconds": 5})", 409},
           {"POST", "filters/" + line + "/tick", R"({"milliseconds": 9007199254740992})", 400},
           {"POST", "filters/" + line + "/search", R"({"count": 0})", 400},
           {"POST", "filters/" + line + "/search", R"({"count": 10000000})", 400},
           {"POST", "filters/" + line + "/add", R"({"addresses": {"count": 2000000}})", 400},
           {"POST", "filters/" + line + "/add", R"({"addresses": {"count": 1, "last": 2}})", 400},
           {"POST", "filters/" + line + "/add", R"({"keys": "Madrid"})", 400},
           {"POST", "filters/" + line + "/add", R"({"keys": ["a"], "addresses": {"count": 1}})", 400},
           {"POST", "filters/" + line + "/add", R"({"keys": [1]})", 400},
           {"POST", "filters/" + line + "/add", R"({"keys": [{"base64": "%%%%"}]})", 400},
           {"POST", "filters/" + line + "/add", "", 400},
           {"POST", "files", "no filter", 422},
           {"POST", "files", "", 422},
           {"GET", "jobs/x", "", 404},
           {"DELETE", "jobs/x", "", 404},
           {"POST", "jobs", R"({"kind": "nothing"})", 400},
           {"POST", "jobs", R"({"kind": "benchmark", "sizes": []})", 400},
           {"POST", "jobs", R"({"kind": "benchmark", "sizes": [0]})", 400},
           {"POST", "jobs", R"({"kind": "analysis"})", 400},
           {"POST", "jobs", R"({"kind": "analysis", "filter": {"grows": true}})", 409},
           {"POST", "jobs", R"({"kind": "analysis", "filter": {"capacity": 2000000}})", 413},
           {"POST", "jobs",
            R"({"kind": "analysis", "filter": {"layout": "classic", "capacity": 9, "bits": 20000000000}})", 413},
           {"POST", "jobs", R"({"kind": "profile", "filter": {"scheme": "pharo", "capacity": 5}})", 409},
           {"POST", "jobs", R"({"kind": "profile", "filter": {"capacity": 1000000000}})", 413},
           {"GET", "inspections/0", "", 404},
           {"GET", "inspections/x", "", 400},
           {"POST", "filters", R"({"capacity": 1000000000, "rate": 0.01})", 413}}) {
    const bloomery::playground::response r = v.ask(t.method, t.path, t.body);
    EXPECT_EQ(r.status, t.status) << t.path << t.body << r.body;
    ASSERT_NE(r.body, "") << t.path;
    expect_words(json::parse(r.body));
  }
}

TEST(Api, WhatIsMissingIsCalledNothing) {
  visitor v;
  const std::string id = "filters/" + v.made({{"layout", "counting"}, {"capacity", 10}});

  EXPECT_EQ(v.post_text(id + "/add", "{}", 400)["error"]["found"], "nothing");
  EXPECT_EQ(v.post_text(id + "/remove", "{}", 400)["error"]["found"], "nothing");
  EXPECT_EQ(v.post_text(id + "/tick", "{}", 400)["error"]["found"], "nothing");
  EXPECT_EQ(v.post_text(id + "/add", R"({"keys": [null]})", 400)["error"]["found"], "null");
}

TEST(Api, AFilterThatWasDownloadedCanBeOpenedAgain) {
  visitor v;
  const std::string id = "filters/" + v.made({{"layout", "classic"}, {"bits", 150'000'000}, {"capacity", 1000}});
  const std::string file = v.bytes(id + "/file");
  ASSERT_GT(file.size(), bloomery::playground::api::most_body);

  EXPECT_EQ(v.post_text("files", file, 201)["filter"]["bits"], 150'000'000);

  expect_words(v.post_text("files", std::string(bloomery::playground::api::most_file + 1, ' '), 413));
}

TEST(Api, WhatTakesLongIsGivenUpWhenItEnds) {
  visitor v;
  const std::string id = "filters/" + v.made({{"scheme", "pharo"}, {"capacity", 10}, {"rate", 0.1}});

  v.api.stop();

  expect_words(v.get(id + "/curve", 503));
  expect_words(v.post("plans", {{"capacity", 10}}, 503));
}

TEST(Api, AVisitorsFiltersAreNoOthers) {
  visitor v;
  const std::string mine = v.made({{"capacity", 10}});
  const std::string other = v.made({{"capacity", 10}});
  v.post("filters/" + mine + "/add", {{"keys", {"Madrid"}}});

  EXPECT_EQ(v.get("filters/" + other)["facts"]["keys"], 0);
  EXPECT_EQ(v.ask("DELETE", "filters/" + other).status, 204);
  EXPECT_EQ(v.get("filters/" + mine)["facts"]["keys"], 1);
  v.get("filters/" + other, 404);
}

TEST(Api, ACallTakesAllKeysOrNone) {
  visitor v;
  const std::string id = "filters/" + v.made({{"capacity", 1000}});
  v.post(id + "/add", {{"addresses", {{"count", 999'999}}}});

  expect_words(v.post(id + "/add", {{"keys", {"a", "b"}}}, 413));

  EXPECT_EQ(v.get(id)["steps"], 1);
  EXPECT_EQ(v.post(id + "/ask", {{"keys", {"a"}}})["keys"][0]["truth"], "never");
  EXPECT_EQ(v.post(id + "/add", {{"keys", {"a"}}})["state"]["steps"], 2);
}

TEST(Api, CellsAndRangesBeyondTheEndAreCutOff) {
  visitor v;
  const std::string id = "filters/" + v.made({{"layout", "classic"}, {"bits", 1000}, {"capacity", 10}});

  EXPECT_EQ(v.bytes(id + "/cells?from=990&to=18446744073709551615").size(), 10u);
  EXPECT_EQ(v.bytes(id + "/cells?from=990&count=18446744073709551615").size(), 10u);
  EXPECT_EQ(v.bytes(id + "/cells?from=10&count=0").size(), 0u);
  EXPECT_EQ(v.get(id + "/fill?ranges=18446744073709551615")["ones"].size(), 1000u);
  EXPECT_EQ(v.get(id + "/fill?ranges=0")["ones"].size(), 1u);
  EXPECT_EQ(v.get(id + "/keys?from=18446744073709551615&count=18446744073709551615")["keys"].size(), 0u);
}

TEST(Api, OwnersOfVeryLongNamesAreCountedButNotAllNamed) {
  visitor v;
  const std::string id = "filters/" + v.made({{"layout", "classic"}, {"bits", 8}, {"capacity", 1}, {"probes", 64}});
  json keys = json::array();
  for (char c = 'a'; c <= 'z'; ++c) keys.push_back(std::string(60'000, c));

  const bloomery::playground::response r = v.ask("POST", id + "/add", json{{"keys", keys}}.dump());

  EXPECT_EQ(r.status, 200);
  EXPECT_LT(r.body.size(), std::size_t{8} << 20);
}

}  // namespace
}  // namespace bloomery_tests
