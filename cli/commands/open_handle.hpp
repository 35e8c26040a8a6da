// Opening of the filter that a command line names, of any kind.
#pragma once

#include "cli/commands/common.hpp"

#include <bloomery/filter_handle.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace bloomery::cli {

/// The options of the command line for opening a filter.
struct named_filter {
  std::string name;                       ///< a path or an address
  std::string secret = {};                ///< the file of its secret key; empty: none
  std::optional<std::uint64_t> now = {};  ///< --now; only for a file with a window
  chain_options chain = {};
  server_options server = {};
  bool quiet = false;
  bool facts_only = false;                   ///< as open_options::facts_only
  file_check check = file_check::automatic;  ///< as open_options::check, for reading
  bool takes_layers = false;                 ///< the command works on layered filters, which are not local()
  std::string column = {};                   ///< --column; of a Parquet file
};

/// Opens the filter. For writing, waits for another writer, verifies every page, and reserves the disk space that
/// commit() needs.
///
/// @param to_remove  refuses a filter from which keys cannot be removed, before opening it for writing
/// @throws error  as redis::open_filter; invalid_argument: options that the filter does not take
std::unique_ptr<filter_handle> open_handle(const named_filter& wanted, access mode = access::read_only,
                                           bool to_remove = false);

/// The name in messages and JSON: an address without its password.
std::string shown_name(const std::string& name);

}  // namespace bloomery::cli
