#include "cli/io/open_input.hpp"

#include "app/signals.hpp"
#include "cli/io/decompress.hpp"
#include "cli/io/file_kinds.hpp"
#include "cli/io/raw_input.hpp"

#include <bloomery/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace bloomery::cli {

using namespace app;

namespace {

// Stops reading at the first byte that no known kind has, so that interactive input does not block.
const file_kind* kind_of(raw_input& input) {
  for (;;) {
    const recognition found = recognise(input.peeked());
    if (!found.needs_more) return found.kind;
    if (!input.peek_more()) return nullptr;
  }
}

[[noreturn]] void refuse_frame(const raw_input& input, const std::string& expected, const std::string& found) {
  throw error(errc::damaged, {"compressed data is damaged", shown_input(input.name()), expected, found, ""});
}

// A skippable frame is four bytes by which it is known, its length in four bytes, and bytes of that number.
void skip_frame(raw_input& input) {
  constexpr std::uint64_t header_bytes = 8;
  while (input.peeked().size() < header_bytes && input.peek_more()) {
  }
  std::uint64_t left = header_bytes;
  if (input.peeked().size() >= header_bytes) {
    for (int i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(input.peeked()[static_cast<std::size_t>(4 + i)]);
      left += std::uint64_t{byte} << (8 * i);
    }
  }
  std::vector<char> skipped(std::size_t{64} << 10);
  while (left > 0) {
    const std::size_t some = static_cast<std::size_t>(std::min<std::uint64_t>(left, skipped.size()));
    const std::size_t got = input.read({skipped.data(), some});
    if (got == 0 && stop_signal() == 0) refuse_frame(input, "the rest of a skippable frame", "the end of the input");
    if (got == 0) return;
    left -= got;
  }
}

// Explains on a terminal what the command is waiting for.
void tell_if_terminal(const std::string& name, bool quiet) {
  static bool told = false;
  if (quiet || name != standard_input || ::isatty(STDIN_FILENO) == 0 || std::exchange(told, true)) return;
  std::fputs("bloomery: reading keys from standard input, one per line; end with Ctrl-D\n", stderr);
}

}  // namespace

std::unique_ptr<byte_source> open_input(const std::string& name, const reading_options& options,
                                        std::atomic<std::uint64_t>& bytes_read, int cancelled) {
  tell_if_terminal(name, options.quiet);
  auto raw = std::make_unique<raw_input>(name, bytes_read, cancelled);
  const file_kind* kind = kind_of(*raw);
  const bool has_frame_to_skip = kind != nullptr && kind->is_skippable;
  for (; kind != nullptr && kind->is_skippable; kind = kind_of(*raw)) skip_frame(*raw);
  const std::optional<compression> format = kind == nullptr ? std::nullopt : kind->format;
  const bool has_frames = format == compression::zstd || format == compression::lz4;
  if (has_frame_to_skip && !has_frames && (!raw->peeked().empty() || raw->peek_more()))
    refuse_frame(*raw, "zstd or LZ4 data after a skippable frame", kind == nullptr ? "other data" : kind->name);
  if (format) return decompress(*format, name, std::move(raw));
  if (kind != nullptr && !options.as_text) refuse_kind(*kind, name);
  return raw;
}

}  // namespace bloomery::cli
