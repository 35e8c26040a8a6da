// Filters that forget, in the commands: --window, --window-keys and --now, and what is said of generations. The filter
// is bloomery/sliding_window_filter.hpp.
#pragma once

#include "cli/commands/commands.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/generations.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {

/// Whether a filter with a window is asked for.
bool wants_window(const making_options& wanted);

/// Refuses a window of nothing, one with options that it cannot go together with, and such options without one.
/// @throws error invalid_argument
void check_window(const making_options& wanted);

/// Refuses an option that a filter with a window does not have. @throws error invalid_argument
void refuse_with_window(const making_options& wanted, const std::string& option);

/// Keys that a window is made for: -n, or the keys of the window. By time somebody has to say it: 0 if nobody did.
std::uint64_t window_capacity(const making_options& wanted);

/// The same, where it has to be known. @throws error invalid_argument
std::uint64_t window_capacity_said(const making_options& wanted);

/// The params asked for, of a filter with a window.
params window_params(const making_options& wanted, std::uint64_t capacity, double default_rate);

/// Tells a filter with a window that it is `now`; nothing said: the system's clock goes on.
/// @throws error invalid_argument: a time is given, and the filter has no window
void set_now(any_filter& filter, const std::optional<std::uint64_t>& now);

/// Refuses options that ask for a window by keys where the state has one by time, or the other way round.
/// @throws error incompatible
void refuse_another_window(const making_options& wanted, const params& p, const std::string& state);

/// Whether another window is asked for than the filter has.
bool asks_for_another_window(const making_options& wanted, const params& p);

/// Refuses a state file that has no window, if one is asked for. @throws error incompatible
void refuse_state_without_window(const making_options& wanted, const std::string& state);

/// " in 24 h", " in the last 1,000"; empty without a window.
std::string window_text(const params& p);

/// " --window 24h", " --window-keys 1000", as commands take it.
std::string window_option(const params& p);

/// Warns if a generation has more keys than it may and the FPR exceeds its target; whether it did.
bool warn_of_generations(const std::string& where, const any_filter& filter);

/// When, or at which insertions, the keys of a generation came: "from 2023-11-14 22:13:20 UTC", "insertions 1 to
/// 1,000".
std::string generation_text(const window_facts& f, std::uint64_t epoch);

/// What is known of a window, as JSON.
nlohmann::ordered_json window_json(const window_facts& f);

/// "2,000 keys in a generation that is for 1,000", of a window that has such a generation.
std::string overfull_text(const window_facts& f);

/// "the last 1,000", "24 h".
std::string length_text(const window_length& length);

/// "2023-11-14 22:13:20 UTC", in milliseconds since 1970; only the number of seconds beyond the year 9999.
std::string moment_text(std::uint64_t milliseconds);

/// The generations with their times and keys, the newest first: "2 ago, insertions 1 to 1,000: 998 keys".
std::vector<std::string> generation_lines(const window_facts& f);

/// dedup within a window: a line goes out if its key is certainly not in the window, and every line, also one that is
/// dropped, is remembered from then on. With a state file all goes on in memory, and the file gets the same keys in the
/// same order once the lines are written: it never runs ahead of the output. By time both take the keys of a batch at
/// one moment, when it came, however much later its lines are written.
class window_dedup {
 public:
  /// @param out    where lines that are kept go; written before the file gets their keys
  /// @param clock  asked once a batch; the system's if empty
  window_dedup(any_filter filter, std::optional<any_filter> file, output& out, window_clock clock = {});

  any_filter& filter() { return filter_; }
  std::uint64_t lines_held() const { return 0; }  // it forgets: how full it is shows in its generations
  double losses() const { return losses_; }
  double rate() const { return rate_; }

  template <class Keep, class Drop>
  void take(key_batch& batch, Keep keep, Drop drop) {
    come_to_now();
    batch.is_new.resize(batch.hashes.size());
    for (std::size_t first = 0; first < batch.hashes.size(); first += slice_) {
      const std::size_t count = std::min(slice_, batch.hashes.size() - first);
      insert(std::span<const key_hash>(batch.hashes).subspan(first, count),
             std::span<std::uint8_t>(batch.is_new).subspan(first, count));
    }
    for (std::size_t i = 0; i < batch.lines.size(); ++i) {
      pending_bytes_ += batch.lines[i].size() + 1;
      if (batch.is_new[i] != 0)
        keep(batch.lines[i]);
      else
        drop(batch.lines[i]);
    }
    if (file_) pending_.insert(pending_.end(), batch.hashes.begin(), batch.hashes.end());
    if (!warned_) warned_ = warn_of_generations("", filter_);
  }

  void commit(output& out);
  void finish(output& out);

 private:
  void come_to_now();
  void insert(std::span<const key_hash> hashes, std::span<std::uint8_t> is_new);
  void write_down(output& out);

  any_filter filter_;
  std::optional<any_filter> file_;
  output& out_;
  window_clock clock_;
  std::uint64_t part_;                     // milliseconds of a generation; 0 by keys
  std::unique_ptr<std::uint64_t> moment_;  // what the clocks of both filters tell
  std::vector<key_hash> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::size_t slice_;  // lines from one look at the rate to the next
  double rate_ = 0;
  double losses_ = 0;
  bool warned_ = false;
};

}  // namespace bloomery::cli
