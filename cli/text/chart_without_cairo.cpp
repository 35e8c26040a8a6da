// Charts in a program built without cairo: BLOOMERY_BUILD_CHARTS=OFF.
#include "cli/text/chart.hpp"

#include <bloomery/error.hpp>

namespace bloomery::cli {

void require_charts() {
  throw error(errc::invalid_argument, {"this program was built without charts in files", "--output", "", "",
                                       "build it with cmake -DBLOOMERY_BUILD_CHARTS=ON, or leave out --output"});
}

std::string svg_of(const chart&) {
  require_charts();
  return {};
}

std::string png_of(const chart& c) { return svg_of(c); }

}  // namespace bloomery::cli
