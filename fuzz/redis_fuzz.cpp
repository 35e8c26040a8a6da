// Fuzz target for Redis addresses and server replies.
//
// An address is rejected or survives a round trip. Replies do not depend on how the bytes are split, and their memory
// is bounded by the number of bytes.
#include <bloomery/error.hpp>
#include <bloomery/redis/address.hpp>

#include "redis/net/batch.hpp"
#include "redis/net/reader.hpp"

#include "require.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace bloomery;

void try_address(std::string_view text) {
  redis_address read;
  try {
    read = redis_address::parse(text);
  } catch (const error& e) {
    require(e.code() == errc::invalid_argument && e.what()[0] != '\0',
            "an invalid address causes an error with a message");
    return;
  }
  require(redis_address::is_one(text), "a parsed text is an address");
  redis_address without = read;
  without.user.clear();
  without.password.clear();
  require(redis_address::parse(read.text()) == without, "a formatted address parses to the same address");
}

struct outcome {
  std::size_t replies = 0;
  bool wrong = false;
  redis::reply_list list;
};

// Visits every node of a reply, as callers do.
std::size_t nodes_below(const redis::reply& r) {
  std::size_t count = 1;
  require(r.text().size() <= redis::reader::most_characters, "the length of a text is limited");
  for (std::size_t i = 0; i < r.size(); ++i) count += nodes_below(r[i]);
  return count;
}

outcome read_in(std::string_view all, std::size_t portion) {
  redis::reader in;
  outcome o;
  std::size_t begin = 0;
  while (!all.empty()) {
    std::string_view bytes = all.substr(0, portion);
    all.remove_prefix(bytes.size());
    while (true) {
      const redis::reader::found found = in.next(bytes, o.list);
      if (found == redis::reader::found::none) break;
      if (found == redis::reader::found::wrong) {
        o.wrong = true;
        require(!in.problem().empty(), "a problem has a message");
        return o;
      }
      const std::size_t end = o.list.nodes_.size();
      require(nodes_below({o.list, begin}) == end - begin, "a reply contains all its nodes");
      begin = end;
      ++o.replies;
    }
  }
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 == 0) {
    try_address(bytes);
    return 0;
  }
  const outcome whole = read_in(bytes, bytes.size() + 1);
  const outcome cut = read_in(bytes, data[0]);
  require(whole.replies == cut.replies && whole.wrong == cut.wrong, "the same result for every split of the input");
  require(whole.list.characters_ == cut.list.characters_ || whole.wrong, "the same texts for every split");
  require(whole.list.characters_.size() <= bytes.size() && whole.list.nodes_.size() <= bytes.size(),
          "no more memory than the input justifies");
  return 0;
}
