// A process that inserts keys into a filter and is killed during the insert or right after it.
#pragma once

#include "model/expect.hpp"
#include "support/processes.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <new>

#include <sched.h>

namespace bloomery_model {

/// What the process acknowledged before it was killed.
struct acknowledged {
  std::uint32_t batches = 0;
  bool committed = false;
};

/// Runs insert(batch) for batches 0 to `batches` - 1 in another process, then commit() if `commits`, and kills it with
/// SIGKILL once `wanted` batches are acknowledged, or the commit.
/// @param start  makes the writer in that process; insert(writer, batch) and commit(writer) take it
template <class Start, class Insert, class Commit>
acknowledged killed_writer(std::uint32_t batches, std::uint32_t wanted, bool commits, Start start, Insert insert,
                           Commit commit) {
  struct progress {
    std::atomic<std::uint32_t> batches{0};
    std::atomic<bool> committed{false};
  };
  void* const shared = ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  auto& done = *new (shared) progress;

  const pid_t child = bloomery_tests::start_child([&] {
    const auto writer = start();
    for (std::uint32_t i = 0; i < batches; ++i) {
      insert(*writer, i);
      ++done.batches;
    }
    if (commits) {
      commit(*writer);
      done.committed = true;
    }
    while (true) ::pause();
    return 0;
  });
  bool ended_early = false;
  int status = 0;
  while (!ended_early && (done.batches < wanted || (commits && !done.committed))) {
    ended_early = ::waitpid(child, &status, WNOHANG) == child;
    ::sched_yield();
  }
  if (!ended_early) {
    ::kill(child, SIGKILL);
    ended_early = bloomery_tests::wait_for(child) != 128 + SIGKILL;
  }
  const acknowledged result{done.batches, done.committed};
  ::munmap(shared, sizeof(progress));
  expect(!ended_early, "the process that inserts ended by itself");
  return result;
}

}  // namespace bloomery_model
