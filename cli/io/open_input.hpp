// Opening of an input: recognizes its compression and refuses files that are not text.
#pragma once

#include "cli/io/byte_source.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace bloomery::cli {

struct reading_options {
  bool as_text = false;  ///< reads archives, and compressed data of other kinds, as if they were text
  bool quiet = false;    ///< does not report that keys are read from a terminal
};

/// The decompressed bytes of an input.
/// @param bytes_read, cancelled  as of raw_input
/// @throws error  not_found, not_permitted, io; invalid_argument: not a text file; damaged
std::unique_ptr<byte_source> open_input(const std::string& name, const reading_options& options,
                                        std::atomic<std::uint64_t>& bytes_read, int cancelled);

}  // namespace bloomery::cli
