// What a filter reports about itself, and plans of filters, as Python dictionaries.
#include "python/src/calls.hpp"
#include "python/src/filter.hpp"

#include <bloomery/advice.hpp>
#include <bloomery/filter_facts.hpp>

#include <pybind11/stl.h>

#include <string>

namespace py = pybind11;

namespace bloomery::python {
namespace {

py::dict facts(py::handle self, bool read_bits) {
  bool grows = false;
  const filter_facts facts = exclusively(state_of(self), [&](filter_handle& handle) {
    grows = handle.capabilities().grows;
    return handle.info(read_bits ? info_depth::bits : info_depth::counts);
  });
  const params& p = facts.parameters;
  py::dict result;
  result["layout"] = p.layout;
  result["scheme"] = p.scheme;
  result["hash"] = p.hash;
  result["keys"] = name_of(p.keys);
  result["seed"] = p.seed;
  result["is_keyed"] = p.key_check != 0;
  result["capacity"] = grows ? py::object(py::none()) : py::object(py::int_(p.capacity));
  result["target_fpr"] = p.target_fpr;
  result["bits"] = facts.bits;
  result["bytes"] = facts.bytes;
  result["probes"] = p.geometry.probes;
  result["insert_count"] = facts.insert_count;
  result["count_is_estimate"] = facts.count_is_estimate;
  result["distinct_keys"] = facts.distinct_keys;
  result["expected_fpr"] = facts.expected_fpr;
  if (!read_bits) return result;
  result["current_fpr"] = facts.fill ? py::object(py::float_(facts.fill->current_fpr)) : py::object(py::none());
  const bool has_cells = facts.fill && facts.fill->cells != 0;
  result["fill_ratio"] = has_cells ? py::object(py::float_(facts.fill->fill_ratio())) : py::object(py::none());
  const bool is_estimated = facts.fill && facts.fill->estimated_keys;
  result["approx_items"] = is_estimated ? facts.fill->estimated_keys->value : static_cast<double>(facts.distinct_keys);
  return result;
}

py::dict as_dict(const option& o) {
  py::dict result;
  result["structure"] = name_of(o.take);
  result["layout"] = o.layout();
  result["hash"] = o.parameters.hash;
  result["keys"] = o.for_keys;
  result["bytes"] = o.bytes;
  result["disk_bytes"] = o.disk_bytes;
  result["bits_per_key"] = o.bits_per_key;
  result["worst_bits_per_key"] = o.worst_bits_per_key;
  result["fpr"] = o.rate;
  result["cache_lines"] = o.lines;
  return result;
}

py::dict plan(std::uint64_t keys, std::uint64_t most_keys, double fpr, bool grows, bool deletes, bool is_static,
              std::uint64_t window_keys, std::uint64_t window_ms, bool log, std::uint64_t memory_bytes, bool threat,
              bool prefer_memory, bool integers) {
  requirements wanted;
  wanted.keys = keys;
  wanted.most_keys = most_keys;
  wanted.rate = fpr;
  wanted.grows = grows;
  wanted.deletes = deletes;
  wanted.sealed = is_static;
  if (window_keys != 0) wanted.window = window_of_keys(window_keys);
  if (window_ms != 0) wanted.window = window_of_milliseconds(window_ms);
  wanted.log = log;
  wanted.memory_bytes = memory_bytes;
  wanted.threat = threat;
  wanted.prefer = prefer_memory ? preference::memory : preference::speed;
  wanted.kind = integers ? key_kind::u64le : key_kind::bytes;
  const advice chosen = [&] {
    const without_gil released;
    return advise(wanted);
  }();
  py::dict result = as_dict(chosen.taken);
  result["needs_secret"] = chosen.needs_secret;
  py::list others;
  for (const option& other : chosen.passed_over) {
    if (other.possible()) others.append(as_dict(other));
  }
  result["alternatives"] = others;
  return result;
}

}  // namespace

void add_facts(py::module_& m, const py::object& type) {
  type.attr("_facts") = py::cpp_function(facts, py::name("_facts"), py::is_method(type));
  m.def("plan", plan, py::arg("keys"), py::arg("most_keys"), py::arg("fpr"), py::arg("grows"), py::arg("deletes"),
        py::arg("is_static"), py::arg("window_keys"), py::arg("window_ms"), py::arg("log"), py::arg("memory_bytes"),
        py::arg("threat"), py::arg("prefer_memory"), py::arg("integers"));
}

}  // namespace bloomery::python
