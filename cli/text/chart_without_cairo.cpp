// Charts in a program built without cairo: BLOOMERY_BUILD_CHARTS=OFF.
#include "cli/text/chart.hpp"

#include <bloomery/error.hpp>

namespace bloomery::cli {
namespace {

[[noreturn]] void refuse() {
  throw error(errc::invalid_argument, {"this program was built without charts in files", "--output", "", "",
                                       "build it with cmake -DBLOOMERY_BUILD_CHARTS=ON, or leave out --output"});
}

}  // namespace

void require_charts() { refuse(); }

std::string svg_of(const chart&) { refuse(); }

std::string png_of(const chart&) { refuse(); }

}  // namespace bloomery::cli
