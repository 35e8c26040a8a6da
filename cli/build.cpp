// bloomery build -o FILTER: a new filter out of keys.
//
//   $ bloomery build -o users.bloom -p 0.1% users.txt
//   bloomery: users.bloom: 1,000,000 keys at 0.1 %: 2.01 MiB (split_block, 16.89 bits a key)
//
// The filter is made in memory and appears as a file when it is whole. Without -n files are counted first; standard
// input, which can be read only once, is kept as hashes in a temporary file until its distinct keys are counted.
#include "commands.hpp"
#include "hash_set.hpp"
#include "key_batch.hpp"
#include "numbers.hpp"
#include "output.hpp"
#include "signals.hpp"
#include "temporary_file.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 0.01;

// Better now than after an hour of reading.
void check_room(const std::string& path, std::uint64_t bytes) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  struct statvfs status {};
  if (::statvfs(parent.empty() ? "." : parent.c_str(), &status) != 0) return;  // saving will say what is wrong
  const std::uint64_t room = std::uint64_t{status.f_bavail} * status.f_frsize;
  if (bytes <= room || !std::filesystem::is_directory(parent.empty() ? "." : parent)) return;
  throw error(errc::too_large, {"no room for this filter", path, bytes_text(bytes), bytes_text(room) + " free",
                                "ask for fewer keys or a higher error rate, or choose another disk"});
}

any_filter make(const build_options& options, std::uint64_t capacity) {
  const params p = params_for(options.wanted, std::max<std::uint64_t>(capacity, 1), default_rate);
  check_room(options.filter, bytes_for(p.geometry.bits));
  return any_filter(p);
}

pass_options pass(const build_options& options, const char* verb) {
  return {options.common.threads, options.common.progress && !options.common.quiet, verb};
}

struct built {
  any_filter filter;
  std::uint64_t keys = 0;  // lines read
};

built build_directly(const build_options& options, std::uint64_t capacity) {
  built b{make(options, capacity)};
  const bool whole = for_each_batch(
      b.filter, options.inputs, pass(options, "build"), [](key_batch&) {},
      [&](key_batch& batch) {
        insert(b.filter, batch);
        b.keys += batch.keys.size();
        return true;
      });
  if (!whole) throw interrupted();
  return b;
}

// Distinct hashes of a spool, a share of the hash space at a time, so that 256 MiB of memory do.
std::uint64_t count_distinct(temporary_file& spool, std::uint64_t hashes) {
  constexpr std::uint64_t room = std::uint64_t{8} << 20;
  const std::uint64_t shares = hashes / (room / 8 * 7) + 1;  // a share is even to within a few thousandths
  hash_set seen(static_cast<std::size_t>(std::min(hashes, room)));
  std::vector<key_hash> piece(4096);
  std::uint64_t distinct = 0;
  for (std::uint64_t share = 0; share < shares; ++share) {
    seen.clear();
    spool.rewind();
    for (;;) {
      const std::size_t got = spool.read({reinterpret_cast<char*>(piece.data()), piece.size() * sizeof(key_hash)});
      if (got == 0) break;
      if (stop_signal() != 0) throw interrupted();
      for (const key_hash& hash : std::span(piece).first(got / sizeof(key_hash))) {
        if (multiply_high(hash.lo, shares) == share && !seen.full()) seen.insert(hash);
      }
    }
    distinct += seen.size();
  }
  return distinct;
}

built build_by_way_of_hashes(const build_options& options) {
  // Hashes do not depend on the size: the smallest filter computes them as well.
  making_options small = options.wanted;
  small.bits.reset();
  small.probes.reset();
  const any_filter hasher(params_for(small, 1, default_rate));
  temporary_file spool;
  std::uint64_t keys = 0;
  const bool whole = for_each_batch(
      hasher, options.inputs, pass(options, "read"), [](key_batch&) {},
      [&](key_batch& batch) {
        spool.append({reinterpret_cast<const char*>(batch.hashes.data()), batch.hashes.size() * sizeof(key_hash)});
        keys += batch.keys.size();
        return true;
      });
  if (!whole) throw interrupted();
  built b{make(options, count_distinct(spool, keys)), keys};
  spool.rewind();
  std::vector<key_hash> piece(4096);
  for (;;) {
    const std::size_t got = spool.read({reinterpret_cast<char*>(piece.data()), piece.size() * sizeof(key_hash)});
    if (got == 0) break;
    if (stop_signal() != 0) throw interrupted();
    b.filter.insert_hashes(std::span(piece).first(got / sizeof(key_hash)));
  }
  return b;
}

// Schemes read the keys themselves, so the text is kept.
built build_by_way_of_text(build_options options) {
  const temporary_file text = spool_text(options.inputs);
  options.inputs.files = {text.path()};
  return build_directly(options, count_lines(options.inputs));
}

built build_from(const build_options& options) {
  if (options.wanted.capacity) return build_directly(options, *options.wanted.capacity);
  if (can_reread(options.inputs)) return build_directly(options, count_lines(options.inputs));
  if (options.wanted.scheme.empty()) return build_by_way_of_hashes(options);
  return build_by_way_of_text(options);
}

}  // namespace

exit_status build(const build_options& options) {
  check_promise(options.wanted);
  check_not_an_input(options.filter, "-o", options.inputs);
  built b = build_from(options);
  b.filter.save(options.filter, options.note);
  const params& p = b.filter.parameters();
  const double rate = rate_now(b.filter);
  if (b.filter.size() > p.capacity) {
    say(fmt::format("{}: warning: more keys than the {} it was made for; error now {} instead of {}; give a larger -n",
                    options.filter, count_text(p.capacity), rate_text(rate), rate_text(p.target_rate)));
  }
  if (options.common.json) {
    const nlohmann::ordered_json result = {{"filter", options.filter},
                                           {"keys", b.keys},
                                           {"new", b.filter.size()},
                                           {"capacity", p.capacity},
                                           {"bytes", b.filter.byte_size()},
                                           {"target_rate", p.target_rate},
                                           {"rate", rate}};
    output out(STDOUT_FILENO, "standard output");
    out.write(result.dump() + "\n");
    out.flush();
  } else if (!options.common.quiet) {
    say(fmt::format("{}: {} lines, {} keys; made for {}", options.filter, count_text(b.keys), count_text(b.filter.size()),
                    size_text(p)));
  }
  return exit_status::found;
}

}  // namespace bloomery::cli
