// The API as a client sees it: the status and the JSON of its answers to requests.
#include "playground/visitor.hpp"

#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

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

using cell_numbers = std::vector<std::uint64_t>;

struct exchange {
  std::string request;  // filters/1 is the first filter that was made
  std::string body;
  int status = 200;
  std::string expected = "{}";  // fields of the answer
};

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts{""};
  for (std::size_t at = 0; at < text.size();) {
    const bool ends = text.compare(at, separator.size(), separator) == 0;
    ends ? parts.emplace_back() : parts.back() += text[at];
    at += ends ? separator.size() : 1;
  }
  return parts;
}

// Sends the requests in order and compares the answers.
void expect_answers(visitor& v, const std::vector<exchange>& exchanges) {
  std::vector<std::string> made;
  for (const exchange& e : exchanges) {
    SCOPED_TRACE(e.request + " " + e.body);
    const std::size_t space = e.request.find(' ');
    std::string path = e.request.substr(space + 1);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const std::string prefix = "filters/" + std::to_string(i + 1);
      if (!path.starts_with(prefix)) continue;
      path.replace(0, prefix.size(), "filters/" + made[i]);
      break;  // the name of a filter may begin with the number of another one
    }

    const bloomery::playground::response r = v.ask(e.request.substr(0, space), path, e.body);

    EXPECT_EQ(r.status, e.status) << r.body.substr(0, 500);
    const json answer = r.body.empty() ? json::object() : json::parse(r.body);
    expect_contains(answer, json::parse(e.expected));
    if (r.status >= 400) expect_words(answer);
    if (r.status == 201) made.push_back(answer["id"]);
  }
}

TEST(Api, TheCitiesOfTheTutorialHaveItsBits) {
  visitor v;
  const std::string id = "filters/" + v.made({{"scheme", "pharo"}, {"capacity", 10}, {"rate", 0.1}});
  const json filter = v.get(id)["filter"];
  ASSERT_EQ(filter["cells"], 48);

  const json added = v.post(id + "/add", {{"keys", {"Madrid", "Barcelona"}}});
  const json asked = v.post(id + "/ask", {{"keys", {"Madrid", "Berlin", "Roma"}}});

  EXPECT_EQ(numbered(added["keys"][0], filter), (cell_numbers{18, 9, 48, 39}));
  EXPECT_EQ(numbered(added["keys"][1], filter), (cell_numbers{48, 42, 36, 30}));
  EXPECT_EQ(added["new"], 2);
  EXPECT_EQ(numbered(asked["keys"][1], filter), (cell_numbers{27, 30, 33, 36}));
  EXPECT_EQ(asked["keys"][1]["answer"], "no");
  EXPECT_EQ(numbered(asked["keys"][2], filter), (cell_numbers{36, 36, 36, 36}));
  EXPECT_EQ(asked["keys"][2]["answer"], "maybe");
  EXPECT_EQ(asked["keys"][2]["false_positive"], true);
  // murmur3_x86_32("Madrid") is 0xDA3791CA: the low half plus i times the high half
  EXPECT_EQ(asked["keys"][0]["numbers"], json({93185, 149048, 204911, 260774}));
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

// The field at fault, the status, and wishes that are refused, separated by two spaces.
constexpr const char* refused_wishes = R"(
capacity 400  {}  {"rate": 0.1}  {"bits": 100}  {"capacity": 0}  {"capacity": -1}  {"capacity": -0.0}
capacity 400  {"capacity": 1.5}  {"capacity": "10"}  {"capacity": true}  {"capacity": [[10]]}
capacity 400  {"capacity": 1000000000000000000}  {"capacity": 99999999999999999999999}
capacity 400  {"bits": 1000, "rate": 0.1, "layout": "counting"}  {"bits": 1000, "rate": 0.1, "scheme": "pharo"}
capacity 400  {"window_milliseconds": 1000}  {"capacity": 10, "capacity": 11}
capacity 413  {"capacity": 9007199254740991, "rate": 0.001}
rate 400  {"capacity": 10, "rate": 0}  {"capacity": 10, "rate": 1}  {"capacity": 10, "rate": -1}
rate 400  {"capacity": 10, "rate": -0.0}  {"capacity": 10, "rate": "x"}  {"capacity": 10, "rate": {}}
rate 413  {"capacity": 10, "rate": 1e-300, "layout": "split_block512"}
rate 413  {"grows": true, "capacity": 10, "rate": 1e-300}
bits 400  {"capacity": 10, "bits": 1152921504606846976}  {"capacity": 10, "bits": 0}
bits 400  {"capacity": 10, "rate": 0.1, "bits": 100}  {"bits": 1, "rate": 0.1}
bits 400  {"bits": 1000, "rate": 0.1, "layout": "blocked_page"}
bits 400  {"capacity": 10, "bits": 100, "layout": "split_block512"}
bits 400  {"capacity": 10, "bits": 100, "layout": "counting"}  {"window_keys": 10, "bits": 100}
bits 400  {"grows": true, "bits": 1000}
probes 400  {"capacity": 10, "rate": 0.1, "probes": 3}  {"capacity": 10, "bits": 1000, "probes": 0}
probes 400  {"capacity": 10, "bits": 1000, "probes": 256}
probes 400  {"capacity": 10, "bits": 1024, "probes": 3, "layout": "split_block512"}
probes 400  {"window_keys": 10, "probes": 3}  {"grows": true, "probes": 3}
layout 400  {"capacity": 10, "layout": "nope"}  {"capacity": 10, "layout": "sealed"}
layout 400  {"capacity": 10, "layout": 3}  {"capacity": 10, "scheme": "pharo", "layout": "split_block512"}
layout 400  {"capacity": 10, "layout": "sliding"}  {"window_keys": 10, "layout": "split_block512"}
layout 400  {"grows": true, "layout": "split_block512"}
scheme 400  {"capacity": 10, "scheme": "nope"}  {"capacity": 10, "scheme": "guava-chain"}
scheme 400  {"window_keys": 10, "scheme": "pharo"}  {"grows": true, "scheme": "pharo"}
hash 400  {"capacity": 10, "hash": "nope"}  {"capacity": 10, "hash": "mix"}  {"capacity": 10, "hash": "siphash"}
hash 400  {"capacity": 10, "scheme": "pharo", "hash": "xxh3"}
seed 400  {"capacity": 10, "seed": "x"}  {"capacity": 10, "seed": -1}
seed 400  {"capacity": 10, "seed": "18446744073709551616"}
seed 400  {"capacity": 10, "seed": "1099511627776", "hash": "murmur3"}
seed 400  {"capacity": 10, "scheme": "pharo", "seed": 3}
window_milliseconds 400  {"window_milliseconds": 1000, "window_keys": 10}
window_milliseconds 400  {"grows": true, "window_milliseconds": 3}
window_keys 400  {"window_keys": 0}  {"grows": true, "window_keys": 3}
grows 400  {"grows": 1}
grow 400  {"grow": true}
colour 400  {"capacity": 10, "colour": "blue"}
body 400  {"capacity": 1e400}  {"capacity": NaN}
)";

TEST(Api, AnImpossibleWishIsRefusedWithTheFieldAtFault) {
  visitor v;
  std::istringstream rows(refused_wishes);
  for (std::string row; std::getline(rows, row);) {
    const std::vector<std::string> parts = split(row, "  ");
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::vector<std::string> head = split(parts[0], " ");
      const int status = std::stoi(head[1]);
      const std::string expected = json{{"error", {{"where", head[0]}}}}.dump();
      expect_answers(v, {{"POST plans", parts[i], status, expected},
                         {"POST filters", parts[i], status, expected},
                         {"POST jobs", R"({"kind": "profile", "filter": )" + parts[i] + "}", status, expected}});
    }
  }
}

TEST(Api, ARequestThatCannotBeServedIsRefusedInWords) {
  visitor v;
  expect_answers(
      v, {
             {"POST filters", R"({"layout": "split_block512", "capacity": 10})", 201},
             {"POST filters", R"({"grows": true})", 201},
             {"GET nothing", "", 404},
             {"PUT about", "", 404},
             {"GET plans", "", 404},
             {"GET filters", "", 404},
             {"GET filters/x", "", 404},
             {"DELETE filters/x", "", 404},
             {"GET filters/1/nothing", "", 404},
             {"GET filters/1/cells/512000", "", 404},
             {"GET filters/1/cells/x", "", 400},
             {"GET filters/1/cells?from=5&to=5", "", 400},
             {"GET filters/1/cells?from=18446744073709551615", "", 400},
             {"GET filters/1/cells?from=-1", "", 400},
             {"GET filters/1/cells?to=18446744073709551616", "", 400},
             {"GET filters/1/fill?ranges=x", "", 400},
             {"GET filters/2/file", "", 409},
             {"POST filters/1/undo", "", 409},
             {"POST filters/1/remove", R"({"key": "x"})", 409},
             {"POST filters/2/remove", R"({"key": "x", "by_force": true})", 409},
             {"POST filters/1/tick", R"({"milliseconds": 5})", 409},
             {"POST filters/1/tick", R"({"milliseconds": 9007199254740992})", 400},
             {"POST filters/1/search", R"({"count": 0})", 400},
             {"POST filters/1/search", R"({"count": 10000000})", 400},
             {"POST filters/1/add", R"({"addresses": {"count": 2000000}})", 400},
             {"POST filters/1/add", R"({"addresses": {"count": 1, "last": 2}})", 400},
             {"POST filters/1/add", R"({"keys": "Madrid"})", 400},
             {"POST filters/1/add", R"({"keys": ["a"], "addresses": {"count": 1}})", 400},
             {"POST filters/1/add", R"({"keys": [1]})", 400},
             {"POST filters/1/add", R"({"keys": [{"base64": "%%%%"}]})", 400},
             {"POST filters/1/add", "", 400},
             {"POST files", "no filter", 422},
             {"POST files", "", 422},
             {"GET jobs/x", "", 404},
             {"DELETE jobs/x", "", 404},
             {"POST jobs", R"({"kind": "nothing"})", 400},
             {"POST jobs", R"({"kind": "benchmark", "sizes": []})", 400},
             {"POST jobs", R"({"kind": "benchmark", "sizes": [0]})", 400},
             {"POST jobs", R"({"kind": "benchmark", "filter": 3})", 400},
             {"POST jobs", R"({"kind": "benchmark", "filter": {"capacity": 5, "grows": true}})", 409},
             {"POST jobs", R"({"kind": "benchmark", "filter": {"window_keys": 5}})", 409},
             {"POST jobs", R"({"kind": "benchmark", "filter": {"capacity": 5, "rate": 1e-300}})", 413},
             {"POST jobs", R"({"kind": "analysis"})", 400},
             {"POST jobs", R"({"kind": "analysis", "filter": {"grows": true}})", 409},
             {"POST jobs", R"({"kind": "analysis", "filter": {"capacity": 2000000}})", 413},
             {"POST jobs",
              R"({"kind": "analysis", "filter": {"layout": "classic", "capacity": 9, "bits": 20000000000}})", 413},
             {"POST jobs", R"({"kind": "profile", "filter": {"scheme": "pharo", "capacity": 5}})", 409},
             {"POST jobs", R"({"kind": "profile", "filter": {"capacity": 1000000000}})", 413},
             {"GET inspections/0", "", 404},
             {"GET inspections/0/history", "", 404},
             {"GET inspections/x", "", 400},
             {"POST filters", R"({"capacity": 1000000000, "rate": 0.01})", 413},
             {"POST filters", R"({"layout": "counting", "capacity": 10})", 201},
             {"POST filters/3/add", "{}", 400, R"({"error": {"found": "nothing"}})"},
             {"POST filters/3/remove", "{}", 400, R"({"error": {"found": "nothing"}})"},
             {"POST filters/3/tick", "{}", 400, R"({"error": {"found": "nothing"}})"},
             {"POST filters/3/add", R"({"keys": [null]})", 400, R"({"error": {"found": "null"}})"},
         });
}

TEST(Api, EachFilterHasItsOwnKeys) {
  visitor v;
  expect_answers(v, {
                        {"POST filters", R"({"capacity": 10})", 201},
                        {"POST filters", R"({"capacity": 10})", 201},
                        {"POST filters/1/add", R"({"keys": ["Madrid"]})"},
                        {"GET filters/2", "", 200, R"({"facts": {"keys": 0}})"},
                        {"DELETE filters/2", "", 204},
                        {"GET filters/1", "", 200, R"({"facts": {"keys": 1}})"},
                        {"GET filters/2", "", 404, R"({"error": {"code": "not_found"}})"},
                    });
}

// A client can repeat a filter from its parameters and steps, bit for bit.
TEST(Api, TheStepsOfAFilterLeadToTheSameBitsAgain) {
  for (const json& wanted : all_kinds(60)) {
    SCOPED_TRACE(wanted.dump());
    visitor v;
    const std::string id = "filters/" + v.made(wanted);
    v.post(id + "/add", {{"keys", {"Madrid", "", {{"base64", "//79"}}, "Madrid"}}});
    v.post(id + "/add", {{"addresses", {{"seed", "7"}, {"first", 3}, {"count", 40}}}});
    v.post(id + "/add", {{"keys", {"Oslo"}}, {"joins", true}});
    const std::string family = v.get(id)["filter"]["family"];
    if (family == "counting") v.post(id + "/remove", {{"key", "Madrid"}});
    if (family == "plain") v.post(id + "/remove", {{"key", "Madrid"}, {"by_force", true}});
    if (wanted.contains("window_milliseconds")) v.post(id + "/tick", {{"milliseconds", 2500}});
    v.post(id + "/add", {{"keys", {"Roma"}}});

    json again = wanted;
    again["steps"] = v.get(id + "/steps")["steps"];
    const json made = v.post("filters", again, 201);
    const std::string other = "filters/" + made["id"].get<std::string>();

    // The clock of the other filter begins later, so its keys may be in other generations.
    if (!wanted.contains("window_milliseconds")) {
      EXPECT_EQ(v.bytes(other + "/cells"), v.bytes(id + "/cells"));
    }
    const json keys = {{"keys", {"Madrid", "", "Oslo", "Roma", "Paris"}}};
    EXPECT_EQ(v.post(other + "/ask", keys)["maybe"], v.post(id + "/ask", keys)["maybe"]);
    EXPECT_EQ(v.get(other)["facts"]["ones"], v.get(id)["facts"]["ones"]);
    EXPECT_EQ(v.get(other)["facts"]["keys"], v.get(id)["facts"]["keys"]);
    EXPECT_EQ(v.get(other + "/steps"), v.get(id + "/steps"));
    EXPECT_EQ(made["steps"], v.get(id)["steps"]);
  }
}

TEST(Api, StepsAreOmittedIfTheirKeysAreTooLongOrUnknown) {
  visitor v;
  expect_answers(v, {
                        {"POST filters", R"({"capacity": 10, "steps": [{"keys": ["12345", "67890"]}]})", 201},
                        {"GET filters/1/steps?most=10", "", 200, R"({"steps": [{"keys": ["12345", "67890"]}]})"},
                        {"GET filters/1/steps?most=9", "", 200, R"({"steps": null})"},
                        {"POST filters/1/add", R"({"addresses": {"count": 900}})"},
                        {"GET filters/1", "", 200, R"({"next_address": 900})"},
                    });
  const std::string file = v.bytes("filters/1/file");
  const std::string opened = "filters/" + v.post_text("files", file, 201)["id"].get<std::string>();
  EXPECT_EQ(v.get(opened + "/steps")["steps"], nullptr);
  v.post_text(opened + "/reset", "");
  EXPECT_EQ(v.get(opened + "/steps")["steps"], json::array());
}

TEST(Api, StepsThatCannotBeTakenMakeNoFilter) {
  visitor v;
  expect_answers(
      v, {
             {"POST filters", R"({"capacity": 10, "steps": {}})", 400, R"({"error": {"where": "steps"}})"},
             {"POST filters", R"({"capacity": 10, "steps": [1]})", 400},
             {"POST filters", R"({"capacity": 10, "steps": [{}]})", 400},
             {"POST filters", R"({"capacity": 10, "steps": [{"keys": ["a"], "tick": 5}]})", 400},
             {"POST filters", R"({"capacity": 10, "steps": [{"tick": 5}]})", 409},
             {"POST filters", R"({"capacity": 10, "steps": [{"remove": "a", "by_force": false}]})", 409},
             {"POST filters", R"({"capacity": 9, "steps": [{"addresses": {"count": 999999}}, {"keys": ["a", "b"]}]})",
              413, R"({"error": {"code": "too_large"}})"},
             {"POST filters", R"({"capacity": 10, "keys_of": "x"})", 404},
             {"POST filters", R"({"capacity": 10, "steps": [{"keys": ["a"]}]})", 201},
             {"POST filters", R"({"capacity": 10, "keys_of": "1", "steps": [{"keys": ["a"]}]})", 400},
             {"GET filters/2", "", 404},
         });
}

// The keys in the filter, each as often as it was added and not removed.
TEST(Api, AnotherFilterHasTheKeysOfTheFirst) {
  visitor v;
  expect_answers(
      v, {
             {"POST filters", R"({"layout": "counting", "capacity": 100})", 201},
             {"POST filters/1/add", R"({"keys": ["a", "b", "b", "c"]})"},
             {"POST filters/1/add", R"({"keys": ["a"], "joins": true})"},
             {"POST filters/1/add", R"({"addresses": {"count": 20}})"},
             {"POST filters/1/remove", R"({"key": "b"})"},
             {"POST filters/1/remove", R"({"key": "c"})"},
             {"POST filters", R"({"layout": "counting", "capacity": 50, "keys_of": "1"})", 201,
              R"({"steps": 2, "facts": {"keys": 22, "counted": 23}})"},
             {"POST filters/2/ask", R"({"keys": ["a", "b", "c"]})", 200, R"({"maybe": 2, "false_positives": 0})"},
             {"POST filters/2/remove", R"({"key": "a"})", 200, R"({"result": "removed"})"},
             {"POST filters/2/ask", R"({"keys": ["a"]})", 200, R"({"maybe": 1})"},
             {"POST filters", R"({"layout": "classic", "capacity": 50, "keys_of": "1"})", 201,
              R"({"facts": {"keys": 22}, "filter": {"layout": "classic"}})"},
         });
}

TEST(Api, InsertionsThatJoinAreUndoneTogether) {
  visitor v;
  expect_answers(v, {
                        {"POST filters", R"({"capacity": 100})", 201},
                        {"POST filters/1/add", R"({"keys": ["a"]})"},
                        {"POST filters/1/add", R"({"keys": ["b"]})"},
                        {"POST filters/1/add", R"({"keys": ["c"], "joins": true})"},
                        {"POST filters/1/add", R"({"keys": ["d"], "joins": true})", 200, R"({"state": {"steps": 2}})"},
                        {"POST filters/1/undo", "", 200, R"({"steps": 1, "facts": {"keys": 1}})"},
                        {"POST filters/1/undo", "", 200, R"({"steps": 0, "facts": {"keys": 0}})"},
                    });
}

TEST(Api, ARequestAddsAllItsKeysOrNone) {
  visitor v;
  expect_answers(v, {
                        {"POST filters", R"({"capacity": 1000})", 201},
                        {"POST filters/1/add", R"({"addresses": {"count": 999999}})"},
                        {"POST filters/1/add", R"({"keys": ["a", "b"]})", 413},
                        {"GET filters/1", "", 200, R"({"steps": 1})"},
                        {"POST filters/1/ask", R"({"keys": ["a"]})", 200, R"({"maybe": 1, "false_positives": 1})"},
                        {"POST filters/1/add", R"({"keys": ["a"]})", 200, R"({"state": {"steps": 2}})"},
                    });
}

TEST(Api, CountsAreUnknownAfterAForcedRemoval) {
  visitor v;
  const std::string keys = json{{"keys", list_of("k", 50)}}.dump();
  expect_answers(v, {
                        {"POST filters", R"({"layout": "classic", "capacity": 100, "rate": 0.01})", 201},
                        {"POST filters/1/add", keys, 200, R"({"state": {"facts": {"counted": 50}}})"},
                        {"POST filters/1/remove", R"({"key": "k7", "by_force": true})", 200,
                         R"({"state": {"facts": {"counted": null, "keys": 49, "alarm": null}}})"},
                        {"POST filters/1/undo", "", 200, R"({"facts": {"counted": 50}})"},
                    });
}

TEST(Api, APlanWithBitsAndRateKeepsTheOtherWishes) {
  visitor v;
  const std::string wish =
      R"({"layout": "split_block512", "bits": 51200, "rate": 0.01, "hash": "murmur3", "seed": "5"})";
  const std::string expected = R"({"filter": )" + wish + "}";
  expect_answers(v, {{"POST plans", wish, 200, expected}});
}

TEST(Api, APlanEqualsTheFilterThatIsMadeOfItAndThatIsEmpty) {
  visitor v;
  for (const json& wanted : all_kinds(100)) {
    const json made = v.post("filters", wanted, 201);
    EXPECT_EQ(v.post("plans", wanted)["filter"], made["filter"]) << wanted;
    for (const char* name : {"certified", "predicted", "fill"}) {
      const json& fact = made["facts"][name];
      EXPECT_NE(fact.dump().front(), '-') << wanted << name << fact;
      EXPECT_LT(fact.get<double>(), 1e-9) << wanted << name;
    }
  }
}

TEST(Api, ADownloadedFilterCanBeOpenedAgain) {
  visitor v;
  const std::string id = "filters/" + v.made({{"layout", "classic"}, {"bits", 150'000'000}, {"capacity", 1000}});
  const std::string file = v.bytes(id + "/file");
  ASSERT_GT(file.size(), bloomery::playground::most_body);

  EXPECT_EQ(v.post_text("files", file, 201)["filter"]["bits"], 150'000'000);

  expect_words(v.post_text("files", std::string(bloomery::playground::most_file + 1, ' '), 413));
}

TEST(Api, ABenchmarkMeasuresTheFilterOfTheRequest) {
  visitor v;
  const json wanted = {{"layout", "classic"}, {"hash", "murmur3"}, {"capacity", 100}, {"bits", 2048}, {"probes", 3}};
  const std::string id =
      v.post("jobs", {{"kind", "benchmark"}, {"filter", wanted}, {"sizes", {50, 100}}}, 202)["id"].get<std::string>();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (v.get("jobs/" + id)["state"] != "done" && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  const json sizes = v.get("jobs/" + id)["result"]["sizes"];

  ASSERT_EQ(sizes.size(), 2);
  EXPECT_EQ(sizes[1]["filter"], v.post("plans", wanted)["filter"]);
  const json smaller = {{"layout", "classic"}, {"hash", "murmur3"}, {"capacity", 50}};
  expect_contains(sizes[0]["filter"], smaller);
  EXPECT_LT(sizes[0]["filter"]["bits"], 2048);
  EXPECT_NEAR(sizes[0]["filter"]["rate"].get<double>(), sizes[1]["filter"]["rate"].get<double>(), 1e-12);
}

TEST(Api, LongRequestsEndWithTheProgram) {
  visitor v;
  v.api.rest().stop();

  expect_words(v.post("plans", {{"capacity", 10}}, 503));
}

TEST(Api, RangesEndWithTheFilter) {
  visitor v;
  const std::string id = "filters/" + v.made({{"layout", "classic"}, {"bits", 1000}, {"capacity", 10}});

  EXPECT_EQ(v.bytes(id + "/cells?from=990&to=18446744073709551615").size(), 10u);
  EXPECT_EQ(v.bytes(id + "/cells?from=990&count=18446744073709551615").size(), 10u);
  EXPECT_EQ(v.bytes(id + "/cells?from=10&count=0").size(), 0u);
  EXPECT_EQ(v.get(id + "/fill?ranges=18446744073709551615")["ones"].size(), 1000u);
  EXPECT_EQ(v.get(id + "/fill?ranges=0")["ones"].size(), 1u);
  EXPECT_EQ(v.get(id + "/keys?from=18446744073709551615&count=18446744073709551615")["keys"].size(), 0u);
}

TEST(Api, LongOwnersAreCountedButNotAllNamed) {
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
