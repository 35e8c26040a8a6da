// Options of seal and functions for both of its files: any static filter (seal.cpp), and a cascade for two lists
// (seal_never_for.cpp).
#pragma once

#include "cli/commands/options.hpp"
#include "cli/io/progress.hpp"

#include <bloomery/params.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace bloomery::cli {

struct seal_options {
  std::string output;
  std::optional<std::uint64_t> width;  ///< bits of a fingerprint: 1 to 32
  std::optional<double> rate;          ///< target FPR, instead of a width
  bool ribbon = false;
  std::string never_for;  ///< a file of keys that are never reported; empty: none
  making_options wanted;  ///< only hash, seed, kind of keys, secret
  std::string note;
  input_options inputs;                 ///< files of keys, or one filter with a key log
  std::optional<std::uint64_t> memory;  ///< limit, in bits
  common_options common;
};

/// Takes the hash64 of keys. @param text_bytes  of the input with these keys; 0: unknown
using hash_sink = std::function<void(std::span<const std::uint64_t> hash64s, std::uint64_t text_bytes)>;

/// Passes the hashes of all inputs, in order. @return the parameters of their hash
/// @throws error as for_each_hash(); incompatible, invalid_argument, damaged: a filter without a usable key log
params collect_hashes(const seal_options& options, const hash_sink& to);

/// A progress bar for each step of the build.
class build_progress {
 public:
  explicit build_progress(const common_options& common) : shown_(common.progress && !common.quiet) {}

  void expect(std::uint64_t keys) { all_ = keys; }

  void show(const char* step, std::uint64_t keys) {
    if (!bar_ || step != step_) bar_.emplace(shown_, step);
    step_ = step;
    if (bar_->due()) bar_->show({keys, keys, all_, -1, -1});
  }

  void wipe() { bar_.reset(); }

 private:
  bool shown_;
  std::uint64_t all_ = 0;
  std::string step_;
  std::optional<progress> bar_;
};

/// Reports the finished filter: a line, or JSON with the members of `more` at the end.
/// @param rate_words  before the FPR: "FPR "
void report_sealed(const seal_options& options, const params& p, std::uint64_t lines,
                   const nlohmann::ordered_json& more, const std::string& rate_words);

/// The width of fingerprints for this number of keys. @throws error too_large: none keeps the target FPR
unsigned width_for(const seal_options& options, std::uint64_t keys);

/// Seals a filter with --never-for. The options and the output have been checked.
exit_status seal_never_for(const seal_options& options, const file_version& replaced);

}  // namespace bloomery::cli
