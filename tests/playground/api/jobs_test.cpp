#include "playground/api/jobs.hpp"

#include "playground/host/own_thread.hpp"

#include "support/errors.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bloomery_tests {
namespace {

using namespace bloomery::playground;
using bloomery::errc;

struct jobs_in_a_thread : jobs {
  using jobs::jobs;
  job_thread runs{*this};
};

json look_until(jobs& all, const std::string& id, const std::function<bool(const json&)>& is) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (;;) {
    const json seen = all.look(id);
    if (is(seen)) return seen;
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << seen;
      return seen;
    }
    std::this_thread::yield();
  }
}

auto is_state(const std::string& state) {
  return [state](const json& seen) { return seen["state"] == state; };
}

// Runs until it is canceled.
job endless(std::atomic<bool>& ended) {
  return [&ended](job_watch& watch) -> json {
    try {
      for (;;) watch.done(1);
    } catch (const job_watch::cancelled&) {
      ended = true;
      throw;
    }
  };
}

TEST(Jobs, ReportTheirProgressAndPartialResults) {
  jobs_in_a_thread all;
  std::promise<void> go_on;
  const std::string id = all.add("test", [go = go_on.get_future().share()](job_watch& watch) {
    watch.total(10);
    watch.done(3);
    watch.so_far("half");
    go.wait();
    watch.done(7);
    return json("whole");
  });

  const json half = look_until(all, id, [](const json& seen) { return seen["result"] == "half"; });
  go_on.set_value();
  const json whole = look_until(all, id, is_state("done"));

  EXPECT_EQ(half["state"], "running");
  EXPECT_EQ(half["done"], 3);
  EXPECT_EQ(half["total"], 10);
  EXPECT_EQ(whole["done"], 10);
  EXPECT_EQ(whole["result"], "whole");
  EXPECT_EQ(whole["error"], nullptr);
}

TEST(Jobs, AnErrorFailsItsJobAndTheNextJobRuns) {
  jobs_in_a_thread all;
  const std::string known = all.add("test", [](job_watch&) -> json {
    throw bloomery::error(errc::too_large, {"so large", "", "", "", "less"});
  });
  const std::string strange = all.add("test", [](job_watch&) -> json { throw std::runtime_error("strange"); });
  const std::string good = all.add("test", [](job_watch&) { return json(1); });

  EXPECT_EQ(look_until(all, good, is_state("done"))["result"], 1);
  EXPECT_EQ(look_until(all, known, is_state("failed"))["error"]["what"], "so large");
  EXPECT_EQ(look_until(all, strange, is_state("failed"))["error"]["what"], "strange");
}

TEST(Jobs, AreCancelledWhileTheyRunAndWhileTheyWait) {
  jobs_in_a_thread all;
  std::atomic<bool> ended{false};
  std::atomic<bool> begun{false};
  const std::string running = all.add("test", endless(ended));
  const std::string waiting = all.add("test", [&](job_watch&) {
    begun = true;
    return json(1);
  });
  const std::string last = all.add("test", [](job_watch&) { return json(2); });
  look_until(all, running, [](const json& seen) { return seen["done"] > 0; });  // its work has begun

  all.cancel(waiting);
  all.cancel(running);

  EXPECT_EQ(look_until(all, last, is_state("done"))["result"], 2);
  EXPECT_TRUE(ended);
  EXPECT_FALSE(begun);
  for (const std::string& id : {running, waiting}) EXPECT_EQ(code_of([&] { all.look(id); }), errc::not_found);
  EXPECT_EQ(code_of([&] { all.cancel(running); }), errc::not_found);
}

TEST(Jobs, WaitInLimitedNumberAndReplaceEndedOnes) {
  jobs_in_a_thread all;
  std::atomic<bool> ended{false};
  const std::string running = all.add("test", endless(ended));
  look_until(all, running, is_state("running"));
  std::string last;
  for (std::size_t i = 0; i < jobs::most_waiting; ++i) last = all.add("test", [](job_watch&) { return json(0); });

  EXPECT_EQ(code_of([&] { all.add("test", [](job_watch&) { return json(0); }); }), errc::unavailable);

  all.cancel(running);
  const std::string first = last;
  look_until(all, first, is_state("done"));
  for (std::size_t i = 0; i < jobs::most_kept; ++i) {
    last = all.add("test", [](job_watch&) { return json(0); });
    look_until(all, last, is_state("done"));
  }
  EXPECT_EQ(code_of([&] { all.look(first); }), errc::not_found);
}

TEST(Jobs, RunOldestFirstInTheCallingThread) {
  jobs all;
  std::vector<std::thread::id> threads;
  const auto note = [&](job_watch&) {
    threads.push_back(std::this_thread::get_id());
    return json(threads.size());
  };
  int added = 0;
  all.when_added([&] { ++added; });
  const std::string first = all.add("test", note);
  const std::string second = all.add("test", note);
  const std::string cancelled = all.add("test", note);
  EXPECT_EQ(all.look(first)["state"], "waiting");

  EXPECT_TRUE(all.run_one());
  EXPECT_EQ(all.look(first)["result"], 1);
  EXPECT_EQ(all.look(second)["state"], "waiting");
  EXPECT_TRUE(all.run_one());
  all.cancel_all();
  EXPECT_TRUE(all.run_one());
  EXPECT_FALSE(all.run_one());

  EXPECT_EQ(all.look(second)["result"], 2);
  EXPECT_EQ(all.look(cancelled)["state"], "cancelled");
  EXPECT_EQ(threads, std::vector(2, std::this_thread::get_id()));
  EXPECT_EQ(added, 3);
}

TEST(Jobs, WithoutClientsEndSoonerWhileOthersWait) {
  std::atomic<std::int64_t> seconds{0};
  jobs_in_a_thread all([&] { return std::chrono::steady_clock::time_point(std::chrono::seconds(seconds)); });
  const auto done = [&](const std::string& id) {
    return look_until(all, id, [](const json& seen) { return seen["done"] > 0; })["done"].get<std::uint64_t>();
  };
  // A job that shows how far it is without a request from its client.
  std::atomic<std::uint64_t> steps{0};
  const job counting = [&](job_watch& watch) -> json {
    for (;; ++steps) watch.done(1);
  };
  const auto goes_on = [&] {
    const std::uint64_t before = steps;
    while (steps < before + 2) std::this_thread::yield();
  };

  const std::string abandoned = all.add("test", counting);
  EXPECT_GT(done(abandoned), 0);
  seconds += 299;
  goes_on();
  all.look(abandoned);
  seconds += 60;  // a hidden page
  const std::string next = all.add("test", [](job_watch&) { return json(1); });
  goes_on();
  seconds += 31;

  EXPECT_EQ(look_until(all, next, is_state("done"))["result"], 1);
  EXPECT_EQ(all.look(abandoned)["state"], "cancelled");

  const std::string alone = all.add("test", counting);
  EXPECT_GT(done(alone), 0);
  seconds += 301;
  const std::string last = all.add("test", [](job_watch&) { return json(2); });
  EXPECT_EQ(look_until(all, last, is_state("done"))["result"], 2);
  EXPECT_EQ(all.look(alone)["state"], "cancelled");
}

TEST(Jobs, EndWithTheirThread) {
  std::atomic<bool> ended{false};
  {
    jobs_in_a_thread all;
    const std::string running = all.add("test", endless(ended));
    all.add("test", endless(ended));
    look_until(all, running, [](const json& seen) { return seen["done"] > 0; });  // its work has begun
  }

  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace bloomery_tests
