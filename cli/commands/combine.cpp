// bloomery union and intersect: one filter of several, bit by bit, without their keys.
//
//   $ bloomery union -o week.bloom mon.bloom tue.bloom wed.bloom
//
// The union answers yes for every key of any of them. The intersection answers yes for every key that is in all, and
// more often for others than a filter made of those keys would. No secret is needed: bits are enough.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/fill_statistics.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/mapped_storage.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace bloomery::cli {
namespace {

// How two filters become one.
struct combination {
  const char* name;
  void (*join)(std::span<std::uint8_t> into, std::span<const std::uint8_t> from);
  const char* keys;  // what its number of keys is
};

std::span<const std::uint8_t> bytes_of(const mapped_storage& filter) { return {filter.data(), filter.size()}; }

// Copies are counted, and estimated only where a writer was killed.
key_counts counts_of_copies(const file_info& file, std::span<const std::uint8_t> bytes) {
  if (file.clean) return file.counts;
  key_counts counts = file.counts;
  counts.inserted =
      static_cast<std::uint64_t>(std::llround(layouts::counting::copies_in(file.parameters.geometry, bytes)));
  counts.is_estimate = true;
  return counts;
}

exit_status combine(const combine_options& options, const combination& how) {
  if (options.filters.size() < 2) {
    throw error(errc::invalid_argument, {std::string("nothing to combine with for the ") + how.name, "FILTER",
                                         "two or more filters", "one", ""});
  }
  check_replaceable(options.output, "-o");
  if (how.join == unite_bits && has_window(options.filters.front())) return unite_windows(options);
  loaded_file first = load_file(options.filters.front());
  const params& p = first.info.parameters;
  check_known(p, options.filters.front());
  refuse_window(p, options.filters.front(), how.name);
  const std::span<std::uint8_t> bits(first.bytes.data(), first.bytes.size());
  say_if_dirty(options.filters.front(), first.info);

  const bool intersects = how.join == intersect_bits;
  if (intersects) {
    refuse_counting(options.filters.front(), p, "counting filters have no intersection",
                    "intersect filters of bits made of their keys");
  }
  const bool copies = family_of(p) == family::counting;
  key_counts counts = copies ? counts_of_copies(first.info, bits) : key_counts{};
  const mapped_storage first_alone = open_bits(options.filters.front());
  // In common with the first: of three and more, at most the least of these.
  estimate keys_in_common = intersects ? estimated_keys(p, count_ones(bits)) : estimate{};
  for (std::size_t i = 1; i < options.filters.size(); ++i) {
    if (stop_signal() != 0) throw interrupted();
    const std::string& name = options.filters[i];
    const mapped_storage other = open_bits(name, file_check::payload);
    say_if_dirty(name, other.info());
    check_compatible(options.filters.front(), p, name, other.info().parameters);
    if (intersects) {
      const estimate both = estimate_overlap(p, count_shared(bytes_of(first_alone), bytes_of(other))).keys_both;
      // (Of full filters nothing is known but that the first one's keys are the most.)
      if (std::isfinite(both.sigma) && both.value < keys_in_common.value) keys_in_common = both;
    }
    if (copies) counts = sum_of_counts(counts, counts_of_copies(other.info(), bytes_of(other)));
    (copies ? layouts::counting::merge_bytes : how.join)(bits, bytes_of(other));
  }

  const fill_statistics now = measure_fill(p, bits);
  const estimate keys = intersects ? keys_in_common : estimated_keys(p, now.ones);
  const bool known = std::isfinite(keys.value);
  const bool at_most = intersects && options.filters.size() > 2;
  const bool noise = intersects && known && (keys.is_noise() || now.ones == 0);
  if (stop_signal() != 0) throw interrupted();
  const double certain = known ? keys.value : std::max(estimated_keys(p, p.geometry.bits - 1).value, 1.0);
  if (!copies) counts = {.inserted = counted_of_estimate(p, certain), .is_estimate = true};
  point_of_no_return();
  save_file(options.output, p, bits, counts, first.info.metadata);

  if (options.json) {
    output out(STDOUT_FILENO, "standard output");
    out.write(
        json_line({{"filter", options.output},
                   {"of", options.filters.size()},
                   {"keys", number_or_null(keys.value)},
                   {"keys_sigma", number_or_null(keys.sigma)},
                   {"keys_at_most", at_most},
                   {"keys_noise", noise},
                   {"fill", static_cast<double>(now.ones) / static_cast<double>(p.geometry.bits / cell_bits_of(p))},
                   {"rate", now.current_fpr},
                   {"capacity", p.capacity},
                   {"target_rate", p.target_fpr}}));
    out.flush();
  }
  if (options.quiet) return exit_status::found;
  const std::string number = !known  ? "all bits are set"
                             : noise ? "too few common keys to tell their number"
                                     : (at_most ? "at most " : "") + keys_text(keys, how.keys);
  say(fmt::format("{}: the {} of {} filters: {}; error {}", options.output, how.name, options.filters.size(), number,
                  rate_text(now.current_fpr)));
  if (p.target_fpr > 0 && now.current_fpr > p.target_fpr) {
    say(fmt::format("{}: warning: that is above the promised {}; filters made for more keys have room for {} {}",
                    options.output, rate_text(p.target_fpr), intersects ? "an" : "a", how.name));
  }
  return exit_status::found;
}

bool any_shared(const combine_options& options) {
  return redis_address::is_one(options.output) ||
         std::any_of(options.filters.begin(), options.filters.end(), redis_address::is_one);
}

}  // namespace

exit_status unite(const combine_options& options) {
  if (any_shared(options)) return unite_shared(options);
  is_shared(options.output, options.server);  // refuses options that are about servers
  if (!options.secret.empty()) {
    throw error(errc::invalid_argument,
                {"the bits of files are united without it", "--secret", "", "", "leave it out"});
  }
  return combine(options, {"union", unite_bits, "key"});
}

exit_status intersect(const combine_options& options) {
  refuse_shared(options.output, "intersect");
  for (const std::string& filter : options.filters) refuse_shared(filter, "intersect");
  return combine(options, {"intersection", intersect_bits, "common key"});
}

}  // namespace bloomery::cli
