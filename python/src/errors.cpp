// Translation of exceptions: bloomery::error to a class of bloomery/errors.py, with the parts of its text as
// attributes.
#include "python/src/errors.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>

#include <pybind11/pybind11.h>

#include <new>
#include <string>
#include <utility>

namespace py = pybind11;

namespace bloomery::python {
namespace {

// Paths in texts may have bytes that are not UTF-8; Python shows them as surrogates, as in its own paths.
py::object text_of(const std::string& bytes) {
  PyObject* const text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(text);
}

void set_error_of_library(const error& e, const partial_error* partial) {
  const py::object type = py::module_::import("bloomery.errors").attr("CLASSES")[name_of(e.code())];
  const py::object value = type(text_of(e.what()));
  const error_text& text = e.text();
  value.attr("code") = name_of(e.code());
  value.attr("what") = text_of(text.what);
  value.attr("where") = text_of(text.where);
  value.attr("expected") = text_of(text.expected);
  value.attr("found") = text_of(text.found);
  value.attr("hint") = text_of(text.hint.words());
  if (partial != nullptr) {
    value.attr("keys_done") = partial->done().keys;
    value.attr("undecided") = partial->undecided();
  }
  PyErr_SetObject(type.ptr(), value.ptr());
}

}  // namespace

void set_python_error(std::exception_ptr thrown) noexcept {
  try {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const partial_error& e) {
      set_error_of_library(e, &e);
    } catch (const error& e) {
      set_error_of_library(e, nullptr);
    }
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const py::builtin_exception& e) {
    e.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown exception");
  }
}

}  // namespace bloomery::python
