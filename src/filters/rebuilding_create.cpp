// Creation of a rebuilding filter and its log, empty or with many keys. A killed process never leaves one without the
// other for long:
//
//   FILTER.log.unfinished   the new log; its lock excludes other processes that create this filter
//   FILTER.unfinished       the new filter; complete and synced before either file gets its name
//   FILTER.log, FILTER      the final names, in this order, each synced
//
// A process killed before the first rename leaves unfinished files, which the next process removes. If it is killed
// between the two renames, the new log is beside the unfinished filter with the same number: format::finish_renames()
// then performs the second rename.
#include "filters/rebuilding_impl.hpp"
#include "platform/machine.hpp"

#include <bloomery/error.hpp>

#include "platform/posix.hpp"
#include "registry/tables.hpp"

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

namespace {

// The fastest layout that needs at most a quarter more memory than the smallest. Layouts with blocks smaller than a
// cache line are left out: they need more memory and are not faster.
std::string layout_for(double rate) {
  constexpr std::uint64_t many = 1'000'000;
  struct candidate {
    std::string_view name;
    double bits;
  };
  std::vector<candidate> quickest_first;
  double best = HUGE_VAL;
  for (const layout_row& row : layout_rows()) {
    if (row.bulk == nullptr || row.block_bits < cache_line_bits) continue;
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

// The lock of a file; empty if the file does not exist. @throws error locked: another process is writing it
posix::descriptor locked_if_any(const std::string& path, posix::locking how) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  if (::access(path.c_str(), W_OK) != 0) posix::fail("replace", path);
  for (;;) {
    posix::opened opened = posix::open_regular(path, true);
    if (!posix::try_lock(opened.file.get(), path, how)) {
      throw error(errc::locked, {"this filter is open for writing", path, "", "", hint::wait_or_choose_another_name});
    }
    if (posix::same_file(opened.file.get(), path)) return std::move(opened.file);
  }
}

// Whether the log has no keys and there is no filter: then it can be replaced without loss.
bool is_empty_log(const std::string& log) {
  try {
    const key_log found = key_log::open(log);
    return found.keys() == 0 && found.bytes() == key_log::header_bytes && found.torn_bytes() == 0;
  } catch (const error&) {
    return false;
  }
}

// A filter and its log under their unfinished names. The destructor removes files that have not been renamed.
class new_files {
 public:
  /// Locks the unfinished log.
  /// @param at_once  call lock_old() first; otherwise the caller does so later, and other processes may write the old
  ///                 filter
  /// @throws error   locked: another process is creating this filter; already_exists; as lock_old()
  new_files(const std::string& path, const params& p, const create_options& options, bool at_once)
      : name_(posix::behind_links(path)),
        log_name_(rebuilding_filter::log_path(name_)),
        shown_(path),
        replace_(options.replace),
        lock_(format::locking_of(options.no_lock)),
        log_(begin(p, options, at_once)) {}
  new_files(const new_files&) = delete;
  new_files& operator=(const new_files&) = delete;
  ~new_files() {
    if (is_published_) return;
    if (has_filter_) posix::remove_abandoned(filter_name(), lock_);  // not a file of another process
    remove_quietly(posix::unfinished_name(log_name_));
    remove_quietly(rebuilt_name(posix::unfinished_name(log_name_)));
  }

  const std::string& name() const { return name_; }
  std::string filter_name() const { return posix::unfinished_name(name_); }
  key_log& log() { return log_; }

  /// Locks the old filter and its log, which publish() replaces. @throws error  locked, already_exists, not_a_filter
  void lock_old() {
    if (!old_) old_ = locked_if_any(name_, lock_);
    if (!old_log_) old_log_ = locked_if_any(log_name_, lock_);
    if (!replace_ && old_) refuse_existing();
    if (!replace_ && old_log_ && !is_empty_log(log_name_)) {
      throw error(errc::already_exists, {"the file already exists", log_name_, "", "", hint::rebuild_from_log});
    }
    key_log::check_replaceable(log_name_);
  }

  /// Makes the name of the unfinished filter available. @throws error  locked, already_exists
  void begin_filter() {
    posix::free_name(filter_name(), name_, lock_);
    has_filter_ = true;
  }

  /// Renames both files to their final names. Requires lock_old().
  /// @throws error  not_permitted, io; already_exists: another process has created the filter since lock_old()
  key_log publish() {
    struct stat status {};
    if (!old_ && ::lstat(name_.c_str(), &status) == 0) refuse_existing();
    format::remove_rebuild(name_, lock_);
    log_.sync();
    log_.rename(log_name_, false);
    is_published_ = true;  // from here on the unfinished filter belongs to the log
    posix::sync_folder_of(name_);
    if (!old_) {
      if (!posix::rename_if_free(filter_name(), name_)) {
        remove_quietly(log_name_);
        remove_quietly(filter_name());
        refuse_existing();
      }
      posix::sync_folder_of(name_);
      return std::move(log_);
    }
    try {
      posix::rename_over(filter_name(), name_);
    } catch (const error&) {
      // Again: the log has replaced the old one, so the unfinished filter cannot be removed.
      if (::access(filter_name().c_str(), F_OK) != 0) throw;  // it has its name, and only the sync failed
      posix::rename_over(filter_name(), name_);
    }
    return std::move(log_);
  }

 private:
  [[noreturn]] void refuse_existing() const {
    throw error(errc::already_exists, {"the file already exists", shown_, "", "", hint::choose_another_name});
  }

  key_log begin(const params& p, const create_options& options, bool at_once) {
    const auto refuse = [&] {
      throw error(errc::locked, {"another process is creating this filter", name_, "", "", hint::wait_for_writer});
    };
    if (!format::finish_renames(name_, lock_)) refuse();
    if (at_once) lock_old();
    key_log::check_replaceable(log_name_);
    const std::string log = posix::unfinished_name(log_name_);
    posix::free_name(log, name_, lock_);
    try {
      return key_log::create(log, p, 1, {.replace = false, .no_lock = options.no_lock});
    } catch (const error& e) {
      if (e.code() != errc::already_exists) throw;
      refuse();
      throw;
    }
  }

  std::string name_;
  std::string log_name_;
  std::string shown_;
  bool replace_;
  posix::locking lock_;
  posix::descriptor old_;
  posix::descriptor old_log_;
  bool has_filter_ = false;
  bool is_published_ = false;
  key_log log_;
};

}  // namespace

params rebuilding_filter::completed(params p) {
  if (p.target_fpr == 0) p.target_fpr = default_fpr;
  if (p.capacity == 0) p.capacity = least_capacity;
  if (p.layout.empty() && p.scheme.empty()) p.layout = layout_for(p.target_fpr);
  check_logs_suit(p);
  return complete(std::move(p));
}

rebuilding_filter rebuilding_filter::create(const std::string& path, params p, const create_options& options) {
  p = completed(p.without_log());
  new_files files(path, p, options, true);
  files.lock_old();  // again: another process may have created them before the unfinished log was locked
  p.extra = files.log().parameters().extra;
  files.begin_filter();
  auto b = std::make_unique<impl>(
      files.name(),
      any_filter::create(
          files.filter_name(), p,
          {.metadata = options.metadata, .reserve = options.reserve, .replace = false, .no_lock = options.no_lock}));
  b->metadata = options.metadata;
  b->no_lock = options.no_lock;
  b->set_bounds();
  b->log = files.publish();
  return rebuilding_filter(std::move(b));
}

rebuilding_filter rebuilding_filter::build(const std::string& path, params p, const key_feed& feed,
                                           const create_options& options) {
  const std::uint64_t capacity = p.capacity;
  p = completed(p.without_log());
  new_files files(path, p, options, false);
  key_log& log = files.log();
  // Before it contains keys: a new log must not be readable by more users than the old filter.
  posix::take_mode_of(files.name(), posix::unfinished_name(log_path(files.name())));
  p.extra = log.parameters().extra;
  auto b = std::make_unique<impl>(files.name(), any_filter(params{.layout = "split_block512",
                                                                  .hash = p.hash,
                                                                  .keys = p.keys,
                                                                  .seed = p.seed,
                                                                  .capacity = 1,
                                                                  .target_fpr = 0.5,
                                                                  .secret = p.secret}));
  feed([&](key_span keys) {
    b->in_hashes(keys, [&](std::span<const key_hash> hashes, std::size_t) { b->log_keys(log, hashes); });
  });
  const std::uint64_t distinct = log.estimate_distinct();
  impl::wanted w;
  w.p = p;
  w.upto = log.bytes();
  w.keys = distinct;
  w.anew = impl::is_wasteful(log, distinct);
  w.is_new = true;
  w.no_lock = options.no_lock;
  if (capacity != 0 && distinct <= capacity) w.capacity = capacity;
  files.begin_filter();
  const std::atomic<bool> never = false;
  impl::made m = impl::make(files.name(), options.metadata, log, std::move(w), never);
  if (m.log) {
    m.log->rename(posix::unfinished_name(log_path(files.name())));
    log = std::move(*m.log);
  }
  files.lock_old();
  b->filter = std::move(m.filter);
  b->metadata = options.metadata;
  b->no_lock = options.no_lock;
  b->set_bounds();
  b->log = files.publish();
  return rebuilding_filter(std::move(b));
}

}  // namespace bloomery
