// bloomery playground in a program built without it: BLOOMERY_BUILD_PLAYGROUND=OFF.
#include "cli/playground.hpp"

#include <bloomery/error.hpp>

namespace bloomery::cli {

exit_status playground(const playground_options&) {
  throw error(errc::invalid_argument, {"this program was built without the playground", "bloomery playground", "", "",
                                       "build it with cmake -DBLOOMERY_BUILD_PLAYGROUND=ON"});
}

}  // namespace bloomery::cli
