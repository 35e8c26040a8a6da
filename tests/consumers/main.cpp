// The smallest program that uses an installed bloomery: one insert and one lookup.
#include <bloomery/filter.hpp>

int main() {
  bloomery::filter<> seen(1'000'000, 0.01);
  seen.insert("https://example.org/");
  return seen.may_contain("https://example.org/") ? 0 : 1;
}
