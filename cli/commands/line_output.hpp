// Output of dedup: new lines go to the output, the others to the file of --suspects.
#pragma once

#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bloomery::cli {

/// Joins neighboring lines of a chunk, ends included, so that long runs are written as one piece.
class line_writer {
 public:
  line_writer(output& to, char line_end) : to_(to), end_(line_end) {}

  void add(std::string_view line) {
    if (run_.data() + run_.size() == line.data()) {
      run_ = {run_.data(), run_.size() + line.size() + 1};
    } else {
      finish();
      run_ = {line.data(), line.size() + 1};
    }
  }

  /// Writes the run. The last line of an input may lack its end. @param text_end  the end of the text
  void finish(const char* text_end = nullptr) {
    if (run_.empty()) return;
    if (text_end != nullptr && run_.data() + run_.size() > text_end) {
      to_.write(run_.substr(0, run_.size() - 1));
      to_.write({&end_, 1});
    } else {
      to_.write(run_);
    }
    run_ = {};
  }

 private:
  output& to_;
  char end_;
  std::string_view run_;
};

/// Writes the new lines of a chunk to the output and the others to `suspects`.
class line_sorter {
 public:
  /// @param suspects  may be null
  line_sorter(output& out, output* suspects, char line_end)
      : kept_(out, line_end), suspects_(suspects), end_(line_end) {}

  /// is_new(i) returns whether line i is new. Returns the number of new lines.
  template <class IsNew>
  std::uint64_t write(const chunk& text, std::span<const std::string_view> lines, IsNew is_new) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (is_new(i)) {
        kept_.add(lines[i]);
        ++count;
      } else if (suspects_ != nullptr) {
        suspects_->write(lines[i]);
        suspects_->write({&end_, 1});
      }
    }
    kept_.finish(text.text().data() + text.size);
    return count;
  }

  /// The same with the batch's is_new.
  std::uint64_t write(const key_batch& batch) {
    return write(batch.text, batch.lines, [&](std::size_t i) { return batch.is_new[i] != 0; });
  }

 private:
  line_writer kept_;
  output* suspects_;
  char end_;
};

}  // namespace bloomery::cli
