// Kernels in plain C++: the reference for the tests of the other sets, and the fallback for all processors.
#include "kernels/kernels.hpp"

#define BLOOMERY_TARGET

namespace bloomery::kernels {
namespace {

#include "kernels/plain.inc.hpp"

template <class Layout>
using addresses_ops = addresses<Layout>;

struct ops : plain_ops {
  using split_block = plain_split_block;
  using split_block512 = plain_split_block512;
  using blocked = plain_blocked;
};

#include "kernels/batch.inc.hpp"

using fill_ops = plain_fill;

constexpr const char* name_of_set = "scalar";
constexpr const char* needs_of_set = "nothing";
bool supported() { return true; }

}  // namespace

#define BLOOMERY_SET scalar
#define BLOOMERY_NAMESPACE on_scalar
#include "kernels/set.inc.hpp"

}  // namespace bloomery::kernels
