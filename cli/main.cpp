// The main program: parses the command line, runs one command, and converts errors to messages and exit statuses.
#include "app/json_formats.hpp"
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/parse.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/memory.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

namespace bloomery::cli {

// ---- the commands ---------------------------------------------------------------------------------------------------

// Each command is a file in commands/. The order and the groups are those of --help.
// clang-format off
#define BLOOMERY_COMMANDS(group, command) \
  group("Create")    command(plan) command(build) command(seal) \
  group("Use")     command(add) command(check) command(dedup) command(remove) \
  group("Inspect")    command(info) command(verify) command(explain) \
  group("Combine") command(union) command(intersect) command(overlap) command(fold) command(import) command(export) \
  group("Share")   command(pull) command(push) command(redis) \
  group("Explore")     command(playground) command(analyze) \
  group("More")    command(keygen) command(noisy) command(rebuild) command(completion) command(help)
// clang-format on

#define BLOOMERY_NO_GROUP(title)
#define BLOOMERY_DECLARE(name) void add_##name(command_line& line);
BLOOMERY_COMMANDS(BLOOMERY_NO_GROUP, BLOOMERY_DECLARE)

namespace {

// ---- running --------------------------------------------------------------------------------------------------------

// The library falls back to the best kernels; the command reports that the requested ones are not available.
void refuse_wrong_kernels() {
  const kernel_choice choice = kernel_info();
  if (!choice.refused) return;
  std::string names;
  for (const kernel_description& set : kernel_list()) {
    if (set.name == choice.requested) {
      throw error(errc::invalid_argument,
                  {"this processor cannot run the kernels " + set.name, "BLOOMERY_KERNEL",
                   "a processor with " + set.needs, "a processor without some of these", hint::unset_kernel});
    }
    if (set.supported) names += (names.empty() ? "" : ", ") + set.name;
  }
  throw error(errc::invalid_argument, {"these kernels are not available on this machine", "BLOOMERY_KERNEL",
                                       "one of " + names, "'" + choice.requested + "'", hint::unset_kernel});
}

exit_status run(int argc, char** argv) {
  add_formats(app::json_formats());
  command root("bloomery", "Bloom filters in files and on Redis");
  root.footer(
      "Run 'bloomery help COMMAND' to list the options of a command.\n"
      "Numbers may be written as 100M, 64MiB, 1%, 1e-4 or '1 in 1000'.\n"
      "Exit status: 0 on success, 1 for a negative result, 2 on error, 3 if the command succeeded but a filter exceeds "
      "its target false-positive rate (FPR).");
  command_line line{root};
#define BLOOMERY_GROUP(title) root.heading(title);
#define BLOOMERY_ADD(name) add_##name(line);
  BLOOMERY_COMMANDS(BLOOMERY_GROUP, BLOOMERY_ADD)
  add_color(root);

  const request asked = parse(root, {argv + std::min(argc, 1), argv + argc});
  if (asked.what == request::kind::list) {
    say_error((asked.verb->parent() == nullptr ? "" : asked.verb->name() + ": ") + "missing command");
    std::fputs(("\n" + help_of(*asked.verb)).c_str(), stderr);
    return exit_status::error;
  }
  if (asked.what != request::kind::run) {
    output out(STDOUT_FILENO, "standard output");
    out.write(asked.what == request::kind::version ? "bloomery " BLOOMERY_VERSION "\n" : help_of(*asked.verb));
    out.flush();
    return exit_status::found;
  }
  for (const input_options* inputs : line.inputs) check(*inputs);
  refuse_wrong_kernels();
  install_signal_handlers();
  const exit_status status = asked.verb->run();
  for (const input_options* inputs : line.inputs) say_notes(*inputs->notes);
  return status;
}

int report(const std::string& text) {
  say_error(text);
  return static_cast<int>(exit_status::error);
}

int guarded(int argc, char** argv) {
  know_words({argv, static_cast<std::size_t>(argc)});
  try {
    const exit_status status = run(argc, argv);
    // The work ended early after a signal: end by that signal, so that the shell sees it.
    if (stop_signal() != 0) die_of(stop_signal());
    return static_cast<int>(status);
  } catch (const interrupted&) {
    die_of(stop_signal());
    return report("interrupted");
  } catch (const reader_gone&) {
    die_of(SIGPIPE);
    return static_cast<int>(exit_status::error);
  } catch (const std::bad_alloc&) {
    const memory_budget left = available_memory();
    return report(fmt::format("out of memory: {} available ({}); use fewer keys or a higher false-positive rate",
                              bytes_text(left.bytes), name_of(left.limit)));
  } catch (const error& e) {
    const int status = report(sentence_of(e));
    if (stop_signal() != 0) die_of(stop_signal());  // an interrupted exchange with a server
    return status;
  } catch (const std::exception& e) {
    const int status = report(e.what());
    if (stop_signal() != 0) die_of(stop_signal());  // an interrupted exchange with a server
    return status;
  }
}

}  // namespace
}  // namespace bloomery::cli

namespace {

// Opens /dev/null for each closed standard stream (<&-). Otherwise the descriptor of a filter's file could become
// stderr and be overwritten by messages. The mode is the wrong one, so that using the stream is an error.
void fill_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    const int wrong_way = fd == 0 ? O_WRONLY : O_RDONLY;
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", wrong_way) != fd) std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  return bloomery::cli::guarded(argc, argv);
}
