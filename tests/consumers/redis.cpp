// The smallest program that uses an installed bloomery::redis. It needs no server: it parses an address and plans a
// filter.
#include <bloomery/filter.hpp>
#include <bloomery/redis/address.hpp>
#include <bloomery/redis/plan.hpp>

int main() {
  const auto address = bloomery::redis_address::parse("redis://cache/seen");
  const auto plan = bloomery::plan_redis({.filter = {.capacity = 1'000'000, .target_fpr = 0.01}});
  bloomery::filter<> seen(1'000, 0.01);
  seen.insert(address.name);
  return seen.may_contain("seen") && plan.shards == 16 ? 0 : 1;
}
