// The Arrow C data interface: the structs as its specification defines them, and the checks of untrusted arrays.
//
//   https://arrow.apache.org/docs/format/CDataInterface.html
#include "python/src/arrow.hpp"

#include "python/src/filter.hpp"
#include "python/src/part.hpp"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace py = pybind11;

namespace bloomery::python {
namespace {

struct arrow_schema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  arrow_schema** children;
  arrow_schema* dictionary;
  void (*release)(arrow_schema*);
  void* private_data;
};

struct arrow_array {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  arrow_array** children;
  arrow_array* dictionary;
  void (*release)(arrow_array*);
  void* private_data;
};

struct arrow_stream {
  int (*get_schema)(arrow_stream*, arrow_schema*);
  int (*get_next)(arrow_stream*, arrow_array*);
  const char* (*get_last_error)(arrow_stream*);
  void (*release)(arrow_stream*);
  void* private_data;
};

/// A struct that another party filled in for this scope.
template <class Struct>
struct owned : Struct {
  owned() : Struct{} {}
  ~owned() {
    if (this->release != nullptr) this->release(this);
  }
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
};

[[noreturn]] void refuse(const std::string& why) { throw py::value_error("Arrow array: " + why); }

/// Moves the struct out of its capsule, as the specification prescribes: no other consumer can release it.
template <class Struct>
void take_from_capsule(py::handle capsule, const char* name, owned<Struct>& to) {
  auto* const found = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (found == nullptr) throw py::error_already_set();
  if (found->release == nullptr) refuse("its " + std::string(name) + " was released before");
  static_cast<Struct&>(to) = *found;
  found->release = nullptr;
}

// ---- one array ------------------------------------------------------------------------------------------------------

// An array whose sizes are checked.
class array_view {
 public:
  array_view(const arrow_array& a, std::int64_t buffers) : array_(a) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 64;
    if (a.length < 0 || a.offset < 0 || a.length > most || a.offset > most)
      refuse("its length or offset is out of range");
    if (a.n_buffers != buffers || a.buffers == nullptr) {
      refuse("expected " + std::to_string(buffers) + " buffers, found " + std::to_string(a.n_buffers));
    }
    refuse_nulls();
  }

  std::size_t size() const noexcept { return static_cast<std::size_t>(array_.length); }
  std::size_t first() const noexcept { return static_cast<std::size_t>(array_.offset); }

  /// A buffer, which may be absent in an empty array.
  const void* buffer(std::size_t i) const {
    if (array_.buffers[i] == nullptr && size() != 0) refuse("buffer " + std::to_string(i) + " is missing");
    return array_.buffers[i];
  }
  const void* optional_buffer(std::size_t i) const noexcept { return array_.buffers[i]; }

 private:
  void refuse_nulls() const {
    const auto* const valid = static_cast<const std::uint8_t*>(array_.buffers[0]);
    if (array_.null_count == 0) return;
    if (valid == nullptr) {
      if (array_.null_count > 0) refuse("it has nulls, but no bitmap that shows them");
      return;
    }
    for (std::size_t i = 0; i < size(); ++i) {
      const std::size_t bit = first() + i;
      if ((valid[bit / 8] >> (bit % 8) & 1) == 0)
        refuse("key " + std::to_string(i) + " is null; remove nulls before, for example with drop_null()");
    }
  }

  const arrow_array& array_;
};

template <class Offset>
void each_text(const array_view& keys, part_of_keys receive) {
  const auto* const given = static_cast<const Offset*>(keys.buffer(1));
  if (keys.size() == 0) return;
  const Offset* const offsets = given + keys.first();
  const auto* const data = static_cast<const char*>(keys.optional_buffer(2));
  const Offset last = offsets[keys.size()];
  if (data == nullptr && last != 0) refuse("buffer 2 is missing");
  part some(key_kind::bytes, receive);
  Offset begin = offsets[0];
  if (begin < 0) refuse("the first offset is negative");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Offset end = offsets[i + 1];
    if (end < begin || end > last) {
      refuse("key " + std::to_string(i) + ": offset " + std::to_string(end) + " is not between " +
             std::to_string(begin) + " and " + std::to_string(last));
    }
    some.add_view({data + begin, static_cast<std::size_t>(end - begin)});
    begin = end;
  }
  some.flush();
}

void each_of_width(const array_view& keys, std::string_view digits, part_of_keys receive) {
  std::size_t width = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), width);
  if (problem != std::errc() || end != digits.data() + digits.size() ||
      width > std::numeric_limits<std::int32_t>::max()) {
    refuse("the width '" + std::string(digits) + "' is not a number of bytes");
  }
  const auto* const data = static_cast<const char*>(keys.buffer(1));
  part some(key_kind::bytes, receive);
  for (std::size_t i = 0; i < keys.size(); ++i) some.add_view({data + (keys.first() + i) * width, width});
  some.flush();
}

template <class Integer>
void each_number(const array_view& keys, key_kind kind, part_of_keys receive) {
  const auto* const data = static_cast<const char*>(keys.buffer(1));
  if (keys.size() == 0) return;
  each_integer<Integer>(data + keys.first() * sizeof(Integer), keys.size(), sizeof(Integer), kind, receive);
}

void each_of_array(const arrow_schema& schema, const arrow_array& array, key_kind kind, part_of_keys receive) {
  const std::string_view format = schema.format == nullptr ? "" : schema.format;
  if (schema.dictionary != nullptr || array.dictionary != nullptr)
    throw py::type_error("Arrow array: a dictionary; decode it before");
  const bool is_text = format == "u" || format == "z" || format == "U" || format == "Z" || format.starts_with("w:");
  if (is_text && kind == key_kind::u64le)
    throw py::type_error("key: expected int for a filter of integers, found Arrow format '" + std::string(format) +
                         "'");
  if (format.starts_with("w:")) return each_of_width(array_view(array, 2), format.substr(2), receive);
  if (format == "u" || format == "z") return each_text<std::int32_t>(array_view(array, 3), receive);
  if (format == "U" || format == "Z") return each_text<std::int64_t>(array_view(array, 3), receive);
  if (format.size() == 1) {
    switch (format[0]) {
      case 'c': return each_number<std::int8_t>(array_view(array, 2), kind, receive);
      case 'C': return each_number<std::uint8_t>(array_view(array, 2), kind, receive);
      case 's': return each_number<std::int16_t>(array_view(array, 2), kind, receive);
      case 'S': return each_number<std::uint16_t>(array_view(array, 2), kind, receive);
      case 'i': return each_number<std::int32_t>(array_view(array, 2), kind, receive);
      case 'I': return each_number<std::uint32_t>(array_view(array, 2), kind, receive);
      case 'l': return each_number<std::int64_t>(array_view(array, 2), kind, receive);
      case 'L': return each_number<std::uint64_t>(array_view(array, 2), kind, receive);
      default: break;
    }
  }
  throw py::type_error("Arrow array: expected utf8, binary or integers, found format '" + std::string(format) +
                       "'; cast it before");
}

// ---- the interface of Python ----------------------------------------------------------------------------------------

void each_of_stream(py::handle capsule, key_kind kind, part_of_keys receive) {
  owned<arrow_stream> stream;
  take_from_capsule<arrow_stream>(capsule, "arrow_array_stream", stream);
  const auto check = [&](int code) {
    if (code == 0) return;
    const char* const text = stream.get_last_error(&stream);
    refuse(std::string("the stream failed: ") + (text == nullptr ? std::strerror(code) : text));
  };
  owned<arrow_schema> schema;
  // A stream may wait for threads that need the GIL.
  const auto without = [](auto call) {
    const without_gil released;
    return call();
  };
  check(without([&] { return stream.get_schema(&stream, &schema); }));
  while (true) {
    owned<arrow_array> next;
    check(without([&] { return stream.get_next(&stream, &next); }));
    if (next.release == nullptr) return;
    each_of_array(schema, next, kind, receive);
  }
}

}  // namespace

bool is_arrow(py::handle keys) {
  return py::hasattr(keys, "__arrow_c_array__") || py::hasattr(keys, "__arrow_c_stream__");
}

void each_of_arrow(py::handle keys, key_kind kind, part_of_keys receive) {
  if (!py::hasattr(keys, "__arrow_c_array__"))
    return each_of_stream(py::object(keys.attr("__arrow_c_stream__")()), kind, receive);
  const py::object both = keys.attr("__arrow_c_array__")();
  if (!PyTuple_Check(both.ptr()) || PyTuple_GET_SIZE(both.ptr()) != 2) refuse("expected a schema and an array");
  owned<arrow_schema> schema;
  owned<arrow_array> array;
  take_from_capsule<arrow_schema>(PyTuple_GET_ITEM(both.ptr(), 0), "arrow_schema", schema);
  take_from_capsule<arrow_array>(PyTuple_GET_ITEM(both.ptr(), 1), "arrow_array", array);
  each_of_array(schema, array, kind, receive);
}

}  // namespace bloomery::python
