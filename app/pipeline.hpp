// A parallel pipeline over batches: reads in order, prepares in parallel, finishes in order.
//
//   worker 1:  read 0 | prepare 0 | finish 0 | read 3 | ...
//   worker 2:           read 1 | prepare 1    | finish 1 | ...
//   worker 3:                    read 2 | prepare 2        | finish 2 | ...
//
// Each worker carries a batch through all stages; tickets keep reading and finishing in order, so results do not depend
// on the number of workers, and no more batches than workers are in memory.
//
// Between prepare and finish, a batch can take steps. Each step takes the batches in order, but different steps work on
// different batches at once: a set in eight partitions takes eight batches at a time, one per partition.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace bloomery::app {

/// Calls read(batch) -> bool until it returns false, prepare(batch) on each batch, and finish(batch) -> bool on each in
/// the order of reading, until it returns false. Before finish(batch) it calls step(batch, s) for s = 0 .. steps - 1,
/// for each s in the order of reading.
///
/// Calls of read never overlap, nor do calls of finish, nor calls of one step, but calls of different stages and steps
/// do. The first exception of any stage stops the pipeline and is rethrown here.
///
/// @param unblock  called when finish returns false or a stage throws: must end a read that waits for input
/// @tparam Batch  default constructible; one per worker, reused
template <class Batch, class Read, class Prepare, class Step, class Finish, class Unblock>
void run_pipeline(unsigned workers, Read read, Prepare prepare, unsigned steps, Step step, Finish finish,
                  Unblock unblock) {
  if (workers <= 1) {
    for (Batch batch; read(batch);) {
      prepare(batch);
      for (unsigned s = 0; s < steps; ++s) step(batch, s);
      if (!finish(batch)) return;
    }
    return;
  }

  std::mutex reading;
  std::mutex finishing;
  std::condition_variable turn;
  std::uint64_t tickets = 0;                   // guarded by reading
  std::vector<std::uint64_t> next(steps + 1);  // the batch that each step, or finish, takes next; guarded by finishing
  bool stopped = false;                        // guarded by finishing
  std::exception_ptr failure;

  // Later failures are consequences of the stop.
  const auto stop = [&](const std::exception_ptr& why) {
    const std::lock_guard lock(finishing);
    if (!stopped) failure = why;
    stopped = true;
    turn.notify_all();
    unblock();
  };

  // A failed batch waits for its turn, too: earlier batches are finished, independently of the number of workers.
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
      for (unsigned s = 0; s < steps && !failed; ++s) {
        {
          std::unique_lock lock(finishing);
          turn.wait(lock, [&] { return stopped || next[s] == ticket; });
          if (stopped) return false;
        }
        step(batch, s);
        {
          const std::lock_guard lock(finishing);
          ++next[s];
        }
        turn.notify_all();
      }
    } catch (...) {
      failed = std::current_exception();
    }
    bool go_on = false;
    {
      std::unique_lock lock(finishing);
      turn.wait(lock, [&] { return stopped || next[steps] == ticket; });
      if (stopped) return false;
      lock.unlock();  // only the batch whose turn it is gets here; steps go on meanwhile
      try {
        if (!failed) go_on = finish(batch);
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      if (go_on) ++next[steps];  // otherwise no other worker gets a turn until stop()
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
    } catch (...) {  // out of memory for a batch
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

/// The same without steps.
template <class Batch, class Read, class Prepare, class Finish, class Unblock>
void run_pipeline(unsigned workers, Read read, Prepare prepare, Finish finish, Unblock unblock) {
  run_pipeline<Batch>(
      workers, read, prepare, 0, [](Batch&, unsigned) {}, finish, unblock);
}

}  // namespace bloomery::app
