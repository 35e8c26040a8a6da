// Random email addresses for experiments: name.surname123@host.example, fast to generate and distinct.
//
// An address contains its number between the letters and '@', so addresses with different numbers differ. The seed
// chooses names and hosts. All hosts are reserved names [RFC 2606], so no address is a real mailbox.
#pragma once

#include <bloomery/hash.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery::app {

/// Consecutive addresses; owns their text.
class address_batch {
 public:
  /// Replaces the addresses by numbers first .. first + count - 1 of `seed`.
  void make(std::uint64_t seed, std::uint64_t first, std::size_t count) {
    text_.resize(count * most_size);
    addresses_.resize(count);
    char* at = text_.data();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = write(seed, first + i, at);
      addresses_[i] = {at, size};
      at += size;
    }
  }

  std::span<const std::string_view> addresses() const noexcept { return addresses_; }

 private:
  static constexpr std::size_t most_size = 64;  // 9 + 1 + 9 letters, 20 digits, 17 of the host

  static constexpr std::array<std::string_view, 32> names = {
      "ada",    "alan",  "anna",   "barbara", "carlos", "claude", "donald", "edsger", "emmy",  "felix", "fran",
      "gita",   "grace", "hannah", "ivan",    "jose",   "julia",  "karen",  "kurt",   "leila", "lin",   "maria",
      "mehmet", "nadia", "olga",   "pedro",   "radia",  "sofia",  "tim",    "ursula", "wei",   "yusuf"};
  static constexpr std::array<std::string_view, 32> surnames = {
      "allen",  "ahmed",  "bauer", "bloom",  "brown", "chen",  "costa",  "diaz",   "evans", "fischer", "garcia",
      "haddad", "hansen", "ito",   "jansen", "khan",  "kim",   "kovacs", "lopez",  "meyer", "moreau",  "nakamura",
      "novak",  "okafor", "patel", "rossi",  "sato",  "silva", "smith",  "suzuki", "wang",  "yilmaz"};
  static constexpr std::array<std::string_view, 16> hosts = {
      "example.com", "example.org",  "example.net",  "mail.example", "post.example", "uni.example",
      "lab.example", "shop.example", "city.example", "news.example", "mail.test",    "post.test",
      "school.test", "club.test",    "music.test",   "garden.test"};

  static char* append(char* to, std::string_view word) {
    std::memcpy(to, word.data(), word.size());
    return to + word.size();
  }

  static std::size_t write(std::uint64_t seed, std::uint64_t number, char* const to) {
    const std::uint64_t chance = mix64(number ^ mix64(seed + 0x9E3779B97F4A7C15u));
    char* at = append(to, names[chance >> 59]);
    *at++ = '.';
    at = append(at, surnames[chance >> 54 & 31]);
    at = std::to_chars(at, to + most_size, number).ptr;
    *at++ = '@';
    at = append(at, hosts[chance >> 50 & 15]);
    return static_cast<std::size_t>(at - to);
  }

  std::vector<char> text_;
  std::vector<std::string_view> addresses_;
};

}  // namespace bloomery::app
