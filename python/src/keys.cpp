// Conversion of single keys, apart from the common cases, which are inline.
#include "python/src/keys.hpp"

namespace py = pybind11;

namespace bloomery::python {
namespace {

py::object index_of(py::handle key) {
  PyObject* const integer = PyNumber_Index(key.ptr());
  if (integer == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(integer);
}

}  // namespace

void refuse_key(py::handle key, key_kind kind) {
  const std::string type = Py_TYPE(key.ptr())->tp_name;
  const char* const expected = kind == key_kind::u64le ? "int for a filter of integers" : "str, bytes or int";
  throw py::type_error("key: expected " + std::string(expected) + ", found " + type);
}

std::uint64_t integer_of(py::handle key) {
  const py::object integer = index_of(key);
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (overflow == 0) return static_cast<std::uint64_t>(number);
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(integer.ptr());
    if (PyErr_Occurred() == nullptr) return large;
    PyErr_Clear();
  }
  PyErr_SetString(PyExc_OverflowError, "key: expected an int from -2**63 to 2**64 - 1 for a filter of integers");
  throw py::error_already_set();
}

std::string_view decimal_of(py::handle integer, char* digits) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow != 0) return {};
  const char* const end = std::to_chars(digits, digits + most_digits, number).ptr;
  return {digits, static_cast<std::size_t>(end - digits)};
}

std::string rare_text_of(py::handle key) {
  if (PyByteArray_Check(key.ptr()) || PyMemoryView_Check(key.ptr())) {
    const py::object bytes = py::reinterpret_steal<py::object>(PyBytes_FromObject(key.ptr()));
    if (!bytes) throw py::error_already_set();
    return std::string(text_of_bytes(bytes.ptr()));
  }
  if (!PyIndex_Check(key.ptr())) refuse_key(key, key_kind::bytes);
  const py::object integer = index_of(key);  // its text, not that of a subclass with its own __str__
  const py::object text = py::reinterpret_steal<py::object>(PyLong_Type.tp_repr(integer.ptr()));
  if (!text) throw py::error_already_set();
  return std::string(text_of_str(text.ptr()));
}

}  // namespace bloomery::python
