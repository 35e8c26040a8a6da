// Recovery of a rebuilding filter whose own file, or a part of its log, is damaged.
#include "filters/rebuilding_impl.hpp"

#include <bloomery/error.hpp>

#include "platform/posix.hpp"

#include <filesystem>
#include <system_error>

namespace bloomery {

using namespace rebuilding;

namespace {

// Keeps both files as FILTER.damaged and FILTER.damaged.log: a rebuild from a damaged log loses keys that the old
// filter may still find, and an incomplete record looks like a damaged one. @throws error already_exists, io
std::string keep_damaged(const std::string& name) {
  const std::string kept = name + ".damaged";
  const auto copy = [](const std::string& from, const std::string& to) {
    std::error_code problem;
    std::filesystem::copy_file(from, to, problem);
    if (!problem) return;
    const bool there = problem == std::errc::file_exists;
    throw error(there ? errc::already_exists : errc::io,
                {"cannot keep the damaged file before replacing it: " + problem.message(), to, "", "",
                 there ? hint::remove_earlier_copy : hint::none});
  };
  if (std::filesystem::exists(name)) copy(name, kept);
  copy(rebuilding_filter::log_path(name), rebuilding_filter::log_path(kept));
  return kept;
}

}  // namespace

rebuilding_filter rebuilding_filter::recover(const std::string& path, const rebuild_plan& plan,
                                             const open_options& options) {
  const std::string name = posix::behind_links(path);
  const posix::locking lock = format::locking_of(options.no_lock);
  format::clean_up(name, lock);
  inspection old;
  const auto look = [&] {
    old = inspect(name);
    if (!old.usable || old.info.parameters.log_id() != 0) return;
    throw error(errc::incompatible, {"the filter has no log", path, "", "", hint::make_filter_with_log});
  };
  look();
  key_log log = key_log::open(log_path(name),
                              {.mode = access::read_write, .waiting = options.waiting, .no_lock = options.no_lock});
  while (!format::finish_renames(name, lock, true)) format::wait_for_renames(path, options.waiting);
  look();  // again: the previous lock holder may have replaced it
  const bool its_own = old.usable && is_log_of(old.info.parameters, log.parameters());
  if (old.usable && !its_own && !plan.salvage) {
    throw error(errc::incompatible, {"the log beside it belongs to another filter", log_path(name),
                                     "log " + std::to_string(old.info.parameters.log_id()),
                                     std::to_string(log.parameters().log_id()), hint::bring_back_own_log});
  }
  const std::string missing = its_own ? missing_in(old.info, log) : "";
  if (!missing.empty() && !plan.salvage) {
    throw error(errc::damaged, {"the log is damaged", log_path(name), "", missing, hint::salvage_log});
  }
  std::uint64_t lost_at_end = 0;
  if (!missing.empty()) {
    const key_counts& counts = old.info.counts;
    lost_at_end = counts.log_generation == log.generation()
                      ? keys_in(counts.logged - log.bytes())
                      : counts.inserted - std::min(counts.inserted, log.estimate_distinct());
  }
  params p = its_own ? old.info.parameters : log.parameters();
  p.secret = options.secret;
  auto b =
      std::make_unique<impl>(name, any_filter(params{.layout = "split_block512", .capacity = 1, .target_fpr = 0.5}));
  b->notes = options.notes;
  b->no_lock = options.no_lock;
  if (old.usable) b->metadata = old.info.metadata;
  const bool whole = its_own && missing.empty() && log.torn_bytes() == 0;
  if (plan.salvage && !(whole && log.read(0, [](std::span<const std::uint64_t>) {}).whole())) {
    const std::string kept = keep_damaged(name);
    b->note("warning: the damaged filter and its log are kept, as " + kept + " and " + log_path(kept));
  }
  if (!missing.empty()) b->note("warning: the log is damaged; continuing without the lost keys: " + missing);
  if (log.torn_bytes() > 0) {
    b->note("note: the last record of the log is incomplete (" + std::to_string(log.torn_bytes()) +
            " bytes) and was removed");
    log.cut_torn();
  }
  b->log = std::move(log);
  impl::wanted w;
  w.p = std::move(p);
  rebuilding_filter result(std::move(b));
  try {
    result.impl_->filter = any_filter([&] {
      params small_one = w.p;
      small_one.geometry = {};
      small_one.capacity = 1;
      small_one.target_fpr = 0.5;
      return small_one;
    }());
    const double rate = w.p.target_fpr;
    rebuild_plan as_it_was = plan;
    if (!as_it_was.rate) as_it_was.rate = rate > 0 && rate < 1 ? rate : default_fpr;
    result.rebuild(as_it_was);
    result.impl_->lost_keys += lost_at_end;
  } catch (...) {
    result.abandon();
    throw;
  }
  return result;
}

std::string rebuilding_filter::missing_in(const file_info& filter, const key_log& log) {
  const key_counts& counts = filter.counts;
  if (counts.log_generation == log.generation()) {
    if (counts.logged <= log.bytes()) return "";
    return std::to_string(keys_in(counts.logged - log.bytes())) + " or fewer keys are lost at its end";
  }
  // The generations differ, and either file may be the older one. A log with fewer keys than the filter is older.
  if (counts.is_estimate) return "";
  const std::uint64_t keys = log.keys() < counts.inserted ? log.keys() : log.estimate_distinct();
  const std::uint64_t error_of_estimate = keys > key_log::exactly_estimated ? keys / 100 : 0;
  if (keys + error_of_estimate >= counts.inserted) return "";
  return "only " + std::to_string(keys) + " keys, but the filter has " + std::to_string(counts.inserted) +
         ": it is an older version";
}

}  // namespace bloomery
