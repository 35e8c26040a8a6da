// The implementation of router: nodes, their connections, and the groups of the present call. Its functions are in
// router_map.cpp (slot map), router_sentinel.cpp (master of a name), router_link.cpp (one connection), router_again.cpp
// (retries), router_refuse.cpp (errors) and router_call.cpp (event loop).
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

// Maximum bytes of pending commands per connection: enough to keep a server busy, few enough to send again.
inline constexpr std::size_t most_under_way = 128 << 10;

// A cluster node that has not answered for this time may be down: other nodes are asked for the slot map.
inline constexpr milliseconds quiet_time{1'000};
// Initial time limit for a request of the slot map, including a slow network and TLS. Doubled after each round in which
// no node answers.
inline constexpr milliseconds map_time{500};
// Backoff for an unreachable replica, doubled each time.
inline constexpr milliseconds shortest_absence{1'000};
// Ten years: practically no limit, and still representable by the clock.
inline constexpr milliseconds longest_time = std::chrono::hours(24 * 365 * 10);
// Limits the extension of a call's time by the size of its replies to this factor; otherwise a server could prolong a
// call for hours.
inline constexpr int most_extension = 10;
// Time for pending groups after a stop request.
inline constexpr milliseconds time_to_stop{1'000};
// The extension of a call's time for its data, so that large calls do not time out: assumes at least 1 MiB/s.
inline constexpr milliseconds time_for(std::size_t bytes) { return milliseconds(bytes >> 10); }

inline constexpr std::uint16_t no_node = 0xFFFF;

// How a failure begins if the server did not answer the TLS handshake in time.
inline constexpr std::string_view no_tls_answer = "no answer to the TLS handshake";

// Backoff before a retry.
inline constexpr milliseconds shortest_pause{10};
inline constexpr milliseconds longest_pause{500};
// Maximum number of retries without backoff, after a redirection or a missing script.
inline constexpr std::uint8_t most_at_once = 4;

// A FIFO queue that keeps its memory.
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

// How a group is sent: all commands together, or the next one only, possibly after ASKING.
//
// While a slot is migrated, each of its keys is on the old node or on the new one. The old node answers for its keys
// and replies ASK for others. After ASKING, the new node treats every key of the slot as its own, so it must only get
// commands that the old node has redirected. So a group of such a slot is sent command by command, each first to the
// old node.
enum class send_mode : std::uint8_t { whole, step, asking_step };

struct pending_request {
  std::uint32_t group;
  send_mode how;
};

// The progress of a group that is sent command by command.
struct steps {
  std::uint32_t command = 0;  // the next command
  std::size_t at = 0;         // its first byte
  reply_list replies;
};

// A sent group with outstanding replies.
struct sent {
  enum class kind : std::uint8_t { handshake, run_id, script, group };
  kind what;
  send_mode how;
  bool trouble;            // a reply was an error that is not final
  std::uint32_t commands;  // number of outstanding replies
  std::uint32_t group;
  std::uint64_t first_byte;  // position in the bytes of the connection
  std::size_t bytes;
};

struct node {
  place where;
  std::uint16_t number = 0;  // index in `nodes`
  bool is_replica = false;
  bool in_map = true;
  std::vector<node*> replicas;  // of a master
  enum class phase : std::uint8_t { closed, opening, handshake, ready } now = phase::closed;
  connection link;
  std::optional<reader> in;
  line_of<sent> under_way;
  std::size_t bytes_under_way = 0;
  reply_list replies;           // of the first pending group
  std::size_t reply_begin = 0;  // of the reply that is being parsed
  struct loaded_script {
    const script* what;
    std::uint64_t at_byte;  // position in the bytes of the connection
  };
  std::vector<loaded_script> loaded;
  std::string leaving;  // why the connection is closed after all replies; empty: it stays open
  line_of<pending_request> to_send;
  moment open_until{};           // time limit for opening and handshake
  moment backoff_until{};        // not opened again before
  moment last_heard{};           // time of the last answer, or of the first request
  unsigned failures = 0;         // in this call, since the last answer
  unsigned absences = 0;         // in all calls, since the last answer
  moment absent_until{};         // a replica: not used before
  std::uint64_t opened = 0;      // number of connections so far: the number of the present one
  std::uint64_t written_on = 0;  // the first connection that wrote since the last WAIT; 0: none
  bool has_answered = false;     // a group, since forget_answers(), and its connection was not lost since
  bool was_ready = false;        // on an earlier connection
  bool is_reopened = false;      // the present connection is not the first one
  bool hides_run_id = false;     // the user may not read it
  bool run_id_due = false;       // it must be read on the present connection
  std::string run_id;            // of the server process on the other end; empty: unknown
};

}  // namespace routing

using namespace routing;

struct router::impl {
  impl(redis_address a, redis_connection_options o) : address(std::move(a)), options(std::move(o)) {
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
    if (address.socket.empty()) {  // with sentinels the place of the first stands for the master until it is known
      node_at({address.endpoints.front().host, address.endpoints.front().port, {}});
    } else {
      node_at({{}, 0, address.socket});
    }
  }

  // Groups are sent to the nodes that they are pinned to, if any, otherwise by slot. `kept`: no new connections.
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
  enum class greeting : std::uint8_t { full, none };  // whether a question follows the handshake
  bool exchange(const place& with, const batch& question, reply_list& answers, milliseconds within,
                bool* found_no_server = nullptr, greeting how = greeting::full);
  bool find_master(node& n);
  void check_master();
  static bool is_master(const reply& role);
  void set_role(node& n, bool is_replica);
  void forget_nodes();

  void serve(node& n);
  void open(node& n);
  std::uint32_t handshake_for(const node& n, batch& handshake) const;
  std::string check_handshake(const reply_list& replies, const place& where, std::uint32_t first = 0);
  void shake_hands(node& n);
  void become_ready(node& n);
  void ask_run_id(node& n);
  void take_run_id(node& n, reply r);
  void fill(node& n);
  void send(node& n, pending_request e);
  void receive(node& n);
  void replied(node& n, reply last);
  void finish(node& n, const sent& done);
  void tell(std::uint32_t group, reply first);
  void again(node& n, pending_request e, error_class v, std::string_view text, std::uint64_t sent_at);
  bool may_retry_at_once(pending_request e);
  void load_script(node& n, pending_request e, std::uint64_t sent_at);
  void follow_moved(const node& n, pending_request e, std::string_view text);
  void follow_ask(const node& n, pending_request e, std::string_view text);
  void dispatch(pending_request e);
  void put_off(pending_request e);
  void lost(node& n, const std::string& why);
  void lose_answers(node& n) noexcept;
  void check_unresponsive_nodes();
  void close(node& n) noexcept;
  void leave() noexcept;
  milliseconds pause_after(unsigned failures);
  void begin(milliseconds within);
  bool wait_for(std::vector<pollfd>& these, moment wake);
  void wait_for_events();
  [[noreturn]] void out_of_time();
  [[noreturn]] void refuse(errc code, std::string what, const place& where, const std::string& found,
                           error_hint to_do) {
    throw error(code, {std::move(what), where.text(), "", shown_text(found), std::move(to_do)});
  }

  // router_refuse.cpp
  error_hint with_outcome(hint code, std::string to_do) const;
  [[noreturn]] void refuse_reply(const place& where, std::string_view bytes, const std::string& problem);
  [[noreturn]] void refuse_plain_server(const place& where);
  void refuse_if_never_there(const place& where, bool found_no_server);
  void refuse_if_never_answering(const node& n);
  void note_failure(const connection& link, const place& where, const std::string& problem);

  [[noreturn]] void lose_writes(const node& n) {
    refuse(errc::unavailable,
           "a connection with writes was lost, so the number of replicas that have the keys is unknown", n.where,
           last_problem, error_hint(hint::insert_again, "the keys may or may not be inserted: insert them again"));
  }

  [[noreturn]] void distrust(const place& where, const std::string& why) {
    refuse(errc::not_permitted, why, where, "", hint::check_certificates);
  }

  redis_address address;
  redis_connection_options options;
  std::vector<std::unique_ptr<node>> nodes;
  std::vector<std::uint16_t> slots;  // of a cluster: the number of the master of each slot; empty: unknown
  std::unique_ptr<tls_settings> tls;
  std::minstd_rand random;
  std::vector<char> buffer = std::vector<char>(std::size_t{64} << 10);
  std::vector<pollfd> polled;
  std::vector<node*> polled_nodes;

  bool has_replied = false;  // any server, in any call
  std::uint64_t links = 0;   // see router::links()

  redis_counters counters;
  std::uint64_t groups_run = 0;
  bool answers_lost = false;
  bool watches_restarts = false;
  std::uint64_t possible_restarts = 0;
  bool has_sent = false;    // a group, in any call
  moment master_checked{};  // with sentinels

  bool map_wanted = false;
  moment map_backoff_until{};
  unsigned map_failures = 0;

  // The present call.
  const batch* commands = nullptr;
  const on_replies* take = nullptr;
  std::span<node* const> pinned;
  connections allowed = connections::as_needed;
  moment now{};
  moment until{};
  moment latest{};  // upper limit of `until`
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
  bool last_had_no_address = false;  // the name of the host
};

}  // namespace bloomery::redis
