// concurrent_redis_filter: a queue of batches and one worker thread. Callers append their keys to the open batch, and
// the worker processes it after the batch before. Callers and worker share a batch, so a caller that times out may
// return.
#include <bloomery/redis/concurrent.hpp>

#include <bloomery/detail/checks.hpp>
#include <bloomery/error.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::hours most_time{24 * 365};  // limits times, so that sums do not overflow

// Keys of many calls, and their answers.
struct key_list {
  std::string text;               // of all keys
  std::vector<std::size_t> ends;  // end of each key in `text`
  std::vector<std::uint64_t> integers;
  std::vector<std::uint64_t> answers;  // a bitmap
  std::exception_ptr failure;

  std::size_t size() const noexcept { return ends.size() + integers.size(); }

  void append(key_span keys) {
    if (!keys.is_text()) {
      integers.insert(integers.end(), keys.integers().begin(), keys.integers().end());
      return;
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      text.append(keys.text(i));
      ends.push_back(text.size());
    }
  }

  std::vector<std::string_view> views() const {
    std::vector<std::string_view> all;
    all.reserve(ends.size());
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      all.emplace_back(text.data() + begin, end - begin);
      begin = end;
    }
    return all;
  }

  // Calls work(keys), which writes the answers.
  template <class Work>
  void run(Work work) {
    if (size() == 0) return;
    answers.assign((size() + 63) / 64, 0);
    try {
      if (integers.empty()) {
        work(key_span(views()));
      } else {
        work(key_span(integers));
      }
    } catch (...) {
      failure = std::current_exception();
    }
  }
};

// A flag that becomes true once. Its waiters wake without taking a common lock, as they would with a condition
// variable: that costs a third of a call's processor time with 64 threads.
class event {
 public:
  void set() {
    state_.store(1, std::memory_order_release);
    ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  // False: the time `until` was reached and the flag is not set.
  bool wait_until(clock::time_point until) {
    const auto since_start = until.time_since_epoch();
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since_start);
    const timespec limit{static_cast<time_t>(whole.count()), static_cast<long>((since_start - whole).count())};
    while (state_.load(std::memory_order_acquire) == 0) {
      if (clock::now() >= until) return false;
      // The time limit uses CLOCK_MONOTONIC, as steady_clock does.
      ::syscall(SYS_futex, &state_, FUTEX_WAIT_BITSET_PRIVATE, 0, &limit, nullptr, FUTEX_BITSET_MATCH_ANY);
    }
    return true;
  }

 private:
  std::atomic<std::uint32_t> state_ = 0;
};

// A call of with_filter(), whose caller waits.
struct job {
  const std::function<void(redis_filter&)>* work;
  std::exception_ptr failure;
};

struct batch {
  key_list lookups;
  key_list inserts;
  std::vector<job> jobs;
  event done;

  std::size_t size() const noexcept { return lookups.size() + inserts.size() + jobs.size(); }
};

}  // namespace

struct concurrent_redis_filter::impl {
  impl(redis_filter f, concurrent_redis_options o)
      : filter(std::move(f)), options(o), kind(filter.parameters().filter.keys) {
    const auto refuse = [](const char* what, const std::string& found) {
      throw error(errc::invalid_argument, {what, "concurrent_redis_filter", "at least 1", found, ""});
    };
    if (o.time.count() < 1) refuse("the time limit of a call is out of range", std::to_string(o.time.count()) + " ms");
    if (o.most_waiting < 1) refuse("the maximum number of waiting keys is out of range", "0");
    worker = std::thread([this] { work(); });
  }

  ~impl() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
    }
    wake.notify_one();
    worker.join();
  }

  void work() {
    std::vector<std::uint8_t> is_new;
    for (;;) {
      std::shared_ptr<batch> taken;
      {
        std::unique_lock lock(mutex);
        is_idle = true;
        wake.wait(lock, [&] { return ends || gathering->size() > 0; });
        is_idle = false;
        if (gathering->size() == 0) return;
        taken = std::exchange(gathering, std::make_shared<batch>());
      }
      room.notify_all();
      taken->inserts.run([&](key_span keys) {
        is_new.assign(keys.size(), 0);
        filter.insert(keys, is_new);
        for (std::size_t i = 0; i < keys.size(); ++i) {
          if (is_new[i] == 1) taken->inserts.answers[i / 64] |= std::uint64_t{1} << i % 64;
        }
      });
      taken->lookups.run([&](key_span keys) { filter.may_contain(keys, taken->lookups.answers); });
      for (job& j : taken->jobs) {
        try {
          (*j.work)(filter);
        } catch (...) {
          j.failure = std::current_exception();
        }
      }
      taken->done.set();
    }
  }

  [[noreturn]] void out_of_time(const char* doing, const char* doubt) const {
    throw error(errc::unavailable,
                {std::string("timeout: cannot ") + doing, "concurrent_redis_filter",
                 "an answer within " + std::to_string(options.time.count()) + " ms", doubt, hint::try_again});
  }

  void check(key_span keys) const {
    const bool is_text = keys.is_text();
    if (!is_text && keys.form() != key_span::form_of_keys::integers) {
      throw error(errc::incompatible, {"a filter on servers accepts keys, not hashes", "concurrent_redis_filter",
                                       "text or integers", "hashes", ""});
    }
    if (is_text == (kind == key_kind::bytes)) return;
    throw error(errc::incompatible, {"the keys are of the wrong kind", "concurrent_redis_filter", name_of(kind),
                                     name_of(is_text ? key_kind::bytes : key_kind::u64le), ""});
  }

  // Calls take(index of the first answer bit, answers) when the batch of these keys is complete.
  template <class Take>
  void run(key_list batch::*list, key_span keys, Take take) {
    check(keys);
    const bool is_insert = list == &batch::inserts;
    const auto until = clock::now() + std::min<std::chrono::milliseconds>(options.time, most_time);
    std::shared_ptr<batch> mine;
    std::size_t first = 0;
    bool wakes = false;
    {
      std::unique_lock lock(mutex);
      const auto has_room = [&] {
        return gathering->size() == 0 || gathering->size() + keys.size() <= options.most_waiting;
      };
      if (!room.wait_until(lock, until, has_room)) {
        out_of_time(is_insert ? "insert a key" : "look up a key", "too many waiting keys; nothing was done");
      }
      mine = gathering;
      first = ((*mine).*list).size();
      ((*mine).*list).append(keys);
      wakes = is_idle;
    }
    if (wakes) wake.notify_one();
    if (!mine->done.wait_until(until)) {
      out_of_time(is_insert ? "insert a key" : "look up a key",
                  is_insert ? "no answer; the key may or may not be inserted" : "");
    }
    const key_list& done = (*mine).*list;
    if (done.failure) std::rethrow_exception(done.failure);
    take(first, done.answers);
  }

  redis_filter filter;  // used by the worker only
  const concurrent_redis_options options;
  const key_kind kind;

  std::mutex mutex;              // guards the members below
  std::condition_variable wake;  // wakes the worker
  std::condition_variable room;
  std::shared_ptr<batch> gathering = std::make_shared<batch>();
  bool is_idle = false;
  bool ends = false;

  std::thread worker;
};

concurrent_redis_filter::concurrent_redis_filter(redis_filter filter, concurrent_redis_options options)
    : impl_(std::make_unique<impl>(std::move(filter), options)) {}
concurrent_redis_filter::concurrent_redis_filter(concurrent_redis_filter&&) noexcept = default;
concurrent_redis_filter& concurrent_redis_filter::operator=(concurrent_redis_filter&&) noexcept = default;
concurrent_redis_filter::~concurrent_redis_filter() = default;

bool concurrent_redis_filter::may_contain(std::string_view key) {
  std::uint64_t answer = 0;
  may_contain(std::span<const std::string_view>(&key, 1), {&answer, 1});
  return answer != 0;
}

bool concurrent_redis_filter::may_contain(std::uint64_t key) {
  std::uint64_t answer = 0;
  may_contain(std::span<const std::uint64_t>(&key, 1), {&answer, 1});
  return answer != 0;
}

void concurrent_redis_filter::may_contain(key_span keys, std::span<std::uint64_t> bitmap) {
  detail::check_bitmap("concurrent_redis_filter::may_contain", keys.size(), bitmap.size());
  std::fill(bitmap.begin(), bitmap.end(), std::uint64_t{0});
  if (keys.empty()) return;
  impl_->run(&batch::lookups, keys, [&](std::size_t first, const std::vector<std::uint64_t>& answers) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::size_t at = first + i;
      bitmap[i / 64] |= (answers[at / 64] >> at % 64 & 1) << i % 64;
    }
  });
}

bool concurrent_redis_filter::insert(std::string_view key) {
  return insert(std::span<const std::string_view>(&key, 1)) == 1;
}

bool concurrent_redis_filter::insert(std::uint64_t key) { return insert(std::span<const std::uint64_t>(&key, 1)) == 1; }

std::uint64_t concurrent_redis_filter::insert(key_span keys) {
  if (keys.empty()) return 0;
  std::uint64_t all_new = 0;
  impl_->run(&batch::inserts, keys, [&](std::size_t first, const std::vector<std::uint64_t>& answers) {
    for (std::size_t at = first; at < first + keys.size(); ++at) all_new += answers[at / 64] >> at % 64 & 1;
  });
  return all_new;
}

void concurrent_redis_filter::with_filter(const std::function<void(redis_filter&)>& work) {
  std::shared_ptr<batch> mine;
  std::size_t number = 0;
  {
    const std::lock_guard lock(impl_->mutex);
    mine = impl_->gathering;
    number = mine->jobs.size();
    mine->jobs.push_back({&work, {}});
  }
  impl_->wake.notify_one();
  while (!mine->done.wait_until(clock::now() + std::chrono::hours(1))) {
  }
  if (mine->jobs[number].failure) std::rethrow_exception(mine->jobs[number].failure);
}

}  // namespace bloomery
