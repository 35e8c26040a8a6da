// The functions that module.cpp adds to the module and to its type Handle.
#pragma once

#include <pybind11/pybind11.h>

namespace bloomery::python {

void add_calls(const pybind11::object& type);                         ///< many keys, whole filters: calls.cpp
void add_makers(pybind11::module_& m, const pybind11::object& type);  ///< parameters, making and opening: make.cpp
void add_facts(pybind11::module_& m, const pybind11::object& type);   ///< what filters report, plans: facts.cpp

}  // namespace bloomery::python
