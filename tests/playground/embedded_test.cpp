// The playground's API in a program without threads: pthread_create() always fails, and neither Redis nor HTTP is
// linked.
#include "playground/api/demo_api.hpp"
#include "playground/inspect/inspected_file.hpp"
#include "support/files.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/measure.hpp>

#include <gtest/gtest.h>

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace {

std::atomic<int> threads_wanted{0};

}  // namespace

// Replaces the C library's function.
extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) {
  ++threads_wanted;
  return EAGAIN;
}

namespace bloomery_tests {
namespace {

using namespace bloomery::playground;

class Embedded : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(threads_wanted, 0); }

  static json asked(auto& playground, const std::string& method, const std::string& path, const std::string& body,
                    int status) {
    const response r = playground.handle({method, "/api/1/" + path, {}, body});
    EXPECT_EQ(r.status, status) << path << " " << r.body;
    return json::parse(r.body);
  }
};

TEST_F(Embedded, CannotStartThreads) {
  EXPECT_THROW(std::thread([] {}), std::system_error);

  EXPECT_EQ(threads_wanted.exchange(0), 1);
}

TEST_F(Embedded, AnswersForFilters) {
  demo_api playground({});

  EXPECT_EQ(asked(playground, "GET", "about", "", 200)["threads"], 1);
  const std::string id = asked(playground, "POST", "filters", R"({"capacity": 1000, "rate": 0.01})", 201)["id"];
  const json added = asked(playground, "POST", "filters/" + id + "/add", R"({"keys": ["Rome", "Oslo"]})", 200);
  const json found = asked(playground, "POST", "filters/" + id + "/ask", R"({"keys": ["Rome"]})", 200);
  const json plan = asked(playground, "POST", "plans", R"({"capacity": 1000, "rate": 0.01})", 200);

  EXPECT_EQ(added["new"], 2);
  EXPECT_EQ(found["maybe"], 1);
  EXPECT_EQ(plan["filter"]["capacity"], 1000);
}

TEST_F(Embedded, RunsJobsOnRequest) {
  api playground({});

  for (const char* wanted :
       {R"({"kind": "analysis", "filter": {"capacity": 1000, "rate": 0.1}, "runs": 3, "queries": 1000})",
        R"({"kind": "benchmark", "sizes": [1000]})",
        R"({"kind": "profile", "filter": {"capacity": 1000, "rate": 0.1}})"}) {
    const json job = asked(playground, "POST", "jobs", wanted, 202);
    EXPECT_EQ(job["state"], "waiting");

    EXPECT_TRUE(playground.queued_jobs().run_one());

    EXPECT_EQ(asked(playground, "GET", "jobs/" + job["id"].get<std::string>(), "", 200)["state"], "done") << wanted;
  }
  EXPECT_FALSE(playground.queued_jobs().run_one());
}

TEST_F(Embedded, ReadsAFileOnRequest) {
  const scratch_folder folder;
  const std::string path = folder / "seen.bloom";
  bloomery::any_filter filter(bloomery::complete({.layout = "blocked", .capacity = 300'000, .target_fpr = 0.01}));
  for (std::uint64_t key = 0; key < 200'000; ++key) filter.insert(std::to_string(key));
  filter.save(path);
  auto owned = inspect_in_slices(path, 64 * 1024);
  bloomery::playground::watched& seen = *owned;
  bloomery::playground::api_options options;
  options.inspections.push_back(std::move(owned));
  api playground(std::move(options));
  EXPECT_EQ(asked(playground, "GET", "inspections/0", "", 200)["state"], "reading");

  seen.update();
  const json ready = asked(playground, "GET", "inspections/0", "", 200);
  std::uint64_t ones = 0;
  for (const json& range : ready["heat"]["ones"]) ones += range.get<std::uint64_t>();

  EXPECT_EQ(ready["state"], "ready");
  EXPECT_EQ(ones, measure_fill(filter.parameters(), filter.bytes()).ones);
  EXPECT_EQ(ready["histogram"]["fits"], true);
}

}  // namespace
}  // namespace bloomery_tests
