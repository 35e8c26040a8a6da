// Commands on their way to servers, in the protocol's own bytes, and what comes back.
//
// Commands are sent in groups. All commands of a group concern keys of one slot; they run on one node, in order. If one
// of them is sent elsewhere (a cluster that moves slots), or the connection fails, the whole group runs again. So who
// reads a mark behind some bits may rely on the order, whatever happened between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// Of a cluster.
inline constexpr std::size_t num_slots = 16384;

/// The cluster's slot of a key: CRC-16/XMODEM of the part in the first {...} that is not empty, else of all, modulo
/// num_slots.
std::uint16_t slot_of(std::string_view key) noexcept;

/// A script for EVALSHA.
struct script {
  std::string_view source;
};

enum class mode : std::uint8_t {
  read,   ///< changes nothing: may run again, and on a replica if that is wanted
  write,  ///< may run again: the second time changes nothing that matters
  once,   ///< must not run twice: if the connection fails after it was sent, the caller hears errc::unavailable
};

/// Groups of commands. Reused from call to call it allocates nothing.
class batch {
 public:
  struct group {
    std::size_t begin;  // of its bytes
    std::size_t end;
    std::uint32_t commands;
    std::uint32_t script_command;  // which of them is the EVALSHA, from 0
    std::uint16_t slot;
    redis::mode mode;
    const redis::script* script;  // of its EVALSHA, to be loaded where it is missing; or null
  };

  void clear() noexcept;

  /// The next commands are a new group. @returns its number, from 0
  std::size_t begin(std::uint16_t slot, mode m);

  /// The next command has so many words, which follow by word().
  void start(std::size_t words);
  void word(std::string_view text);
  void word(std::uint64_t number);

  /// A whole command.
  void command(std::initializer_list<std::string_view> words);

  /// EVALSHA: start_script(script, keys, args), then that many words: keys first. One script a group.
  void start_script(const script& s, std::size_t keys, std::size_t args);

  std::span<const group> groups() const noexcept { return groups_; }
  std::string_view bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return groups_.empty(); }

 private:
  std::string bytes_;
  std::vector<group> groups_;
};

/// SHA-1 in lower-case hexadecimal digits, as EVALSHA wants it.
std::string_view digest_of(const script& s);

enum class reply_type : std::uint8_t { text, status, error, integer, nil, array };

/// Replies as they came, flat: an array is followed by its elements.
class reply_list {
 public:
  struct node {
    std::int64_t integer;  // of an integer; elements of an array
    std::size_t offset;    // of a text in the characters
    std::uint32_t length;
    std::uint32_t nodes;  // this one and all below
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

/// One reply of a list. Valid as long as the list is.
class reply {
 public:
  reply(const reply_list& list, std::size_t at) noexcept : list_(&list), at_(at) {}

  reply_type type() const noexcept { return node().type; }
  bool is(reply_type t) const noexcept { return type() == t; }
  bool is_nil() const noexcept { return is(reply_type::nil); }
  bool is_error() const noexcept { return is(reply_type::error); }

  /// Of a text, a status or an error; else empty.
  std::string_view text() const noexcept { return {list_->characters_.data() + node().offset, node().length}; }

  /// Of an integer; else 0.
  std::int64_t integer() const noexcept { return is(reply_type::integer) ? node().integer : 0; }

  /// Elements of an array; else 0.
  std::size_t size() const noexcept { return is(reply_type::array) ? static_cast<std::size_t>(node().integer) : 0; }

  /// Element i < size(). In one step if no element is an array itself.
  reply operator[](std::size_t i) const noexcept;

  /// The reply behind this one.
  reply next() const noexcept { return {*list_, at_ + node().nodes}; }

  /// Copies this reply with all below it to the end of another list.
  void append_to(reply_list& other) const;

 private:
  const reply_list::node& node() const noexcept { return list_->nodes_[at_]; }

  const reply_list* list_;
  std::size_t at_;
};

}  // namespace bloomery::redis
