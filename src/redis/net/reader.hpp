// Parser of replies from untrusted bytes. Invalid or oversized replies are errors, and memory is bounded.
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
    none,   ///< all bytes are consumed, and more are needed
    one,    ///< a complete reply was appended to the list
    wrong,  ///< invalid data, see problem(); the reader is unusable afterwards
  };

  /// Consumes bytes from the front until one more reply is in the list. Pass the same list until a reply is complete.
  found next(std::string_view& bytes, reply_list& list);

  const std::string& problem() const noexcept { return problem_; }

  /// Limits for the replies of a group.
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
