// batch and reply_list: commands in the wire protocol, and digests of scripts.
#include "redis/net/batch.hpp"

#include <bloomery/error.hpp>

#include <openssl/evp.h>

#include <array>
#include <cassert>
#include <charconv>
#include <map>
#include <mutex>

namespace bloomery::redis {
namespace {

constexpr std::array<std::uint16_t, 256> crc_table = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int i = 0; i < 8; ++i) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

}  // namespace

std::uint16_t slot_of(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  unsigned crc = 0;
  for (const char c : key) crc = (crc << 8 & 0xFFFF) ^ crc_table[crc >> 8 ^ static_cast<unsigned char>(c)];
  return static_cast<std::uint16_t>(crc % num_slots);
}

void batch::clear() noexcept {
  bytes_.clear();
  groups_.clear();
}

std::size_t batch::begin(std::uint16_t slot, mode m) {
  groups_.push_back({bytes_.size(), bytes_.size(), 0, 0, slot, m, nullptr});
  return groups_.size() - 1;
}

namespace {

void append_number(std::string& bytes, char kind, std::uint64_t number) {
  std::array<char, 24> text;
  text[0] = kind;
  char* end = std::to_chars(text.data() + 1, text.data() + text.size(), number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  bytes.append(text.data(), end);
}

}  // namespace

void batch::start(std::size_t words) {
  assert(!groups_.empty());
  append_number(bytes_, '*', words);
  ++groups_.back().commands;
  groups_.back().end = bytes_.size();
}

void batch::word(std::string_view text) {
  append_number(bytes_, '$', text.size());
  bytes_ += text;
  bytes_ += "\r\n";
  groups_.back().end = bytes_.size();
}

void batch::word(std::uint64_t number) {
  std::array<char, 20> text;
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  word(std::string_view(text.data(), static_cast<std::size_t>(end - text.data())));
}

void batch::command(std::initializer_list<std::string_view> words) {
  start(words.size());
  for (const std::string_view w : words) word(w);
}

void batch::start_script(const script& s, std::size_t keys, std::size_t args) {
  start(3 + keys + args);
  group& g = groups_.back();
  assert(g.script == nullptr);
  g.script = &s;
  g.script_command = g.commands - 1;
  word("EVALSHA");
  word(digest_of(s));
  word(static_cast<std::uint64_t>(keys));
}

std::string_view digest_of(const script& s) {
  // A few scripts, cached for the life of the process.
  static std::mutex guard;
  static std::map<std::string, std::array<char, 40>, std::less<>> known;
  const std::lock_guard<std::mutex> lock(guard);
  auto found = known.find(s.source);
  if (found == known.end()) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned length = 0;
    if (EVP_Digest(s.source.data(), s.source.size(), digest.data(), &length, EVP_sha1(), nullptr) != 1 ||
        length != 20) {
      throw error(errc::unavailable,
                  {"OpenSSL does not provide SHA-1, which identifies scripts", "EVALSHA", "", "", ""});
    }
    std::array<char, 40> text;
    for (std::size_t i = 0; i < 20; ++i) {
      text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
      text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    found = known.emplace(std::string(s.source), text).first;
  }
  return {found->second.data(), found->second.size()};
}

reply reply::operator[](std::size_t i) const noexcept {
  const reply_list::node& array = node();
  assert(i < size());
  if (array.nodes == size() + 1) return {*list_, at_ + 1 + i};
  reply r(*list_, at_ + 1);
  for (; i > 0; --i) r = r.next();
  return r;
}

void reply::append_to(reply_list& other) const {
  for (std::size_t i = at_; i < at_ + node().nodes; ++i) {
    reply_list::node copy = list_->nodes_[i];
    const std::string_view text(list_->characters_.data() + copy.offset, copy.length);
    copy.offset = other.characters_.size();
    other.characters_ += text;
    other.nodes_.push_back(copy);
  }
}

}  // namespace bloomery::redis
