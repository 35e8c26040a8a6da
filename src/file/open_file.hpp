// open_file: an open filter file whose header has been checked, before it is mapped or read.
#pragma once

#include <bloomery/mapped_storage.hpp>

#include "file/format.hpp"
#include "platform/posix.hpp"

#include <string>

namespace bloomery::format {

struct open_file {
  decoded fields;
  posix::descriptor file;  ///< locked if it was opened for writing

  const params& parameters() const noexcept { return fields.info.parameters; }
};

/// Opens the file and reads its header. For writing, it cleans up after killed processes and locks the file first. Of
/// the options it uses `mode`, `waiting` and `no_lock`. @throws error  as mapped_storage::open
open_file open(const std::string& path, const open_options& options);

/// Reads the file into memory. @throws error  as load_file()
loaded_file load(const open_file& file, const std::string& path);

}  // namespace bloomery::format
