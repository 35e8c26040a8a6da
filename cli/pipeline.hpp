// A pipeline over batches: read in turn, prepare side by side, finish in turn.
//
//   worker 1:  read 0 | prepare 0 | finish 0 | read 3 | ...
//   worker 2:           read 1 | prepare 1    | finish 1 | ...
//   worker 3:                    read 2 | prepare 2        | finish 2 | ...
//
// Each worker carries a batch through all three stages; tickets keep reading and finishing in order, so results do not
// depend on the number of workers, and no more batches than workers are in memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace bloomery::cli {

/// Runs read(batch) -> bool until it says false; prepare(batch) on each; finish(batch) -> bool on each in the order of
/// reading, until it says false.
///
/// read and finish are never called by two workers at once, but a read may overlap a finish. The first exception of any
/// stage stops all and is thrown here.
///
/// @param unblock  called when finish says false or a stage throws: ends a read that waits for input which may never
/// come
/// @tparam Batch  default constructible; one a worker, reused
template <class Batch, class Read, class Prepare, class Finish, class Unblock>
void run_pipeline(unsigned workers, Read read, Prepare prepare, Finish finish, Unblock unblock) {
  if (workers <= 1) {
    for (Batch batch; read(batch);) {
      prepare(batch);
      if (!finish(batch)) return;
    }
    return;
  }

  std::mutex reading;
  std::mutex finishing;
  std::condition_variable turn;
  std::uint64_t tickets = 0;  // guarded by reading
  std::uint64_t next = 0;     // guarded by finishing
  bool stopped = false;       // guarded by finishing
  std::exception_ptr failure;

  const auto is_stopped = [&] {
    const std::lock_guard lock(finishing);
    return stopped;
  };
  const auto stop = [&](const std::exception_ptr& why) {
    const std::lock_guard lock(finishing);
    stopped = true;
    if (why && !failure) failure = why;
    turn.notify_all();
    unblock();
  };

  const auto work = [&] {
    try {
      for (Batch batch; !is_stopped();) {
        std::uint64_t ticket = 0;
        {
          const std::lock_guard lock(reading);
          if (!read(batch)) return;
          ticket = tickets++;
        }
        prepare(batch);
        std::unique_lock lock(finishing);
        turn.wait(lock, [&] { return stopped || next == ticket; });
        if (stopped) return;
        const bool go_on = finish(batch);
        stopped |= !go_on;
        ++next;
        turn.notify_all();
        lock.unlock();
        if (!go_on) return stop(nullptr);
      }
    } catch (...) {
      stop(std::current_exception());
    }
  };

  std::vector<std::thread> threads;
  try {
    for (unsigned i = 0; i < workers; ++i) threads.emplace_back(work);
  } catch (...) {
    stop(std::current_exception());
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace bloomery::cli
