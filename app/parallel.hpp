// A parallel loop over numbered pieces of work. With one thread everything runs in the calling thread.
#pragma once

#include <bloomery/detail/joined_threads.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

namespace bloomery::app {

/// Calls work(worker, piece) once per piece 0 .. pieces - 1. The pieces start in order, and each worker has one at a
/// time. The calling thread is worker 0, the others have the numbers up to threads - 1.
///
/// The first exception ends the work once the pieces that have started are done, and is thrown here.
///
/// Example:
///     std::vector<std::uint64_t> sums(4);
///     parallel_for(4, 100, [&](unsigned worker, std::uint64_t piece) { sums[worker] += piece; });
///     assert(sums[0] + sums[1] + sums[2] + sums[3] == 4950);
template <class Work>
void parallel_for(unsigned threads, std::uint64_t pieces, Work work) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> has_failed{false};
  std::exception_ptr failure;
  const auto run = [&](unsigned worker) {
    try {
      for (std::uint64_t piece; !has_failed && (piece = next.fetch_add(1)) < pieces;) work(worker, piece);
    } catch (...) {
      if (!has_failed.exchange(true)) failure = std::current_exception();
    }
  };
  detail::joined_threads others;
  try {
    for (unsigned worker = 1; worker < threads && worker < pieces; ++worker) others.start(run, worker);
  } catch (const std::exception&) {
    // The system creates no more threads: the existing ones do all the work.
  }
  run(0);
  others.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace bloomery::app
