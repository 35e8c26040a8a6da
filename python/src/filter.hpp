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
  bool is_closed = true;   // has no handle, or close() was called; changed with the GIL only
  unsigned calls = 0;      // calls that have released the GIL and not taken it again
  std::shared_mutex lock;
  unsigned forks = 0;              // forks_of_process() when the filter was made or opened
  bool is_of_one_process = false;  // a file that is open for changes, or a filter on servers

  /// Replaces the handle. Requires the GIL and the exclusive lock, or a new object.
  void take(std::unique_ptr<filter_handle> made, bool is_in_memory);

  /// @throws error  invalid_argument: closed, or the parent process of this process opened it
  filter_handle& open_handle() const;

  /// Whether the handle belongs to the parent process: closing it here would complete the parent's file.
  bool is_of_parent() const noexcept;

  /// Whether a call on one key may use the handle while it holds the GIL.
  bool can_be_direct() const noexcept { return is_direct && calls == 0 && !is_of_parent(); }
};

/// The class of the package for filters of one size with these parameters, from their capabilities.
const char* class_of(const params& p) noexcept;

/// The state of a Python object. Throws TypeError: not a Handle.
filter_state& state_of(pybind11::handle object);

/// Adds the type Handle to the module and returns it.
pybind11::object add_handle_type(pybind11::module_& m);

/// Releases the GIL until the end of a scope. If the interpreter ends meanwhile, this thread stops there, as in Python
/// 3.14; earlier versions would end the thread by an exception, and so the process. The thread that ends the
/// interpreter keeps the GIL.
class without_gil {
 public:
  without_gil();
  ~without_gil();
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;

 private:
  PyThreadState* thread_;  // null: the GIL was not released
};

/// Counts a call that uses a filter without the GIL.
class counted_call {
 public:
  explicit counted_call(filter_state& f) : f_(f) { ++f_.calls; }
  ~counted_call() { --f_.calls; }
  counted_call(const counted_call&) = delete;
  counted_call& operator=(const counted_call&) = delete;

 private:
  filter_state& f_;
};

/// Calls work(handle) without the GIL, while no other call uses the filter.
template <class Work>
auto exclusively(filter_state& f, Work work) {
  const counted_call call(f);
  const without_gil released;
  const std::unique_lock hold(f.lock);
  return work(f.open_handle());
}

/// Calls work(handle) without the GIL, while no call changes the filter.
template <class Work>
auto while_unchanged(filter_state& f, Work work) {
  if (!f.parallel) return exclusively(f, std::move(work));
  const counted_call call(f);
  const without_gil released;
  const std::shared_lock hold(f.lock);
  return work(f.open_handle());
}

/// Calls work(handle, other handle) without the GIL, while no other call uses either of two filters.
template <class Work>
auto exclusively(filter_state& f, filter_state& other, Work work) {
  if (&f == &other) return exclusively(f, [&](filter_handle& handle) { return work(handle, handle); });
  const counted_call call(f);
  const counted_call call_of_other(other);
  const without_gil released;
  const std::scoped_lock hold(f.lock, other.lock);
  return work(f.open_handle(), other.open_handle());
}

}  // namespace bloomery::python
