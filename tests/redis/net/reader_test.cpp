// The parser of replies: any split into chunks, and any bytes.
#include "redis/net/reader.hpp"

#include "redis/net/batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::redis::reader;
using bloomery::redis::reply;
using bloomery::redis::reply_list;
using bloomery::redis::reply_type;

// A reply as one writes it down.
std::string written(const reply& r) {
  switch (r.type()) {
    case reply_type::text: return "'" + std::string(r.text()) + "'";
    case reply_type::status: return "+" + std::string(r.text());
    case reply_type::error: return "-" + std::string(r.text());
    case reply_type::integer: return std::to_string(r.integer());
    case reply_type::nil: return "nil";
    case reply_type::array: break;
  }
  std::string all = "[";
  for (std::size_t i = 0; i < r.size(); ++i) all += (i > 0 ? " " : "") + written(r[i]);
  return all + "]";
}

// All replies; at the end "!" if there was no reply.
std::string read_in(const std::vector<std::string_view>& portions) {
  reader in;
  reply_list list;
  std::string all;
  std::size_t begin = 0;
  for (std::string_view bytes : portions) {
    while (true) {
      const reader::found found = in.next(bytes, list);
      if (found == reader::found::wrong) return all + "!";
      if (found == reader::found::none) break;
      all += written({list, begin}) + ";";
      begin = list.nodes_.size();
    }
  }
  return all;
}

const std::string stream =
    "+OK\r\n-ERR no\r\n:-9223372036854775808\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n"
    "*3\r\n:1\r\n*2\r\n$1\r\nx\r\n*1\r\n$-1\r\n+end\r\n*2\r\n*0\r\n-MOVED 1 :2\r\n:7\r\n";
const std::string meaning =
    "+OK;-ERR no;-9223372036854775808;'a\r\nbc';'';nil;nil;[];[1 ['x' [nil]] +end];[[] -MOVED 1 :2];7;";

TEST(Reader, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string_view all = stream;
  for (std::size_t i = 0; i <= all.size(); ++i) {
    for (std::size_t j = i; j <= all.size(); ++j) {
      ASSERT_EQ(read_in({all.substr(0, i), all.substr(i, j - i), all.substr(j)}), meaning) << i << " " << j;
    }
  }
  std::vector<std::string_view> single;
  for (std::size_t i = 0; i < all.size(); ++i) single.push_back(all.substr(i, 1));
  EXPECT_EQ(read_in(single), meaning);
}

TEST(Reader, ReadsRepliesThatAreLargerThanWhatItTakesAtOnce) {
  const std::string large(3'000'000, 'x');
  std::string bytes;
  for (int i = 0; i < 3; ++i) bytes += "$3000000\r\n" + large + "\r\n:" + std::to_string(i) + "\r\n";

  EXPECT_TRUE(read_in({bytes}) == "'" + large + "';0;'" + large + "';1;'" + large + "';2;");
}

TEST(Reader, CopiesAReplyWithAllBelowIt) {
  reader in;
  reply_list list, copy;
  std::string_view bytes = "*3\r\n:1\r\n*2\r\n$1\r\nx\r\n:2\r\n+end\r\n+more\r\n";
  ASSERT_EQ(in.next(bytes, list), reader::found::one);
  ASSERT_EQ(in.next(bytes, list), reader::found::one);

  reply(list, 0).next().append_to(copy);
  reply(list, 0).append_to(copy);

  EXPECT_EQ(written({copy, 0}), "+more");
  EXPECT_EQ(written(reply(copy, 0).next()), "[1 ['x' 2] +end]");
}

TEST(Reader, RefusesInvalidReplies) {
  for (const std::string bytes : {
           "HTTP/1.1 400 Bad Request\r\n",
           "SSH-2.0-OpenSSH\r\n",
           "\r\n",
           "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
           "*-2\r\n",
           "$-2\r\n",
           "$9223372036854775807\r\n",
           "$99999999999999999999\r\n",
           "$700000000\r\nx",
           "*9223372036854775807\r\n",
           "*2\r\n+OK\r\n?\r\n",
           ">2\r\n+a\r\n+b\r\n",
       }) {
    EXPECT_TRUE(read_in({bytes}).ends_with('!')) << bytes;
  }
}

// Bytes without an end, as many as it wants: it must not want many.
std::size_t taken_until_wrong(const std::string& begin, const std::string& again, std::size_t most) {
  reader in;
  reply_list list;
  std::size_t taken = 0;
  std::string portion = begin;
  while (taken < most) {
    std::string_view bytes = portion;
    while (true) {
      const reader::found found = in.next(bytes, list);
      if (found == reader::found::wrong) return taken;
      if (found == reader::found::none) break;
    }
    taken += portion.size();
    portion = again;
  }
  return taken;
}

TEST(Reader, TakesNoLineWithoutEnd) {
  const std::string more(10'000, 'x');
  for (const char* begin : {"+", "-", ":", "$", "$1", "*", "*1"}) {
    EXPECT_LT(taken_until_wrong(begin, more, 1 << 24), reader::longest_line + 30'000) << begin;
  }
  EXPECT_LT(taken_until_wrong("*2000000000\r\n+", more, 1 << 24), reader::longest_line + 30'000);
}

TEST(Reader, TakesNoArrayWithoutEnd) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += ":1\r\n";

  const std::size_t taken = taken_until_wrong("*2000000000\r\n", many, std::size_t{1} << 30);

  EXPECT_LT(taken, 4 * reader::most_nodes + 2 * many.size());
  EXPECT_GT(taken, 4 * reader::most_nodes / 2);
}

TEST(Reader, DoesNoHarmWithAnyBytes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = stream;
    for (int change = static_cast<int>(random() % 4); change >= 0; --change) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, 1 + random() % 5); break;
        default: bytes.insert(at, 1, "*$:+-\r\n0123456789"[random() % 17]); break;
      }
    }
    const std::size_t cut = random() % bytes.size();
    const std::string_view all = bytes;

    ASSERT_EQ(read_in({all}), read_in({all.substr(0, cut), all.substr(cut)})) << bytes;
  }
}

}  // namespace
}  // namespace bloomery_tests
