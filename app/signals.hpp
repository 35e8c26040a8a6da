// Signal handling: SIGINT and similar signals stop work at the next batch, so that files are closed and temporary files
// removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

namespace bloomery::app {

/// Installs handlers for SIGINT, SIGTERM and SIGHUP; a second signal ends the process at once. SIGPIPE and SIGXFSZ are
/// ignored, so writes fail with an error instead. Truncation of a mapped filter file ends the process with a message,
/// except for bytes covered by readable_while_cut.
void install_signal_handlers();

/// From now on these signals end the process at once: for work that only reads and leaves nothing half done.
void end_at_once_when_stopped();

/// The stop signal received, or 0.
int stop_signal() noexcept;

/// A descriptor for poll() that becomes readable on a stop signal.
int stop_descriptor() noexcept;

/// Called just before a complete result is published: throws if a signal has arrived; later signals are ignored, so the
/// exit status tells whether the result was published.
/// @throws interrupted
void point_of_no_return();

/// Ends the process by this signal, as shells expect. Returns only if the signal is blocked or was inherited as
/// ignored.
void die_of(int signal);

/// Makes a range of a mapped file readable during its lifetime even if another process truncates the file: missing
/// bytes read as zeros. Any number of threads may read. For programs that must continue; at most 512 objects at a time
/// are effective.
class readable_while_cut {
 public:
  explicit readable_while_cut(std::span<const std::uint8_t> bytes);
  readable_while_cut(const readable_while_cut&) = delete;
  readable_while_cut& operator=(const readable_while_cut&) = delete;
  ~readable_while_cut();  ///< must run before the bytes are unmapped

  bool was_cut() const noexcept;  ///< whether the bytes read are invalid

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  std::size_t place_ = none;
};

/// Thrown when a signal stops work whose partial result is useless, such as a build.
struct interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace bloomery::app
