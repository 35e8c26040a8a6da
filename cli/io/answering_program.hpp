// A program that answers each line of its input with one line of output, such as a filter of another library.
//
//   us:       add ada   has ada   has eve      all lines, without waiting for answers; then the end of the input
//   program:  1         1         0            a line for each, in order, at any time
//
// Lines are written and answers are read at the same time, so neither side can block the other, and the program need
// not flush its output before its input ends.
#pragma once

#include "app/experiment.hpp"
#include "cli/io/child_process.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// Inserted keys that a filter reported as absent.
struct false_negatives {
  std::uint64_t keys = 0;
  std::string first;
};

class answering_program final : public app::remote_filter {
 public:
  /// @param command  for sh -c
  /// @param patience  the time without any progress after which the program is assumed to hang
  /// @param missing  counts the false negatives; must outlive this object
  answering_program(std::string command, std::chrono::milliseconds patience, false_negatives& missing);

  /// All of these throw error io if the program ends early, hangs, or answers anything but the protocol's lines; and
  /// interrupted on a stop signal.
  void insert(std::span<const std::string_view> keys) override;
  void look_up(std::span<const std::string_view> keys, std::uint64_t& found) override;
  void look_up_inserted(std::span<const std::string_view> keys) override;
  void finish() override;

 private:
  // Consecutive lines of one kind, in the order of their answers.
  struct lines {
    std::string_view verb;  // "add" or "has"
    std::size_t count = 0;
    std::size_t answered = 0;
    std::span<const std::string_view> keys = {};  // absent keys
    std::uint64_t* found = nullptr;               // counts the absent keys that are found
    std::vector<std::string> copies = {};         // of inserted keys
  };

  void send(lines of, std::span<const std::string_view> keys);
  void exchange();
  void write_some();
  void read_some();
  void take(std::string_view answer);
  void require_all() const;
  std::string next_line() const;
  [[noreturn]] void refuse_hang() const;
  [[noreturn]] void refuse(const std::string& what, const std::string& expected, const std::string& found,
                           const std::string& hint = "") const;

  std::string command_;
  std::chrono::milliseconds patience_;
  false_negatives& missing_;
  child_process child_;
  std::deque<lines> pending_;
  std::uint64_t sent_ = 0;      // lines
  std::uint64_t answered_ = 0;  // lines
  std::string unwritten_;
  std::size_t written_ = 0;    // bytes of unwritten_ that are written
  std::string unfinished_;     // the beginning of a line of output
  bool input_closed_ = false;  // the program has closed its input
  bool ended_ = false;         // the program has closed its output
};

}  // namespace bloomery::cli
