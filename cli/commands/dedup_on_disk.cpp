// Exact dedup of inputs that do not fit into memory, in three passes that keep the order of the lines.
//
//   1. Every key is inserted into the filter. A line that is certainly new is a first occurrence. The others are
//      suspects: nearly all are repetitions, a few are false positives. A second, small filter holds the suspects'
//      keys.
//   2. Candidates are the lines whose key is in the second filter. They are written with their numbers to temporary
//      files, one per partition of the hash space. For each partition, an exact set finds the repeated candidates.
//   3. All lines except the repeated ones are printed.
//
// All copies of a key are in one partition, in the order of the input. The set holds each key once, so a line that is
// repeated a million times costs no memory.
#include "cli/commands/dedup.hpp"
#include "cli/commands/line_output.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/io/csv_header_printer.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/system_error.hpp"
#include "cli/io/temporary_file.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <unordered_set>

namespace bloomery::cli {
namespace {

constexpr std::uint64_t share_memory = std::uint64_t{64}
                                       << 20;  // of the set of a partition, if all its keys are distinct
constexpr std::uint64_t memory_a_key = 72;     // in addition to the key's bytes: node, old and new buckets
constexpr std::uint64_t most_shares = 4000;    // each is an open file
constexpr double suspects_rate = 0.01;
constexpr std::uint64_t most_suspects_bits = std::uint64_t{64} << 23;  // 64 MiB

// Header of a candidate in the file of a partition: the key's bytes follow.
struct record_head {
  std::uint64_t line = 0;
  std::uint64_t key_bytes = 0;
};

// A filter with a capacity of all lines, but at most 64 MiB. If it is too small, more lines than necessary become
// candidates, which costs disk space but not correctness.
params suspects_params(const params& p, std::uint64_t lines) {
  params s = complete({.layout = "split_block",
                       .hash = p.hash,
                       .seed = p.seed,
                       .capacity = lines,
                       .target_fpr = suspects_rate,
                       .secret = p.secret});
  s.geometry.bits = std::min(s.geometry.bits, most_suspects_bits);
  return s;
}

std::uint64_t shares_for(std::uint64_t bytes, std::uint64_t lines) {
  const std::uint64_t files = allow_many_files();
  constexpr std::uint64_t others = 64;  // standard streams, inputs, the process's own
  const std::uint64_t allowed = files > 2 * others ? files - others : others;
  return std::min({(bytes + lines * memory_a_key) / share_memory + 1, most_shares, allowed});
}

class exact_dedup {
 public:
  exact_dedup(const dedup_options& options, filter_handle& filter, std::uint64_t lines)
      : options_(options),
        inputs_(options.inputs),
        filter_(filter),
        suspected_(make_handle(any_filter(suspects_params(filter.parameters(), lines)))),
        dropped_(lines / 64 + 1) {}

  dedup_result run(output& out, output* suspects) {
    find_suspects();
    if (suspects_ > 0) {
      check_room_for_candidates();
      gather_candidates();
      for (temporary_file& share : shares_) settle(share);
    }
    return write(out, suspects);
  }

 private:
  pass_options pass(const char* verb, const output* watched = nullptr) const {
    const bool visible = watched != nullptr && watched->watched();
    return {options_.common.threads, options_.common.progress && !options_.common.quiet && !visible, verb};
  }

  void find_suspects() {
    const bool whole = for_each_batch(
        filter_, inputs_, pass("dedup, 1 of 3"), [](key_batch&) {},
        [&](key_batch& batch) {
          batch.is_new.resize(batch.keys.size());
          filter_.insert(batch.prepared, batch.is_new);
          suspect_hashes_.clear();
          for (std::size_t i = 0; i < batch.lines.size(); ++i) {
            if (batch.is_new[i] != 0) continue;
            suspect_hashes_.push_back(batch.prepared.hashes()[i]);
            suspect_bytes_ += batch.keys[i].size();
          }
          suspected_->insert(suspect_hashes_);
          suspects_ += suspect_hashes_.size();
          lines_ += batch.lines.size();
          text_bytes_ += batch.text.size;
          return true;
        });
    if (!whole) throw interrupted();
    dropped_.resize(lines_ / 64 + 1);
  }

  // Candidates are the suspects, the first occurrences of their keys (at most as many), and false positives of the
  // second filter.
  void check_room_for_candidates() const {
    const double others = suspected_->summary().fpr.value_or(1);
    const auto record_bytes = [](std::uint64_t bytes, std::uint64_t lines) {
      return bytes + lines * sizeof(record_head);
    };
    const double all = static_cast<double>(record_bytes(text_bytes_, lines_));
    const double needed = 2 * static_cast<double>(record_bytes(suspect_bytes_, suspects_)) + 1.1 * others * all;
    const std::uint64_t most = static_cast<std::uint64_t>(std::min(needed, all));
    const std::uint64_t free = temporary_file::room();
    if (most <= free) return;
    throw error(errc::io,
                {"not enough temporary disk space to compare lines", temporary_file::folder(), bytes_text(most),
                 bytes_text(free) + " free", "set TMPDIR to a directory with more space, or give --rate"});
  }

  void gather_candidates() {
    const std::uint64_t shares = shares_for(text_bytes_, lines_);
    for (std::uint64_t i = 0; i < shares; ++i) shares_.emplace_back();
    std::uint64_t line = 0;
    const bool whole = lookups_in(*suspected_)(inputs_, pass("dedup, 2 of 3"), [&](key_batch& batch) {
      for (std::size_t i = 0; i < batch.lines.size(); ++i, ++line) {
        if (!batch.may_contain(i)) continue;
        const record_head head{line, batch.keys[i].size()};
        temporary_file& share = shares_[multiply_high(batch.prepared.hashes()[i].high64, shares)];
        share.append({reinterpret_cast<const char*>(&head), sizeof head});
        share.append(batch.keys[i]);
      }
      return true;
    });
    if (!whole) throw interrupted();
    if (line != lines_) throw changed_input(lines_, line);
  }

  void settle(temporary_file& share) {
    if (stop_signal() != 0) throw interrupted();
    std::pmr::monotonic_buffer_resource arena;
    std::pmr::unordered_set<std::string_view> seen(&arena);
    std::string key;
    share.rewind();
    for (record_head head; share.read({reinterpret_cast<char*>(&head), sizeof head}) == sizeof head;) {
      key.resize(head.key_bytes);
      share.read(key);
      if (seen.contains(key)) {
        dropped_[head.line / 64] |= std::uint64_t{1} << (head.line % 64);
        ++dropped_lines_;
        continue;
      }
      auto* const kept = static_cast<char*>(arena.allocate(key.size() + 1, 1));  // an empty key has an address, too
      std::copy(key.begin(), key.end(), kept);
      seen.emplace(kept, key.size());
    }
    share.discard();
  }

  dedup_result write(output& out, output* suspects) {
    dedup_result result{.mode = dedup_mode::exact};
    line_sorter sorter(out, suspects, inputs_.line_end());
    std::vector<std::string_view> lines;
    reader source(inputs_);
    progress bar(pass("", &out).show_progress, "dedup, 3 of 3");
    csv_header_printer header;
    for (chunk piece; source.next(piece);) {
      header.print(piece, out);
      cut_records(piece.text(), inputs_, lines);
      if (result.lines_in + lines.size() > lines_) throw changed_input(lines_, result.lines_in + lines.size());
      result.lines_out += sorter.write(piece, lines, [&](std::size_t i) {
        const std::uint64_t number = result.lines_in + i;
        return (dropped_[number / 64] >> (number % 64) & 1) == 0;
      });
      result.lines_in += lines.size();
      if (bar.due()) bar.show({result.lines_in, source.bytes_read(), source.bytes_total()});
    }
    out.flush();
    if (suspects != nullptr) suspects->flush();
    result.finished = stop_signal() == 0;
    if (result.finished && result.lines_in < lines_) throw changed_input(lines_, result.lines_in);
    result.rescued = suspects_ - dropped_lines_;
    result.rate = filter_.summary().fpr.value_or(0);
    return result;
  }

  const dedup_options& options_;
  const input_options& inputs_;
  filter_handle& filter_;
  std::unique_ptr<filter_handle> suspected_;
  std::vector<std::uint64_t> dropped_;  // one bit per line
  std::vector<key_hash> suspect_hashes_;
  std::vector<temporary_file> shares_;
  std::uint64_t lines_ = 0;
  std::uint64_t suspects_ = 0;
  std::uint64_t suspect_bytes_ = 0;
  std::uint64_t dropped_lines_ = 0;
  std::uint64_t text_bytes_ = 0;
};

}  // namespace

error changed_input(std::uint64_t before, std::uint64_t now) {
  return {errc::io,
          {"the input changed while it was read", "input", counted(before, "line"), counted(now, "line"),
           "run the command again when no process writes to the input"}};
}

dedup_result dedup_on_disk(const dedup_options& options, const params& filter, std::uint64_t lines, output& out,
                           output* suspects) {
  const std::unique_ptr<filter_handle> made = make_handle(any_filter(filter));
  return exact_dedup(options, *made, lines).run(out, suspects);
}

}  // namespace bloomery::cli
