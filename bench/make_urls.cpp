// Generator of benchmark input: make_urls LINES [SHARE] prints URLs of about 40 bytes, one per line. The output is
// deterministic. SHARE of the lines (0 to 1, default 0.3) repeat an earlier line, like the links that a crawler finds.
//
//   $ build/bench/bench/make_urls 100000000 > urls.txt
#include <bloomery/hash.hpp>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// Appends URL number i, a host and a path from the bits of a hash of i.
void append_url(std::string& to, std::uint64_t i) {
  static constexpr const char* tops[] = {"com", "org", "net", "de", "io", "fr", "co", "es"};
  const bloomery::key_hash hash = bloomery::mix{}(i);
  to += "https://www.";
  for (std::uint64_t bits = hash.hash64 >> 8, letters = 5 + hash.hash64 % 8; letters > 0; --letters, bits /= 26) {
    to += static_cast<char>('a' + bits % 26);
  }
  to += '.';
  to += tops[hash.high64 % 8];
  to += "/a/";
  char digits[20];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, i * 2654435761 % (std::uint64_t{1} << 40), 36).ptr);
  to += ".html\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: make_urls LINES [SHARE of repeated lines]\n", stderr);
    return 2;
  }
  const std::uint64_t lines = std::strtoull(argv[1], nullptr, 10);
  const double share = argc > 2 ? std::strtod(argv[2], nullptr) : 0.3;
  const auto threshold = static_cast<std::uint64_t>(share * 0x1p53);
  std::string text;
  std::uint64_t distinct = 0;
  for (std::uint64_t line = 0; line < lines; ++line) {
    const bloomery::key_hash dice = bloomery::mix{1}(line);
    const bool repeats = distinct > 0 && dice.hash64 >> 11 < threshold;
    append_url(text, repeats ? bloomery::multiply_high(dice.high64, distinct) : distinct++);
    if (text.size() < 1 << 20) continue;
    std::fwrite(text.data(), 1, text.size(), stdout);
    text.clear();
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}
