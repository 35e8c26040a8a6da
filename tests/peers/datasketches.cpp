// Files of the real Bloom filter of Apache DataSketches, a library of headers. CHECKOUT is one of
// github.com/apache/datasketches-cpp:
//
//   g++ -std=c++17 -I CHECKOUT/common/include -I CHECKOUT/filters/include datasketches.cpp -o datasketches
//   datasketches write FILE N P SEED [u64] < keys   writes a filter, which is empty if there are no keys
//   datasketches count FILE OUTPUT                  writes a filter again, with the number of its set bits
//   datasketches check FILE [u64] < keys            prints 1 or 0 per key
//   datasketches size < pairs                       adds the numbers of bits and of hashes to each line N P
//
// Keys are lines, or with u64 lines of decimal integers.
#include <bloom_filter.hpp>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

using datasketches::bloom_filter;

namespace {

bloom_filter read_from(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  return bloom_filter::deserialize(file);
}

void write_to(const bloom_filter& filter, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  filter.serialize(file);
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const bool integers = words.back() == "u64";
  std::string line;
  if (words[0] == "write") {
    bloom_filter filter =
        bloom_filter::builder::create_by_accuracy(std::stoull(words[2]), std::stod(words[3]), std::stoull(words[4]));
    while (std::getline(std::cin, line)) {
      if (integers)
        filter.update(std::uint64_t{std::stoull(line)});
      else
        filter.update(line);
    }
    write_to(filter, words[1]);
  } else if (words[0] == "count") {
    bloom_filter filter = read_from(words[1]);
    filter.get_bits_used();  // counts them
    write_to(filter, words[2]);
  } else if (words[0] == "check") {
    const bloom_filter filter = read_from(words[1]);
    while (std::getline(std::cin, line))
      std::cout << (integers ? filter.query(std::uint64_t{std::stoull(line)}) : filter.query(line)) << '\n';
  } else if (words[0] == "size") {
    for (std::string n, p; std::cin >> n >> p;) {
      const bloom_filter filter = bloom_filter::builder::create_by_accuracy(std::stoull(n), std::stod(p), 0);
      std::cout << n << ' ' << p << ' ' << filter.get_capacity() << ' ' << filter.get_num_hashes() << '\n';
    }
  }
}
