// The type Handle: a filter_handle as a Python object, and its locks.
//
// A call on one key of a local filter holds the GIL and takes no lock. All other calls release the GIL and hold the
// filter's own lock: shared for lookups, exclusive for changes. `calls` counts them and is changed with the GIL only,
// so a call on one key needs no lock while it is 0.
#pragma once

#include <bloomery/filter_handle.hpp>

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace bloomery::python {

struct filter_state {
  std::unique_ptr<filter_handle> handle;  // null: not made yet, or closed
  key_kind kind = key_kind::bytes;
  bool is_direct = false;  // calls on one key need no exchange with servers
  bool parallel = false;   // lookups in parallel
  bool in_memory = false;  // not a file that is mapped or edited, and not on servers
  unsigned calls = 0;      // calls that have released the GIL and not taken it again
  std::shared_mutex lock;

  /// Replaces the handle. Requires the GIL and the exclusive lock, or a new object.
  void take(std::unique_ptr<filter_handle> made, bool is_in_memory);

  /// @throws error  invalid_argument: closed
  filter_handle& open_handle() const;
};

/// The state of a Python object. Throws TypeError: not a Handle.
filter_state& state_of(pybind11::handle object);

/// Adds the type Handle to the module and returns it.
pybind11::object add_handle_type(pybind11::module_& m);

/// Releases the GIL and counts this call, until the end of a scope.
class released_gil {
 public:
  explicit released_gil(filter_state& f) : f_(f), thread_((++f.calls, PyEval_SaveThread())) {}
  ~released_gil() {
    PyEval_RestoreThread(thread_);
    --f_.calls;
  }
  released_gil(const released_gil&) = delete;
  released_gil& operator=(const released_gil&) = delete;

 private:
  filter_state& f_;
  PyThreadState* thread_;
};

/// Calls work(handle) without the GIL, while no other call uses the filter.
template <class Work>
auto exclusively(filter_state& f, Work work) {
  const released_gil released(f);
  const std::unique_lock hold(f.lock);
  return work(f.open_handle());
}

/// Calls work(handle) without the GIL, while no call changes the filter.
template <class Work>
auto while_unchanged(filter_state& f, Work work) {
  if (!f.parallel) return exclusively(f, std::move(work));
  const released_gil released(f);
  const std::shared_lock hold(f.lock);
  return work(f.open_handle());
}

/// Calls work(handle, other handle) without the GIL, while no other call uses either of two filters.
template <class Work>
auto exclusively(filter_state& f, filter_state& other, Work work) {
  if (&f == &other) return exclusively(f, [&](filter_handle& handle) { return work(handle, handle); });
  const released_gil released(f);
  const std::scoped_lock hold(f.lock, other.lock);
  return work(f.open_handle(), other.open_handle());
}

}  // namespace bloomery::python
