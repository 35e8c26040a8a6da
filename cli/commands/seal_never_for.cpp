// bloomery seal INPUT... --never-for FILE -o OUT: builds a filter cascade, which answers correctly for each key of the
// inputs and of FILE.
//
//   $ bloomery seal revoked.txt --never-for valid.txt -o revoked.bloom
//   bloomery: revoked.bloom: 8,000 lines, 8,000 keys; static filter of 9.06 KiB (cascade6, ...), no false positive for
//   900,000 lines of valid.txt, FPR of other keys 0.781%
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/seal.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/system_error.hpp"

#include <bloomery/cascade_builder.hpp>
#include <bloomery/detail/cascade.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

// The keys of FILE are selected and hashed as those of the inputs.
input_options absent_inputs(const seal_options& options) {
  input_options inputs = options.inputs;
  inputs.files = {options.never_for};
  return inputs;
}

params hash_of(const params& hashing) {
  return {.layout = std::string(layouts::split_block512::name),
          .hash = hashing.hash,
          .keys = hashing.keys,
          .seed = hashing.seed,
          .capacity = 1,
          .target_fpr = 0.01,
          .secret = hashing.secret};
}

// FILE is read once to count its keys, once to look them up, and again if a key is in both lists.
void check_never_for(const seal_options& options) {
  check_not_an_input(options.output, "--output", absent_inputs(options));
  std::error_code none;
  if (!options.wanted.secret.empty() && std::filesystem::equivalent(options.never_for, options.wanted.secret, none)) {
    throw error(errc::invalid_argument, {"the file of the secret key is not a list of keys", "--never-for",
                                         "another file", options.never_for, ""});
  }
  if (std::filesystem::is_regular_file(options.never_for, none)) return;
  if (options.never_for != "-" && !std::filesystem::exists(options.never_for, none)) fail("open", options.never_for);
  throw error(errc::invalid_argument, {"--never-for may read its file more than once",
                                       options.never_for,
                                       "a regular file",
                                       "a directory, device or pipe",
                                       {hint::none, "write the keys to a file first"}});
}

// A filter of w bits has an FPR of 2^-(w+1).
unsigned width_of_cascade(const seal_options& options, std::uint64_t present) {
  if (options.width) return static_cast<unsigned>(*options.width);
  if (options.rate) return std::max(2u, width_for(options, present)) - 1;
  const std::uint64_t absent = count_lines(absent_inputs(options), options.common.threads);
  return cascade_builder::width_for(static_cast<double>(present), static_cast<double>(absent));
}

// Names the key of FILE whose hash is also that of a key of the inputs.
[[noreturn]] void refuse_conflict(const seal_options& options, const params& hashing, std::uint64_t hash64) {
  const std::unique_ptr<filter_handle> hasher = make_hasher(hash_of(hashing));
  std::uint64_t before = 0;
  std::optional<std::string> key;
  const bool whole = for_each_batch(
      *hasher, absent_inputs(options), {options.common.threads, false, "", true}, [](key_batch&) {},
      [&](key_batch& batch) {
        const std::span<const key_hash> hashes = batch.prepared.hashes();
        const auto found =
            std::find_if(hashes.begin(), hashes.end(), [&](const key_hash& hash) { return hash.hash64 == hash64; });
        before += static_cast<std::uint64_t>(found - hashes.begin());
        if (found != hashes.end()) key = batch.keys[static_cast<std::size_t>(found - hashes.begin())];
        return !key;
      });
  if (!whole) throw interrupted();
  if (!key) {
    throw error(errc::invalid_argument,
                {"the file has changed while it was read", options.never_for, "", "", {hint::none, "seal again"}});
  }
  throw error(errc::invalid_argument,
              {"a key is in both lists, or has the same hash as a key of the other list",
               options.never_for,
               "keys that are not in the inputs",
               fmt::format("key {}: {}", count_text(before + 1), printable(*key)),
               {hint::none, "remove it from one list; if it is in only one, use another --seed"}});
}

}  // namespace

exit_status seal_never_for(const seal_options& options, const file_version& replaced) {
  check_never_for(options);
  std::vector<std::uint64_t> hash64s;
  const params hashing = collect_hashes(options, [&](std::span<const std::uint64_t> some, std::uint64_t) {
    hash64s.insert(hash64s.end(), some.begin(), some.end());
  });
  const std::uint64_t lines = hash64s.size();
  std::sort(hash64s.begin(), hash64s.end());
  hash64s.erase(std::unique(hash64s.begin(), hash64s.end()), hash64s.end());
  const unsigned width = width_of_cascade(options, hash64s.size());
  check_room(options.output, hash64s.size() * (width + 1) / 8);

  build_progress bars(options.common);
  const auto watch = [&](std::uint64_t keys) {
    if (stop_signal() != 0) throw interrupted();
    bars.show("seal", keys);
  };
  bars.expect(lines);
  cascade_builder builder(std::move(hash64s), width, options.common.threads, watch);
  bars.wipe();
  std::vector<std::uint64_t> some;
  const std::uint64_t absent_lines =
      for_each_hash(hash_of(hashing), absent_inputs(options),
                    {options.common.threads, options.common.progress && !options.common.quiet, "look up", true},
                    [&](std::span<const key_hash> hashes) {
                      some.clear();
                      for (const key_hash& hash : hashes) some.push_back(hash.hash64);
                      builder.append_absent(some);
                    });
  if (const std::optional<std::uint64_t> conflict = builder.conflict()) refuse_conflict(options, hashing, *conflict);
  bars.expect(builder.keys() + builder.false_positives());
  const params p = builder.build(hashing);
  bars.wipe();
  point_of_no_return();
  builder.save(options.output, {.metadata = options.note, .expected = replaced, .no_lock = no_lock()});

  report_sealed(options, p, lines,
                {{"temporary_bytes", 0},
                 {"never_for", {{"lines", absent_lines}, {"false_positives", builder.false_positives()}}}},
                fmt::format("no false positive for {} of {}, FPR of other keys ", counted(absent_lines, "line"),
                            options.never_for));
  return exit_status::found;
}

}  // namespace bloomery::cli
