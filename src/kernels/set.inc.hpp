// The definitions at the end of the file of a kernel set: its named single-key functions and its kernel_set. The file
// defines BLOOMERY_SET, the name of the set, and BLOOMERY_NAMESPACE, on_ plus the name. It includes this in
// bloomery::kernels, after batch.inc.hpp and the definition of fill_ops.

namespace BLOOMERY_NAMESPACE {
BLOOMERY_TARGET bool split_block_insert(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {
  return ops::split_block::one_insert(block, ops::split_block::choice(hash64), probes);
}
BLOOMERY_TARGET bool split_block_has(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {
  return ops::split_block::one_has(block, ops::split_block::choice(hash64), probes);
}
BLOOMERY_TARGET bool split_block512_insert(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {
  return ops::split_block512::one_insert(block, ops::split_block512::choice(hash64), probes);
}
BLOOMERY_TARGET bool split_block512_has(const std::uint8_t* block, std::uint64_t hash64,
                                        std::uint32_t probes) noexcept {
  return ops::split_block512::one_has(block, ops::split_block512::choice(hash64), probes);
}
BLOOMERY_TARGET bool blocked_insert(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {
  return ops::blocked::one_insert(block, ops::blocked::choice(hash64), probes);
}
BLOOMERY_TARGET bool blocked_has(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept {
  return ops::blocked::one_has(block, ops::blocked::choice(hash64), probes);
}
}  // namespace BLOOMERY_NAMESPACE

BLOOMERY_TARGET static bool layers_have(const line_layers& at, std::uint64_t hash64) noexcept {
  for (std::size_t i = 0; i < at.far_count; ++i) {
    ask_for<fetch::first_level>(at.layers[i].bytes + ops::split_block512::offset(hash64, at.layers[i].lines));
  }
  const std::uint64_t choice = ops::split_block512::choice(hash64);
  for (std::size_t i = 0; i < at.count; ++i) {
    const line_layer& layer = at.layers[i];
    if (ops::split_block512::one_has(layer.bytes + ops::split_block512::offset(hash64, layer.lines), choice, 8))
      return true;
  }
  return false;
}

const kernel_set BLOOMERY_SET = {
    name_of_set,
    needs_of_set,
    supported,
    {insert<ops::split_block>, has<ops::split_block>, BLOOMERY_NAMESPACE::split_block_insert,
     BLOOMERY_NAMESPACE::split_block_has},
    {insert<ops::split_block512>, has<ops::split_block512>, BLOOMERY_NAMESPACE::split_block512_insert,
     BLOOMERY_NAMESPACE::split_block512_has},
    {insert<ops::blocked>, has<ops::blocked>, BLOOMERY_NAMESPACE::blocked_insert, BLOOMERY_NAMESPACE::blocked_has},
    hash64s,
    scatter,
    ops::split,
    {fill_ops::ones, fill_ops::common_ones, fill_ops::split_block, fill_ops::split_block512, fill_ops::blocked},
    layers_have,
};
