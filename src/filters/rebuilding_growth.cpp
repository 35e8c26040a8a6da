// Growth of a rebuilding filter: the conditions for a rebuild, and the thread that rebuilds while keys are inserted.
#include "filters/rebuilding_impl.hpp"

#include <bloomery/sizing.hpp>

#include <cmath>
#include <new>
#include <system_error>

namespace bloomery {

using namespace rebuilding;

namespace {

constexpr std::uint64_t small = 65'536;  // keys: below, rebuilding at once is faster than starting a thread
constexpr std::uint64_t tiny_log = std::uint64_t{1} << 20;  // bytes: too small to be rewritten for its size alone

}  // namespace

// Distinct keys. The share of keys that are certainly new falls from 1 as the filter fills. So below capacity the share
// at capacity gives a slight overestimate: at most 0.2% for an FPR of 1%.
std::uint64_t rebuilding_filter::impl::distinct() const {
  if (counted_when_full > 0 && filter.insert_count() <= counted_when_full) {
    const double share = static_cast<double>(filter.capacity()) / static_cast<double>(counted_when_full);
    return static_cast<std::uint64_t>(static_cast<double>(filter.insert_count()) * share);
  }
  return estimate_distinct(filter.insert_count(), [this](std::uint64_t n) { return rate_at(n); });
}

// After n distinct keys, n - losses were certainly new, with a standard deviation of sqrt(losses). The margin is three
// standard deviations.
void rebuilding_filter::impl::set_bounds() {
  const params& p = filter.parameters();
  const auto rate = [this](std::uint64_t n) { return rate_at(n); };
  const auto capacity = static_cast<double>(p.capacity);
  counted_when_full = expected_insertions(capacity, rate);
  const double lost = std::max(capacity - static_cast<double>(counted_when_full), 0.0);
  full_at = counted_when_full - std::min(counted_when_full, static_cast<std::uint64_t>(std::ceil(3 * std::sqrt(lost))));
  grow_at = static_cast<std::uint64_t>(nearly_full * static_cast<double>(full_at));
  overgrown_at = std::max(tiny_log, 4 * bytes_of_keys(distinct()));
}

rebuilding_filter::impl::wanted rebuilding_filter::impl::growth() const {
  wanted w;
  w.p = filter.parameters();
  // Beyond capacity, insert_count() does not determine the number of distinct keys.
  w.keys = filter.insert_count() > counted_when_full ? log->estimate_distinct() : distinct();
  w.least = w.p.capacity;
  w.upto = log->bytes();
  w.no_lock = no_lock;
  w.anew = is_wasteful(*log, *w.keys);
  w.target = target;
  return w;
}

void rebuilding_filter::impl::start() {
  auto next = std::make_unique<job>();
  job& j = *next;
  const auto work = [this, &j, w = growth()] {
    try {
      j.result = make(path, metadata, *log, w, j.cancel);
    } catch (...) {
      j.failure = std::current_exception();
    }
    j.done = true;
  };
  if (filter.capacity() < small) {
    work();
  } else {
    try {
      j.thread = std::thread(work);
    } catch (const std::system_error&) {  // the system has no more threads
      work();
    }
  }
  rebuilding = std::move(next);
}

void rebuilding_filter::impl::finish() {
  if (!rebuilding) return;
  if (rebuilding->thread.joinable()) rebuilding->thread.join();
  const std::unique_ptr<job> ended = std::move(rebuilding);
  try {
    if (ended->failure) std::rethrow_exception(ended->failure);
    publish(std::move(*ended->result));
  } catch (...) {
    remove_quietly(rebuilt_name(path));
    remove_quietly(rebuilt_name(log_path(path)));
    failed = true;
    failure = std::current_exception();
    // Retry only after some more keys, by the count of the log: a full filter counts none.
    retry_at = log->keys() + log->keys() / 16 + 1000;
    full_at = std::max(full_at, filter.insert_count() + filter.insert_count() / 16 + 1000);
  }
}

void rebuilding_filter::impl::throw_failure() {
  const std::exception_ptr what = std::exchange(failure, nullptr);
  if (!what) return;
  try {
    std::rethrow_exception(what);
  } catch (const error& e) {
    error_text text = e.text();
    text.what =
        "the filter has all keys but could not be enlarged, so its false-positive rate may exceed the target: " +
        (text.where.empty() ? "" : text.where + ": ") + text.what;
    text.where = path;
    throw error(e.code(), std::move(text));
  } catch (const std::bad_alloc&) {
    throw error(errc::too_large,
                {"the filter has all keys but could not be enlarged, so its false-positive rate may exceed "
                 "the target: out of memory",
                 path, "", "", hint::none});
  }
}

void rebuilding_filter::impl::note_failure() const {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    note(std::string("warning: the filter could not be enlarged and continues at its present size; its false-positive "
                     "rate will exceed "
                     "the target: ") +
         e.what());
  }
}

std::uint64_t rebuilding_filter::impl::make_room() {
  for (;;) {
    if (rebuilding && (rebuilding->done || filter.insert_count() >= full_at)) {
      const bool failed_before = failed;
      finish();
      if (failed && !failed_before) note_failure();
    }
    const bool is_due = failed ? log->keys() >= retry_at || filter.insert_count() >= full_at
                               : filter.insert_count() >= grow_at || log_is_overgrown();
    if (!rebuilding && is_due) {
      start();
      if (rebuilding->done) continue;
    }
    if (filter.insert_count() < full_at) return full_at - filter.insert_count();
  }
}

}  // namespace bloomery
