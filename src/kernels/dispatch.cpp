// The choice of the kernel set, and the calls of layouts to it.
#include "kernels/dispatch.hpp"

#include <bloomery/kernel.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "layouts/fuse_lookup.hpp"
#include "layouts/quotient_operations.hpp"
#include "layouts/ribbon_lookup.hpp"
#include "layouts/sliding_positions.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

namespace bloomery {
namespace {

// Kernels for x86-64 include no headers of bloomery, so they have copies of these constants.
static_assert(std::equal(std::begin(layouts::split_block::salt), std::end(layouts::split_block::salt),
                         std::begin(kernels::split_block_salt)));
static_assert(std::equal(std::begin(layouts::split_block::salt), std::end(layouts::split_block::salt),
                         std::begin(detail::for_single_keys.salts)));
static_assert(layouts::split_block512::multiplier == detail::for_single_keys.multiplier);
static_assert(layouts::split_block512::multiplier == kernels::golden_multiplier &&
              probe_sequence::multiplier == kernels::golden_multiplier);
static_assert(probe_sequence::step == kernels::blocked_step);
static_assert(mix64(1) == [] {
  std::uint64_t x = 1 * kernels::mix_first;
  x ^= x >> 33;
  x *= kernels::mix_second;
  return x ^ (x >> 27);
}());
static_assert(std::endian::native == std::endian::little, "the kernels load words in little-endian order");

// The choice and its reason. Inserts and lookups trigger it and must not throw, so nothing here allocates memory.
struct choice_of_kernels {
  const kernels::kernel_set* set;
  std::array<char, 64> requested;  // zero-terminated
  bool refused;
};

choice_of_kernels choose() noexcept {
  choice_of_kernels choice{kernels::kernel_sets[0], {}, false};
  const char* const wish = std::getenv("BLOOMERY_KERNEL");
  const std::string_view wanted = wish == nullptr ? "" : wish;
  wanted.copy(choice.requested.data(), choice.requested.size() - 1);
  const kernels::kernel_set* named = nullptr;
  for (const kernels::kernel_set* set : kernels::kernel_sets) {
    if (!set->supported()) continue;
    choice.set = set;  // the last one is the fastest
    if (wanted == set->name) named = set;
  }
  choice.refused = !wanted.empty() && named == nullptr;
  if (named != nullptr) choice.set = named;
  return choice;
}

const choice_of_kernels& the_choice() noexcept {
  static const choice_of_kernels choice = choose();
  return choice;
}

// The chosen set as a number, for direct calls on single keys: 0 before the first use, then its index in kernel_sets
// plus 1.
std::atomic<int> chosen_number{0};

int number_of(const kernels::kernel_set* set) {
  return static_cast<int>(std::find(std::begin(kernels::kernel_sets), std::end(kernels::kernel_sets), set) -
                          std::begin(kernels::kernel_sets)) +
         1;
}

template <class L>
const kernels::layout_kernel& kernel_of(const kernels::kernel_set& set) noexcept {
  if constexpr (std::same_as<L, layouts::split_block>) return set.split_block;
  if constexpr (std::same_as<L, layouts::split_block512>) return set.split_block512;
  if constexpr (std::same_as<L, layouts::blocked>) return set.blocked;
}

kernels::form form_of(hash_span::kind kind) noexcept {
  switch (kind) {
    case hash_span::kind::hashes: return kernels::form::hashes;
    case hash_span::kind::hash64s: return kernels::form::hash64s;
    case hash_span::kind::mixed: break;
  }
  return kernels::form::mixed;
}

// Kernels take a non-const pointer for lookups, too, but do not write.
template <class L>
kernels::blocks blocks_of(const std::uint8_t* bytes, const geometry& g) noexcept {
  return {const_cast<std::uint8_t*>(bytes), g.bits / L::block_bits, g.probes, fetch_for(g.bits / 8)};
}

detail::inline_set inline_set_of(std::string_view kernels) {
  if (kernels == "avx512") return detail::inline_set::avx512;
  return kernels == "avx2" ? detail::inline_set::avx2 : detail::inline_set::none;
}

}  // namespace

const detail::inline_set detail::chosen_inline_set = inline_set_of(the_choice().set->name);

kernels::fetch fetch_for(std::uint64_t bytes) {
  static const std::uint64_t near = own_cache_size();
  static const bool to_first_level = is_amd();
  if (bytes <= near) return kernels::fetch::none;
  return to_first_level ? kernels::fetch::first_level : kernels::fetch::second_level;
}

kernels::keys kernel_keys(const hash_span& keys) noexcept {
  return {keys.words(), keys.size(), keys.whitening(), form_of(keys.form())};
}

const kernels::kernel_set& chosen_kernels() noexcept {
  const kernels::kernel_set& chosen = *the_choice().set;
  // Stored once: a store at every call would cause contention for the cache line.
  if (chosen_number.load(std::memory_order_relaxed) == 0) [[unlikely]]
    chosen_number.store(number_of(&chosen), std::memory_order_relaxed);
  return chosen;
}

void hash64s_of(const hash_span& keys, std::uint64_t* hash64s) noexcept {
  if (keys.size() == 1) {  // faster than a batch of one
    hash64s[0] = keys.hash64(0);
    return;
  }
  chosen_kernels().hash64s(kernel_keys(keys), hash64s);
}

kernels::sliding_positions kernels::chosen_sliding_positions() {
  return std::string_view(chosen_kernels().name) == "avx512" ? sliding_positions_avx512 : nullptr;
}

kernels::fuse_lookup kernels::chosen_fuse_lookup() {
  return std::string_view(chosen_kernels().name) == "avx512" ? fuse_lookup_avx512 : fuse_lookup_plain;
}

kernels::ribbon_combine kernels::chosen_ribbon_combine() {
  return std::string_view(chosen_kernels().name) == "avx512" ? ribbon_combine_avx512 : ribbon_combine_plain;
}

const kernels::quotient_kernel& kernels::chosen_quotient() {
  static const quotient_kernel& chosen = []() -> const quotient_kernel& {
    [[maybe_unused]] const std::string_view name = chosen_kernels().name;
#if defined(__x86_64__)
    if (name == "avx512") return quotient_avx512;
    if (name == "avx2") return quotient_avx2;
#elif defined(__aarch64__)
    if (name == "neon") return quotient_neon;
#endif
    return quotient_plain;
  }();
  return chosen;
}

std::string kernel_name() { return chosen_kernels().name; }

kernel_choice kernel_info() {
  const choice_of_kernels& choice = the_choice();
  return {choice.set->name, choice.requested.data(), choice.refused};
}

std::vector<kernel_description> kernel_list() {
  const kernels::kernel_set& chosen = chosen_kernels();
  std::vector<kernel_description> list;
  for (const kernels::kernel_set* set : kernels::kernel_sets) {
    list.push_back({set->name, set->needs, set->supported(), set == &chosen});
  }
  return list;
}

bool kernel_is_forced() {
  const choice_of_kernels& choice = the_choice();
  return choice.requested[0] != '\0' && !choice.refused;
}

template <class L>
std::uint64_t kernel_calls<L>::insert_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                            std::uint8_t* is_new) noexcept {
  return kernel_of<L>(chosen_kernels()).insert(blocks_of<L>(bytes, g), kernel_keys(keys), is_new);
}

template <class L>
void kernel_calls<L>::has_batch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                std::uint64_t* bitmap) noexcept {
  kernel_of<L>(chosen_kernels()).has(blocks_of<L>(bytes, g), kernel_keys(keys), bitmap);
}

// A predictable comparison and a direct call cost less than a call through a pointer.
#if defined(__x86_64__)
// The values of number_of(); with UBSan a comparison of addresses is not a constant expression.
constexpr int number_of_avx2 = 2;
constexpr int number_of_avx512 = 3;
#define BLOOMERY_DIRECT(call)                                  \
  int number = chosen_number.load(std::memory_order_relaxed);  \
  if (number == 0) [[unlikely]]                                \
    number = number_of(&chosen_kernels());                     \
  if (number == number_of_avx512) [[likely]]                   \
    return kernels::on_avx512::call;                           \
  if (number == number_of_avx2) return kernels::on_avx2::call; \
  return kernels::on_scalar::call
#elif defined(__aarch64__)
constexpr int number_of_neon = 2;  // the value of number_of(); see above
#define BLOOMERY_DIRECT(call)                                 \
  int number = chosen_number.load(std::memory_order_relaxed); \
  if (number == 0) [[unlikely]]                               \
    number = number_of(&chosen_kernels());                    \
  if (number == number_of_neon) [[likely]]                    \
    return kernels::on_neon::call;                            \
  return kernels::on_scalar::call
#else
#define BLOOMERY_DIRECT(call) return kernels::on_scalar::call
#endif

namespace {

// The single-key functions of the chosen set for layout L.
template <class L>
struct direct_calls;

#define BLOOMERY_DIRECT_CALLS(L)                                                                      \
  template <>                                                                                         \
  struct direct_calls<layouts::L> {                                                                   \
    static bool insert(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {    \
      BLOOMERY_DIRECT(L##_insert(block, hash64, probes));                                             \
    }                                                                                                 \
    static bool has(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept { \
      BLOOMERY_DIRECT(L##_has(block, hash64, probes));                                                \
    }                                                                                                 \
  };

BLOOMERY_DIRECT_CALLS(split_block)
BLOOMERY_DIRECT_CALLS(split_block512)
BLOOMERY_DIRECT_CALLS(blocked)

}  // namespace

template <class L>
bool kernel_calls<L>::insert_into(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {
  return direct_calls<L>::insert(block, hash64, probes);
}

template <class L>
bool kernel_calls<L>::has_in(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {
  return direct_calls<L>::has(block, hash64, probes);
}

template class kernel_calls<layouts::split_block>;
template class kernel_calls<layouts::split_block512>;
template class kernel_calls<layouts::blocked>;

}  // namespace bloomery
