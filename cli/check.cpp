// bloomery check FILTER: which of these keys may be in the filter?
//
//   $ printf 'alice\nmallory\n' | bloomery check users.bloom
//   alice
//
// Lines whose key may be present go out, in order (with -v, the certainly absent ones). Exit status as grep.
#include "commands.hpp"
#include "key_batch.hpp"
#include "output.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace bloomery::cli {

exit_status check(const check_options& options) {
  check_output(options.inputs, options.filter);
  const any_filter filter = any_filter::open(options.filter);
  if (!options.common.quiet) say_if_dirty(options.filter, *filter.opened_from());
  output out(STDOUT_FILENO, "standard output");
  const bool prints = !options.count && !options.common.quiet && !options.common.json;
  std::uint64_t keys = 0;
  std::uint64_t selected = 0;
  const pass_options pass{options.common.threads,
                          options.common.progress && !options.common.quiet && !(prints && out.watched()), "check"};
  for_each_batch(
      filter, options.inputs, pass, [&](key_batch& batch) { look_up(filter, batch); },
      [&](key_batch& batch) {
        keys += batch.keys.size();
        for (std::size_t i = 0; i < batch.keys.size(); ++i) {
          if (batch.may_contain(i) == options.invert) continue;
          ++selected;
          if (!prints) continue;
          out.write(batch.lines[i]);
          out.write({options.inputs.nul_separated ? "\0" : "\n", 1});
        }
        if (out.watched() || batch.text.may_wait) out.flush();
        // As grep -q: the first one answers the question.
        return !(options.common.quiet && selected > 0);
      });
  if (options.common.json && !options.common.quiet) {
    const nlohmann::ordered_json result = {
        {"filter", options.filter}, {"keys", keys}, {options.invert ? "absent" : "maybe_present", selected}};
    out.write(json_line(result));
  } else if (options.count && !options.common.quiet) {
    out.write(fmt::format("{}\n", selected));
  }
  out.flush();
  return selected > 0 ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
