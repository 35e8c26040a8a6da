// sliced_filter: one pass over the file for its facts, and lookups that read single pages.
#include <bloomery/sliced_filter.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/checks.hpp>

#include "file/layers_file.hpp"
#include "file/open_file.hpp"
#include "file/page_reader.hpp"
#include "filters/explain.hpp"
#include "filters/facts.hpp"
#include "filters/known.hpp"
#include "filters/removal.hpp"
#include "filters/sliced_lookups.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

bool comes_in_slices(const params& p) {
  const family kind = family_of(p);
  return kind == family::plain || kind == family::counting;
}

format::open_file opened(const std::string& path, bool facts_only) {
  format::open_file file = format::open(path, {});
  check_known(file.parameters(), path, facts_only);
  if (comes_in_slices(file.parameters())) return file;
  throw error(errc::incompatible, {"the filter cannot be read in slices", path, "a plain or counting filter",
                                   file.parameters().layout, ""});
}

}  // namespace

struct sliced_filter::impl {
  std::string path;
  std::uint64_t slice_bytes;
  format::page_reader file;
  any_filter keys;  // for hashes and cells

  std::uint32_t cell_bits() const { return cell_bits_of(keys.parameters()); }

  std::uint32_t value(std::uint64_t cell) {
    const std::uint64_t number = cell * cell_bits() / 8 / format::page_bytes;
    const std::uint64_t first_cell = number * (8 * format::page_bytes / cell_bits());
    return cell_value(cell_bits(), file.page(number).data(), cell - first_cell);
  }
};

bool sliced_filter::can_read(const std::string& path) {
  if (format::is_layers_file(path)) return false;
  const format::open_file file = format::open(path, {});
  check_known(file.parameters(), path, /*facts_only=*/true);
  return comes_in_slices(file.parameters());
}

sliced_filter::sliced_filter(const std::string& path, const open_options& options, std::uint64_t slice_bytes) {
  if (slice_bytes == 0 || slice_bytes % fill_scan::slice_unit != 0) {
    throw error(errc::invalid_argument,
                {"invalid size of a slice", "slice_bytes", "a multiple of 4096", std::to_string(slice_bytes), ""});
  }
  format::open_file file = opened(path, options.facts_only);
  any_filter keys = any_filter::without_bytes(file.parameters(), options, path);
  impl_ = std::make_unique<impl>(impl{
      path, slice_bytes, format::page_reader(std::move(file), path, options.check != file_check::header, slice_bytes),
      std::move(keys)});
}

sliced_filter::~sliced_filter() = default;

const file_info& sliced_filter::opened_from() const noexcept { return impl_->file.info(); }

sliced_reading sliced_filter::read(std::uint64_t queries, const slice_work& also) {
  const params& p = parameters();
  const file_info& file = opened_from();
  fill_scan scan(p);
  std::uint64_t full = 0;
  sliced_lookups lookups(impl_->keys, queries, 0, impl_->slice_bytes);
  const format::damage found = impl_->file.each_slice([&](std::uint64_t first, std::span<const std::uint8_t> bytes) {
    scan.add(bytes);
    if (const removal_calls* const removals = removals_of(p)) full += removals->cells_full(p.geometry, bytes);
    lookups.add(first, bytes);
    if (also) also(first, bytes);
  });
  sliced_reading result;
  result.facts = facts_of(p, file.counts, &file, counted_cells{scan.result(), full});
  result.measured = lookups.result();
  try {
    found.throw_if_any(impl_->path);
  } catch (const error& e) {
    result.damage = e;
  }
  return result;
}

capabilities sliced_filter::capabilities() const {
  const params& p = parameters();
  bloomery::capabilities result = capabilities_of(p);
  result.can_insert = result.can_remove = result.can_merge = result.can_clear = false;
  result.lookups_in_parallel = false;
  result.can_look_up = can_hash_keys(p);
  return result;
}

const params& sliced_filter::parameters() const noexcept { return impl_->keys.parameters(); }

filter_summary sliced_filter::summary() {
  const filter_facts facts = info(info_depth::counts);
  filter_summary result;
  result.insert_count = facts.insert_count;
  result.count_is_estimate = facts.count_is_estimate;
  result.capacity = facts.parameters.capacity;
  result.fpr = facts.expected_fpr;
  return result;
}

filter_facts sliced_filter::info(info_depth depth) {
  const file_info& file = opened_from();
  filter_facts facts;
  if (depth == info_depth::counts) {
    facts = facts_of(parameters(), file.counts, &file, std::nullopt);
  } else {
    sliced_reading seen = read(0);
    if (seen.damage) throw error(*seen.damage);
    facts = std::move(seen.facts);
  }
  if (file.parameters.log_id() != 0) facts.log = facts_of_log(impl_->path, file, depth);
  return facts;
}

key_explanation sliced_filter::explain(key_span one_key) {
  return explain_key(impl_->keys, one_key, [this](std::uint64_t cell) { return impl_->value(cell); });
}

cell_view sliced_filter::cells() const {
  throw error(errc::incompatible,
              {"the cells of this filter are read in slices", impl_->path, "a filter in memory or in a mapped file", "",
               "call explain() for the cells of a key"});
}

std::uint64_t sliced_filter::insert_some(key_span, std::uint8_t*) { detail::refuse_writing(impl_->path); }

void sliced_filter::look_up_some(key_span keys, std::uint64_t* bitmap) {
  std::fill_n(bitmap, (keys.size() + 63) / 64, std::uint64_t{0});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::vector<std::uint64_t> cells = cells_of_key(impl_->keys, keys.part(i, 1));
    const bool all = std::all_of(cells.begin(), cells.end(), [&](std::uint64_t at) { return impl_->value(at) != 0; });
    bitmap[i / 64] |= std::uint64_t{all} << i % 64;
  }
}

}  // namespace bloomery
