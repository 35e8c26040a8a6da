// Operations on all bits of a shared filter: counting, reading, pulling and merging.
#include "platform/machine.hpp"
#include "redis/filter/impl.hpp"
#include "redis/filter/lookup.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace bloomery {

using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

constexpr std::size_t together = 64;       // shards counted in one batch; each takes about a millisecond of server time
constexpr std::uint64_t sample = 4 << 20;  // bytes read from a filter with a window to count its keys
constexpr std::uint64_t piece = 256 << 10;  // bytes of a string that are read by one command
constexpr std::uint64_t pieces = 64;        // in flight

// Masters only: replicas may lag behind, and keys missing from a merge would be missing forever.
constexpr mode from_master = mode::write;

}  // namespace

namespace {

// The names that a layer may have now. The newest layer may be closed during the call: if its former name is read first
// and then its new one, it is found under one of the two.
std::vector<std::string> names_of(const redis::meta& m, std::uint64_t shard, const redis::shard_view& v,
                                  std::size_t l) {
  std::vector<std::string> names = {redis::layer_key(m, shard, v, l)};
  if (m.renames_closed_layers() && l + 1 == v.numbers.size()) {
    names.push_back(redis::closed_layer_key(m, shard, v.numbers[l]));
  }
  return names;
}

}  // namespace

// A key in several generations counts once: the generations of a shard are united. Keys select lines uniformly, so the
// first lines of all shards are a sample of all lines; its error is binomial.
estimate redis_filter::impl::keys_in_window() {
  const redis::meta& m = description;
  const std::uint64_t lines =
      std::clamp<std::uint64_t>(sample / (64 * window_generations * m.shards()), 1, m.first.lines);
  const std::string last = std::to_string(64 * lines - 1);
  const std::size_t bytes = static_cast<std::size_t>(64 * lines);
  std::uint64_t ones = 0;
  for (std::uint64_t first = 0; first < m.shards(); first += together) {
    const std::uint64_t end = std::min<std::uint64_t>(m.shards(), first + together);
    std::vector<std::pair<std::uint64_t, std::int64_t>> asked;
    commands.clear();
    for (std::uint64_t s = first; s < end; ++s) {
      for (const std::int64_t number : view(s).numbers) {
        const std::string name = redis::layer_key(m, s, number);
        commands.begin(redis::slot_of(name), from_master);
        commands.command({"GETRANGE", name, "0", last});
        asked.emplace_back(s, number);
      }
    }
    std::vector<std::uint8_t> bits(bytes * static_cast<std::size_t>(end - first));
    hole_list holes;
    run(
        [&](std::size_t group, reply r) {
          const std::string_view some = r.text();
          if (some.size() != bytes) return holes.push_back(asked[group]);
          std::uint8_t* const to = bits.data() + bytes * static_cast<std::size_t>(asked[group].first - first);
          for (std::size_t i = 0; i < bytes; ++i) to[i] |= static_cast<std::uint8_t>(some[i]);
        },
        "count the keys");
    throw_holes(holes);
    ones += count_ones(bits);
  }
  params seen = m.parameters.filter;
  seen.geometry.bits = 512 * lines * m.shards();
  const estimate some = bloomery::estimated_keys(seen, std::min(ones, seen.geometry.bits));
  if (lines == m.first.lines || !std::isfinite(some.value)) return some;
  const double share = static_cast<double>(lines) / static_cast<double>(m.first.lines);
  return {some.value / share, std::sqrt(some.sigma * some.sigma + some.value * (1 - share)) / share};
}

redis_info redis_filter::impl::info(std::vector<redis_shard>* shards) {
  impl& b = *this;
  b.be_current();
  b.load_all_views();
  const redis::meta& m = b.description;
  redis_info result;
  result.parameters = m.parameters;
  result.epoch = m.epoch;
  result.lines = m.first.lines;
  if (m.expires_at != 0) result.expires_at = m.expires_at;
  if (shards != nullptr) shards->assign(static_cast<std::size_t>(m.shards()), {});

  // Layers of equal size are added up, so that their statistics are computed once.
  struct sum {
    std::uint64_t layers = 0;
    std::uint64_t ones = 0;
  };
  std::map<std::array<std::uint64_t, 3>, sum> sums;  // by number of lines, probes and number of the layer
  std::uint64_t counted = 0;                         // scalable filters: includes reservations
  std::uint64_t reserved = 0;                        // by this client
  for (std::uint64_t first = 0; first < m.shards(); first += together) {
    const std::uint64_t end = std::min<std::uint64_t>(m.shards(), first + together);
    b.commands.clear();
    std::vector<std::pair<std::uint64_t, std::size_t>> asked;
    for (std::uint64_t s = first; s < end; ++s) {
      const shard_view& v = b.view(s);
      result.layers = std::max<std::uint64_t>(result.layers, v.layers.size());
      reserved += v.reserved;
      const std::string header = redis::header_key(m, s);
      b.commands.begin(redis::slot_of(header), from_master);
      b.commands.command({"HGET", header, "count"});
      asked.emplace_back(s, v.layers.size());
      for (std::size_t l = 0; l < v.layers.size(); ++l) {
        const std::string last = std::to_string(64 * v.layers[l].lines - 1);
        b.commands.begin(redis::slot_of(redis::header_key(m, s)), from_master);
        for (const std::string& name : names_of(m, s, v, l)) {
          b.commands.command({m.counts() ? "GETRANGE" : "BITCOUNT", name, "0", last});
          b.commands.command({"STRLEN", name});
        }
        asked.emplace_back(s, l);
      }
    }
    impl::hole_list holes;
    b.run(
        [&](std::size_t number, reply r) {
          const auto [s, l] = asked[number];
          const shard_view& v = b.view(s);
          if (l == v.layers.size()) {
            if (!r.is_nil()) counted += std::strtoull(std::string(r.text()).c_str(), nullptr, 10);
            return;
          }
          const redis_layer& layer = v.layers[l];
          const auto is_whole = [&] { return r.next().integer() >= static_cast<std::int64_t>(layer.string_bytes()); };
          if (!is_whole() && names_of(m, s, v, l).size() > 1) r = r.next().next();
          if (!is_whole()) holes.emplace_back(s, v.numbers[l]);
          sum& to = sums[{layer.lines, layer.probes, static_cast<std::uint64_t>(v.numbers[l])}];
          ++to.layers;
          result.bits += 512 * layer.lines;
          const std::uint64_t ones =
              m.counts() ? layouts::counting::cells_used(
                               {reinterpret_cast<const std::uint8_t*>(r.text().data()), r.text().size()})
                         : static_cast<std::uint64_t>(r.integer());
          to.ones += ones;
          result.ones += ones;
          if (shards == nullptr) return;
          std::vector<redis_shard::layer>& layers = (*shards)[static_cast<std::size_t>(s)].layers;
          layers.resize(v.layers.size());
          layers[l] = {v.numbers[l], layer.whole(1), layer.capacity, ones};
        },
        "count the bits");
    b.throw_holes(holes);
    for (std::uint64_t s = first; s < end && shards != nullptr; ++s) {
      (*shards)[static_cast<std::size_t>(s)].node = b.router.node_of(redis::slot_of(redis::header_key(m, s)));
    }
  }
  double keys = 0;
  double most = 0;  // of one generation of a window
  for (const auto& [size, of] : sums) {
    params p = m.parameters.filter;
    p.geometry = {512 * size[0] * of.layers, static_cast<std::uint32_t>(size[1])};
    const estimate some = bloomery::estimated_keys(p, std::min(of.ones, p.geometry.bits));
    keys += some.value;
    most = std::max(most, some.value);
    // A lookup reads one of S shards; this is the fraction of shards with such a layer.
    const double share = static_cast<double>(of.layers) / static_cast<double>(m.shards());
    if (std::isfinite(some.value)) {
      result.rate_now +=
          share * b.layout->expected_fpr(p.geometry, static_cast<std::uint64_t>(std::llround(some.value)));
    } else {
      result.rate_now += share;
    }
  }
  result.rate_now = std::min(result.rate_now, 1.0);
  // The sample may miss all of a few keys. The generations are counted in full, but may have keys in common.
  if (m.has_window()) keys = std::clamp(b.keys_in_window().value, most, keys);
  result.is_estimate = !m.grows();
  result.inserted = m.grows() ? counted - std::min(reserved, counted)
                              : static_cast<std::uint64_t>(std::min(keys + 0.5, static_cast<double>(beyond_counting)));
  return result;
}

redis_info redis_filter::info(std::vector<redis_shard>* shards) {
  return redis::begin_again([&] { return impl_->info(shards); });
}

estimate redis_filter::card() {
  impl& b = *impl_;
  if (b.description.has_window()) {
    return redis::begin_again([&] {
      b.be_current();
      b.load_all_views();
      return b.keys_in_window();
    });
  }
  const redis_info i = info();
  if (!i.is_estimate) return {static_cast<double>(i.inserted), 0};
  return bloomery::estimated_keys(i.parameters.filter, std::min(i.ones, i.parameters.filter.geometry.bits));
}

// ---- reading lines --------------------------------------------------------------------------------------------------

namespace {

struct run_of_lines {
  std::uint64_t shard;
  std::int64_t layer;
  std::vector<std::string> names;  // possible names of the layer
  std::uint64_t first;
  std::uint64_t lines;
};

// Calls work(first, lines) with runs of the lines 0 .. lines - 1: all of them, or the fraction `share`.
template <class Work>
void each_run(std::uint64_t lines, double share, Work work) {
  constexpr std::uint64_t lines_of_piece = piece / cache_line_bytes;
  constexpr std::uint64_t sampled = 64;
  if (share >= 1) {
    for (std::uint64_t at = 0; at < lines; at += lines_of_piece) work(at, std::min(lines_of_piece, lines - at));
    return;
  }
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(lines) / sampled);
  const std::uint64_t runs = std::max<std::uint64_t>(wanted, 1);  // at most lines / 64, so runs are disjoint
  for (std::uint64_t i = 0; i < runs; ++i) {
    const auto first =
        static_cast<std::uint64_t>(static_cast<double>(lines) / static_cast<double>(runs) * static_cast<double>(i));
    work(first, std::min(sampled, lines - first));
  }
}

}  // namespace

void redis_filter::read_lines(std::uint64_t most, const std::function<void(const redis_lines&)>& hear) {
  constexpr std::size_t most_runs = 1024;  // in flight; their bytes are limited as in pull()
  impl& b = *impl_;
  b.be_current();
  b.load_all_views();
  const redis::meta m = b.description;
  std::uint64_t all = 0;
  for (std::uint64_t s = 0; s < m.shards(); ++s) {
    for (const redis_layer& layer : b.view(s).layers) all += layer.lines * cache_line_bytes;
  }
  const double share = all <= most ? 1 : static_cast<double>(most) / static_cast<double>(all);

  std::vector<run_of_lines> runs;
  std::uint64_t bytes = 0;
  const auto fetch = [&] {
    b.commands.clear();
    for (const run_of_lines& one : runs) {
      b.commands.begin(redis::slot_of(redis::header_key(m, one.shard)), from_master);
      for (const std::string& name : one.names) {
        b.commands.command({"GETRANGE", name, std::to_string(one.first * cache_line_bytes),
                            std::to_string((one.first + one.lines) * cache_line_bytes - 1)});
      }
    }
    impl::hole_list holes;
    b.run(
        [&](std::size_t number, reply r) {
          const run_of_lines& one = runs[number];
          std::string_view text = r.text();
          // A client that does not know yet that the layer is closed may write to its former name.
          if (one.names.size() > 1 && !r.next().text().empty()) text = r.next().text();
          if (text.size() != one.lines * cache_line_bytes) {
            holes.emplace_back(one.shard, one.layer);
            return;
          }
          hear({one.shard,
                one.layer,
                one.first,
                {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()},
                m.epoch});
        },
        "read the bits");
    b.throw_holes(holes);
    runs.clear();
    bytes = 0;
  };
  for (std::uint64_t s = 0; s < m.shards(); ++s) {
    const shard_view v = b.view(s);  // a copy, so that a generation that begins during the call is not read
    for (std::size_t l = 0; l < v.layers.size(); ++l) {
      each_run(v.layers[l].lines, share, [&](std::uint64_t first, std::uint64_t lines) {
        runs.push_back({s, v.numbers[l], names_of(m, s, v, l), first, lines});
        bytes += lines * cache_line_bytes;
        if (runs.size() == most_runs || bytes >= pieces * piece) fetch();
      });
    }
  }
  if (!runs.empty()) fetch();
}

// ---- pull and merge -------------------------------------------------------------------------------------------------

namespace {

void want_ungrown(const redis::meta& m, const std::string& where, const char* what, const char* instead_of_layers,
                  const char* instead_of_window) {
  if (!m.has_window() && !m.grows()) return;
  throw error(errc::incompatible, {std::string("this filter cannot be ") + what, where, "a filter of fixed size",
                                   m.has_window() ? "a sliding-window filter" : "a scalable filter",
                                   m.has_window() ? instead_of_window : instead_of_layers});
}

}  // namespace

any_filter redis_filter::pull() {
  impl& b = *impl_;
  b.be_current();
  want_ungrown(b.description, b.where(), "pulled", "pull it alone, which copies its layers to a file",
               "pull it alone, which copies its slices to a file");
  const redis::meta m = b.description;
  params p = m.parameters.filter;
  p.secret = b.options.secret;
  heap_storage storage(bytes_for(p.geometry.bits));
  const std::uint64_t of_shard = 64 * m.first.lines;
  struct part {
    std::uint64_t shard;
    std::uint64_t from;
    std::uint64_t bytes;
  };
  std::vector<part> parts;
  unsigned rounds_in_vain = 0;
  const auto fetch = [&] {
    b.commands.clear();
    for (const part& one : parts) {
      const std::string name = redis::layer_key(m, one.shard, 0);
      b.commands.begin(redis::slot_of(name), from_master);
      b.commands.command({"GETRANGE", name, std::to_string(one.from), std::to_string(one.from + one.bytes - 1)});
      b.commands.command({"GETRANGE", name, "-16", "-1"});
    }
    std::vector<std::uint64_t> stale;
    b.run(
        [&](std::size_t number, reply r) {
          const part& one = parts[number];
          if (r.text().size() != one.bytes || r.next().text() != redis::text_of(b.view(one.shard).stamp)) {
            stale.push_back(one.shard);
            return;
          }
          std::memcpy(storage.data() + one.shard * of_shard + one.from, r.text().data(), r.text().size());
        },
        "copy the filter");
    redis::make_distinct(stale);
    const std::size_t asked = parts.size();
    std::erase_if(parts, [&](const part& one) { return !std::binary_search(stale.begin(), stale.end(), one.shard); });
    rounds_in_vain = parts.size() == asked ? rounds_in_vain + 1 : 0;
    if (rounds_in_vain == redis::most_rounds) redis::throw_restless(b.address);
    if (!stale.empty() && b.explain_stale(stale, redis::access::look_up)) {
      throw error(errc::locked, {"the filter was replaced during the copy", b.where(), "", "", hint::pull_again});
    }
  };
  for (std::uint64_t s = 0; s < m.shards(); ++s) {
    for (std::uint64_t from = 0; from < of_shard; from += piece) {
      parts.push_back({s, from, std::min(piece, of_shard - from)});
      if (parts.size() == pieces) {
        while (!parts.empty()) fetch();
      }
    }
  }
  while (!parts.empty()) fetch();
  return any_filter(std::move(p), std::move(storage));
}

// Sets the bits of a local filter with the same geometry, shard by shard.
void redis_filter::impl::merge(std::span<const std::uint8_t> bytes) {
  const std::uint64_t of_shard = 64 * description.first.lines;
  for (std::uint64_t s = 0; s < description.shards(); ++s) {
    merge_into_newest(s, bytes.subspan(static_cast<std::size_t>(s * of_shard), static_cast<std::size_t>(of_shard)));
  }
}

// Sets bits of the newest layer of a shard.
void redis_filter::impl::merge_into_newest(std::uint64_t s, std::span<const std::uint8_t> lines) {
  const bool empty = std::all_of(lines.begin(), lines.end(), [](std::uint8_t byte) { return byte == 0; });
  const std::int64_t layer = view(s).newest();
  for (bool done = empty; !done;) {
    const std::string header = redis::header_key(description, s);
    const std::string name = redis::layer_key(description, s, layer);
    commands.clear();
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::merge, 3, 2);
    commands.word(header);
    commands.word(name);
    commands.word(name + ":merge");
    commands.word(redis::text_of(view(s).stamp));
    commands.word(std::string_view(reinterpret_cast<const char*>(lines.data()), lines.size()));
    run([&](std::size_t, reply r) { done = r.integer() == 1; }, "merge into the filter");
    const std::uint64_t shards[] = {s};
    if (!done && (explain_stale(shards, redis::access::look_up) || view(s).newest() != layer)) {
      throw error(errc::locked, {"the filter was replaced during the call", where(), "", "", hint::merge_again});
    }
  }
  if (empty || view(s).next.empty()) return;
  const std::uint64_t epoch = description.epoch;
  const bool is_replaced = replacement() != nullptr || description.epoch != epoch;
  if (is_replaced) {
    throw error(errc::locked, {"the filter is being replaced, and the new filter does not have these keys", where(), "",
                               "", hint::merge_after_replacement});
  }
  const std::uint64_t shards[] = {s};  // removes the mark of a replacement that was given up
  unmark(shards);
}

void redis_filter::merge(redis_filter& other) { merge(other.pull()); }

void redis_filter::merge(const any_filter& other) {
  impl& b = *impl_;
  b.be_current();
  want_ungrown(b.description, b.where(), "merged into", "insert the keys, or choose another name",
               "insert the keys, or choose another name");
  if (b.description.counts()) {
    throw error(errc::incompatible, {"counting filters on servers cannot be merged", b.where(), "a plain layout",
                                     "counting", hint::insert_keys});
  }
  params mine = b.description.parameters.filter;
  mine.secret = b.options.secret;
  if (const std::string differs = difference(mine, other.parameters()); !differs.empty()) {
    throw error(errc::incompatible, {"the filters differ in " + differs, b.where(), "", "", hint::merge_like_filters});
  }
  // Repeated like insert(): a server that crashed may have lost keys that were merged before.
  for (int attempt = 0; attempt < redis::most_beginnings; ++attempt) {
    b.router.forget_answers();
    b.merge(other.bytes());
    if (!b.router.has_lost_answers()) return;
  }
  throw error(errc::unavailable,
              {"connections were lost again and again during the merge", b.where(), "", "", hint::try_again});
}

}  // namespace bloomery
