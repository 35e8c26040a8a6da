// Keys from iterables and from buffers (NumPy).
#include "python/src/batches.hpp"

#include "python/src/arrow.hpp"
#include "python/src/part.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace py = pybind11;

namespace bloomery::python {

part::part(key_kind kind, part_of_keys receive) : kind_(kind), receive_(receive) {}

void part::add(PyObject* key) {
  if (kind_ == key_kind::u64le) {
    if (!PyIndex_Check(key)) refuse_key(key, kind_);
    return add_integer(integer_of(key));
  }
  if (PyUnicode_Check(key) || PyBytes_Check(key)) {
    owners_.push_back(py::reinterpret_borrow<py::object>(key));
    return add_view(PyUnicode_Check(key) ? text_of_str(key) : text_of_bytes(key));
  }
  if (PyLong_Check(key)) {
    if (const std::string_view text = decimal_of(key, next_digits()); !text.empty()) return add_view(text);
  }
  add_view(texts_.emplace_back(rare_text_of(key)));
}

void part::flush() {
  if (!views_.empty()) hand_over(views_, receive_);
  if (!integers_.empty()) hand_over(integers_, receive_);
  views_.clear();
  integers_.clear();
  owners_.clear();
  texts_.clear();
}

char* part::next_digits() {
  if (digits_ == nullptr) digits_ = std::make_unique<char[]>(keys_of_a_part * most_digits);
  return digits_.get() + views_.size() * most_digits;
}

void hand_over(key_span keys, part_of_keys receive) {
  receive(keys);
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

namespace {

// ---- iterables ------------------------------------------------------------------------------------------------------

// The objects of a list may be in memory that is not in the cache: the ones after the next are fetched meanwhile.
constexpr Py_ssize_t objects_ahead = 12;

// Reads the size again for each object: a signal handler or another thread may change a list between parts.
void each_of_sequence(py::handle keys, part& some) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(keys.ptr()); ++i) {
    PyObject* const* const items = PySequence_Fast_ITEMS(keys.ptr());
    if (i + objects_ahead < PySequence_Fast_GET_SIZE(keys.ptr())) __builtin_prefetch(items[i + objects_ahead]);
    const py::object key = py::reinterpret_borrow<py::object>(items[i]);  // its conversion may run Python code
    some.add(key.ptr());
  }
}

void each_of_iterable(py::handle keys, part& some) {
  const py::object iterator = py::reinterpret_steal<py::object>(PyObject_GetIter(keys.ptr()));
  if (!iterator) throw py::error_already_set();
  while (const py::object key = py::reinterpret_steal<py::object>(PyIter_Next(iterator.ptr()))) some.add(key.ptr());
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

// ---- buffers --------------------------------------------------------------------------------------------------------

// The memory of an array of one dimension. Not movable: a Py_buffer may point into itself.
class buffer {
 public:
  explicit buffer(py::handle keys) {
    if (!PyObject_CheckBuffer(keys.ptr())) return;
    if (PyObject_GetBuffer(keys.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) PyErr_Clear();  // an array of dates
  }
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  ~buffer() { PyBuffer_Release(&view_); }

  // Some exporters leave out what was requested: the arrays of ctypes have no strides.
  bool is_usable() const noexcept {
    return view_.obj != nullptr && view_.ndim == 1 && view_.format != nullptr && view_.shape != nullptr &&
           view_.suboffsets == nullptr;
  }
  std::size_t size() const noexcept { return static_cast<std::size_t>(view_.shape[0]); }
  const char* at(std::size_t i) const noexcept {
    return static_cast<const char*>(view_.buf) + static_cast<Py_ssize_t>(i) * stride();
  }
  Py_ssize_t stride() const noexcept { return view_.strides != nullptr ? view_.strides[0] : view_.itemsize; }
  std::size_t item_bytes() const noexcept { return static_cast<std::size_t>(view_.itemsize); }

  /// The format of an item in the byte order of this machine, without the sign of the order: "Q", "20s".
  std::string_view format() const noexcept {
    std::string_view text = view_.format;
    constexpr char order = std::endian::native == std::endian::little ? '<' : '>';
    if (text.starts_with('@') || text.starts_with('=') || text.starts_with(order)) text.remove_prefix(1);
    return text;
  }

 private:
  Py_buffer view_ = {};
};

// Keys of a fixed width end before their trailing NUL bytes, as NumPy's type S defines.
void each_fixed_width(const buffer& keys, key_kind kind, part_of_keys receive) {
  if (kind == key_kind::u64le) throw py::type_error("key: expected int for a filter of integers, found bytes");
  part some(kind, receive);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::string_view key(keys.at(i), keys.item_bytes());
    while (key.ends_with('\0')) key.remove_suffix(1);
    some.add_view(key);
  }
  some.flush();
}

bool is_fixed_width(std::string_view format) {
  if (!format.ends_with('s')) return false;
  return std::all_of(format.begin(), format.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
}

// False: the items are of another type. The width of an integer is that of the items: "l" has 4 or 8 bytes.
bool each_of_buffer(const buffer& keys, key_kind kind, part_of_keys receive) {
  const std::string_view format = keys.format();
  if (keys.item_bytes() != 0 && is_fixed_width(format)) return each_fixed_width(keys, kind, receive), true;
  if (format.size() != 1 || std::string_view("bBhHiIlLqQnN").find(format[0]) == std::string_view::npos) return false;
  const auto each = [&]<class Signed, class Unsigned>(Signed, Unsigned) {
    if (format[0] >= 'a')
      each_integer<Signed>(keys.at(0), keys.size(), keys.stride(), kind, receive);
    else
      each_integer<Unsigned>(keys.at(0), keys.size(), keys.stride(), kind, receive);
    return true;
  };
  switch (keys.item_bytes()) {
    case 1: return each(std::int8_t{}, std::uint8_t{});
    case 2: return each(std::int16_t{}, std::uint16_t{});
    case 4: return each(std::int32_t{}, std::uint32_t{});
    case 8: return each(std::int64_t{}, std::uint64_t{});
    default: return false;
  }
}

}  // namespace

void for_each_part(py::handle keys, key_kind kind, part_of_keys receive) {
  if (PyUnicode_Check(keys.ptr()) || PyBytes_Check(keys.ptr()) || PyByteArray_Check(keys.ptr())) {
    throw py::type_error("keys: expected an iterable of keys, found " + std::string(Py_TYPE(keys.ptr())->tp_name) +
                         "; put a single key into a list");
  }
  if (is_arrow(keys)) return each_of_arrow(keys, kind, receive);
  if (const buffer items(keys); items.is_usable() && each_of_buffer(items, kind, receive)) return;
  part some(kind, receive);
  if (PyList_CheckExact(keys.ptr()) || PyTuple_CheckExact(keys.ptr()))
    each_of_sequence(keys, some);
  else
    each_of_iterable(keys, some);
  some.flush();
}

bool is_array(py::handle keys) { return is_arrow(keys) || PyObject_CheckBuffer(keys.ptr()) != 0; }

}  // namespace bloomery::python
