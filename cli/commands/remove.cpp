// bloomery remove FILTER: takes keys out of a counting filter.
//
//   $ printf 'bob\n' | bloomery remove users.bloom
//   bloomery: users.bloom: 1 key removed, 2 left with their copies, error now 0.0002 %
//
// The file changes as a whole, once all keys are read: killed or interrupted before, it is what it was, and the same
// command can be given again. Exit status: 0 all were removed, 1 some were not there, 2 an error.
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/file_edit.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <string>

namespace bloomery::cli {
namespace {

// Says it before a large file is loaded, and without its secret.
void want_counting(const std::string& path) {
  const inspection seen = inspect(path);
  if (seen.usable) check_can_remove(path, seen.info.parameters);  // else opening it will say what is wrong
}

}  // namespace

exit_status remove_keys(const remove_options& options) {
  if (is_shared(options.filter, options.server)) return remove_from_shared(options);
  check_not_an_input(options.filter, "remove", options.inputs);
  want_counting(options.filter);
  const bool quiet = options.common.quiet;
  file_edit edit = edit_counting(options.filter, options.secret, quiet);
  any_filter& filter = edit.filter();
  std::uint64_t keys = 0;
  std::uint64_t removed = 0;
  const pass_options pass{options.common.threads, options.common.progress && !quiet, "remove"};
  const bool finished = for_each_batch(
      filter, options.inputs, pass, [](key_batch&) {},
      [&](key_batch& batch) {
        removed += filter.remove_hashes(batch.hashes);
        keys += batch.keys.size();
        return true;
      });
  if (!finished) throw interrupted();

  const params p = filter.parameters();
  const std::uint64_t left = filter.size();
  const std::uint64_t refused = filter.counts().refused_removals;
  const double certified = filter.certified_rate();
  const std::uint64_t not_found = keys - removed;
  point_of_no_return();
  if (keys > 0) edit.commit();  // throws if the disk will not have it: nothing is reported that is not so
  const exit_status status = not_found == 0 ? exit_status::found : exit_status::nothing;
  if (not_found > 0) {
    say(fmt::format(
        "{}: warning: {} not there; only what was added may be removed. From now on the filter is {}; build it anew if "
        "that matters",
        options.filter, those_not_there(keys, not_found), taint_text(p, refused, certified)));
  }
  if (options.common.json) {
    output out(STDOUT_FILENO, "standard output");
    out.write(json_line({{"filter", options.filter},
                         {"keys", keys},
                         {"removed", removed},
                         {"not_found", not_found},
                         {"size", left},
                         {"rate", certified},
                         {"tainted", refused > 0},
                         {"refused_removals", refused},
                         {"unnoticed_removals", number_or_null(unnoticed_by_now(p, refused, certified))}}));
    out.flush();
  } else if (!quiet) {
    say(fmt::format("{}: {} removed, {} left with their copies, error now {}", options.filter, counted(removed, "key"),
                    count_text(left), rate_text(certified)));
  }
  return status;
}

}  // namespace bloomery::cli
