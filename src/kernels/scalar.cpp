// Kernels in plain C++: the definition that the others are tested against, and what runs where they do not.
#include "kernels/kernels.hpp"

#define BLOOMERY_TARGET

namespace bloomery::kernels {
namespace {

#include "kernels/plain.inc.hpp"

template <class Layout>
using addresses_ops = addresses<Layout>;

struct ops {
  using split_block = plain_split_block;
  using line = plain_line;
  using line_free = plain_line_free;

  template <class Layout, form Form>
  static void stage(const std::uint64_t* words, std::size_t count, std::uint64_t whitening, std::uint64_t blocks,
                    std::uint64_t* choices, std::uint64_t* offsets) {
    plain_stage<Layout, Form>(words, count, whitening, blocks, choices, offsets);
  }

  template <class Layout, fetch Fetch>
  static std::uint64_t group_has(const std::uint8_t* bytes, const staged& g, const staged& ahead, std::size_t count,
                                 std::uint32_t probes) {
    return plain_group_has<Layout, Fetch>(bytes, g, ahead, count, probes);
  }

  template <class Layout, fetch Fetch>
  static std::uint64_t group_insert(std::uint8_t* bytes, const staged& g, const staged& ahead, std::size_t count,
                                    std::uint32_t probes) {
    return plain_group_insert<Layout, Fetch>(bytes, g, ahead, count, probes);
  }

  static void stream(std::uint64_t* to, const std::uint64_t* buffer) {
    __builtin_memcpy(to, buffer, scatter_buffer * sizeof *to);
  }
  static void fence() {}
};

#include "kernels/batch.inc.hpp"

constexpr const char* name_of_set = "scalar";
constexpr const char* needs_of_set = "nothing";
bool supported() { return true; }

}  // namespace

#define BLOOMERY_SET scalar
#define BLOOMERY_NAMESPACE on_scalar
#include "kernels/set.inc.hpp"

}  // namespace bloomery::kernels
