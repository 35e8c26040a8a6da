// Batches of commands in the wire protocol, and their replies.
//
// Commands are sent in groups. All commands of a group use keys of one slot; they run on one node, in order. If one of
// them is redirected (a cluster moves slots), or the connection fails, the whole group runs again. So a caller that
// reads some bits and then the shard version can always rely on the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// Number of hash slots of a cluster.
inline constexpr std::size_t num_slots = 16384;

/// The hash slot of a key: CRC-16/XMODEM modulo num_slots, of the hash tag, which is the text in the first {...} unless
/// empty, otherwise of the whole key.
std::uint16_t slot_of(std::string_view key) noexcept;

/// A script for EVALSHA.
struct script {
  std::string_view source;
};

enum class mode : std::uint8_t {
  read,   ///< changes nothing: may run again, and on a replica if enabled
  write,  ///< idempotent: may run again
  once,   ///< must not run twice: if the connection fails after sending, the call fails with errc::unavailable
};

/// Groups of commands. Reusing an object for several calls avoids allocations.
class batch {
 public:
  struct group {
    std::size_t begin;  // offset of its first byte
    std::size_t end;
    std::uint32_t commands;
    std::uint32_t script_command;  // index of the EVALSHA
    std::uint16_t slot;
    redis::mode mode;
    const redis::script* script;  // of its EVALSHA, loaded if missing; or null
  };

  void clear() noexcept;

  /// Begins a new group. @returns its number, from 0
  std::size_t begin(std::uint16_t slot, mode m);

  /// Begins a command of `words` words, which are added by word().
  void start(std::size_t words);
  void word(std::string_view text);
  void word(std::uint64_t number);

  /// Adds a whole command.
  void command(std::initializer_list<std::string_view> words);

  /// Begins an EVALSHA, followed by keys + args words, keys first. At most one script per group.
  void start_script(const script& s, std::size_t keys, std::size_t args);

  std::span<const group> groups() const noexcept { return groups_; }
  std::string_view bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return groups_.empty(); }

 private:
  std::string bytes_;
  std::vector<group> groups_;
};

/// SHA-1 in lower-case hexadecimal digits, for EVALSHA.
std::string_view digest_of(const script& s);

enum class reply_type : std::uint8_t { text, status, error, integer, nil, array };

/// A flat list of replies: an array is followed by its elements.
class reply_list {
 public:
  struct node {
    std::int64_t integer;  // the value of an integer, or the number of elements of an array
    std::size_t offset;    // of a text in the characters
    std::uint32_t length;
    std::uint32_t nodes;  // this node and all nodes below it
    reply_type type;
  };

  void clear() noexcept {
    nodes_.clear();
    characters_.clear();
  }
  bool empty() const noexcept { return nodes_.empty(); }

  std::vector<node> nodes_;
  std::string characters_;
};

/// One reply of a list. Valid while the list exists.
class reply {
 public:
  reply(const reply_list& list, std::size_t at) noexcept : list_(&list), at_(at) {}

  reply_type type() const noexcept { return node().type; }
  bool is(reply_type t) const noexcept { return type() == t; }
  bool is_nil() const noexcept { return is(reply_type::nil); }
  bool is_error() const noexcept { return is(reply_type::error); }

  /// The text of a string, status or error; otherwise empty.
  std::string_view text() const noexcept { return {list_->characters_.data() + node().offset, node().length}; }

  /// The value of an integer; otherwise 0.
  std::int64_t integer() const noexcept { return is(reply_type::integer) ? node().integer : 0; }

  /// Number of elements of an array; otherwise 0.
  std::size_t size() const noexcept { return is(reply_type::array) ? static_cast<std::size_t>(node().integer) : 0; }

  /// Element i < size(). Takes constant time if no element is an array.
  reply operator[](std::size_t i) const noexcept;

  /// The reply after this one.
  reply next() const noexcept { return {*list_, at_ + node().nodes}; }

  /// Appends a copy of this reply, with all its elements, to another list.
  void append_to(reply_list& other) const;

 private:
  const reply_list::node& node() const noexcept { return list_->nodes_[at_]; }

  const reply_list* list_;
  std::size_t at_;
};

}  // namespace bloomery::redis
