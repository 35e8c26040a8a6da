// bloomery build -o FILTER: a new filter out of keys.
//
//   $ bloomery build -o users.bloom -p 0.1% users.txt
//   bloomery: users.bloom: 1,000,000 keys at 0.1 %: 2.01 MiB (split_block, 16.89 bits a key)
//
// The filter is made in memory and appears as a file when it is whole. Without -n files are counted first; standard
// input, which can be read only once, is kept as hashes in a temporary file until its distinct keys are counted.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/logged.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/hash_spool.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/io/temporary_file.hpp"

#include <bloomery/error.hpp>
#include <bloomery/fold.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 0.01;

any_filter make(const build_options& options, std::uint64_t capacity) {
  params p = params_for(options.wanted, std::max<std::uint64_t>(capacity, 1), default_rate);
  if (options.foldable) p.geometry = foldable_geometry(p, 64);
  check_room(options.filter, bytes_for(p.geometry.bits));
  any_filter filter(p);
  set_now(filter, options.wanted.window.now);
  return filter;
}

pass_options pass(const build_options& options, const char* verb) {
  return {options.common.threads, options.common.progress && !options.common.quiet, verb};
}

struct built {
  any_filter filter;
  std::uint64_t keys = 0;      // lines read
  std::uint64_t new_keys = 0;  // of them; a counting filter's size has all copies

  void count_new(std::span<const std::uint8_t> is_new) {
    new_keys += static_cast<std::uint64_t>(std::count(is_new.begin(), is_new.end(), std::uint8_t{1}));
  }
};

built build_directly(const build_options& options, std::uint64_t capacity) {
  built b{make(options, capacity)};
  const bool whole = for_each_batch(
      b.filter, options.inputs, pass(options, "build"), [](key_batch&) {},
      [&](key_batch& batch) {
        insert(b.filter, batch);
        b.keys += batch.keys.size();
        b.count_new(batch.is_new);
        return true;
      });
  if (!whole) throw interrupted();
  return b;
}

built build_by_way_of_hashes(const build_options& options) {
  // Hashes do not depend on the size: the smallest filter computes them as well.
  making_options small = options.wanted;
  small.bits.reset();
  small.probes.reset();
  const any_filter hasher(params_for(small, 1, default_rate));
  hash_spool spool;
  std::uint64_t keys = 0;
  const bool whole = for_each_batch(
      hasher, options.inputs, pass(options, "read"), [](key_batch&) {},
      [&](key_batch& batch) {
        spool.append(batch.hashes);
        keys += batch.keys.size();
        return true;
      });
  if (!whole) throw interrupted();
  built b{make(options, spool.count_distinct()), keys};
  std::vector<std::uint8_t> is_new;
  spool.each([&](std::span<const key_hash> hashes) {
    is_new.resize(hashes.size());
    b.filter.insert_hashes(hashes, is_new);
    b.count_new(is_new);
  });
  return b;
}

// Schemes read the keys themselves, so the text is kept.
built build_by_way_of_text(build_options options) {
  const temporary_file text = spool_text(options.inputs);
  options.inputs.files = {text.path()};
  return build_directly(options, count_lines(options.inputs));
}

built build_from(const build_options& options) {
  if (wants_window(options.wanted)) return build_directly(options, window_capacity_said(options.wanted));
  if (options.wanted.capacity) return build_directly(options, *options.wanted.capacity);
  if (can_reread(options.inputs)) return build_directly(options, count_lines(options.inputs));
  if (options.wanted.scheme.empty()) return build_by_way_of_hashes(options);
  return build_by_way_of_text(options);
}

}  // namespace

exit_status build(const build_options& options) {
  if (is_shared(options.filter, options.server, options.sharing)) return build_shared(options);
  if (options.wanted.scheme == chain_scheme) {
    throw error(errc::invalid_argument,
                {"a chain of bitmaps is on Redis, and this is a file", "-o", "redis://HOST/NAME",
                 "'" + options.filter + "'", "say --scheme guava, or give an address"});
  }
  if (options.foldable && options.wanted.bits) {
    throw error(errc::invalid_argument, {"a size that is given is not rounded up", "--foldable", "", "-m too",
                                         "give -m a multiple of 64 blocks, or leave out one of the two"});
  }
  if (options.foldable && options.wanted.counting) {
    throw error(errc::invalid_argument,
                {"counters are not folded", "--foldable", "", "--counting too", "leave out one of the two"});
  }
  if (options.foldable) refuse_with_window(options.wanted, "--foldable");
  check_promise(options.wanted);
  check_not_an_input(options.filter, "-o", options.inputs);
  check_not_the_key(options.filter, "-o", options.wanted.secret);
  if (options.wanted.growing) return build_growing(options);
  const std::optional<std::uint64_t> old_log = old_log_of(options.filter);
  built b = build_from(options);
  point_of_no_return();
  b.filter.save(options.filter, options.note);
  remove_old_log(options.filter, old_log);
  const params& p = b.filter.parameters();
  const double rate = b.filter.expected_fpr();
  if (b.filter.window()) {
    warn_of_generations(options.filter, b.filter);
  } else if (b.new_keys > p.capacity) {
    say(fmt::format("{}: warning: more keys than the {} it was made for; error now {} instead of {}; give a larger -n",
                    options.filter, count_text(p.capacity), rate_text(rate), rate_text(p.target_fpr)));
  }
  if (options.common.json) {
    nlohmann::ordered_json result = {{"filter", options.filter},
                                     {"keys", b.keys},
                                     {"new", b.new_keys},
                                     {"capacity", p.capacity},
                                     {"bytes", b.filter.byte_size()},
                                     {"target_rate", p.target_fpr},
                                     {"rate", rate},
                                     {"layout", p.layout},
                                     {"scheme", p.scheme},
                                     {"bits", p.geometry.bits},
                                     {"probes", p.geometry.probes}};
    add_window(result, b.filter);
    output out(STDOUT_FILENO, "standard output");
    out.write(json_line(result));
    out.flush();
  } else if (!options.common.quiet) {
    say(fmt::format("{}: {}, {}; made for {}", options.filter, counted(b.keys, "line"), counted(b.new_keys, "key"),
                    size_text(p)));
  }
  return exit_status::found;
}

}  // namespace bloomery::cli
