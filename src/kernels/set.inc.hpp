// The end of a set's file: its single-key calls under their names, and its row. The file defines BLOOMERY_SET, the name
// of the set, and BLOOMERY_NAMESPACE, on_ and that name; it includes this in bloomery::kernels, after batch.inc.hpp and with a census_ops.

namespace BLOOMERY_NAMESPACE {
BLOOMERY_TARGET bool split_block_insert(std::uint8_t* block, std::uint64_t lo, std::uint32_t probes) noexcept {
  return ops::split_block::one_insert(block, ops::split_block::choice(lo), probes);
}
BLOOMERY_TARGET bool split_block_has(const std::uint8_t* block, std::uint64_t lo, std::uint32_t probes) noexcept {
  return ops::split_block::one_has(block, ops::split_block::choice(lo), probes);
}
BLOOMERY_TARGET bool line_insert(std::uint8_t* block, std::uint64_t lo, std::uint32_t probes) noexcept {
  return ops::line::one_insert(block, ops::line::choice(lo), probes);
}
BLOOMERY_TARGET bool line_has(const std::uint8_t* block, std::uint64_t lo, std::uint32_t probes) noexcept {
  return ops::line::one_has(block, ops::line::choice(lo), probes);
}
BLOOMERY_TARGET bool line_free_insert(std::uint8_t* block, std::uint64_t lo, std::uint32_t probes) noexcept {
  return ops::line_free::one_insert(block, ops::line_free::choice(lo), probes);
}
BLOOMERY_TARGET bool line_free_has(const std::uint8_t* block, std::uint64_t lo, std::uint32_t probes) noexcept {
  return ops::line_free::one_has(block, ops::line_free::choice(lo), probes);
}
}  // namespace BLOOMERY_NAMESPACE

const kernel_set BLOOMERY_SET = {
    name_of_set,
    needs_of_set,
    supported,
    {insert<ops::split_block>, has<ops::split_block>, BLOOMERY_NAMESPACE::split_block_insert,
     BLOOMERY_NAMESPACE::split_block_has},
    {insert<ops::line>, has<ops::line>, BLOOMERY_NAMESPACE::line_insert, BLOOMERY_NAMESPACE::line_has},
    {insert<ops::line_free>, has<ops::line_free>, BLOOMERY_NAMESPACE::line_free_insert,
     BLOOMERY_NAMESPACE::line_free_has},
    halves,
    scatter,
    {census_ops::ones, census_ops::common_ones, census_ops::split_block, census_ops::line, census_ops::line_free},
};
