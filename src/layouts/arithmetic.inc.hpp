// Products and hashes for kernels. Included, after hash_constants.hpp, within the unnamed namespace of a file that
// defines BLOOMERY_TARGET.

// The upper half of a product of 128 bits.
BLOOMERY_TARGET inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<wide>(a) * b) >> 64);
}

BLOOMERY_TARGET inline std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 27;
  x *= mix_first;
  x ^= x >> 33;
  x *= mix_second;
  return x ^ (x >> 27);
}
