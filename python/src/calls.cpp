// Calls of the type Handle on many keys and on whole filters. The Python classes give them their public names.
#include "python/src/calls.hpp"

#include "python/src/batches.hpp"
#include "python/src/filter.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>

#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace py = pybind11;

namespace bloomery::python {
namespace {

// The function of NumPy that makes an array of answers, for keys in an array; None for other keys and without NumPy. It
// is looked up before the first key changes the filter.
py::object maker_of_arrays(py::handle keys) {
  if (!is_array(keys)) return py::none();
  try {
    return py::module_::import("numpy").attr("frombuffer");
  } catch (const py::error_already_set& e) {
    if (e.matches(PyExc_ImportError)) return py::none();
    throw;
  }
}

// One answer per key: an array of NumPy without a copy of the answers, or a list.
py::object as_result(const std::vector<std::uint8_t>& answers, const py::object& make_array) {
  if (!make_array.is_none()) {
    const py::object bytes = py::reinterpret_steal<py::object>(PyByteArray_FromStringAndSize(
        reinterpret_cast<const char*>(answers.data()), static_cast<Py_ssize_t>(answers.size())));
    if (!bytes) throw py::error_already_set();
    return make_array(bytes, "bool");
  }
  py::list result(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) result[i] = py::bool_(answers[i] != 0);
  return result;
}

std::uint64_t update(py::handle self, py::handle keys) {
  filter_state& f = state_of(self);
  std::uint64_t changed = 0;
  for_each_part(keys, f.kind, [&](key_span some) {
    changed += exclusively(f, [&](filter_handle& handle) { return handle.insert(some).changed; });
  });
  return changed;
}

py::object add_many(py::handle self, py::handle keys) {
  filter_state& f = state_of(self);
  const py::object make_array = maker_of_arrays(keys);
  std::vector<std::uint8_t> answers;
  for_each_part(keys, f.kind, [&](key_span some) {
    const std::size_t first = answers.size();
    answers.resize(first + some.size());
    exclusively(f, [&](filter_handle& handle) { return handle.insert(some, {answers.data() + first, some.size()}); });
  });
  for (std::uint8_t& answer : answers) answer = answer == 1 ? 1 : 0;  // maybe_new: not certain
  return as_result(answers, make_array);
}

py::object remove_many(py::handle self, py::handle keys) {
  filter_state& f = state_of(self);
  const py::object make_array = maker_of_arrays(keys);
  std::vector<std::uint8_t> answers;
  std::vector<removal> results;
  for_each_part(keys, f.kind, [&](key_span some) {
    results.assign(some.size(), removal::not_found);
    exclusively(f, [&](filter_handle& handle) { return handle.remove(some, results); });
    for (const removal result : results) answers.push_back(result == removal::removed ? 1 : 0);
  });
  return as_result(answers, make_array);
}

py::object contains_many(py::handle self, py::handle keys) {
  filter_state& f = state_of(self);
  const py::object make_array = maker_of_arrays(keys);
  std::vector<std::uint8_t> answers;
  std::vector<std::uint64_t> bitmap;
  for_each_part(keys, f.kind, [&](key_span some) {
    const std::size_t first = answers.size();
    bitmap.resize((some.size() + 63) / 64);
    answers.resize(first + some.size());
    while_unchanged(f, [&](filter_handle& handle) {
      handle.contains(some, bitmap);
      for (std::size_t i = 0; i < some.size(); ++i)
        answers[first + i] = static_cast<std::uint8_t>(bitmap[i / 64] >> i % 64 & 1);
    });
  });
  return as_result(answers, make_array);
}

[[noreturn]] void refuse_several_layers() {
  throw error(errc::incompatible, {"only a filter with one layer, in memory or in a file, has bytes", "", "", "",
                                   "save the filter and open its file"});
}

py::bytes to_bytes(py::handle self) {
  const std::vector<std::uint8_t> file = while_unchanged(state_of(self), [](filter_handle& handle) {
    if (handle.local() == nullptr) refuse_several_layers();
    return handle.local()->to_bytes();
  });
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

void copy_to(py::handle self, py::handle copy) {
  std::unique_ptr<filter_handle> made =
      while_unchanged(state_of(self), [](filter_handle& handle) { return make_handle(handle.copy()); });
  state_of(copy).take(std::move(made), true);
}

void save(py::handle self, const std::string& path, bool replace) {
  while_unchanged(state_of(self), [&](filter_handle& handle) { handle.save(path, {.replace = replace}); });
}

void merge(py::handle self, py::handle other) {
  exclusively(state_of(self), state_of(other), [](filter_handle& f, filter_handle& g) { f.merge(g); });
}

// The handle of a filter in memory is replaced: not every filter supports an intersection.
void intersect(py::handle self, py::handle other) {
  filter_state& f = state_of(self);
  exclusively(f, state_of(other), [&](filter_handle& a, filter_handle& b) {
    if (!f.in_memory) {
      throw error(errc::incompatible, {"only a filter in memory can be replaced by an intersection", "", "", "",
                                       "intersect a copy and save it"});
    }
    any_filter result = a.copy();
    if (b.local() == nullptr) refuse_several_layers();
    result.intersect(*b.local());
    f.handle = make_handle(std::move(result));
  });
}

bool equals(py::handle self, py::handle other) {
  return exclusively(state_of(self), state_of(other), [](filter_handle& a, filter_handle& b) {
    if (a.local() == nullptr || b.local() == nullptr) return &a == &b;
    return *a.local() == *b.local();
  });
}

// Ends the use of a filter. With `keep`, changes of its file are kept.
void close(py::handle self, bool keep) {
  filter_state& f = state_of(self);
  f.is_closed = true;
  f.is_direct = false;
  if (f.is_of_parent()) return;  // destroy() leaves the file to the parent
  const counted_call call(f);    // calls on one key take the lock, and find that the filter is closed
  const without_gil released;
  const std::unique_lock hold(f.lock);
  const std::unique_ptr<filter_handle> ended = std::move(f.handle);
  if (ended == nullptr) return;  // closed before, or by another thread
  const capabilities can = ended->capabilities();
  if (!f.in_memory && (keep || !can.commits_whole)) ended->commit();
}

// The class of the package that a filter belongs to.
const char* class_of_handle(py::handle self) {
  const bool in_memory = state_of(self).in_memory;
  return while_unchanged(state_of(self), [in_memory](filter_handle& handle) {
    const params& p = handle.parameters();
    const capabilities can = handle.capabilities();
    if (can.is_remote) return "RedisFilter";
    const bool has_log = p.log_id() != 0 && !in_memory;  // a file that is open for reading does not grow
    return can.grows || has_log || handle.local() == nullptr ? "ScalableFilter" : class_of(p);
  });
}

std::optional<std::uint64_t> count_of(py::handle self) {
  return exclusively(state_of(self), [](filter_handle& handle) {
    const filter_summary now = handle.summary();
    return now.count_is_estimate ? std::nullopt : now.insert_count;
  });
}

}  // namespace

void add_calls(const py::object& type) {
  const auto add = [&](const char* name, auto function) {
    type.attr(name) = py::cpp_function(function, py::name(name), py::is_method(type));
  };
  add("_update", update);
  add("_add_many", add_many);
  add("_remove_many", remove_many);
  add("_contains_many", contains_many);
  add("_to_bytes", to_bytes);
  add("_copy_to", copy_to);
  add("_save", save);
  add("_merge", merge);
  add("_intersect", intersect);
  add("_equals", equals);
  add("_close", close);
  add("_class", class_of_handle);
  add("_count", count_of);
  add("_clear", [](py::handle self) { exclusively(state_of(self), [](filter_handle& f) { f.clear(); }); });
  add("_tick",
      [](py::handle self, std::uint64_t now) { exclusively(state_of(self), [&](filter_handle& f) { f.tick(now); }); });
  add("_is_closed", [](py::handle self) { return state_of(self).is_closed; });
}

}  // namespace bloomery::python
