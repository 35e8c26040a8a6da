// The module _bloomery: a layer over filter_handle without decisions of its own. The package bloomery is built on it.
#include "python/src/calls.hpp"
#include "python/src/errors.hpp"
#include "python/src/filter.hpp"

#include <pybind11/pybind11.h>

#include <exception>
#include <utility>

namespace py = pybind11;
using namespace bloomery::python;

PYBIND11_MODULE(_bloomery, m) {
  py::options options;
  options.disable_function_signatures();
  m.doc() = "The library bloomery behind the package bloomery.";
  m.attr("version") = BLOOMERY_VERSION;
  m.attr("has_servers") = py::bool_(BLOOMERY_WITH_REDIS);
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    if (thrown) set_python_error(std::move(thrown));
  });
  const py::object type = add_handle_type(m);
  add_calls(type);
  add_makers(m, type);
  add_facts(m, type);
}
