// A list of threads whose destructor joins them. (std::jthread does it too, but libc++ lacks it.)
#pragma once

#include <bloomery/detail/export.hpp>

#include <thread>
#include <utility>
#include <vector>

namespace bloomery::detail {

/// Example:
///     int sum = 0;
///     {
///       detail::joined_threads others;
///       others.start([&] { sum = 3; });
///     }
///     assert(sum == 3);
class joined_threads {
 public:
  joined_threads() = default;
  ~joined_threads() { join(); }
  joined_threads(const joined_threads&) = delete;
  joined_threads& operator=(const joined_threads&) = delete;

  /// Calls work(arguments...) in a new thread.
  /// @throws std::system_error  the system creates no more threads
  template <class Work, class... Arguments>
  void start(Work&& work, Arguments&&... arguments) {
    all_.emplace_back(std::forward<Work>(work), std::forward<Arguments>(arguments)...);
  }

  /// Waits until all of them have ended.
  void join() {
    for (std::thread& one : all_) one.join();
    all_.clear();
  }

 private:
  std::vector<std::thread> all_;
};

}  // namespace bloomery::detail
