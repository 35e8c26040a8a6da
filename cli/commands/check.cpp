// bloomery check FILTER: which of these keys may be in the filter?
//
//   $ printf 'alice\nmallory\n' | bloomery check users.bloom
//   alice
//
// Lines whose key may be present go out, in order (with -v, the certainly absent ones). Exit status as grep.
#include "cli/commands/commands.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/screen.hpp"
#include "cli/io/key_batch.hpp"

namespace bloomery::cli {

exit_status check(const check_options& options) {
  check_output(options.inputs, options.filter);
  const std::unique_ptr<filter_handle> filter =
      open_handle({options.filter, options.secret, options.now, options.chain, options.server, options.common.quiet});
  return screen(lookups_in(*filter), {options.invert, options.count, options.inputs, options.common},
                {{"filter", shown_name(options.filter)}});
}

}  // namespace bloomery::cli
