// What a router is inside: nodes, their connections, and the groups of commands of the call that runs. Its functions
// are in router_map.cpp (which node has which slot), router_link.cpp (one connection), router_again.cpp (what is sent
// once more) and router_call.cpp (a call from its first command to its last reply).
#pragma once

#include <bloomery/error.hpp>

#include "redis/net/connection.hpp"
#include "redis/net/reader.hpp"
#include "redis/net/router.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::redis {
namespace routing {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

// Bytes of commands under way on a connection: enough to keep a server busy, few enough to send again.
inline constexpr std::size_t most_under_way = 128 << 10;

// A node of a cluster that has not answered for so long may be dead: others are asked.
inline constexpr milliseconds quiet_time{1'000};
// For one node to tell where all slots are, at first: the network may be slow, and so may TLS. Twice as much after each
// round of all nodes in vain.
inline constexpr milliseconds map_time{500};
// A replica that could not be reached is left alone for some of these: one at first, twice as many each time.
inline constexpr milliseconds shortest_absence{1'000};
// Ten years are as good as for ever, and there are clocks that can count them.
inline constexpr milliseconds longest_time = std::chrono::hours(24 * 365 * 10);
// What an answer's size adds to a call's time ends when that is so many times as long: else a server could feed a call
// for hours.
inline constexpr int most_extension = 10;
// After a stop: for what is under way.
inline constexpr milliseconds time_to_stop{1'000};
// Calls take longer by this for what they carry, so that a large one is no failure: a server gives 1 MiB/s at least.
inline constexpr milliseconds time_for(std::size_t bytes) { return milliseconds(bytes >> 10); }

inline constexpr std::uint16_t no_node = 0xFFFF;

// Pauses before something is tried again.
inline constexpr milliseconds shortest_pause{10};
inline constexpr milliseconds longest_pause{500};
// So often something is tried again without one, when a server has said how.
inline constexpr std::uint8_t most_at_once = 4;

// First in, first out; the memory stays.
template <class T>
class line_of {
 public:
  bool empty() const noexcept { return begin_ == all_.size(); }
  std::size_t size() const noexcept { return all_.size() - begin_; }
  T& front() noexcept { return all_[begin_]; }
  T& operator[](std::size_t i) noexcept { return all_[begin_ + i]; }
  void push(const T& t) {
    if (begin_ > 64 && 2 * begin_ > all_.size()) {
      all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(begin_));
      begin_ = 0;
    }
    all_.push_back(t);
  }
  void pop() noexcept {
    if (++begin_ == all_.size()) clear();
  }
  void clear() noexcept {
    all_.clear();
    begin_ = 0;
  }

 private:
  std::vector<T> all_;
  std::size_t begin_ = 0;
};

// How a group's commands go out: all of them in one go, or the next one alone, there with ASKING before it.
//
// While a slot moves, each of its keys is with the old node or with the new one. The old one knows: it answers or says
// ASK. The new one, when it is ASKING, takes every key for its own, so it must be asked only for what the old one has
// sent us there for. So a group of such a slot goes a command at a time, each first to the old node.
enum class send_mode : std::uint8_t { whole, step, asking_step };

struct pending_request {
  std::uint32_t group;
  send_mode how;
};

// A group on its way, a command at a time.
struct steps {
  std::uint32_t command = 0;  // that is next
  std::size_t at = 0;         // its first byte
  reply_list replies;
};

// Something sent whose replies are to come.
struct sent {
  enum class kind : std::uint8_t { greeting, script, group };
  kind what;
  send_mode how;
  bool trouble;            // a reply was an error that is not final
  std::uint32_t commands;  // replies yet to come
  std::uint32_t group;
  std::uint64_t first_byte;  // of the connection's bytes
  std::size_t bytes;
};

struct node {
  place where;
  std::uint16_t number = 0;  // among all
  bool is_replica = false;
  bool in_map = true;
  std::vector<node*> replicas;  // of a master
  enum class phase : std::uint8_t { closed, opening, greeting, ready } now = phase::closed;
  connection link;
  std::optional<reader> in;
  line_of<sent> under_way;
  std::size_t bytes_under_way = 0;
  reply_list replies;           // of the first one under way
  std::size_t reply_begin = 0;  // of the reply that is being read
  struct loaded_script {
    const script* what;
    std::uint64_t at_byte;  // of the connection's bytes
  };
  std::vector<loaded_script> loaded;
  std::string leaving;  // why the connection is to be closed as soon as all is answered; empty: it is not
  line_of<pending_request> to_send;
  moment open_until{};           // while opening and greeting
  moment backoff_until{};        // to be opened again
  moment last_heard{};           // or when it was first asked something
  unsigned failures = 0;         // of this call, since the last answer
  unsigned absences = 0;         // of all calls, since the last answer
  moment absent_until{};         // a replica: nobody asks it before
  std::uint64_t opened = 0;      // connections so far, so the number of the present one
  std::uint64_t written_on = 0;  // the first connection that wrote since the last WAIT; 0: none did
};

}  // namespace routing

using namespace routing;

struct router::state {
  state(redis_address a, redis_connection_options o) : address(std::move(a)), options(std::move(o)) {
    for (milliseconds* const time : {&options.time, &options.connect_time}) {
      if (*time <= milliseconds::zero()) {
        throw error(errc::invalid_argument, {"no time to reach a server", address.text(), "more than 0 milliseconds",
                                             std::to_string(time->count()), ""});
      }
      *time = std::min(*time, longest_time);
    }
    std::random_device seed;
    random.seed(seed());
    if (address.cluster) return;
    if (address.socket.empty()) {
      node_at({address.endpoints.front().host, address.endpoints.front().port, {}});
    } else {
      node_at({{}, 0, address.socket});
    }
  }

  // With groups that are pinned to nodes: one for each, else by their slots. To be kept: no new connections are made.
  enum class connections : std::uint8_t { as_needed, kept };
  void run(const batch& commands, const on_replies& take, milliseconds time, std::span<node* const> pinned = {},
           connections which = connections::as_needed);

  std::vector<node*> all_nodes(bool replicas_too);

  node& node_at(place where);
  node& add_node(place where);
  node* node_for(std::uint32_t group);
  void need_map();
  void refresh_map();
  bool take_map(const reply& slots, const place& asked);
  bool exchange(const place& with, const batch& question, reply_list& answers, milliseconds within);
  void set_role(node& n, bool is_replica);
  void forget_nodes();

  void serve(node& n);
  void open(node& n);
  std::uint32_t greeting_for(const node& n, batch& greeting) const;
  std::string check_greeting(const reply_list& replies, const place& where, std::uint32_t first = 0);
  void shake_hands(node& n);
  void fill(node& n);
  void send(node& n, pending_request e);
  void receive(node& n);
  void replied(node& n, reply last);
  void finish(node& n, const sent& done);
  void tell(std::uint32_t group, reply first);
  void again(node& n, pending_request e, error_class v, std::string_view text, std::uint64_t sent_at);
  bool may_go_at_once(pending_request e);
  void load_script(node& n, pending_request e, std::uint64_t sent_at);
  void follow_moved(const node& n, pending_request e, std::string_view text);
  void follow_ask(const node& n, pending_request e, std::string_view text);
  void dispatch(pending_request e);
  void put_off(pending_request e);
  void lost(node& n, const std::string& why);
  void look_at_quiet_nodes();
  void close(node& n) noexcept;
  void leave() noexcept;
  milliseconds pause_after(unsigned failures);
  void begin(milliseconds within);
  bool wait_for(std::vector<pollfd>& these, moment wake);
  void wait_for_events();
  [[noreturn]] void out_of_time();
  [[noreturn]] void refuse(errc code, std::string what, const place& where, std::string found, error_hint to_do) {
    throw error(code, {std::move(what), where.text(), "", std::move(found), std::move(to_do)});
  }

  [[noreturn]] void lose_writes(const node& n) {
    refuse(errc::unavailable, "the connection that wrote is lost, so the replicas that have the keys are unknown",
           n.where, last_problem, error_hint(hint::insert_again, "it may be in or not: insert it again"));
  }

  [[noreturn]] void distrust(const place& where, const std::string& why) {
    refuse(errc::not_permitted, why, where, "", hint::check_certificates);
  }

  redis_address address;
  redis_connection_options options;
  std::vector<std::unique_ptr<node>> nodes;
  std::vector<std::uint16_t> slots;  // of a cluster: for each the number of its master; empty: not known yet
  std::unique_ptr<tls_settings> tls;
  std::minstd_rand random;
  std::vector<char> buffer = std::vector<char>(std::size_t{64} << 10);
  std::vector<pollfd> polled;
  std::vector<node*> polled_nodes;

  bool map_wanted = false;
  moment map_backoff_until{};
  unsigned map_failures = 0;

  // Of the call.
  const batch* commands = nullptr;
  const on_replies* take = nullptr;
  std::span<node* const> pinned;
  connections allowed = connections::as_needed;
  moment now{};
  moment until{};
  moment latest{};  // for until
  moment began{};
  bool stopping = false;
  std::size_t open_groups = 0;
  std::vector<std::uint8_t> attempts;  // of each group
  std::vector<bool> repeats;           // of each group: a part of it may have run more than once
  std::map<std::uint32_t, steps> stepping;
  struct delayed {
    moment when;
    pending_request what;
  };
  std::vector<delayed> later;
  std::string last_problem;  // for the message when the time is over
  std::string last_place;
};

}  // namespace bloomery::redis
