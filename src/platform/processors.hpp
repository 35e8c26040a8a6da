// The number of processors, read from other folders by tests.
#pragma once

#include <bloomery/processors.hpp>

#include "platform/memory.hpp"

namespace bloomery {

/// available_processors(), with the control groups of these folders.
unsigned available_processors(const system_folders& from);

}  // namespace bloomery
