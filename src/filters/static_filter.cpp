#include <bloomery/static_filter.hpp>

namespace bloomery {

params fuse_params(const params& hashing, unsigned width, const fuse_bytes& sealed) {
  params p;
  p.layout = fuse_layout_name(width);
  p.hash = hashing.hash;
  p.keys = hashing.keys;
  p.seed = hashing.seed;
  p.secret = hashing.secret;
  p.key_check = hashing.key_check;
  p.geometry = {8 * sealed.payload.size(), fuse::probes};
  p.capacity = sealed.keys;
  p.target_fpr = fuse_rate(width, sealed.keys);
  return p;
}

}  // namespace bloomery
