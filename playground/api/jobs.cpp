#include "playground/api/jobs.hpp"

#include "playground/api/exchange.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace bloomery::playground {

void job_watch::done(std::uint64_t more) {
  {
    const std::lock_guard lock(turn_);
    const auto idle = now_() - asked_;
    if (cancelled_ || idle > most_idle || (waiting_ > 0 && idle > most_idle_in_the_way)) throw cancelled();
    done_ += more;
  }
  if (when_progressed_) when_progressed_();
}

void job_watch::total(std::uint64_t all) {
  const std::lock_guard lock(turn_);
  total_ = all;
}

void job_watch::so_far(json result) {
  const std::lock_guard lock(turn_);
  result_ = std::move(result);
}

std::string jobs::add(const std::string& kind, job work) {
  const std::lock_guard lock(turn_);
  if (waiting_ >= most_waiting) {
    throw error(errc::unavailable, {"too many jobs are waiting", "", "at most " + std::to_string(most_waiting),
                                    std::to_string(waiting_), "wait for a job to finish, or cancel one"});
  }
  if (entries_.size() >= most_kept) {
    const auto finished = std::find_if(entries_.begin(), entries_.end(), [](const entry& e) {
      const std::lock_guard watch(e.watch->turn_);
      return e.watch->state_ != "waiting" && e.watch->state_ != "running";
    });
    if (finished != entries_.end()) entries_.erase(finished);
  }
  entries_.push_back({random_id(), kind, std::move(work), std::make_shared<job_watch>(now_, waiting_)});
  ++waiting_;
  if (when_added_) when_added_();
  return entries_.back().id;
}

bool jobs::run_one() {
  job work;
  std::shared_ptr<job_watch> watch;
  {
    const std::lock_guard lock(turn_);
    const auto next = std::find_if(entries_.begin(), entries_.end(), [](const entry& e) { return bool{e.work}; });
    if (next == entries_.end()) return false;
    work = std::exchange(next->work, nullptr);
    --waiting_;
    watch = next->watch;
    watch->when_progressed_ = when_progressed_;
  }
  const auto end = [&](const char* state, json result, json problem) {
    const std::lock_guard lock(watch->turn_);
    watch->state_ = state;
    if (!result.is_null()) watch->result_ = std::move(result);
    watch->error_ = std::move(problem);
  };
  {
    const std::lock_guard lock(watch->turn_);
    watch->state_ = "running";
  }
  try {
    watch->done(0);
    end("done", work(*watch), nullptr);
  } catch (const job_watch::cancelled&) {
    end("cancelled", nullptr, nullptr);
  } catch (const error& e) {
    end("failed", nullptr, json_of(e)["error"]);
  } catch (const std::exception& e) {
    end("failed", nullptr,
        json_of(error(errc::io, {e.what(), "", "", "", "start it again, or make it smaller"}))["error"]);
  }
  return true;
}

void jobs::when_added(std::function<void()> call) {
  const std::lock_guard lock(turn_);
  when_added_ = std::move(call);
}

void jobs::when_progressed(std::function<void()> call) {
  const std::lock_guard lock(turn_);
  when_progressed_ = std::move(call);
}

void jobs::cancel_all() {
  const std::lock_guard lock(turn_);
  for (const entry& e : entries_) {
    const std::lock_guard watch(e.watch->turn_);
    e.watch->cancelled_ = true;
  }
}

json jobs::look(const std::string& id) {
  const std::lock_guard lock(turn_);
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const entry& e) { return e.id == id; });
  if (at == entries_.end()) throw error(errc::not_found, {"no such job", "id", "", id.substr(0, 40), "start it again"});
  const std::lock_guard watch(at->watch->turn_);
  job_watch& w = *at->watch;
  w.asked_ = now_();
  return {{"id", id},          {"kind", at->kind},    {"state", w.state_}, {"done", w.done_},
          {"total", w.total_}, {"result", w.result_}, {"error", w.error_}};
}

void jobs::cancel(const std::string& id) {
  const std::lock_guard lock(turn_);
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const entry& e) { return e.id == id; });
  if (at == entries_.end())
    throw error(errc::not_found,
                {"no such job", "id", "", id.substr(0, 40), "it may have ended already; otherwise start it again"});
  {
    const std::lock_guard watch(at->watch->turn_);
    at->watch->cancelled_ = true;
  }
  if (at->work) --waiting_;
  entries_.erase(at);
}

}  // namespace bloomery::playground
