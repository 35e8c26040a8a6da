// Parameters of static filters.
#include <bloomery/static_filter.hpp>

namespace bloomery {

params fuse_params(const params& hashing, unsigned width, const fuse_bytes& built) {
  params p;
  p.layout = fuse_layout_name(width);
  p.hash = hashing.hash;
  p.keys = hashing.keys;
  p.seed = hashing.seed;
  p.secret = hashing.secret;
  p.key_check = hashing.key_check;
  p.geometry = {8 * built.payload.size(), fuse::probes};
  p.capacity = built.keys;
  p.target_fpr = fuse_rate(width, built.keys);
  return p;
}

}  // namespace bloomery
