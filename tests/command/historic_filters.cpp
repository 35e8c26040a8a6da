// Bloom filters of other systems with faults that were published, as programs for 'bloomery analyze --exec'. They share
// no code with bloomery. test_audit.py first compares them with answers of the real systems.
//
//   historic_filters SYSTEM A B                    answers 'add KEY' and 'has KEY' on standard input
//   historic_filters SYSTEM A B positions KEY...   prints the positions of the bits of each key
//   historic_filters SYSTEM A B fill N             prints the bits after N keys, and the probes of the last layer
//
//   guava32, guava64, folded   A bits, B probes. Guava's MURMUR128_MITZ_32 and MITZ_64; a MITZ_64 filter folded once
//   pharo, parquet             A keys, B target FPR. PharoPDS; Parquet's blocks and size rule
//   redisbloom                 A keys of the first layer, B target FPR
#include <xxhash.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

std::uint64_t read64(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
  return word;
}

std::uint64_t rotate(std::uint64_t x, int by) { return x << by | x >> (64 - by); }

std::uint64_t fmix(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDu;
  x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
  return x ^ x >> 33;
}

// MurmurHash3_x64_128, seed 0.
std::pair<std::uint64_t, std::uint64_t> murmur3(std::string_view key) {
  constexpr std::uint64_t c1 = 0x87C37B91114253D5u, c2 = 0x4CF5AD432745937Fu;
  std::uint64_t h1 = 0, h2 = 0;
  std::size_t at = 0;
  for (; at + 16 <= key.size(); at += 16) {
    h1 ^= rotate(read64(key.data() + at) * c1, 31) * c2;
    h1 = (rotate(h1, 27) + h2) * 5 + 0x52DCE729;
    h2 ^= rotate(read64(key.data() + at + 8) * c2, 33) * c1;
    h2 = (rotate(h2, 31) + h1) * 5 + 0x38495AB5;
  }
  char tail[16] = {};
  std::memcpy(tail, key.data() + at, key.size() - at);
  h2 ^= rotate(read64(tail + 8) * c2, 33) * c1;
  h1 ^= rotate(read64(tail) * c1, 31) * c2;
  h1 ^= key.size();
  h2 ^= key.size();
  h1 += h2;
  h2 += h1;
  h1 = fmix(h1);
  h2 = fmix(h2);
  h1 += h2;
  return {h1, h2 + h1};
}

// MurmurHash3_x86_32, seed 0.
std::uint32_t murmur3_32(std::string_view key) {
  const auto mixed = [](std::uint32_t k) {
    k *= 0xCC9E2D51u;
    return (k << 15 | k >> 17) * 0x1B873593u;
  };
  std::uint32_t h = 0;
  std::size_t at = 0;
  for (; at + 4 <= key.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, key.data() + at, 4);
    h ^= mixed(word);
    h = (h << 13 | h >> 19) * 5 + 0xE6546B64u;
  }
  std::uint32_t tail = 0;
  std::memcpy(&tail, key.data() + at, key.size() - at);
  h ^= mixed(tail) ^ static_cast<std::uint32_t>(key.size());
  h = (h ^ h >> 16) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  return h ^ h >> 16;
}

std::uint64_t murmur64a(std::string_view key, std::uint64_t seed) {
  constexpr std::uint64_t m = 0xC6A4A7935BD1E995u;
  std::uint64_t h = seed ^ key.size() * m;
  std::size_t at = 0;
  for (; at + 8 <= key.size(); at += 8) {
    std::uint64_t k = read64(key.data() + at) * m;
    k = (k ^ k >> 47) * m;
    h = (h ^ k) * m;
  }
  if (at < key.size()) {
    std::uint64_t tail = 0;
    std::memcpy(&tail, key.data() + at, key.size() - at);
    h = (h ^ tail) * m;
  }
  h = (h ^ h >> 47) * m;
  return h ^ h >> 47;
}

using positions = std::vector<std::uint64_t>;

class filter {
 public:
  virtual ~filter() = default;
  virtual bool add(std::string_view key) = 0;  // true: certainly new
  virtual bool has(std::string_view key) const = 0;
  virtual positions of(std::string_view key) const = 0;
  virtual void print_size() const {}
};

// One set of bits. Only set bits take memory, so the number of bits is not limited.
class one_filter : public filter {
 public:
  bool add(std::string_view key) override {
    bool is_new = false;
    for (const std::uint64_t bit : of(key)) is_new |= bits_.insert(bit).second;
    return is_new;
  }
  bool has(std::string_view key) const override {
    for (const std::uint64_t bit : of(key)) {
      if (!bits_.contains(bit)) return false;
    }
    return true;
  }

 private:
  std::unordered_set<std::uint64_t> bits_;
};

struct guava32 : one_filter {
  guava32(double a, double b) : bits(static_cast<std::uint64_t>(a)), probes(static_cast<std::uint32_t>(b)) {}
  positions of(std::string_view key) const override {
    const std::uint64_t hash = murmur3(key).first;
    const auto low = static_cast<std::uint32_t>(hash), high = static_cast<std::uint32_t>(hash >> 32);
    positions result;
    for (std::uint32_t i = 1; i <= probes; ++i) {
      const auto combined = static_cast<std::int32_t>(low + i * high);
      result.push_back(static_cast<std::uint64_t>(combined < 0 ? ~combined : combined) % bits);
    }
    return result;
  }
  std::uint64_t bits;
  std::uint32_t probes;
};

struct guava64 : guava32 {
  using guava32::guava32;
  positions of(std::string_view key) const override {
    auto [combined, step] = murmur3(key);
    positions result;
    for (std::uint32_t i = 0; i < probes; ++i, combined += step) result.push_back((combined & ~0ull >> 1) % bits);
    return result;
  }
};

struct folded : guava64 {
  using guava64::guava64;
  positions of(std::string_view key) const override {
    positions result = guava64::of(key);
    for (std::uint64_t& bit : result) bit %= bits / 2;
    return result;
  }
};

struct pharo : one_filter {
  pharo(double keys, double rate) {
    const double exact = -keys * std::log(rate) / (std::log(2.0) * std::log(2.0));
    bits = static_cast<std::uint64_t>(std::ceil(exact));
    probes = static_cast<std::uint32_t>(std::ceil(exact * std::log(2.0) / keys));
  }
  positions of(std::string_view key) const override {
    const std::uint32_t hash = murmur3_32(key);
    positions result;
    for (std::uint64_t i = 1; i <= probes; ++i) result.push_back(((hash & 0xFFFF) + i * (hash >> 16)) % bits + 1);
    return result;
  }
  std::uint64_t bits;
  std::uint32_t probes;
};

struct parquet : one_filter {
  parquet(double keys, double rate) {
    blocks = static_cast<std::uint64_t>(std::ceil(-8 * keys / std::log(1 - std::pow(rate, 1.0 / 8)) / 256));
  }
  positions of(std::string_view key) const override {
    constexpr std::uint32_t salts[8] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};
    const std::uint64_t hash = XXH64(key.data(), key.size(), 0);
    const std::uint64_t block = (hash >> 32) * blocks >> 32;
    positions result;
    for (std::uint64_t word = 0; word < 8; ++word)
      result.push_back(256 * block + 32 * word + (static_cast<std::uint32_t>(hash) * salts[word] >> 27));
    return result;
  }
  std::uint64_t blocks;
};

class redisbloom : public filter {
 public:
  redisbloom(double keys, double rate) { grow(static_cast<std::uint64_t>(keys), rate / 2); }

  bool add(std::string_view key) override {
    if (has(key)) return false;
    if (layers_.back().size >= layers_.back().entries) grow(2 * layers_.back().entries, layers_.back().rate / 2);
    layer& last = layers_.back();
    const auto [a, b] = hashes_of(key);
    for (std::uint64_t i = 0; i < last.probes; ++i) last.set[(a + i * b) % last.set.size()] = true;
    ++last.size;
    return true;
  }
  bool has(std::string_view key) const override {
    const auto [a, b] = hashes_of(key);
    for (auto at = layers_.rbegin(); at != layers_.rend(); ++at) {
      bool all = true;
      for (std::uint64_t i = 0; all && i < at->probes; ++i) all = at->set[(a + i * b) % at->set.size()];
      if (all) return true;
    }
    return false;
  }
  positions of(std::string_view key) const override {
    const auto [a, b] = hashes_of(key);
    positions result;
    for (std::uint64_t i = 0; i < layers_.front().probes; ++i) {
      result.push_back((a + i * b) % layers_.front().set.size());
    }
    return result;
  }
  void print_size() const override {
    std::size_t bits = 0;
    for (const layer& l : layers_) bits += l.set.size();
    std::cout << bits << " " << layers_.back().probes << "\n";
  }

 private:
  struct layer {
    std::uint64_t entries, size;
    double rate;
    std::uint32_t probes;
    std::vector<bool> set;
  };

  void grow(std::uint64_t entries, double rate) {
    const double bits_per_key = -std::log(rate) / 0.480453013918201;
    const auto bits = static_cast<std::uint64_t>(static_cast<double>(entries) * bits_per_key);
    layers_.push_back({entries, 0, rate, static_cast<std::uint32_t>(std::ceil(0.693147180559945 * bits_per_key)),
                       std::vector<bool>((bits + 63) / 64 * 64)});
  }
  static std::pair<std::uint64_t, std::uint64_t> hashes_of(std::string_view key) {
    const std::uint64_t a = murmur64a(key, 0xC6A4A7935BD1E995u);
    return {a, murmur64a(key, a)};
  }

  std::vector<layer> layers_;
};

std::unique_ptr<filter> make(const std::string& system, double a, double b) {
  if (system == "guava32") return std::make_unique<guava32>(a, b);
  if (system == "guava64") return std::make_unique<guava64>(a, b);
  if (system == "folded") return std::make_unique<folded>(a, b);
  if (system == "pharo") return std::make_unique<pharo>(a, b);
  if (system == "parquet") return std::make_unique<parquet>(a, b);
  if (system == "redisbloom") return std::make_unique<redisbloom>(a, b);
  std::cerr << "unknown system " << system << "\n";
  std::exit(2);
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const std::unique_ptr<filter> f = make(words[1], std::stod(words[2]), std::stod(words[3]));
  const std::string task = count > 4 ? words[4] : "answer";
  if (task == "positions") {
    for (int i = 5; i < count; ++i) {
      for (const std::uint64_t bit : f->of(words[i])) std::cout << bit << " ";
      std::cout << "\n";
    }
    return 0;
  }
  if (task == "fill") {
    for (long i = 0; i < std::stol(words[5]); ++i) f->add("key-" + std::to_string(i));
    f->print_size();
    return 0;
  }
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  for (std::string line; std::getline(std::cin, line);) {
    const std::string_view key = std::string_view(line).substr(4);
    std::cout << (line[0] == 'a' ? f->add(key) : f->has(key)) << "\n";
  }
}
