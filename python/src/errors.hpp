// Errors of the library as Python exceptions: the classes in bloomery/errors.py, one per error class.
#pragma once

#include <exception>

namespace bloomery::python {

/// Sets the Python exception for a C++ exception. Requires the GIL.
void set_python_error(std::exception_ptr thrown) noexcept;

}  // namespace bloomery::python
