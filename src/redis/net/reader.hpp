// Bytes from a server become replies. The bytes may be anything: what is no reply, or too much of one, is an error, and
// memory stays bounded.
#pragma once

#include "redis/net/batch.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct redisReader;

namespace bloomery::redis {

class reader {
 public:
  reader();
  reader(reader&&) noexcept = default;
  reader& operator=(reader&&) noexcept = default;
  ~reader() = default;

  enum class found : std::uint8_t {
    none,   ///< all bytes are taken, and more are needed
    one,    ///< a whole reply was appended to the list
    wrong,  ///< this is no answer of a server, see problem(); nothing can be read any more
  };

  /// Takes bytes from the front until there is one reply more in the list. A reply that began ends in the same list.
  found next(std::string_view& bytes, reply_list& list);

  const std::string& problem() const noexcept { return problem_; }

  /// The most that replies of a group may take.
  static constexpr std::size_t most_nodes = std::size_t{1} << 22;
  static constexpr std::size_t most_characters = std::size_t{640} << 20;  // a text has at most 512 MiB
  static constexpr std::size_t longest_line = std::size_t{64} << 10;

 private:
  bool is_bounded();

  struct free_reader {
    void operator()(redisReader* r) const noexcept;
  };
  std::unique_ptr<redisReader, free_reader> reader_;
  std::string problem_;
};

}  // namespace bloomery::redis
