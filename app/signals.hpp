// Ctrl-C and its kin: asked for politely, obeyed at the next batch, so that files are closed and temporaries removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

namespace bloomery::app {

/// Takes over SIGINT, SIGTERM and SIGHUP; a second one ends the process at once. SIGPIPE and SIGXFSZ are ignored, so
/// that writing fails with an error instead. A filter file that shrinks under its mapping ends the process with a
/// message, unless the reader has prepared for it by readable_while_cut.
void install_signal_handlers();

/// The signal that asked us to stop, or 0.
int stop_signal() noexcept;

/// A descriptor that becomes readable when a signal asks us to stop, for poll().
int stop_descriptor() noexcept;

/// Called just before the result of work that must be whole appears: a signal that came before throws interrupted, and
/// one that comes later is ignored, so that the exit status says which of the two it was.
/// @throws interrupted
void point_of_no_return();

/// Ends the process by this signal, as the shell expects. Returns only if the signal is blocked or ignored by
/// inheritance.
void die_of(int signal);

/// While it lives, these bytes of a file that is mapped for reading can be read to their end though somebody cuts the
/// file short meanwhile: what the file has no longer is zeros then. Any number of threads may read. For a program that
/// goes on; of more than 512 at a time the others end the process as before.
class readable_while_cut {
 public:
  explicit readable_while_cut(std::span<const std::uint8_t> bytes);
  readable_while_cut(const readable_while_cut&) = delete;
  readable_while_cut& operator=(const readable_while_cut&) = delete;
  ~readable_while_cut();  ///< before the bytes are unmapped

  bool was_cut() const noexcept;  ///< then what was read is worth nothing

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  std::size_t place_ = none;
};

/// Thrown where work that must be whole (a build) was asked to stop.
struct interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace bloomery::app
