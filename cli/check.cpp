// bloomery check FILTER: which of these keys may be in the filter?
//
//   $ printf 'alice\nmallory\n' | bloomery check users.bloom
//   alice
//
// Lines whose key may be present go out, in order (with -v, the certainly absent ones). Exit status as grep.
#include "commands.hpp"
#include "key_batch.hpp"
#include "screen.hpp"
#include "window.hpp"

namespace bloomery::cli {

exit_status check(const check_options& options) {
  check_output(options.inputs, options.filter);
  any_filter filter = open_filter(options.filter, options.secret);
  set_now(filter, options.now);
  if (!options.common.quiet) say_if_dirty(options.filter, *filter.opened_from());
  return screen(filter, {options.invert, options.count, options.inputs, options.common},
                [&](key_batch& batch) { look_up(filter, batch); }, {{"filter", options.filter}});
}

}  // namespace bloomery::cli
