// Rebuilding of a filter from its log, without losing keys if the process is killed at any moment:
//
//   make      fills FILTER.rebuild from the log up to a position, syncs it, and marks it dirty with that position. If
//             the log is to be rewritten, FILTER.log.rebuild is written first, with the next generation.
//   publish   inserts the keys logged since then into both, then renames FILTER.rebuild to FILTER and
//   FILTER.log.rebuild
//             to FILTER.log.
//
// A process that opens the filter for writing inserts the keys of the log after the position, or all keys of the log if
// its generation differs from the one in the filter. So each of the four pairs of files that a kill between the two
// renames can leave is consistent.
#include "filters/rebuilding_impl.hpp"

#include <bloomery/error.hpp>

#include "platform/posix.hpp"

namespace bloomery {

using namespace rebuilding;

namespace {

// Ends a rebuild whose result is no longer needed.
struct cancelled {};

}  // namespace

rebuilding_filter::impl::made rebuilding_filter::impl::make(const std::string& path, const std::string& metadata,
                                                            const key_log& log, wanted w,
                                                            const std::atomic<bool>& cancel) {
  const std::string log_name = rebuilt_name(w.is_new ? posix::unfinished_name(log_path(path)) : log_path(path));
  const std::string name = w.is_new ? posix::unfinished_name(path) : rebuilt_name(path);
  const auto refuse_damage = [&](const log_reading& seen) {
    if (seen.whole() || w.salvage) return;
    throw error(errc::damaged, {"the log is damaged", log_path(path), "", seen.damage_in_words(), hint::salvage_log});
  };
  const auto may_end = [&] {
    if (cancel) throw cancelled();
    if (w.watch) w.watch();
  };
  std::optional<key_log> fresh;
  try {
    log_reading seen;
    if (w.anew) {
      remove_quietly(log_name);  // left by a killed rebuild
      fresh = key_log::create(log_name, w.p, log.generation() + 1, {.replace = false, .no_lock = w.no_lock});
      posix::take_mode_of(w.is_new ? path : log_path(path), log_name);
      seen = log.write_distinct(*fresh, w.upto, may_end);
      refuse_damage(seen);
      fresh->sync();
      w.keys = fresh->keys();
    } else if (!w.keys) {
      w.keys = log.estimate_distinct(w.upto);
    }
    w.p.geometry = {};
    w.p.capacity = w.capacity.value_or(std::max(w.least, grown_capacity(*w.keys)));
    if (w.target) w.p.target_fpr = w.target(w.p.capacity);
    if (static_cast<double>(w.p.capacity) < 0.99 * static_cast<double>(*w.keys)) {
      throw error(errc::invalid_argument,
                  {"the capacity is below the number of keys", path, std::to_string(*w.keys) + " or more",
                   std::to_string(w.p.capacity), hint::use_larger_capacity});
    }
    if (!w.is_new) remove_quietly(name);  // left by a killed rebuild
    made m{any_filter::create(name, w.p, {.metadata = metadata, .replace = false, .sync = false, .no_lock = w.no_lock}),
           std::nullopt, w.upto, 0};
    posix::take_mode_of(path, name);  // before it contains keys
    const key_log& source = fresh ? *fresh : log;
    const std::uint64_t upto = fresh ? fresh->bytes() : w.upto;
    const log_reading read = source.read(
        0,
        [&](std::span<const std::uint64_t> hash64s) {
          may_end();
          m.filter.insert(key_span::of_hash64s(hash64s));
        },
        upto);
    if (!w.anew) seen = read;
    refuse_damage(seen);
    m.lost_keys = seen.lost_keys;
    mapped_storage& bytes = *m.filter.mapped();
    bytes.counts().logged = upto;
    bytes.counts().log_generation = source.generation();
    bytes.checkpoint();
    m.log = std::move(fresh);
    return m;
  } catch (...) {
    if (!w.is_new) remove_quietly(name);
    if (w.anew) remove_quietly(log_name);
    throw;
  }
}

void rebuilding_filter::impl::publish(made m) {
  const auto add = [&](std::span<const std::uint64_t> hash64s) {
    m.filter.insert(key_span::of_hash64s(hash64s));
    if (m.log) m.log->append(hash64s);
  };
  const log_reading rest = log->read(m.upto, add, log->bytes());
  if (!rest.whole()) {
    throw error(errc::damaged, {"the log is damaged", log_path(path), "", rest.damage_in_words(), hint::salvage_log});
  }
  // The log first: a filter on disk must never refer to bytes of a log that are not on disk.
  (m.log ? *m.log : *log).sync();
  // If a power failure undoes the rename, the old filter is still consistent with the log.
  posix::rename_over(rebuilt_name(path), path, false);
  if (mapped_storage* old = filter.mapped()) old->abandon();
  filter = std::move(m.filter);
  lost_keys = m.lost_keys;
  ++rebuilds;
  failed = recorded = false;
  failure = nullptr;
  set_bounds();
  if (m.log) {
    m.log->rename(log_path(path), false);
    log = std::move(m.log);  // even if syncing fails: the old log no longer has a name
    posix::sync_folder_of(path);
  }
}

bool rebuilding_filter::impl::is_wasteful(const key_log& log, std::uint64_t keys) {
  return log.bytes() > key_log::header_bytes + 65'536 + 2 * bytes_of_keys(keys);
}

void rebuilding_filter::rebuild(const rebuild_plan& plan) {
  impl& b = *impl_;
  b.want_writable();
  if (plan.rate && !(*plan.rate > 0 && *plan.rate < 1)) {
    throw error(errc::invalid_argument,
                {"the target FPR is not a probability", "rate", "above 0, below 1", std::to_string(*plan.rate), ""});
  }
  b.rebuilding.reset();  // its result would be outdated
  impl::wanted w;
  w.p = b.filter.parameters();
  w.p.extra = b.log->parameters().extra;
  if (plan.rate) w.p.target_fpr = *plan.rate;
  if (!plan.layout.empty()) w.p.layout = plan.layout;
  check_logs_suit(w.p);
  w.capacity = plan.capacity;
  w.upto = b.log->bytes();
  w.salvage = plan.salvage;
  w.no_lock = b.no_lock;
  w.watch = plan.watch;
  w.anew = plan.salvage || impl::is_wasteful(*b.log, b.log->estimate_distinct());
  const std::atomic<bool> never = false;
  impl::made m = impl::make(b.path, b.metadata, *b.log, std::move(w), never);
  try {
    b.publish(std::move(m));
  } catch (...) {
    remove_quietly(rebuilt_name(b.path));
    remove_quietly(rebuilt_name(log_path(b.path)));
    throw;
  }
}

}  // namespace bloomery
