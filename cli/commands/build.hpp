// Options of build, for its files: a filter in a file (build.cpp), a filter on Redis (redis_add.cpp) and a Guava chain
// (redis_chain.cpp).
#pragma once

#include "cli/commands/options.hpp"

#include <string>

namespace bloomery::cli {

struct build_options {
  std::string filter;
  making_options wanted;
  std::string note;          ///< stored in the file as metadata
  bool foldable = false;     ///< blocks rounded up to a multiple of 64
  bool allow_empty = false;  ///< an empty filter may replace another
  sharing_options sharing;
  server_options server;
  input_options inputs;
  common_options common;
};

/// Refuses options that only filters in files have. @throws error invalid_argument
void refuse_what_files_have(const build_options& options);

exit_status build_shared(const build_options& options);
exit_status build_chain(const build_options& options);

}  // namespace bloomery::cli
