// The interface of the model test to a kind of filter: its creation, its operations besides those of filter_handle, and
// its promises. The test states the promises here; it does not read them from the filter.
#pragma once

#include "model/operation.hpp"
#include "model/reference.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace bloomery_model {

/// What is found after a writing process was killed.
enum class survival : std::uint8_t {
  not_applicable,  ///< a filter in memory: nothing is
  acknowledged,    ///< all keys whose insert() returned, and perhaps some that were being inserted
  committed,       ///< the filter as of the last commit()
};

/// What filter_summary::insert_count counts.
enum class counting_rule : std::uint8_t {
  new_keys,  ///< insertions that were answered with 1, until it is an estimate
  copies,    ///< copies that are in
  about,     ///< distinct keys, nearly
  any,       ///< nothing that is known at once
};

/// How well the false-positive rate is known.
struct rate_rule {
  bool is_exact = true;  ///< subject::exact_rate() is that of the very bits, for random keys
  double factor = 1;     ///< otherwise the measured FPR is at most this multiple of the target FPR
};

struct contract {
  std::string name;  ///< letters and digits
  bloomery::key_kind keys = bloomery::key_kind::bytes;
  bloomery::capabilities able = {};
  bloomery_model::memory memory = bloomery_model::memory::set;
  std::uint64_t window = 0;  ///< keys or milliseconds
  survival after_kill = survival::not_applicable;
  counting_rule counts = counting_rule::new_keys;
  rate_rule rate = {};
  double target_fpr = 0.01;
  bloomery::errc refusal = bloomery::errc::incompatible;  ///< of changes, without the capability
  bool is_sequential = true;                              ///< a batch has the effect of its keys one by one
  bool is_steady = true;                                  ///< a key that is found stays found within one insert()
  bool is_exact_when_empty = true;                        ///< without keys nothing is found
  bool has_quick_summary = true;                          ///< else it is looked at once, at the end
  std::vector<verb> also = {};  ///< of reopen, kill, rotate, replace, give_up, rebuild and copy, those that it has
  bool is_remote() const { return able.is_remote; }
  bool has(verb what) const { return std::find(also.begin(), also.end(), what) != also.end(); }
};

/// What a run depends on besides its operations.
struct setting {
  std::uint64_t seed = 1;
  std::uint64_t capacity = universe;
};

/// One filter of a kind. The calls that a kind does not list in contract::also are never made.
class subject {
 public:
  using handle_ptr = std::unique_ptr<bloomery::filter_handle>;

  subject() = default;
  subject(const subject&) = delete;
  subject& operator=(const subject&) = delete;
  virtual ~subject() = default;

  bloomery::filter_handle& handle() { return *handle_; }

  /// An empty filter of equal parameters, to be merged.
  virtual handle_ptr twin() { return not_there(); }

  /// A filter that merge() must refuse.
  virtual handle_ptr stranger() {
    return bloomery::make_handle(bloomery::any_filter(
        bloomery::complete({.layout = "classic", .seed = 99, .geometry = {1001, 3}, .capacity = 100})));
  }

  /// Commits and closes the filter.
  virtual void close() { not_there(); }

  /// Opens for writing what close() or a killed process left.
  virtual void open() { handle_ = open_writer(); }

  void reopen() {
    close();
    open();
  }

  /// The same as open(), also in another process, or while the filter is open if it is on servers.
  virtual handle_ptr open_writer() { return not_there(); }

  /// A copy that was saved, opened for reading, and what can be done with it.
  virtual handle_ptr copy() { return not_there(); }

  /// After a kill, before open(): what a machine that failed, too, may have lost.
  virtual void lose_unsynced() {}

  /// Another client of a filter on servers. It stays open, so its view of the shards may be stale.
  bloomery::filter_handle& other_client() {
    if (!other_client_) other_client_ = open_writer();
    return *other_client_;
  }

  /// After a replacement: a client with a stale description refuses to remove keys.
  void forget_other_client() { other_client_.reset(); }

  virtual void replace(bloomery::key_span) { not_there(); }
  virtual void give_up() { not_there(); }
  virtual void rebuild() { not_there(); }
  virtual void rotate() { not_there(); }

  /// Tells all clocks of it the time, milliseconds since 1970.
  virtual void set_time(std::uint64_t now) { handle().tick(now); }

  /// The time by the clock of a filter with a window of servers.
  virtual std::uint64_t server_time() { return 0; }

  /// The exact FPR of the bits that are set, for random keys.
  virtual std::optional<double> exact_rate() {
    const bloomery::any_filter* const bits = handle().local();
    return bits == nullptr ? std::nullopt : std::optional(bits->current_fpr());
  }

 protected:
  handle_ptr handle_;
  handle_ptr other_client_;

 private:
  static handle_ptr not_there() { throw std::logic_error("the model test asks a kind of filter for what it has not"); }
};

struct kind {
  contract promises;
  std::function<std::unique_ptr<subject>(const setting&)> make;
};

inline void PrintTo(const kind& k, std::ostream* out) { *out << k.promises.name; }

/// What the kinds in memory and in files are.
std::vector<kind> plain_kinds();
std::vector<kind> growing_kinds();
std::vector<kind> window_kinds();
std::vector<kind> counting_kinds();
std::vector<kind> static_kinds();

/// The secret of keyed filters.
inline constexpr bloomery::secret_key the_secret = {0x0123456789abcdef, 0xfedcba9876543210};

}  // namespace bloomery_model
