// Fuzz target for kernels: compares all supported kernel sets with the layouts' definitions, for any keys, sizes and
// alignments.
//
// The first bytes choose layout, form of keys, probes, number of blocks, offset, prefetching and batch sizes; the rest
// are the words of the keys.
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "kernels/kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

namespace {

using namespace bloomery;

void require(bool truth, const char* what, const char* set) {
  if (truth) return;
  std::fprintf(stderr, "broken promise of %s: %s\n", set, what);
  std::abort();
}

// The number of words used; the rest is ignored, for hundreds of runs per second.
constexpr std::size_t most_words = 160;

struct layout_under_test {
  std::uint64_t block_bits;
  bool takes_probes;
  kernels::layout_kernel kernels::kernel_set::*calls;
  bool (*insert_cells)(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;
  bool (*has_cells)(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;
  std::uint64_t (*block_of)(std::uint64_t hash64, std::uint64_t blocks) noexcept;
};

template <class L>
constexpr layout_under_test row_of(bool takes_probes, kernels::layout_kernel kernels::kernel_set::*calls) {
  return {L::block_bits, takes_probes, calls, insert_cells<L>, has_cells<L>, L::block_of};
}

constexpr layout_under_test tested[] = {
    row_of<layouts::split_block>(false, &kernels::kernel_set::split_block),
    row_of<layouts::split_block512>(false, &kernels::kernel_set::split_block512),
    row_of<layouts::blocked>(true, &kernels::kernel_set::blocked),
};

// The choices at the start of the input.
struct choices {
  std::uint8_t layout, form, fetch, probes, offset, insert_batch, look_up_batch, repetitions;
  std::uint16_t blocks;
  std::uint8_t unused[6];
  std::uint64_t whitening;
};
static_assert(sizeof(choices) == 24);

// Keys in the form `form`, on the heap, so that AddressSanitizer detects reads beyond the end.
struct batch {
  std::vector<std::uint64_t> words;
  kernels::form form;
  std::uint64_t whitening;

  batch(kernels::form f, std::uint64_t w, const std::uint64_t* first, std::size_t count) : form(f), whitening(w) {
    for (std::size_t i = 0; i < count; ++i) {
      words.push_back(first[i]);
      if (form == kernels::form::hashes) words.push_back(~first[i]);
    }
  }

  std::size_t size() const { return form == kernels::form::hashes ? words.size() / 2 : words.size(); }
  kernels::keys keys() const { return {words.data(), size(), whitening, form}; }
  key_hash hash(std::size_t i) const {
    switch (form) {
      case kernels::form::hashes: return {words[2 * i], words[2 * i + 1]};
      case kernels::form::hash64s: return {words[i], 0};
      case kernels::form::mixed: break;
    }
    return {mix64(words[i] ^ whitening), 0};
  }
};

// A filter for one kernel set, `offset` bytes from an aligned address, in an allocation of exact size.
struct filter_of_set {
  const kernels::kernel_set* set;
  std::vector<std::uint8_t> bytes;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  choices c{};
  if (size < sizeof c) return 0;
  std::memcpy(&c, data, sizeof c);
  std::vector<std::uint64_t> words(std::min(most_words, (size - sizeof c) / 8));
  if (!words.empty()) std::memcpy(words.data(), data + sizeof c, 8 * words.size());
  // Makes long batches from short inputs: each round rotates the words.
  const std::size_t given = words.size();
  for (std::size_t round = 1; round <= c.repetitions % 8; ++round) {
    for (std::size_t i = 0; i < given; ++i) words.push_back(words[i] * (2 * round + 1) ^ (words[i] >> round));
  }

  const layout_under_test& layout = tested[c.layout % std::size(tested)];
  const auto form = static_cast<kernels::form>(c.form % 3);
  const auto fetch = static_cast<kernels::fetch>(c.fetch % 3);
  const std::uint64_t blocks = c.blocks % 512 + 1;
  const geometry g{blocks * layout.block_bits, layout.takes_probes ? std::max<std::uint32_t>(c.probes, 1) : 8u};
  const std::size_t offset = c.offset % 64;

  std::vector<std::uint8_t> expected(g.bits / 8);
  std::vector<filter_of_set> filters;
  for (const kernels::kernel_set* set : kernels::kernel_sets) {
    if (set->supported()) filters.push_back({set, std::vector<std::uint8_t>(offset + g.bits / 8)});
  }

  const std::size_t insert_batch = std::size_t{c.insert_batch} + 1;
  for (std::size_t first = 0; first < words.size() / 2; first += insert_batch) {
    const batch keys(form, c.whitening, words.data() + first, std::min(insert_batch, words.size() / 2 - first));
    std::vector<std::uint8_t> expected_new;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      expected_new.push_back(layout.insert_cells(expected.data(), g, keys.hash(i)) ? 1 : 0);
    }
    const auto expected_count = static_cast<std::uint64_t>(std::count(expected_new.begin(), expected_new.end(), 1));
    for (filter_of_set& each : filters) {
      const kernels::layout_kernel& kernel = each.set->*layout.calls;
      const kernels::blocks at{each.bytes.data() + offset, blocks, g.probes, fetch};
      std::vector<std::uint8_t> is_new(keys.size(), 7);
      const bool told = first / insert_batch % 3 != 2;
      const std::uint64_t count = kernel.insert(at, keys.keys(), told ? is_new.data() : nullptr);
      require(count == expected_count, "insert returns the number of new keys", each.set->name);
      require(!told || is_new == expected_new, "insert reports the new keys", each.set->name);
    }
  }
  for (const filter_of_set& each : filters) {
    require(std::equal(expected.begin(), expected.end(), each.bytes.begin() + static_cast<std::ptrdiff_t>(offset)),
            "insert sets the cells of the keys and no others", each.set->name);
    require(std::count(each.bytes.begin(), each.bytes.begin() + static_cast<std::ptrdiff_t>(offset), 0) ==
                static_cast<std::ptrdiff_t>(offset),
            "insert writes nothing before the filter", each.set->name);
  }

  const std::size_t look_up_batch = 4 * std::size_t{c.look_up_batch} + 1;
  for (std::size_t first = 0; first < words.size(); first += look_up_batch) {
    const batch keys(form, c.whitening, words.data() + first, std::min(look_up_batch, words.size() - first));
    std::vector<std::uint64_t> answers((keys.size() + 63) / 64);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      answers[i / 64] |= std::uint64_t{layout.has_cells(expected.data(), g, keys.hash(i))} << i % 64;
    }
    for (filter_of_set& each : filters) {
      const kernels::layout_kernel& kernel = each.set->*layout.calls;
      std::vector<std::uint64_t> found(answers.size(), 0xAAAAAAAAAAAAAAAA), hash64s(keys.size());
      kernel.has({each.bytes.data() + offset, blocks, g.probes, fetch}, keys.keys(), found.data());
      require(found == answers, "has agrees with the cells", each.set->name);
      each.set->hash64s(keys.keys(), hash64s.data());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        require(hash64s[i] == keys.hash(i).hash64, "hash64s returns the hash64 of each key", each.set->name);
      }
    }
  }

  // Single-key operations on the filled filter.
  if (!words.empty()) {
    const std::uint64_t hash64 = words.back();
    const std::uint64_t at = layout.block_of(hash64, blocks) * layout.block_bits / 8;
    const bool had = layout.has_cells(expected.data(), g, {hash64, 0});
    const bool is_new = layout.insert_cells(expected.data(), g, {hash64, 0});
    for (filter_of_set& each : filters) {
      const kernels::layout_kernel& kernel = each.set->*layout.calls;
      std::uint8_t* const block = each.bytes.data() + offset + at;
      require(kernel.has_one(block, hash64, g.probes) == had, "has_one agrees with the cells", each.set->name);
      require(kernel.insert_one(block, hash64, g.probes) == is_new, "insert_one reports a new key", each.set->name);
      require(std::equal(expected.begin(), expected.end(), each.bytes.begin() + static_cast<std::ptrdiff_t>(offset)),
              "insert_one sets the cells of the key", each.set->name);
    }
  }
  return 0;
}
