// Filter files of other systems in JSON: bloom-filters and bloomfilter (npm), and bits-and-blooms (Go). docs/formats.md
// describes them.
#pragma once

#include <bloomery/added_formats.hpp>

namespace bloomery::app {

/// For add_formats().
///
/// Example:
///     add_formats(json_formats());
///     assert(find_file_format("bloom_filters")->schemes == "bloom_filters");
added_formats json_formats();

}  // namespace bloomery::app
