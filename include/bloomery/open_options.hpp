// open_options: how a filter is opened, the same for any_filter, rebuilding_filter, file_edit and open_filter().
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/secret.hpp>

#include <functional>
#include <optional>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// How a filter is opened. A call ignores what does not apply to it: a filter that is read into memory has no mode.
///
/// Example:
///     const secret_key key = random_secret();
///     any_filter keyed(complete({.capacity = 1000, .target_fpr = 0.01, .secret = key}));
///     keyed.save("keyed.bloom");
///     any_filter file = any_filter::open("keyed.bloom", {.mode = access::read_write, .secret = key});
///     assert(file.insert("Madrid"));
struct open_options {
  access mode = access::read_only;
  file_check check = file_check::header;  ///< file_check::payload: every page is compared with its checksum, and every
                                          ///< record of a log
  std::function<void(const std::string& path)> waiting = {};  ///< read_write: called many times a second while another
                                                              ///< process writes, may throw to give up; empty:
                                                              ///< errc::locked
  std::optional<secret_key> secret = {};                      ///< of a keyed filter; an error for all other filters
  window_clock clock = {};                                    ///< of a sliding-window filter; empty: the system's
  std::function<void(const std::string&)> notes = {};         ///< called with what was repaired, also later
  bool facts_only = false;  ///< read_only: open a keyed filter without its secret; it then refuses all keys
  bool to_remove = false;   ///< refuse a filter whose keys cannot be removed, before it is changed
};

}  // namespace bloomery
