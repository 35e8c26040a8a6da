#include "cli/commands/screen.hpp"

#include "cli/io/csv_header_printer.hpp"
#include "cli/io/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace bloomery::cli {

exit_status screen(const lookup_pass& ask, const screen_options& options, nlohmann::ordered_json about) {
  const common_options& common = options.common;
  output out(STDOUT_FILENO, "standard output");
  const bool prints = !options.count && !common.quiet && !common.json;
  std::uint64_t keys = 0;
  std::uint64_t selected = 0;
  const pass_options pass{common.threads, common.progress && !common.quiet && !(prints && out.watched()), "check"};
  csv_header_printer header;
  ask(options.inputs, pass, [&](key_batch& batch) {
    if (prints) header.print(batch.text, out);
    keys += batch.keys.size();
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      if (batch.may_contain(i) == options.invert) continue;
      ++selected;
      if (!prints) continue;
      if (options.before) out.write(options.before(batch.keys[i]));
      out.write(batch.lines[i]);
      out.write({options.inputs.nul_separated ? "\0" : "\n", 1});
    }
    if (out.watched() || batch.text.may_wait) out.flush();
    // As with grep -q, the first selected line is enough.
    return !(common.quiet && selected > 0);
  });
  if (common.json && !common.quiet) {
    about["keys"] = keys;
    about[options.invert ? "absent" : "maybe_present"] = selected;
    out.write(json_line(about));
  } else if (options.count && !common.quiet) {
    out.write(fmt::format("{}\n", selected));
  }
  out.flush();
  return selected > 0 ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
