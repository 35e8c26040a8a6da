// The type Handle, in plain C: pybind11's calls take longer than a lookup, so `add`, `remove` and `in` are slots of the
// type.
#include "python/src/filter.hpp"

#include "python/src/errors.hpp"
#include "python/src/keys.hpp"

#include <bloomery/error.hpp>

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <new>

namespace py = pybind11;

namespace bloomery::python {
namespace {

struct filter_object {
  PyObject_HEAD filter_state state;
};

PyTypeObject* type_of_handles = nullptr;  // lives as long as the module
unsigned forks = 0;                       // of this process and those it was forked from

bool is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

filter_state& unchecked(PyObject* self) { return reinterpret_cast<filter_object*>(self)->state; }

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (self != nullptr) new (&unchecked(self)) filter_state;
  return self;
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  {
    filter_state& f = unchecked(self);
    if (f.is_of_parent()) static_cast<void>(f.handle.release());
    const without_gil released;  // closing a file syncs it
    f.~filter_state();
  }
  type->tp_free(self);
  Py_DECREF(type);
}

// Calls work() and sets a Python exception if it throws.
template <class Result, class Work>
Result guarded(Result failure, Work work) noexcept {
  try {
    return work();
  } catch (...) {
    set_python_error(std::current_exception());
    return failure;
  }
}

int contains(PyObject* self, PyObject* key) {
  return guarded(-1, [&] {
    filter_state& f = unchecked(self);
    return with_key(key, f.kind, [&](auto plain) {
      if (f.can_be_direct()) return f.handle->contains(plain) ? 1 : 0;
      return while_unchanged(f, [&](filter_handle& handle) { return handle.contains(plain) ? 1 : 0; });
    });
  });
}

PyObject* add(PyObject* self, PyObject* key) {
  return guarded<PyObject*>(nullptr, [&] {
    filter_state& f = unchecked(self);
    const bool is_new = with_key(key, f.kind, [&](auto plain) {
      if (f.can_be_direct()) return f.handle->insert(plain);
      return exclusively(f, [&](filter_handle& handle) { return handle.insert(plain); });
    });
    return PyBool_FromLong(is_new);
  });
}

// As add(), but also true if a lost connection to a server leaves open whether the key is new.
PyObject* add_maybe_new(PyObject* self, PyObject* key) {
  return guarded<PyObject*>(nullptr, [&] {
    filter_state& f = unchecked(self);
    const bool is_new = with_key(key, f.kind, [&](const auto& plain) {
      if (f.can_be_direct()) return f.handle->insert(plain);
      return exclusively(f, [&](filter_handle& handle) {
        std::uint8_t answer = 0;
        handle.insert(std::span(&plain, 1), std::span(&answer, 1));
        return answer != 0;
      });
    });
    return PyBool_FromLong(is_new);
  });
}

PyObject* remove(PyObject* self, PyObject* key) {
  return guarded<PyObject*>(nullptr, [&] {
    filter_state& f = unchecked(self);
    const bool removed = with_key(key, f.kind, [&](const auto& plain) {
      return exclusively(f, [&](filter_handle& handle) { return handle.remove(std::span(&plain, 1)).changed != 0; });
    });
    return PyBool_FromLong(removed);
  });
}

constexpr const char* doc_of_add =
    "add($self, key, /)\n--\n\n"
    "Insert a key. True: the key is certainly new. False: it may have been inserted before.\n\n"
    ">>> import bloomery\n"
    ">>> cities = bloomery.Filter(1000, 0.01)\n"
    ">>> cities.add('Madrid'), cities.add('Madrid')\n"
    "(True, False)\n";
constexpr const char* doc_of_add_maybe_new =
    "_add_maybe_new($self, key, /)\n--\n\n"
    "Insert a key. False: the key may have been inserted before.";
constexpr const char* doc_of_remove =
    "_remove($self, key, /)\n--\n\n"
    "Remove one copy of a key. False: the key was certainly absent.";

PyMethodDef methods[] = {
    {"add", add, METH_O, doc_of_add},
    {"_add_maybe_new", add_maybe_new, METH_O, doc_of_add_maybe_new},
    {"_remove", remove, METH_O, doc_of_remove},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void filter_state::take(std::unique_ptr<filter_handle> made, bool is_in_memory) {
  const capabilities can = made->capabilities();
  kind = made->parameters().keys;
  is_direct = !can.is_remote;
  parallel = can.lookups_in_parallel;
  in_memory = is_in_memory;
  is_closed = false;
  is_of_one_process = can.is_remote || (!is_in_memory && can.can_insert);
  this->forks = python::forks;
  handle = std::move(made);
}

bool filter_state::is_of_parent() const noexcept { return is_of_one_process && forks != python::forks; }

filter_handle& filter_state::open_handle() const {
  if (is_of_parent()) {
    throw error(errc::invalid_argument,
                {"the parent process opened this filter for changes", "", "", "", "open it in this process"});
  }
  if (handle == nullptr) throw error(errc::invalid_argument, {"the filter is closed", "", "", "", "open it again"});
  return *handle;
}

without_gil::without_gil() : thread_(is_ending() ? nullptr : PyEval_SaveThread()) {}

without_gil::~without_gil() {
  if (thread_ == nullptr) return;
  while (is_ending()) ::pause();
  try {
    PyEval_RestoreThread(thread_);
  } catch (const abi::__forced_unwind&) {  // the interpreter began to end while this thread waited for the GIL
    for (;;) ::pause();
  }
}

const char* class_of(const params& p) noexcept {
  const capabilities can = capabilities_of(p);
  if (can.has_window) return "WindowedFilter";
  if (can.can_remove) return family_of(p) == family::counting ? "CountingFilter" : "QuotientFilter";
  return can.can_insert ? "Filter" : "StaticFilter";
}

filter_state& state_of(py::handle object) {
  if (PyObject_TypeCheck(object.ptr(), type_of_handles)) return unchecked(object.ptr());
  throw py::type_error("expected a filter of bloomery, found " + std::string(Py_TYPE(object.ptr())->tp_name));
}

py::object add_handle_type(py::module_& m) {
  static const char* const doc = "A filter of any kind. The classes of the package derive from it.";
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>(doc)},
      {Py_tp_new, reinterpret_cast<void*>(make)},
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_sq_contains, reinterpret_cast<void*>(contains)},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"bloomery._bloomery.Handle", sizeof(filter_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots};
  py::object type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
  type_of_handles = reinterpret_cast<PyTypeObject*>(type.ptr());
  m.attr("Handle") = type;
  return type;
}

}  // namespace bloomery::python
