// fpr_watch: the FPR of a filter while keys are inserted. Warns when the filter exceeds its target FPR (judge_fpr) and
// at each doubling of the FPR after that, and provides the last line of the command and its exit status.
//
//   fpr_watch watch(name);
//   ... insert a batch; watch.after_batch(*filter); ...
//   watch.judge(*filter, filter->summary());  // before commit(), which closes the filter
//   ... commit and report ...
//   return watch.end();                       // prints the last line if the target FPR is exceeded
#pragma once

#include "cli/commands/options.hpp"

#include <bloomery/filter_handle.hpp>
#include <bloomery/judgement.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace bloomery::cli {

/// With more expected false positives among the inserted keys, their number is not reported as exact.
inline constexpr double noticeable_losses = 0.01;

/// The number of distinct keys in a filter, as reported: "1,000", "about 20,000,212" if some of the keys were
/// probably false positives when they were inserted, "at least 73,210" if those cannot be estimated.
/// @param counted      keys that were certainly new: insert_count()
/// @param is_estimate  the count was estimated from the bits
std::string distinct_text(const params& p, std::uint64_t counted, bool is_estimate);

/// The same for keys that were certainly new while the filter had at most its current FPR.
std::string text_of_new_keys(std::uint64_t count, const filter_summary& now);

/// "1 key", "about 20,000,212 keys".
std::string of_keys(const std::string& distinct);

/// distinct_text() of a filter of any kind; for sliding-window filters the keys in the window. Empty if the number is
/// unknown.
std::string distinct_text(const filter_handle& filter, const filter_summary& now);

/// Warns if the size rule of a scheme clearly misses the target FPR: judge_size().
/// @param name  of the filter
void warn_of_size(const std::string& name, const params& p);

class fpr_watch {
 public:
  /// @param name  begins each message: the filter's name, or empty
  explicit fpr_watch(std::string name) : name_(std::move(name)) {}

  /// Warns if the filter exceeds its target FPR and the FPR has doubled since the last warning. The FPR is computed
  /// only after the number of keys has grown by a sixteenth. Filters on servers and counting filters are judged at the
  /// end.
  void after_batch(filter_handle& filter);

  /// The same for a known FPR.
  /// @param keys  in words: "about 1,200 keys"
  void look(const params& p, double fpr, const std::string& keys);

  /// Judges the filter at the end. Guava chains, and filters whose FPR is unknown, are not judged.
  void judge(const filter_handle& filter, const filter_summary& now);
  void judge(const params& p, double fpr, const std::string& keys);

  /// The judgment at the end; no_target before judge().
  const fpr_judgement& judgement() const noexcept { return judgement_; }

  /// Prints the last line if the target FPR is exceeded, and returns the exit status: found or target_missed.
  exit_status end() const;

 private:
  void say_with_name(const std::string& text) const;

  std::string name_;
  std::uint64_t next_look_ = 0;  // number of insertions
  double next_warning_ = 0;      // an FPR
  fpr_judgement judgement_;
  std::string last_line_;  // empty: the target FPR is not exceeded
};

/// Adds the judgment to a JSON object: "fpr_verdict" is "kept", "within_chance", "broken", or "no_target".
void add_verdict(nlohmann::ordered_json& result, const fpr_judgement& judgement);

}  // namespace bloomery::cli
