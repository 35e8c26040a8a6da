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

namespace bloomery::app {

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

  // What fails after the stop is a consequence of it.
  const auto stop = [&](const std::exception_ptr& why) {
    const std::lock_guard lock(finishing);
    if (!stopped) failure = why;
    stopped = true;
    turn.notify_all();
    unblock();
  };

  // A batch that failed has its turn, too: those before it are finished, whatever the number of workers.
  const auto carry = [&](Batch& batch) {
    std::exception_ptr failed;
    std::uint64_t ticket = 0;
    {
      const std::lock_guard lock(reading);
      try {
        if (!read(batch)) return false;
      } catch (...) {
        failed = std::current_exception();
      }
      ticket = tickets++;
    }
    try {
      if (!failed) prepare(batch);
    } catch (...) {
      failed = std::current_exception();
    }
    bool go_on = false;
    {
      std::unique_lock lock(finishing);
      turn.wait(lock, [&] { return stopped || next == ticket; });
      if (stopped) return false;
      try {
        if (!failed) go_on = finish(batch);
      } catch (...) {
        failed = std::current_exception();
      }
      if (go_on) ++next;  // else the turn stays here until stop() ends all
    }
    if (go_on)
      turn.notify_all();
    else
      stop(failed);
    return go_on;
  };

  const auto work = [&] {
    try {
      Batch batch;
      while (carry(batch)) {
      }
    } catch (...) {  // no memory for a batch
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

}  // namespace bloomery::app
