// filter_handle::insert_all. A separate file, so that programs without it, such as the page, need not contain the code
// that inserts in partitions.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>

namespace bloomery {

std::uint64_t filter_handle::insert_all(key_span keys, unsigned threads) {
  any_filter* const filter = in_place();
  return filter != nullptr ? filter->insert_all(keys, threads) : insert(keys).changed;
}

}  // namespace bloomery
