// dedup in memory: pipes by 70 bits of each line's hash, files exactly.
//
// The exact mode makes two passes over the input and keeps only the texts of repeated keys:
//
//   1. Every key is inserted into a filter with an FPR of 1%. Keys that the filter reports present are suspects. A set
//      keeps their hashes.
//   2. A line whose key is not a suspect occurs once and is printed. The texts of suspects are kept and compared, so
//      that the first line of each text is printed.
#include "app/signals.hpp"
#include "cli/commands/dedup.hpp"
#include "cli/commands/line_output.hpp"
#include "cli/io/csv_header_printer.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/key_table.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace bloomery::cli {
namespace {

constexpr std::size_t ahead = 12;  // keys whose slots are prefetched

// Puts the chosen keys of a batch into batch.order, sorted by group. Each step inserts one group.
template <class Table, class Chosen>
void sort_by_group(key_batch& batch, Chosen chosen) {
  const std::span<const key_hash> hashes = batch.prepared.hashes();
  batch.step_ends.assign(Table::groups, 0);
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (!chosen(i)) continue;
    ++batch.step_ends[Table::group_of(hashes[i])];
    ++total;
  }
  batch.order.resize(total);
  std::uint32_t start = 0;
  for (std::uint32_t& end : batch.step_ends) start += std::exchange(end, start);
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (chosen(i)) batch.order[batch.step_ends[Table::group_of(hashes[i])]++] = static_cast<std::uint32_t>(i);
}

template <class Table>
void insert_group(Table& table, key_batch& batch, unsigned group) {
  const std::span<const key_hash> hashes = batch.prepared.hashes();
  const std::size_t end = batch.step_ends[group];
  for (std::size_t at = group == 0 ? 0 : batch.step_ends[group - 1]; at < end; ++at) {
    if (at + ahead < end) table.prefetch(hashes[batch.order[at + ahead]]);
    const std::uint32_t i = batch.order[at];
    batch.is_new[i] = table.insert(hashes[i], batch.keys[i]) ? 1 : 0;
  }
}

pass_options pass_of(const dedup_options& options, const char* verb, const output* watched = nullptr) {
  const bool visible = watched != nullptr && watched->watched();
  return {options.common.threads, options.common.progress && !options.common.quiet && !visible, verb};
}

// Inserts the keys that `choose(batch)` has put into batch.order, and writes the new lines.
// @throws error io: the input has more than `most_lines`
template <class Table, class Choose>
dedup_result write_new_lines(const dedup_options& options, const params& hashing, Table& table, const char* verb,
                             output& out, output* suspects, std::uint64_t most_lines, Choose choose) {
  const std::unique_ptr<filter_handle> hasher = make_hasher(hashing);
  line_sorter sorter(out, suspects, options.inputs.line_end());
  pass_options pass = pass_of(options, verb, &out);
  pass.only_hashes = true;
  pass.steps = Table::groups;
  pass.step = [&](key_batch& batch, unsigned group) { insert_group(table, batch, group); };
  dedup_result result;
  csv_header_printer header;
  result.finished = for_each_batch(*hasher, options.inputs, pass, choose, [&](key_batch& batch) {
    // Lines that the first pass did not see would be printed unchecked.
    if (result.lines_in + batch.lines.size() > most_lines)
      throw changed_input(most_lines, result.lines_in + batch.lines.size());
    header.print(batch.text, out);
    result.lines_out += sorter.write(batch);
    result.lines_in += batch.lines.size();
    if (out.watched() || batch.text.may_wait) out.flush();
    return true;
  });
  out.flush();
  if (suspects != nullptr) suspects->flush();
  return result;
}

// The keys that the filter reported present.
struct suspected_keys {
  key_table<hash_slot> hashes;
  std::uint64_t lines = 0;  // number of their lines, except each first one
  std::uint64_t lines_in_all = 0;
};

suspected_keys find_suspects(const dedup_options& options, filter_handle& filter) {
  suspected_keys suspects;
  const bool whole = for_each_batch(
      filter, options.inputs, pass_of(options, "dedup, 1 of 2"), [](key_batch&) {},
      [&](key_batch& batch) {
        const std::span<const key_hash> hashes = batch.prepared.hashes();
        batch.is_new.resize(hashes.size());
        suspects.lines_in_all += batch.lines.size();
        filter.insert(batch.prepared, batch.is_new);
        for (std::size_t i = 0; i < hashes.size(); ++i) {
          if (batch.is_new[i] != 0) continue;
          suspects.hashes.insert(hashes[i], {});
          ++suspects.lines;
        }
        return true;
      });
  if (!whole) throw interrupted();
  return suspects;
}

}  // namespace

std::uint64_t memory_to_remember(const text_size& size) {
  // The worst case is each key twice, so that half of the lines are repetitions: the text with its length, its slot,
  // and the slot of its hash. While it grows, a partition may be only 40% to 60% full.
  constexpr std::uint64_t filter = 2;
  constexpr std::uint64_t suspect = 8 + 16 * 10 / 4 + 8 * 10 / 6;
  return size.bytes / 2 + size.lines / 2 * suspect + size.lines * filter;
}

dedup_result dedup_in_memory(const dedup_options& options, const params& filter, output& out, output* suspects) {
  const suspected_keys suspected = find_suspects(options, *make_handle(any_filter(filter)));
  key_table<text_slot> repeated;
  dedup_result result = write_new_lines(
      options, filter, repeated, "dedup, 2 of 2", out, suspects, suspected.lines_in_all, [&](key_batch& batch) {
        const std::span<const key_hash> hashes = batch.prepared.hashes();
        batch.is_new.resize(hashes.size());
        for (std::size_t i = 0; i < hashes.size(); ++i) {
          if (i + ahead < hashes.size()) suspected.hashes.prefetch(hashes[i + ahead]);
          batch.is_new[i] = suspected.hashes.contains(hashes[i]) ? 0 : 1;
        }
        sort_by_group<key_table<text_slot>>(batch, [&](std::size_t i) { return batch.is_new[i] == 0; });
      });
  result.mode = dedup_mode::exact;
  if (result.finished && result.lines_in < suspected.lines_in_all)
    throw changed_input(suspected.lines_in_all, result.lines_in);
  if (result.finished) result.rescued = suspected.lines - (result.lines_in - result.lines_out);
  return result;
}

dedup_result dedup_by_hash(const dedup_options& options, output& out, output* suspects) {
  using table_type = key_table<hash_slot>;
  table_type table;
  // The table keeps bits of both words of a hash. The default hash of this layout has both.
  params hashing = hashing_of(options);
  hashing.layout = layouts::classic::name;
  dedup_result result =
      write_new_lines(options, hashing, table, "dedup", out, suspects, ~std::uint64_t{0}, [](key_batch& batch) {
        batch.is_new.resize(batch.keys.size());
        sort_by_group<table_type>(batch, [](std::size_t) { return true; });
      });
  const auto kept = static_cast<double>(result.lines_out);
  result.mode = dedup_mode::hashes;
  result.expected_losses = losses_by_hash(kept);
  result.stated_losses = default_losses;
  result.rate = 2 * result.expected_losses / std::max(kept, 1.0);
  return result;
}

}  // namespace bloomery::cli
