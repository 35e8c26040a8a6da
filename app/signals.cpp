#include "app/signals.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>

namespace bloomery::app {
namespace {

std::atomic<int> received{0};
int wake[2] = {-1, -1};

void on_stop(int signal) {
  if (received.exchange(signal) != 0) _exit(128 + signal);
  const int before = errno;
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = ::write(wake[1], &byte, 1);
  errno = before;
}

// Bytes being read from a file that may be truncated meanwhile. end 0: the entry is free, or being acquired.
struct readable_bytes {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> cut{false};
};
std::array<readable_bytes, 512> all_readable;
std::uintptr_t page_bytes = 4096;

// Maps zeros over the missing part of the file. Async-signal-safe: only atomics and a system call.
bool becomes_zeros(std::uintptr_t address) {
  for (readable_bytes& bytes : all_readable) {
    const std::uintptr_t end = bytes.end.load();
    if (address < bytes.begin.load() || address >= end) continue;
    const std::uintptr_t page = address / page_bytes * page_bytes;
    bytes.cut = true;
    return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                  0) != MAP_FAILED;
  }
  return false;
}

void on_bus_error(int, siginfo_t* what, void*) {
  const int before = errno;
  const bool goes_on = becomes_zeros(reinterpret_cast<std::uintptr_t>(what->si_addr));
  errno = before;
  if (goes_on) return;
  static constexpr char text[] =
      "bloomery: a mapped filter file was truncated or became unreadable, or its disk is full\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, sizeof text - 1);
  _exit(2);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);  // no SA_RESTART: a blocked read must return
}

void handle_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

// Signals inherited as ignored (nohup, background jobs) stay ignored.
void handle_unless_ignored(int signal) {
  struct sigaction inherited {};
  ::sigaction(signal, nullptr, &inherited);
  if (inherited.sa_handler != SIG_IGN) handle(signal, on_stop);
}

}  // namespace

void install_signal_handlers() {
  if (::pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
  handle_unless_ignored(SIGINT);
  handle_unless_ignored(SIGTERM);
  handle_unless_ignored(SIGHUP);
  handle_bus_errors();
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

void end_at_once_when_stopped() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present {};
    ::sigaction(signal, nullptr, &present);
    if (present.sa_handler == on_stop) handle(signal, SIG_DFL);
  }
  if (stop_signal() != 0) throw interrupted();
}

int stop_signal() noexcept { return received.load(); }
int stop_descriptor() noexcept { return wake[0]; }

void point_of_no_return() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) handle(signal, SIG_IGN);
  if (stop_signal() != 0) throw interrupted();
}

void die_of(int signal) {
  handle(signal, SIG_DFL);
  ::raise(signal);
}

readable_while_cut::readable_while_cut(std::span<const std::uint8_t> bytes) {
  static const bool handled = [] {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    handle_bus_errors();
    return true;
  }();
  static_cast<void>(handled);
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  for (std::size_t i = 0; i < all_readable.size() && !bytes.empty(); ++i) {
    if (all_readable[i].taken.exchange(true)) continue;
    all_readable[i].cut = false;
    all_readable[i].begin = begin;
    all_readable[i].end = begin + bytes.size();
    place_ = i;
    return;
  }
}

readable_while_cut::~readable_while_cut() {
  if (place_ == none) return;
  all_readable[place_].end = 0;
  all_readable[place_].taken = false;
}

bool readable_while_cut::was_cut() const noexcept { return place_ != none && all_readable[place_].cut; }

}  // namespace bloomery::app
