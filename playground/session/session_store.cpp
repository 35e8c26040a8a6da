#include "playground/session/session_store.hpp"

#include "app/numbers.hpp"

#include <bloomery/error.hpp>
#include <bloomery/secret.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace bloomery::playground {

std::string random_id() {
  const secret_key chance = random_secret();
  return fmt::format("{:016x}{:016x}", chance.k0, chance.k1);
}

session_store::reservation session_store::make_room(std::uint64_t bytes) {
  evicted gone;
  const std::lock_guard lock(turn_);
  make_room_locked(bytes, 0, gone);
  bytes_ += bytes;
  return {this, bytes};
}

session_store::reservation::~reservation() {
  if (from_ == nullptr) return;
  const std::lock_guard lock(from_->turn_);
  from_->bytes_ -= bytes_;
}

void session_store::make_room_locked(std::uint64_t bytes, std::size_t filters, evicted& gone) {
  const clock::time_point now = clock::now();
  while (entries_.size() + coming_ + filters > most_.filters || bytes > most_.bytes - std::min(bytes_, most_.bytes)) {
    const auto idle = std::min_element(entries_.begin(), entries_.end(),
                                       [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; });
    if (idle == entries_.end() || now - idle->second.asked < most_.idle) {
      const bool by_count = entries_.size() + coming_ + filters > most_.filters;
      throw error(errc::unavailable,
                  {by_count ? fmt::format("the playground is full: it has {} filters", app::count_text(entries_.size()))
                            : fmt::format("the playground is full: its filters take {} of {} MiB",
                                          app::count_text(bytes_ >> 20), app::count_text(most_.bytes >> 20)),
                   "", "", "",
                   by_count ? "delete a filter, or try again in a few minutes"
                            : "make a smaller filter, delete one, or try again in a few minutes"});
    }
    bytes_ -= idle->second.bytes;
    gone.push_back(std::move(idle->second.filter));
    entries_.erase(idle);
  }
}

std::string session_store::put(std::uint64_t bytes, const std::function<demo_session()>& make) {
  {
    evicted gone;
    const std::lock_guard lock(turn_);
    make_room_locked(bytes, 1, gone);
    bytes_ += bytes;
    ++coming_;
  }
  std::shared_ptr<guarded_session> filter;
  std::exception_ptr problem;
  try {
    filter = std::make_shared<guarded_session>(make());
  } catch (...) {
    problem = std::current_exception();
  }
  std::string id = random_id();
  const std::lock_guard lock(turn_);
  bytes_ -= bytes;
  --coming_;
  if (problem) std::rethrow_exception(problem);
  const std::uint64_t taken = filter->it.byte_size();
  entries_.emplace(id, entry{std::move(filter), taken, clock::now()});
  bytes_ += taken;
  return id;
}

std::shared_ptr<guarded_session> session_store::get(const std::string& id) {
  const std::lock_guard lock(turn_);
  const auto at = entries_.find(id);
  if (at == entries_.end()) {
    throw error(errc::not_found, {"no such filter: it was deleted, or evicted to make room", "id", "", id.substr(0, 40),
                                  "create it again"});
  }
  at->second.asked = clock::now();
  return at->second.filter;
}

void session_store::weigh(const std::string& id, std::uint64_t bytes) {
  const std::lock_guard lock(turn_);
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  bytes_ += bytes - at->second.bytes;
  at->second.bytes = bytes;
}

void session_store::drop(const std::string& id) {
  std::shared_ptr<guarded_session> gone;
  const std::lock_guard lock(turn_);
  const auto at = entries_.find(id);
  if (at == entries_.end()) {
    throw error(errc::not_found, {"no such filter: it was deleted, or evicted to make room", "id", "", id.substr(0, 40),
                                  "create it again"});
  }
  bytes_ -= at->second.bytes;
  gone = std::move(at->second.filter);
  entries_.erase(at);
}

}  // namespace bloomery::playground
