// A new filter file whose payload is written in pieces, in any order, before its parameters are known.
#pragma once

#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include "file/new_filter_file.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace bloomery::format {

class payload_file {
 public:
  /// Creates the file without a name. Of the options it uses `metadata`, `replace`, `expected` and `no_lock`.
  /// @throws error  as save_file()
  payload_file(const std::string& path, const create_options& options);

  /// Writes bytes of the payload. Threads may write at once. Bytes that are never written are zero.
  /// @throws error  io
  void write(std::span<const std::uint8_t> bytes, std::uint64_t offset);

  /// Completes the file around the pieces, and gives it its name. Reads the payload again for the checksums.
  /// @throws error  as save_file()
  void publish(const params& parameters, const key_counts& counts);

 private:
  void complete(const params& parameters, const key_counts& counts);

  std::string path_;
  create_options options_;
  new_filter_file file_;
};

}  // namespace bloomery::format
