// bloomery check FILTER: which of these keys may be in the filter?
//
//   $ printf 'alice\nmallory\n' | bloomery check users.bloom
//   alice
//
// Lines whose key may be present go out, in order (with -v, the certainly absent ones). Exit status as grep.
#include "cli/commands/commands.hpp"
#include "cli/commands/screen.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/key_batch.hpp"

namespace bloomery::cli {
namespace {

exit_status check_shared(const check_options& options) {
  if (is_chain(options.chain)) return check_chain(options);
  const redis_address address = redis_address::parse(options.filter);
  refuse_time(options.now);
  check_output(options.inputs, "");
  redis_filter filter = open_shared(address, options.server, options.secret, options.common.quiet);
  return screen(lookups_in(filter), {options.invert, options.count, options.inputs, options.common},
                {{"filter", address.text()}});
}

}  // namespace

exit_status check(const check_options& options) {
  if (is_shared(options.filter, options.server, {}, options.chain)) return check_shared(options);
  check_output(options.inputs, options.filter);
  any_filter filter = open_filter(options.filter, options.secret);
  set_now(filter, options.now);
  if (!options.common.quiet) say_if_dirty(options.filter, *filter.opened_from());
  return screen(lookups_in(filter), {options.invert, options.count, options.inputs, options.common},
                {{"filter", options.filter}});
}

}  // namespace bloomery::cli
