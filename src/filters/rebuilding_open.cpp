// Rebuilding filters are created and opened: the locks, the checks of the log, and the replay of keys that are in the
// log alone.
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
    throw error(errc::incompatible, {"a scheme has hashes of its own, and a log keeps 64 bits of the library's", "log",
                                     "a layout", "scheme " + p.scheme, hint::use_a_layout});
  }
  std::string names;
  for (const layout_row& row : layout_rows()) {
    if (row.bulk == nullptr) continue;
    if (row.name == p.layout) return;
    names.append(names.empty() ? "" : ", ").append(row.name);
  }
  throw error(errc::incompatible, {"a log keeps 64 bits of a key's hash, and this layout needs more or other ones",
                                   "layout", "one of " + names, p.layout, hint::use_listed_layout});
}

bool rebuilding::is_log_of(const params& filter, const params& log) {
  return filter.log_id() == log.log_id() && filter.hash == log.hash && filter.keys == log.keys &&
         filter.seed == log.seed && filter.key_check == log.key_check;
}

namespace {

// The quickest layout that needs at most a quarter more memory than the best one. Blocks smaller than a cache line are
// left out: they need more memory and are no quicker.
std::string layout_for(double rate) {
  constexpr std::uint64_t many = 1'000'000;
  constexpr std::uint32_t line_bits = 512;
  struct candidate {
    std::string_view name;
    double bits;
  };
  std::vector<candidate> quickest_first;
  double best = HUGE_VAL;
  for (const layout_row& row : layout_rows()) {
    if (row.bulk == nullptr || row.block_bits < line_bits) continue;
    candidate& c = quickest_first.emplace_back(candidate{row.name, HUGE_VAL});
    try {
      c.bits = static_cast<double>(row.geometry_for(many, rate).bits);
    } catch (const error& e) {
      if (e.code() != errc::too_large) throw;  // this layout cannot reach the target FPR
    }
    best = std::min(best, c.bits);
  }
  const auto found = std::find_if(quickest_first.begin(), quickest_first.end(),
                                  [&](const candidate& c) { return c.bits <= 1.25 * best; });
  return std::string(found->name);
}

// The lock of a file, or nothing if the file does not exist. @throws error locked: another process writes it
posix::descriptor locked_if_any(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  posix::opened opened = posix::open_regular(path, false);
  if (::access(path.c_str(), W_OK) != 0) posix::fail("replace", path);
  if (::flock(opened.file.get(), LOCK_EX | LOCK_NB) != 0) {
    throw error(errc::locked, {"this filter is open for writing", path, "", "", hint::wait_or_choose_another_name});
  }
  return std::move(opened.file);
}

// The log of a filter that is being made. @throws error locked: another process is making the same filter
key_log begun_log(const std::string& path, const params& p) {
  try {
    return key_log::create(path, p);
  } catch (const error& e) {
    if (e.code() != errc::already_exists) throw;
    throw error(errc::locked, {"another process is making this filter", path, "", "", hint::wait_for_writer});
  }
}

void refuse_taken(const std::string& path, const std::string& log, bool has_filter, bool has_log) {
  if (!has_filter && !has_log) return;
  throw error(errc::already_exists, {"there is a file already", has_filter ? path : log, "", "",
                                     has_filter ? hint::choose_another_name : hint::rebuild_from_log});
}

// The first byte of the log whose keys may be missing in the bits.
std::uint64_t not_in_bits(const file_info& info, const key_log& log) {
  return info.counts.log_generation == log.generation() ? info.counts.logged : 0;
}

[[noreturn]] void lost(const std::string& log, const std::string& what_is_lost) {
  throw error(errc::damaged, {"the log is damaged, and a filter made of it would miss keys; lookups still work", log,
                              "", what_is_lost, hint::salvage_log});
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
    note("note: the last record of its log was not written to the end, " + std::to_string(torn) +
         " bytes; it is cut off, and no key was reported as added that was in it");
  }
  if (from == log->bytes()) return;
  std::uint64_t fresh = 0;
  const log_reading rest = log->read(
      from, [&](std::span<const std::uint64_t> hash64s) { fresh += filter.insert(key_span::of_hash64s(hash64s)); });
  if (!rest.whole()) lost(log_path(path), rest.damage_in_words());
  note("note: inserted " + std::to_string(rest.keys) + " keys of its log again, " + std::to_string(fresh) +
       " of them were missing");
}

params rebuilding_filter::completed(params p) {
  if (p.target_fpr == 0) p.target_fpr = default_fpr;
  if (p.capacity == 0) p.capacity = least_capacity;
  if (p.layout.empty() && p.scheme.empty()) p.layout = layout_for(p.target_fpr);
  check_logs_suit(p);
  return complete(std::move(p));
}

rebuilding_filter rebuilding_filter::create(const std::string& path, params p, const create_options& options) {
  p = completed(p.without_log());
  const std::string name = posix::behind_links(path);
  const std::string log_name = log_path(name);
  // First the locks: the files of a rebuild belong to the process that writes this filter.
  posix::descriptor old = locked_if_any(name);
  posix::descriptor old_log = locked_if_any(log_name);
  if (!options.replace) refuse_taken(path, log_name, bool(old), bool(old_log));
  key_log::check_replaceable(log_name);
  // Hold the temporary log's lock: a concurrent creator is refused, or finds the finished filter.
  key_log log = begun_log(rebuilt_name(log_name), p);
  bool filter_begun = false;
  try {
    // Another process may have created them since.
    if (!old) old = locked_if_any(name);
    if (!old_log) old_log = locked_if_any(log_name);
    if (!options.replace) refuse_taken(path, log_name, bool(old), bool(old_log));
    key_log::check_replaceable(log_name);
    p.extra = log.parameters().extra;
    filter_begun = true;
    auto b = std::make_unique<impl>(
        name, any_filter::create(rebuilt_name(name), p, {.metadata = options.metadata, .reserve = options.reserve}));
    b->metadata = options.metadata;
    b->set_bounds();
    log.rename(log_name);
    posix::rename_over(rebuilt_name(name), name);
    b->log = std::move(log);
    return rebuilding_filter(std::move(b));
  } catch (...) {
    if (filter_begun) remove_quietly(rebuilt_name(name));
    remove_quietly(rebuilt_name(log_name));
    throw;
  }
}

rebuilding_filter rebuilding_filter::open(const std::string& path, const open_options& options) {
  const std::string name = posix::behind_links(path);
  if (options.mode == access::read_only) {
    any_filter filter = any_filter::open_any(name, options);
    return rebuilding_filter(std::make_unique<impl>(name, std::move(filter)));
  }
  {
    // Before the log is looked for: report a file that is not a filter, or a filter that keeps no log, as such.
    const mapped_storage header = mapped_storage::open(name);
    if (header.info().parameters.log_id() == 0) {
      throw error(errc::incompatible, {"the filter keeps no log", path, "", "", hint::make_filter_with_log});
    }
  }
  std::optional<key_log> log;
  try {
    log = key_log::open(log_path(name), options);
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;
    throw error(errc::not_found,
                {"the filter's log is missing, and keys cannot be added without it; lookups still work", log_path(name),
                 "", "", hint::bring_back_log});
  }
  // While the log is locked no other process writes the filter. All checks come before the filter is marked dirty.
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
  b->metadata = b->filter.opened_from()->metadata;
  try {
    b->replay_log();
  } catch (...) {
    b->filter.mapped()->abandon();  // it lacks keys of the log, so it must stay dirty
    throw;
  }
  remove_quietly(rebuilt_name(name));  // of a rebuild that was killed
  remove_quietly(rebuilt_name(log_path(name)));
  b->set_bounds();
  if (b->filter.insert_count() >= b->full_at) b->make_room();  // a writer was killed before it grew
  return rebuilding_filter(std::move(b));
}

void rebuilding_filter::move(const std::string& from, const std::string& to) {
  const std::string name = posix::behind_links(to);
  key_log::check_replaceable(log_path(name));
  const posix::descriptor old = locked_if_any(name);
  const posix::descriptor old_log = locked_if_any(log_path(name));
  posix::rename_over(log_path(from), log_path(name));
  posix::rename_over(from, name);
}

}  // namespace bloomery
