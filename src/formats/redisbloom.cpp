#include "formats/redisbloom.hpp"

#include <bloomery/detail/geometry.hpp>

#include <algorithm>
#include <cmath>

namespace bloomery::formats::redisbloom {
namespace {

constexpr std::uint64_t most_bits = std::uint64_t{1} << 48;
constexpr std::uint64_t most_keys = std::uint64_t{1} << 62;

enum option : std::uint64_t {
  not_rounded = 1,  // the number of bits is not a power of two
  sized_by_bits = 2,
  hashes_of_64_bits = 4,
  not_growing = 8,
  all_options = 15,
};

// BF.RESERVE: b = -ln(e) / ln(2)^2 bits per key for an FPR of e, and ceil(ln(2) b) probes.
double bits_per_key_of(double target_fpr) { return -std::log(target_fpr) / 0.480453013918201; }
double probes_for(double bits_per_key) { return std::ceil(0.693147180559945 * bits_per_key); }

// The number of bits of a layer: n b, rounded down, then up to a multiple of 64.
std::uint64_t bits_for(std::uint64_t capacity, double bits_per_key) {
  const double bits = static_cast<double>(capacity) * bits_per_key;
  return bits < static_cast<double>(most_bits)
             ? 64 * words_for(std::max<std::uint64_t>(static_cast<std::uint64_t>(bits), 1))
             : 0;
}

bool is_sized_for(const params& p, double target_fpr) {
  const double bits_per_key = bits_per_key_of(target_fpr);
  return probes_for(bits_per_key) == p.geometry.probes && bits_for(p.capacity, bits_per_key) == p.geometry.bits;
}

}  // namespace

void check_chain(const chain& all, const head& file) {
  file.check_range("options", all.options, 0, all_options);
  // Each layer has half of the FPR of the one before, and so one probe more.
  file.check_range("number of layers", all.layers, 1, max_probes);
  file.check_range("number of keys", all.keys, 0, most_keys);
  if ((all.options & hashes_of_64_bits) == 0) {
    throw error(errc::incompatible, {"the filter has hashes of 32 bits, as in early versions of RedisBloom",
                                     file.path(), "hashes of 64 bits", "", "add its keys to a filter of a newer one"});
  }
}

params params_of(const chain& all, const layer& of, const head& file) {
  file.check_range("capacity", of.capacity, 1, most_keys);
  file.check_range("number of probes", of.probes, 1, max_probes);
  file.check_range("number of bits", of.bits, 64, most_bits);
  file.check_range("number of keys of a layer", of.keys, 0, all.keys);
  if (!(of.target_fpr > 0 && of.target_fpr < 1)) file.refuse("target FPR", "between 0 and 1", text_of(of.target_fpr));
  if (probes_for(of.bits_per_key) != static_cast<double>(of.probes)) {
    file.refuse("bits per key do not match the number of probes", std::to_string(of.probes) + " probes",
                std::to_string(of.bits_per_key) + " bits per key");
  }
  if (of.bits % 64 != 0) file.refuse("number of bits", "a multiple of 64", std::to_string(of.bits));
  if (of.log2 != 0 && (of.log2 > 63 || of.bits != std::uint64_t{1} << of.log2))
    file.refuse("number of bits", "2^" + std::to_string(of.log2), std::to_string(of.bits));
  if (all.layers == 1 && of.keys != all.keys)
    file.refuse("number of keys of the only layer", std::to_string(all.keys), std::to_string(of.keys));
  params p;
  p.scheme = scheme_name;
  p.geometry = {of.bits, static_cast<std::uint32_t>(of.probes)};
  p.capacity = of.capacity;
  p.target_fpr = (all.options & not_growing) != 0 ? of.target_fpr : std::min(2 * of.target_fpr, 0.5);
  return p;
}

description describe(const params& p, const key_counts& counts) {
  require_capacity(p);
  require_target_fpr(p);
  const bool grows = is_sized_for(p, p.target_fpr / 2) || !is_sized_for(p, p.target_fpr);
  description made;
  made.all.keys = made.first.keys = counts.inserted;
  made.all.options = not_rounded | hashes_of_64_bits;
  if (!grows) made.all.options |= not_growing;
  made.first.capacity = p.capacity;
  made.first.probes = p.geometry.probes;
  made.first.bits = p.geometry.bits;
  made.first.target_fpr = grows ? p.target_fpr / 2 : p.target_fpr;
  made.first.bits_per_key = bits_per_key_of(made.first.target_fpr);
  // RedisBloom refuses an FPR that does not lead to the number of probes.
  if (probes_for(made.first.bits_per_key) != p.geometry.probes) {
    made.first.target_fpr = std::exp2(0.5 - p.geometry.probes);
    made.first.bits_per_key = bits_per_key_of(made.first.target_fpr);
  }
  return made;
}

}  // namespace bloomery::formats::redisbloom
