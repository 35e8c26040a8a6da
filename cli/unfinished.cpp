// Commands that are declared and still to be written: one deed after another moves out of here.
#include "commands.hpp"

#include <bloomery/error.hpp>

namespace bloomery::cli {

exit_status rebuild(const rebuild_options&) { throw error(errc::invalid_argument, {"unfinished", "", "", "", ""}); }

}  // namespace bloomery::cli
