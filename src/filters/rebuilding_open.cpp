// Opening of a rebuilding filter: locks, checks of the log, and replay of keys that are only in the log.
#include "filters/rebuilding_impl.hpp"

#include <bloomery/error.hpp>

#include "platform/posix.hpp"
#include "registry/tables.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

using namespace rebuilding;

void rebuilding::check_logs_suit(const params& p) {
  if (!p.scheme.empty()) {
    throw error(errc::incompatible, {"a filter with a log cannot use a scheme, because a scheme has its own hashes",
                                     "log", "a layout", "scheme " + p.scheme, hint::use_a_layout});
  }
  std::string names;
  for (const layout_row& row : layout_rows()) {
    if (row.bulk == nullptr) continue;
    if (row.name == p.layout) return;
    names.append(names.empty() ? "" : ", ").append(row.name);
  }
  throw error(errc::incompatible, {"a log stores 64 bits of a key's hash, and this layout needs more", "layout",
                                   "one of " + names, p.layout, hint::use_listed_layout});
}

bool rebuilding::is_log_of(const params& filter, const params& log) {
  return filter.log_id() == log.log_id() && filter.hash == log.hash && filter.keys == log.keys &&
         filter.seed == log.seed && filter.key_check == log.key_check;
}

namespace {

// Byte offset in the log of the first key that may be missing in the bits.
std::uint64_t not_in_bits(const file_info& info, const key_log& log) {
  return info.counts.log_generation == log.generation() ? info.counts.logged : 0;
}

[[noreturn]] void lost(const std::string& log, const std::string& what_is_lost) {
  throw error(errc::damaged, {"the log is damaged, and a filter rebuilt from it would lack keys; lookups still work",
                              log, "", what_is_lost, hint::salvage_log});
}

}  // namespace

void rebuilding_filter::impl::check_log(const file_info& info, const key_log& log, const std::string& name,
                                        file_check what) {
  if (const std::string missing = missing_in(info, log); !missing.empty()) lost(name, missing);
  const log_reading seen =
      log.read(what == file_check::payload ? 0 : not_in_bits(info, log), [](std::span<const std::uint64_t>) {});
  if (!seen.whole()) lost(name, seen.damage_in_words());
}

void rebuilding_filter::impl::replay_log() {
  const std::uint64_t torn = log->torn_bytes();
  const std::uint64_t from = not_in_bits(*filter.opened_from(), *log);
  if (torn > 0) {
    log->cut_torn();
    note("note: the last record of the log is incomplete (" + std::to_string(torn) +
         " bytes) and was removed; no insert of its keys had been acknowledged");
  }
  if (from == log->bytes()) return;
  std::uint64_t fresh = 0;
  const log_reading rest = log->read(
      from, [&](std::span<const std::uint64_t> hash64s) { fresh += filter.insert(key_span::of_hash64s(hash64s)); });
  if (!rest.whole()) lost(log_path(path), rest.damage_in_words());
  note("note: inserted " + std::to_string(rest.keys) + " keys of the log again, " + std::to_string(fresh) +
       " of which were missing");
}

rebuilding_filter rebuilding_filter::open(const std::string& path, const open_options& options) {
  const std::string name = posix::behind_links(path);
  if (options.mode == access::read_only) {
    any_filter filter = any_filter::open_any(name, options);
    return rebuilding_filter(std::make_unique<impl>(name, std::move(filter)));
  }
  const posix::locking lock = format::locking_of(options.no_lock);
  format::clean_up(name, lock);
  {
    // Before looking for the log: report a file that is not a filter, or a filter without a log.
    const mapped_storage header = mapped_storage::open(name);
    if (header.info().parameters.log_id() == 0) {
      throw error(errc::incompatible, {"the filter has no log", path, "", "", hint::make_filter_with_log});
    }
  }
  std::optional<key_log> log;
  try {
    log = key_log::open(log_path(name), options);
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;
    throw error(errc::not_found,
                {"the filter's log is missing, and keys cannot be inserted without it; lookups still work",
                 log_path(name), "", "", hint::bring_back_log});
  }
  // Those of a process that was killed while this one waited for the lock.
  while (!format::finish_renames(name, lock, true)) format::wait_for_renames(path, options.waiting);
  // While the log is locked, no other process writes the filter. All checks come before the filter is marked dirty.
  {
    const mapped_storage header = mapped_storage::open(name);
    const params& p = header.info().parameters;
    const params& of_log = log->parameters();
    if (!is_log_of(p, of_log)) {
      throw error(errc::incompatible,
                  {"the log beside it belongs to another filter; lookups still work", log_path(name),
                   "log " + std::to_string(p.log_id()), std::to_string(of_log.log_id()), hint::bring_back_own_log});
    }
    check_logs_suit(p);
    impl::check_log(header.info(), *log, log_path(name), options.check);
  }
  auto b = std::make_unique<impl>(name, any_filter::open_any(name, options));
  b->log = std::move(log);
  b->notes = options.notes;
  b->no_lock = options.no_lock;
  b->metadata = b->filter.opened_from()->metadata;
  try {
    b->replay_log();
  } catch (...) {
    b->filter.mapped()->abandon();  // it lacks keys of the log, so it must stay dirty
    throw;
  }
  format::remove_rebuild(name, lock);
  b->set_bounds();
  if (b->filter.insert_count() >= b->full_at) b->make_room();  // a writer was killed before the filter grew
  return rebuilding_filter(std::move(b));
}

}  // namespace bloomery
