// sliced_filter: a filter in a file that is read in slices, where files cannot be mapped and memory is scarce, such as
// in WebAssembly modules.
//
// It opens plain and counting filters for reading, and takes memory for one slice. Lookups read a page for each cell of
// a key, so they suit a few keys; read() looks up many random keys in one pass over the file.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// The result of one pass over a file.
struct sliced_reading {
  filter_facts facts;           ///< as filter_handle::info(info_depth::bits) of a mapped file
  measured_rate measured;       ///< as measure_rate()
  std::optional<error> damage;  ///< pages that do not match their checksums
};

/// Example:
///     any_filter(complete({.capacity = 100'000, .target_fpr = 0.01})).save("large.bloom");
///     sliced_filter large("large.bloom", {}, 64 * 1024);
///     std::uint64_t bytes = 0;
///     const auto count = [&](std::uint64_t, std::span<const std::uint8_t> slice) { bytes += slice.size(); };
///     const sliced_reading seen = large.read(1000, count);
///     assert(bytes == seen.facts.bytes && seen.measured.hits == 0 && !seen.damage);
///     assert(!large.contains("Madrid"));
class sliced_filter final : public filter_handle {
 public:
  static constexpr std::uint64_t usual_slice = std::uint64_t{4} << 20;

  /// Whether the file has one plain or counting filter: other filters need all their bytes at once. Reads the header.
  /// @throws error  as mapped_storage::open
  static bool can_read(const std::string& path);

  /// Opens a file for reading. Unless options.check is file_check::header, lookups compare the pages that they read
  /// with their checksums. Of the other options it uses `secret` and `facts_only`.
  /// @param slice_bytes  a multiple of fill_scan::slice_unit
  /// @throws error  as any_filter::open; incompatible: can_read() is false
  explicit sliced_filter(const std::string& path, const open_options& options = {},
                         std::uint64_t slice_bytes = usual_slice);
  ~sliced_filter() override;

  /// The contents of the header.
  const file_info& opened_from() const noexcept;

  /// Receives the number of the first byte of a slice, and its bytes.
  using slice_work = function_ref<void(std::uint64_t first, std::span<const std::uint8_t> bytes)>;

  /// Reads the whole file once, in order.
  /// @param queries  lookups of random absent keys; requires capabilities().can_look_up unless 0
  /// @param also     called with each slice
  /// @throws error  damaged: the file was truncated; io
  sliced_reading read(std::uint64_t queries, const slice_work& also = {});

  bloomery::capabilities capabilities() const override;
  const params& parameters() const noexcept override;
  filter_summary summary() override;
  filter_facts info(info_depth depth) override;  ///< @throws error  also damaged: as read() reports it
  key_explanation explain(key_span one_key) override;
  cell_view cells() const override;  ///< @throws error  incompatible, always

 protected:
  std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) override;
  void look_up_some(key_span keys, std::uint64_t* bitmap) override;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
