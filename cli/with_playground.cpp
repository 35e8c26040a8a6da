// bloomery playground [FILTER...]: serves a web page that shows how filters work and inspects filters of the user.
//
//   $ bloomery playground seen.bloom
//   http://127.0.0.1:25666/
#include "app/signals.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"
#include "cli/playground.hpp"
#include "cli/text/error_text.hpp"
#include "playground/api/api.hpp"
#include "playground/host/inspect_filter.hpp"
#include "playground/http/admission.hpp"
#include "playground/http/page_files.hpp"
#include "playground/http/server.hpp"

#include <bloomery/error.hpp>
#include <bloomery/processors.hpp>
#include <bloomery/redis/handle.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

extern char** environ;

namespace bloomery::cli {
namespace {

// Opens a browser if there is a desktop.
void open_browser(const std::string& url) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) {
    say("no desktop found; open the address above in a browser");
    return;
  }
  std::string name = "xdg-open";
  std::string address = url;
  char* const arguments[] = {name.data(), address.data(), nullptr};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, name.c_str(), &files, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (problem != 0) return say("no browser could be started; open the address above in a browser");
  // Reap the process that opens the browser, which would remain as a zombie.
  std::thread([child] {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  }).detach();
}

redis::open_options options_for(const std::string& name, const playground_options& options) {
  const bool on_server = is_shared(name, options.server);
  redis::open_options result;
  result.secret = secret_of(options.secret);
  if (!on_server) return result;
  result.connection = connection_of(options.server);
  if (!options.server.milliseconds) result.connection.time = bloomery::playground::usual_server_time;
  result.wait_replicas = static_cast<unsigned>(options.server.wait_replicas);
  return result;
}

}  // namespace

exit_status playground(const playground_options& options) {
  const bool for_others = !bloomery::playground::http::is_this_machine(options.host);
  if (for_others && !options.secret.empty()) {
    throw error(errc::invalid_argument, {"a filter with a secret must not be served to other machines", "--host",
                                         "an address of this machine only", options.host,
                                         "leave out --host and use ssh -L from other machines, or leave out --secret"});
  }
  std::vector<std::unique_ptr<bloomery::playground::inspection>> inspections;
  for (const std::string& name : options.filters) {
    inspections.push_back(bloomery::playground::inspect_filter(name, options_for(name, options)));
    if (const auto problem = bloomery::playground::first_problem_of(name)) say("warning: " + sentence_of(*problem));
  }
  bloomery::playground::api answers({.inspections = std::move(inspections), .threads = available_processors()});
  using bloomery::playground::http::server;
  const auto port = static_cast<std::uint16_t>(options.port);
  server serving(answers, options.host, options.has_port ? std::optional(port) : std::nullopt);
  output out(STDOUT_FILENO, "standard output");
  out.write(serving.url() + "\n");
  out.flush();
  if (!options.has_port && serving.port() != server::usual_port)
    say(fmt::format("port {} is in use, so the browser may not find its settings; listening on port {}",
                    server::usual_port, serving.port()));
  if (bloomery::playground::page_files().empty()) {
    say("this program was built without the web page; only the API is available (docs/playground-api.md)");
  }
  if (options.open) open_browser(serving.url());
  if (for_others)
    say("warning: everyone who can reach this machine can open the page and look up keys in the given filters");
  say("press Ctrl-C to stop");
  pollfd stop{stop_descriptor(), POLLIN, 0};
  while (stop_signal() == 0) {
    if (::poll(&stop, 1, -1) < 0 && errno != EINTR) throw error(errc::io, {"cannot wait for signals", "", "", "", ""});
  }
  serving.stop();
  return exit_status::found;
}

}  // namespace bloomery::cli
