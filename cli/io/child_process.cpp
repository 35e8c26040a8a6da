#include "cli/io/child_process.hpp"

#include "app/signals.hpp"
#include "cli/io/system_error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <utility>

extern char** environ;

namespace bloomery::cli {
namespace {

struct pipe_ends {
  pipe_ends() {
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("create", "a pipe");
  }
  pipe_ends(const pipe_ends&) = delete;
  ~pipe_ends() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  int take(int which) noexcept { return std::exchange(ends[which], -1); }

  int ends[2] = {-1, -1};  // to read, to write
};

void set_nonblocking(int descriptor) { ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK); }

// The child starts with the default actions for the signals that this process ignores or handles.
void set_signals(posix_spawnattr_t& attributes) {
  sigset_t defaults, none;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP}) sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
}

// How the child ended; si_pid is 0 while it runs. The child stays a zombie, so that its number, which is also that of
// the process group, is not reused.
siginfo_t end_of(pid_t process) {
  siginfo_t end{};
  while (::waitid(P_PID, static_cast<id_t>(process), &end, WEXITED | WNOWAIT | WNOHANG) < 0 && errno == EINTR) continue;
  return end;
}

}  // namespace

child_process::child_process(const std::string& command) {
  pipe_ends in, out;
  std::string shell = "sh", option = "-c", text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&files, in.ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out.ends[1], STDOUT_FILENO);
  set_signals(attributes);
  const int problem = ::posix_spawn(&process_, "/bin/sh", &files, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (problem != 0) {
    errno = problem;
    fail("start", "/bin/sh");
  }
  input_ = in.take(1);
  output_ = out.take(0);
  set_nonblocking(input_);
  set_nonblocking(output_);
}

child_process::~child_process() {
  close_input();
  ::close(output_);
  ::kill(-process_, SIGKILL);  // also descendants that outlive the shell
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void child_process::close_input() noexcept {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

bool child_process::wait(std::chrono::milliseconds most) const {
  constexpr std::chrono::milliseconds step(2);
  for (std::chrono::milliseconds waited(0); end_of(process_).si_pid == 0; waited += step) {
    if (waited >= most || app::stop_signal() != 0) return false;
    ::poll(nullptr, 0, static_cast<int>(step.count()));
  }
  return true;
}

std::string child_process::ending() const {
  const siginfo_t end = end_of(process_);
  if (end.si_pid == 0) return "is still running";
  if (end.si_code == CLD_EXITED) return fmt::format("exited with status {}", end.si_status);
  return fmt::format("was ended by signal {} ({})", end.si_status, ::strsignal(end.si_status));
}

std::optional<int> child_process::exit_code() const {
  const siginfo_t end = end_of(process_);
  return end.si_pid != 0 && end.si_code == CLD_EXITED ? std::optional(end.si_status) : std::nullopt;
}

}  // namespace bloomery::cli
