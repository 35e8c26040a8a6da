// rebuilding_filter::impl: the state of a rebuilding_filter. Its functions are in
//
//   rebuilding_make.cpp     building a filter from its log
//   rebuilding_growth.cpp   the conditions for a rebuild, and the thread that rebuilds
//   rebuilding_create.cpp   creation of a filter and its log
//   rebuilding_open.cpp     opening, and replay of the log
//   rebuilding_recover.cpp  recovery of damaged files
//   rebuilding_filter.cpp   the public API
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "file/unfinished.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace rebuilding {

inline constexpr double default_fpr = 0.01;
inline constexpr std::uint64_t least_capacity = 1000;

/// Refuses a filter that reads more of a key's hash than the 64 bits in a log. @throws error incompatible
void check_logs_suit(const params& p);

/// Whether the log belongs to the filter, according to their headers.
bool is_log_of(const params& filter, const params& log);

using format::rebuilt_name;

inline void remove_quietly(const std::string& path) noexcept { ::unlink(path.c_str()); }

inline std::uint64_t bytes_of_keys(std::uint64_t keys) { return keys * sizeof(std::uint64_t); }

/// Maximum number of keys in `bytes` bytes of a log.
inline std::uint64_t keys_in(std::uint64_t bytes) {
  return (bytes - std::min(bytes, key_log::record_header_bytes)) / sizeof(std::uint64_t);
}

}  // namespace rebuilding

struct rebuilding_filter::impl {
  /// The parameters of a rebuild.
  struct wanted {
    params p;                               // complete except for geometry and capacity
    std::optional<std::uint64_t> capacity;  // as given by the caller
    std::uint64_t least = 0;                // minimum capacity if the caller gave none
    std::optional<std::uint64_t> keys;      // distinct keys; empty: not counted yet
    std::uint64_t upto = 0;                 // bytes of the log to read
    bool anew = false;                      // also rewrite the log
    bool salvage = false;
    bool is_new = false;   // the filter does not have its name yet: both files are created under unfinished names
    bool no_lock = false;  // of create_options
    std::function<void()> watch = {};
    callback<double(std::uint64_t)> target = {};  // target FPR by capacity; empty: p.target_fpr
  };

  struct made {
    any_filter filter;
    std::optional<key_log> log;  // the new log, if it was rewritten
    std::uint64_t upto = 0;      // bytes of the old log that are in the filter
    std::uint64_t lost_keys = 0;
  };

  /// A rebuild in another thread. The destructor cancels it.
  struct job {
    std::thread thread;
    std::atomic<bool> cancel = false;
    std::atomic<bool> done = false;
    std::optional<made> result;
    std::exception_ptr failure;

    ~job() {
      cancel = true;
      if (thread.joinable()) thread.join();
    }
  };

  impl(std::string where, any_filter f) : path(std::move(where)), filter(std::move(f)) {}

  void note(const std::string& text) const {
    if (notes) notes(path + ": " + text);
  }

  void want_writable() const;

  // ---- keys: rebuilding_filter.cpp

  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new);

  /// Calls work(hashes, first) for the hashes of keys from `first` on.
  template <class Work>
  void in_hashes(key_span keys, Work work) const {
    if (keys.form() == key_span::form_of_keys::hashes) return work(keys.hashes(), std::size_t{0});
    std::vector<key_hash> room(std::min<std::size_t>(keys.size(), 4096));
    for (std::size_t first = 0; first < keys.size(); first += room.size()) {
      const std::span<key_hash> some(room.data(), std::min(room.size(), keys.size() - first));
      filter.hash(keys.part(first, some.size()), some);
      work(std::span<const key_hash>(some), first);
    }
  }

  void log_keys(key_log& to, std::span<const key_hash> hashes);

  // ---- a filter from its log: rebuilding_make.cpp

  /// Fills FILTER.rebuild, or FILTER.unfinished, from the log. @throws error damaged, invalid_argument, io
  static made make(const std::string& path, const std::string& metadata, const key_log& log, wanted w,
                   const std::atomic<bool>& cancel);

  /// Inserts the keys logged since then, and replaces the old filter by the new one. @throws error damaged, io
  void publish(made m);

  /// Whether the log is more than twice as long as this number of distinct keys requires.
  static bool is_wasteful(const key_log& log, std::uint64_t keys);

  // ---- growth: rebuilding_growth.cpp

  /// Sets the counts at which the filter is nearly full and full.
  void set_bounds();

  /// Called before keys are inserted: publishes a finished rebuild, and starts one if necessary. Returns the number of
  /// keys that fit, at least one.
  std::uint64_t make_room();

  /// Waits for a rebuild in progress and publishes its result. Stores an error in `failure`.
  void finish();

  /// Throws `failure` once; does nothing if there is none.
  void throw_failure();

  // ---- opening: rebuilding_open.cpp

  /// Refuses a log that lacks keys of the filter, before the filter is changed. @throws error damaged
  static void check_log(const file_info& info, const key_log& log, const std::string& name, file_check what);

  /// Inserts the keys of the log that may be missing in the filter. @throws error damaged, io
  void replay_log();

  std::string path;
  std::string metadata;
  std::optional<key_log> log;  // if open for writing
  any_filter filter;
  callback<void(const std::string&)> notes;  // of open_options
  callback<double(std::uint64_t)> target;    // for larger filters; empty: the present target FPR
  std::unique_ptr<job> rebuilding;
  std::uint64_t grow_at = 0;            // insert_count() at which the next filter is built
  std::uint64_t retry_at = 0;           // number of keys in the log at which a failed rebuild is tried again
  std::uint64_t full_at = 0;            // insert_count() at which inserts wait for the next filter
  std::uint64_t counted_when_full = 0;  // expected insert_count() at capacity
  std::uint64_t rebuilds = 0;
  std::uint64_t lost_keys = 0;
  std::uint64_t overgrown_at = 0;     // bytes of the log
  bool failed = false;                // the last rebuild failed
  std::exception_ptr failure;         // the error of the last rebuild, until it is thrown
  bool no_lock = false;               // of open_options
  bool recorded = false;              // the log has keys that the filter lacks
  std::vector<std::uint64_t> record;  // hash64 of the keys being logged

 private:
  double rate_at(std::uint64_t keys) const { return bloomery::expected_fpr(filter.parameters(), keys); }
  std::uint64_t distinct() const;
  bool log_is_overgrown() const { return log->bytes() > overgrown_at; }
  wanted growth() const;
  void start();
  void note_failure() const;
};

}  // namespace bloomery
