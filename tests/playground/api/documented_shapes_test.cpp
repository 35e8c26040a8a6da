// Keeps docs/playground-api.md up to date: its shapes have the names of real answers.
#include "playground/documented.hpp"
#include "playground/visitor.hpp"

#include <chrono>
#include <set>
#include <string>
#include <thread>

namespace bloomery_tests {
namespace {

json result_of(visitor& v, const json& wanted, shapes& known) {
  const std::string id = v.post("jobs", wanted, 202)["id"];
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    const json job = v.get("jobs/" + id);
    known.check(job, "JOB");
    if (job["state"] == "done") return job["result"];
    if (job["state"] == "failed" || std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << job;
      return nullptr;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(DocumentedShapes, AreThoseOfRealAnswers) {
  visitor v;
  shapes known;

  known.check(v.get("about"), "ABOUT");
  known.check(v.get("filters/nobody", 404), "PROBLEM");
  for (const json& wanted : known.all().at("WANTED")) v.post("filters", wanted, 201);
  std::vector<json> kinds = all_kinds(20);
  kinds.push_back({{"capacity", 10}, {"rate", 0.01}});
  for (const json& wanted : kinds) {
    SCOPED_TRACE(wanted.dump());
    known.check(v.post("plans", wanted), "PLAN");
    const std::string id = "filters/" + v.made(wanted);
    known.check(v.get(id), "STATE");
    known.check(v.post(id + "/add", {{"keys", {"Madrid", "Barcelona"}}}), "ADDED");
    known.check(v.post(id + "/ask", {{"addresses", {{"count", 5}}}}), "ASKED");
    known.check(v.get(id + "/fill?ranges=3"), "FILL");
    known.check(v.get(id + "/cells/3"), "OWNERS");
    known.check(v.get(id + "/keys"), "KEYS");
    known.check(v.get(id + "/curve"), "CURVE");
    known.check(v.post(id + "/search", {{"count", 10}}), "FOUND");
    if (v.get(id)["filter"]["family"] == "counting") {
      known.check(v.post(id + "/remove", {{"key", "Madrid"}}), "REMOVED");
    }
    if (v.get(id)["filter"]["family"] == "plain") {
      known.check(v.post(id + "/remove", {{"key", "Madrid"}, {"by_force", true}}), "REMOVED");
    }
    v.post(id + "/add", {{"addresses", {{"seed", "1"}, {"first", 0}, {"count", 2}}}});
    v.post(id + "/add", {{"keys", {"Oslo"}}, {"joins", true}});
    if (wanted.contains("window_milliseconds")) known.check(v.post(id + "/tick", {{"milliseconds", 1000}}), "STATE");
    known.check(v.get(id + "/steps"), "LOG");
    known.check(v.get(id + "/steps?most=3"), "LOG");
    known.check(v.post_text(id + "/undo", ""), "STATE");
    known.check(v.post_text(id + "/reset", ""), "STATE");
  }
  const json small = {{"capacity", 20}, {"rate", 0.1}};
  known.check(result_of(v, {{"kind", "analysis"}, {"filter", small}, {"runs", 2}, {"queries", 10}}, known), "ANALYSIS");
  known.check(result_of(v, {{"kind", "benchmark"}, {"sizes", {5}}}, known), "BENCHMARK");
  known.check(result_of(v, {{"kind", "benchmark"}, {"filter", small}, {"sizes", {5}}}, known), "BENCHMARK");
  known.check(result_of(v, {{"kind", "profile"}, {"filter", small}}, known), "PROFILE");

  for (const auto& [name, shape] : known.all()) {
    const bool of_inspections = name == "INSPECTION" || name == "HISTORY";  // inspection_test.cpp has them
    EXPECT_TRUE(known.seen(name) || name == "WANTED" || of_inspections) << name;
  }
}

TEST(DocumentedShapes, HaveTheLimitsThatHold) {
  const json documented_limits = documented().at("ABOUT").front()["limits"];

  EXPECT_EQ(visitor().get("about")["limits"], documented_limits);
}

}  // namespace
}  // namespace bloomery_tests
