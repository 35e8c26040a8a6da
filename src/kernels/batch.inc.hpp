// The batch loops of all kernel sets. The file of a set defines BLOOMERY_TARGET and its own struct `ops` and includes
// this file within its unnamed namespace, so that the loops are compiled for its instruction set.
//
// Keys are processed in groups of 64, which is one bitmap word:
//
//   stage    compute choice (plain.inc.hpp) and byte offset of the block of each key, into two arrays
//   test     test each key against its block; if the filter does not fit into the cache, also prefetch a block of the
//            group after the next, so that 128 prefetches are outstanding at any time
//
// No group contains a branch on a key. ops has
//
//   split_block, split_block512, blocked      types with choice(hash64), offset(hash64, blocks),
//                                             one_has(block, choice, probes) and one_insert(...)
//   stage<Layout, Form>(words, count, whitening, blocks, choices, offsets)
//   group_has<Layout, Fetch>(bytes, g, ahead, count, probes)       bit i: key i is present
//   group_insert<Layout, Fetch>(...)                               bit i: key i is new
//   split(hash64s, count, last_lower, lower, upper)                as kernel_set::split
//   stream(to, buffer), fence()               non-temporal store of scatter_buffer words, and the fence after the last

template <class Layout>
using stage_function = void (*)(const std::uint64_t* words, std::size_t count, std::uint64_t whitening,
                                std::uint64_t blocks, std::uint64_t* choices, std::uint64_t* offsets);

// A call per group costs less than instantiating all loops for each form.
template <class Layout>
inline stage_function<Layout> stage_for(form f) {
  switch (f) {
    case form::hashes: return ops::stage<Layout, form::hashes>;
    case form::hash64s: return ops::stage<Layout, form::hash64s>;
    case form::mixed: break;
  }
  return ops::stage<Layout, form::mixed>;
}

// The keys of a batch, group after group.
template <class Layout>
class groups {
 public:
  BLOOMERY_TARGET groups(const blocks& at, const keys& what)
      : at_(at), what_(what), stage_(stage_for<Layout>(what.form)), words_a_key_(what.form == form::hashes ? 2 : 1) {}

  BLOOMERY_TARGET std::size_t size(std::size_t number) const {
    const std::size_t left = what_.count - number * group;
    return left < group ? left : group;
  }

  BLOOMERY_TARGET void stage(std::size_t number, staged& out) const {
    const std::size_t count = size(number);
    stage_(what_.words + words_a_key_ * number * group, count, what_.whitening, at_.count, out.choices, out.offsets);
    // The whole last group may be prefetched.
    for (std::size_t i = count; i < group; ++i) out.offsets[i] = 0;
  }

 private:
  const blocks& at_;
  const keys& what_;
  stage_function<Layout> stage_;
  std::size_t words_a_key_;
};

// Calls work(number, group, group after the next) for each group, in order. Work is a function object with `run`,
// because a lambda cannot have the target attribute.
template <class Layout, fetch Fetch, class Work>
BLOOMERY_TARGET inline void each_group(const blocks& at, const keys& what, Work& work) {
  if (what.count == 0) return;
  const groups<Layout> all(at, what);
  const std::size_t count = (what.count + group - 1) / group;
  if constexpr (Fetch == fetch::none) {
    staged only;
    for (std::size_t number = 0; number < count; ++number) {
      all.stage(number, only);
      work.run(number, all.size(number), only, only);
    }
  } else {
    staged ring[in_flight + 1];
    for (std::size_t number = 0; number < in_flight && number < count; ++number) {
      all.stage(number, ring[number]);
      for (std::size_t i = 0; i < group; ++i) ask_for<Fetch>(at.bytes + ring[number].offsets[i]);
    }
    std::size_t here = 0;
    for (std::size_t number = 0; number < count; ++number) {
      const std::size_t ahead = here == 0 ? in_flight : here - 1;
      const bool more = number + in_flight < count;
      if (more) all.stage(number + in_flight, ring[ahead]);
      work.run(number, all.size(number), ring[here], ring[more ? ahead : here]);
      here = here == in_flight ? 0 : here + 1;
    }
  }
}

// Expands the bits of a word into bytes of 0 or 1.
BLOOMERY_TARGET inline void spread(std::uint64_t bits, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(bits >> i & 1);
}

template <class Layout, fetch Fetch>
struct inserting {
  const blocks& at;
  std::uint8_t* is_new;
  std::uint64_t all_new = 0;

  BLOOMERY_TARGET void run(std::size_t number, std::size_t count, const staged& g, const staged& ahead) {
    const std::uint64_t fresh = ops::group_insert<Layout, Fetch>(at.bytes, g, ahead, count, at.probes);
    all_new += static_cast<std::uint64_t>(__builtin_popcountll(fresh));
    if (is_new != nullptr) spread(fresh, count, is_new + number * group);
  }
};

template <class Layout, fetch Fetch>
struct looking_up {
  const blocks& at;
  std::uint64_t* bitmap;

  BLOOMERY_TARGET void run(std::size_t number, std::size_t count, const staged& g, const staged& ahead) {
    bitmap[number] = ops::group_has<Layout, Fetch>(at.bytes, g, ahead, count, at.probes);
  }
};

template <class Layout, fetch Fetch>
BLOOMERY_TARGET std::uint64_t insert_fetching(const blocks& at, const keys& what, std::uint8_t* is_new) {
  inserting<Layout, Fetch> work{at, is_new};
  each_group<Layout, Fetch>(at, what, work);
  return work.all_new;
}

template <class Layout, fetch Fetch>
BLOOMERY_TARGET void has_fetching(const blocks& at, const keys& what, std::uint64_t* bitmap) {
  looking_up<Layout, Fetch> work{at, bitmap};
  each_group<Layout, Fetch>(at, what, work);
}

template <class Layout>
BLOOMERY_TARGET std::uint64_t insert(const blocks& at, const keys& what, std::uint8_t* is_new) {
  switch (at.fetch) {
    case fetch::none: return insert_fetching<Layout, fetch::none>(at, what, is_new);
    case fetch::first_level: return insert_fetching<Layout, fetch::first_level>(at, what, is_new);
    case fetch::second_level: break;
  }
  return insert_fetching<Layout, fetch::second_level>(at, what, is_new);
}

template <class Layout>
BLOOMERY_TARGET void has(const blocks& at, const keys& what, std::uint64_t* bitmap) {
  switch (at.fetch) {
    case fetch::none: return has_fetching<Layout, fetch::none>(at, what, bitmap);
    case fetch::first_level: return has_fetching<Layout, fetch::first_level>(at, what, bitmap);
    case fetch::second_level: break;
  }
  return has_fetching<Layout, fetch::second_level>(at, what, bitmap);
}

BLOOMERY_TARGET void hash64s(const keys& what, std::uint64_t* hash64s) {
  const auto stage = stage_for<addresses_ops<ops::split_block512>>(what.form);
  const std::size_t words_a_key = what.form == form::hashes ? 2 : 1;
  std::uint64_t unused[group];
  for (std::size_t first = 0; first < what.count; first += group) {
    const std::size_t count = what.count - first < group ? what.count - first : group;
    stage(what.words + words_a_key * first, count, what.whitening, 1, hash64s + first, unused);
  }
}

template <class Layout>
BLOOMERY_TARGET std::size_t scatter_by(const partitions& into, const std::uint64_t* hash64s, std::size_t count) {
  alignas(64) std::uint64_t unused[group];
  alignas(64) std::uint64_t offsets[group];
  constexpr std::uint32_t log_block = Layout::block_bytes == 32 ? 5 : 6;
  for (std::size_t first = 0; first < count; first += group) {
    const std::size_t some = count - first < group ? count - first : group;
    ops::stage<addresses_ops<Layout>, form::hash64s>(hash64s + first, some, 0, into.block_count, unused, offsets);
    for (std::size_t i = 0; i < some; ++i) {
      const std::uint64_t part = offsets[i] >> (into.shift + log_block);
      std::uint64_t* const buffer = into.buffers + part * scatter_buffer;
      if (into.used[part] == scatter_buffer) {
        if (into.filled[part] == into.region_size) {
          ops::fence();
          return first + i;
        }
        ops::stream(into.regions + part * into.region_size + into.filled[part], buffer);
        into.filled[part] += scatter_buffer;
        into.used[part] = 0;
      }
      buffer[into.used[part]++] = hash64s[first + i];
    }
  }
  ops::fence();
  return count;
}

BLOOMERY_TARGET std::size_t scatter(const partitions& into, const std::uint64_t* hash64s, std::size_t count) {
  return into.split_rule ? scatter_by<ops::split_block>(into, hash64s, count)
                         : scatter_by<ops::split_block512>(into, hash64s, count);
}
