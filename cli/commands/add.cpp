// bloomery add FILTER: puts more keys into a filter file, in place.
//
//   $ printf 'bob\n' | bloomery add users.bloom
//   bloomery: users.bloom: 1 key read, 1 new, 3 in all, error now 0.0002 %
//
// The file is mapped and locked; a second writer waits. Killed at any moment it opens again with every key added
// before.
#include "cli/commands/commands.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/logged.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace bloomery::cli {

exit_status add(const add_options& options) {
  if (is_shared(options.filter, options.server, {}, options.chain)) return add_to_shared(options);
  check_not_an_input(options.filter, "add", options.inputs);
  if (is_counting(options.filter)) return add_to_counting(options);
  if (keeps_log(options.filter)) return add_to_logged(options);
  any_filter filter =
      open_filter(options.filter, options.secret, access::read_write, bloomery::check::payload, wait_for_writer);
  const params parameters = filter.parameters();
  set_now(filter, options.now);
  const bool forgets = filter.window().has_value();
  const bool quiet = options.common.quiet;
  if (!quiet) say_if_dirty(options.filter, *filter.opened_from());
  std::uint64_t keys = 0;
  std::uint64_t fresh = 0;
  bool warned = filter.capacity() == 0;
  const pass_options pass{options.common.threads, options.common.progress && !quiet, "add"};
  const bool finished = for_each_batch(
      filter, options.inputs, pass, [](key_batch&) {},
      [&](key_batch& batch) {
        insert(filter, batch);
        keys += batch.keys.size();
        fresh += static_cast<std::uint64_t>(std::count(batch.is_new.begin(), batch.is_new.end(), std::uint8_t{1}));
        if (forgets) {
          warned = warned || warn_of_generations(options.filter, filter);
        } else if (!warned && filter.size() > filter.capacity()) {
          warned = true;
          say(fmt::format(
              "{}: warning: more keys than the {} it was made for; error now {} instead of {}; build a larger one",
              options.filter, count_text(filter.capacity()), rate_text(filter.false_positive_rate()),
              rate_text(parameters.target_rate)));
        }
        return true;
      });
  const std::uint64_t all = forgets ? filter.window()->keys_held() : filter.size();
  const double rate = filter.false_positive_rate();
  nlohmann::ordered_json window_facts_json = nlohmann::ordered_json::object();
  add_window(window_facts_json, filter);
  filter.close();  // throws if the disk will not have it: nothing is reported that is not there
  if (options.common.json) {
    nlohmann::ordered_json result = {
        {"filter", options.filter}, {"keys", keys}, {"new", fresh}, {"size", all}, {"rate", rate},
        {"complete", finished}};
    result.update(window_facts_json);
    output out(STDOUT_FILENO, "standard output");
    out.write(json_line(result));
    out.flush();
  } else if (!quiet) {
    say(fmt::format("{}: {}{} read, {} new, {} {}, error now {}", options.filter,
                    finished ? "" : "interrupted: ", counted(keys, "key"), count_text(fresh), count_text(all),
                    forgets ? "held" : "in all", rate_text(rate)));
  }
  return exit_status::found;
}

}  // namespace bloomery::cli
