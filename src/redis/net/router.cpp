#include "redis/net/router.hpp"

#include <bloomery/error.hpp>

#include "redis/net/connection.hpp"
#include "redis/net/reader.hpp"
#include "redis/net/slots.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

namespace bloomery::redis {
namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

// Bytes of commands under way on a connection: enough to keep a server busy, few enough to send again.
constexpr std::size_t most_under_way = 128 << 10;

// A node of a cluster that has not answered for so long may be dead: others are asked.
constexpr milliseconds quiet_time{1'000};
// For one node to tell where all slots are, at first: the network may be slow, and so may TLS. Twice as much after each
// round of all nodes in vain.
constexpr milliseconds map_time{500};
// A replica that could not be reached is left alone for some of these: one at first, twice as many each time.
constexpr milliseconds shortest_absence{1'000};
// Ten years are as good as for ever, and there are clocks that can count them.
constexpr milliseconds longest_time = std::chrono::hours(24 * 365 * 10);
// What an answer's size adds to a call's time ends when that is so many times as long: else a server could feed a call
// for hours.
constexpr int most_extension = 10;
// After a stop: for what is under way.
constexpr milliseconds time_to_stop{1'000};
// Calls take longer by this for what they carry, so that a large one is no failure: a server gives 1 MiB/s at least.
constexpr milliseconds time_for(std::size_t bytes) { return milliseconds(bytes >> 10); }

constexpr std::uint16_t no_node = 0xFFFF;

// Pauses before something is tried again.
constexpr milliseconds shortest_pause{10};
constexpr milliseconds longest_pause{500};
// So often something is tried again without one, when a server has said how.
constexpr std::uint8_t most_at_once = 4;

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
enum class gait : std::uint8_t { whole, step, asking_step };

struct errand {
  std::uint32_t group;
  gait how;
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
  gait how;
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
  line_of<errand> to_send;
  moment open_until{};           // while opening and greeting
  moment not_before{};           // to be opened again
  moment last_heard{};           // or when it was first asked something
  unsigned failures = 0;         // of this call, since the last answer
  unsigned absences = 0;         // of all calls, since the last answer
  moment absent_until{};         // a replica: nobody asks it before
  std::uint64_t opened = 0;      // connections so far, so the number of the present one
  std::uint64_t written_on = 0;  // the first connection that wrote since the last WAIT; 0: none did
};

// Where a command that begins at `at` ends.
std::size_t end_of_command(std::string_view bytes, std::size_t at) {
  const auto number = [&] {
    std::size_t value = 0;
    const char* const end = std::from_chars(bytes.data() + at + 1, bytes.data() + bytes.size(), value).ptr;
    at = static_cast<std::size_t>(end - bytes.data()) + 2;
    return value;
  };
  for (std::size_t words = number(); words > 0; --words) {
    const std::size_t length = number();
    at += length + 2;
  }
  return at;
}

}  // namespace

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
  void greet(node& n);
  void fill(node& n);
  void send(node& n, errand e);
  void receive(node& n);
  void replied(node& n, reply last);
  void finish(node& n, const sent& done);
  void tell(std::uint32_t group, reply first);
  void again(node& n, errand e, verdict v, std::string_view text, std::uint64_t sent_at);
  bool may_go_at_once(errand e);
  void load_script(node& n, errand e, std::uint64_t sent_at);
  void follow_moved(const node& n, errand e, std::string_view text);
  void follow_ask(const node& n, errand e, std::string_view text);
  void dispatch(errand e);
  void put_off(errand e);
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
  moment map_not_before{};
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
    errand what;
  };
  std::vector<delayed> later;
  std::string last_problem;  // for the message when the time is over
  std::string last_place;
};

milliseconds router::state::pause_after(unsigned failures) {
  const milliseconds most = std::min(longest_pause, shortest_pause * (1 << std::min(failures, 6U)));
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(most.count() / 2, most.count())(random));
}

// ---- which node -----------------------------------------------------------------------------------------------------

node& router::state::node_at(place where) {
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->where == where) return *n;
  }
  return add_node(std::move(where));
}

node& router::state::add_node(place where) {
  if (nodes.size() >= no_node) refuse(errc::damaged, "a cluster of too many nodes", where, "", {});
  nodes.push_back(std::make_unique<node>());
  nodes.back()->where = std::move(where);
  nodes.back()->number = static_cast<std::uint16_t>(nodes.size() - 1);
  return *nodes.back();
}

// Whether a connection reads from a replica is said when it begins: one to a server that was a master is of no use.
void router::state::set_role(node& n, bool is_replica) {
  const bool demoted = is_replica && !n.is_replica;
  n.is_replica = is_replica;
  if (!demoted || (n.now != node::phase::greeting && n.now != node::phase::ready)) return;
  if (n.under_way.empty()) return close(n);
  if (n.leaving.empty()) n.leaving = "the server has become a replica";
}

// Null: nobody has the slot, as far as is known.
node* router::state::node_for(std::uint32_t group) {
  if (!pinned.empty()) return pinned[group];
  if (!address.cluster) return nodes.front().get();
  const batch::group& g = commands->groups()[group];
  const std::uint16_t number = slots.empty() ? no_node : slots[g.slot % num_slots];
  if (number == no_node) return nullptr;
  node& master = *nodes[number];
  if (options.read_from_replicas && g.mode == mode::read && attempts[group] == 0 && !master.replicas.empty()) {
    node& replica = *master.replicas[g.slot % master.replicas.size()];
    if (replica.absent_until <= now) return &replica;
  }
  return &master;
}

void router::state::need_map() { map_wanted = address.cluster; }

// Asks one node after the other, first those that are known to answer.
void router::state::refresh_map() {
  std::vector<place> places;
  const auto add = [&](const place& p) {
    if (std::find(places.begin(), places.end(), p) == places.end()) places.push_back(p);
  };
  std::vector<const node*> known;
  for (const std::unique_ptr<node>& n : nodes) known.push_back(n.get());
  std::shuffle(known.begin(), known.end(), random);
  const auto is_well = [&](const node* n) {
    return n->failures == 0 && n->in_map && (n->under_way.empty() || now - n->last_heard < quiet_time);
  };
  for (const node* n : known) {
    if (is_well(n)) add(n->where);
  }
  for (const redis_address::endpoint& e : address.endpoints) add({e.host, e.port, {}});
  for (const node* n : known) add(n->where);

  batch question;
  question.begin(0, mode::read);
  question.command({"CLUSTER", "SLOTS"});
  reply_list answers;
  const std::string problem_before = last_problem;
  const std::string place_before = last_place;
  const milliseconds for_each = std::min(map_time * (1 << std::min(map_failures, 20U)), options.connect_time);
  for (const place& p : places) {
    now = clock::now();
    if (now >= until) break;
    if (!exchange(p, question, answers, for_each)) continue;
    const reply r(answers, 0);
    if (r.is_error()) {
      last_problem = r.text();
      last_place = p.text();
      if (last_problem.find("cluster support disabled") != std::string::npos) {
        refuse(errc::invalid_argument, "the server is not one of a cluster", p, last_problem,
               error_hint(hint::give_server_address, "give the address of one server: redis://" + p.text() + "/NAME"));
      }
      if (verdict_of(last_problem) == verdict::final) throw_if_error(r, address, "ask a node for the cluster's slots");
      continue;
    }
    if (!take_map(r, p)) continue;
    map_wanted = false;
    map_failures = 0;
    last_problem = problem_before;  // what others failed to tell is of no interest now
    last_place = place_before;
    now = clock::now();
    map_not_before = now + pause_after(3);
    return;
  }
  now = clock::now();
  map_not_before = now + pause_after(map_failures);
  if (map_failures < 255) ++map_failures;
}

// False: it says nothing that can be used.
bool router::state::take_map(const reply& ranges, const place& asked) {
  const char* why = nullptr;
  const std::vector<slot_range> read = slot_ranges_in(ranges, asked, why);
  if (read.empty()) {
    last_problem = why;
    last_place = asked.text();
    return false;
  }

  std::map<std::pair<std::string, std::uint16_t>, node*> known;
  for (const std::unique_ptr<node>& n : nodes) {
    n->in_map = false;
    n->replicas.clear();
    known[{n->where.host, n->where.port}] = n.get();
  }
  std::vector<std::uint16_t> map(num_slots, no_node);
  for (const slot_range& range : read) {
    node* master = nullptr;
    for (const place& where : range.nodes) {
      node*& n = known[{where.host, where.port}];
      if (n == nullptr) n = &add_node(where);
      n->in_map = true;
      set_role(*n, master != nullptr);
      if (master == nullptr) {
        master = n;
        std::fill(map.begin() + static_cast<std::ptrdiff_t>(range.first),
                  map.begin() + static_cast<std::ptrdiff_t>(range.last + 1), n->number);
      } else {
        master->replicas.push_back(n);
      }
    }
  }
  for (const std::unique_ptr<node>& n : nodes) {  // that have several ranges
    std::vector<node*>& all = n->replicas;
    std::sort(all.begin(), all.end(), [](const node* a, const node* b) { return a->number < b->number; });
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  slots = std::move(map);
  return true;
}

// One question on a connection of its own. False: no answer; last_problem says why.
bool router::state::exchange(const place& with, const batch& question, reply_list& answers, milliseconds within) {
  if (address.tls && tls == nullptr) tls = std::make_unique<tls_settings>(options);
  node other;  // never among the nodes
  other.where = with;
  last_place = with.text();
  batch all;
  const std::uint32_t greetings = greeting_for(other, all);
  std::uint32_t greeted = 0;
  connection link;
  reader in;
  link.open(with, address.tls ? tls.get() : nullptr, within);
  now = clock::now();
  const moment end = now + within;
  link.write(all.bytes());
  link.write(question.bytes());
  std::uint32_t expected = question.groups().front().commands;
  answers.clear();
  link.flush();
  while (link.is_open()) {
    if (now >= std::min(until, end)) {
      last_problem = "no answer within " + std::to_string(within.count()) + " ms";
      return false;
    }
    polled.assign(1, {link.descriptor(), link.wanted_events(), 0});
    const bool some = wait_for(polled, std::min({until, end, link.patient_until()}));
    if (!some) {
      link.hurry(now);
      continue;
    }
    link.go_on(polled.front().revents);
    while (const std::size_t got = link.read(buffer)) {
      std::string_view bytes(buffer.data(), got);
      while (true) {
        const reader::found found = in.next(bytes, answers);
        if (found == reader::found::wrong) {
          refuse(errc::damaged, "what answers is no server of Redis", with, in.problem(), hint::check_host_and_port);
        }
        if (found == reader::found::none) break;
        if (greeted < greetings) {
          last_problem = check_greeting(answers, with, greeted);
          if (!last_problem.empty()) return false;
          ++greeted;
          answers.clear();
        } else if (--expected == 0) {
          return true;
        }
      }
      if (clock::now() >= end) break;
    }
  }
  last_problem = link.failure();
  if (link.failed_for_good()) distrust(with, last_problem);
  return false;
}

// Nodes that no map has any more, and nobody needs.
void router::state::forget_nodes() {
  if (!address.cluster || slots.empty()) return;
  const bool all_in =
      std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return n->in_map || n->written_on != 0; });
  if (all_in) return;
  std::vector<node*> of_slot(num_slots, nullptr);
  for (std::size_t s = 0; s < num_slots; ++s) {
    if (slots[s] != no_node) of_slot[s] = nodes[slots[s]].get();
  }
  for (node* n : of_slot) {
    if (n != nullptr) n->in_map = true;  // by MOVED
  }
  std::erase_if(nodes, [](const auto& n) { return !n->in_map && n->written_on == 0; });
  for (const std::unique_ptr<node>& n : nodes) {
    std::erase_if(n->replicas, [&](const node* replica) {
      return std::none_of(nodes.begin(), nodes.end(), [&](const auto& other) { return other.get() == replica; });
    });
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i]->number = static_cast<std::uint16_t>(i);
  for (std::size_t s = 0; s < num_slots; ++s) slots[s] = of_slot[s] == nullptr ? no_node : of_slot[s]->number;
}

// ---- one connection -------------------------------------------------------------------------------------------------

void router::state::open(node& n) {
  if (allowed == connections::kept) lose_writes(n);
  if (address.tls && tls == nullptr) tls = std::make_unique<tls_settings>(options);
  n.in.emplace();
  n.replies.clear();
  n.reply_begin = 0;
  n.under_way.clear();
  n.loaded.clear();
  n.leaving.clear();
  n.bytes_under_way = 0;
  n.now = node::phase::opening;
  n.open_until = now + options.connect_time;
  ++n.opened;
  n.link.open(n.where, address.tls ? tls.get() : nullptr, options.connect_time);
}

// What a new connection begins with; the number of its commands.
std::uint32_t router::state::greeting_for(const node& n, batch& greeting) const {
  greeting.begin(0, mode::read);
  if (!address.password.empty()) {
    if (address.user.empty()) {
      greeting.command({"AUTH", address.password});
    } else {
      greeting.command({"AUTH", address.user, address.password});
    }
  }
  if (address.database != 0) greeting.command({"SELECT", std::to_string(address.database)});
  if (address.cluster && n.is_replica) greeting.command({"READONLY"});
  return greeting.groups().front().commands;
}

// The text of an error that may pass; empty if all is well. The replies are those from number `first` on.
std::string router::state::check_greeting(const reply_list& replies, const place& where, std::uint32_t first) {
  for (std::size_t at = 0; at < replies.nodes_.size(); ++at) {
    const reply each(replies, at);
    if (!each.is_error()) continue;
    const bool to_auth = first + at == 0 && !address.password.empty();
    const std::string text = to_auth ? shown_answer_to_auth(each.text()) : std::string(each.text());
    if (verdict_of(each.text()) != verdict::final) return text;
    if (text.starts_with("ERR DB ") || text.starts_with("ERR invalid DB")) {
      refuse(errc::invalid_argument, "the server has no database " + std::to_string(address.database), where, text, "");
    }
    refuse(errc::not_permitted, "the server does not let this user in", where, text, hint::give_credentials);
  }
  return {};
}

void router::state::greet(node& n) {
  batch greeting;
  const std::uint32_t count = greeting_for(n, greeting);
  if (count == 0) {
    n.now = node::phase::ready;
    return;
  }
  n.now = node::phase::greeting;
  n.under_way.push({sent::kind::greeting, gait::whole, false, count, 0, n.link.queued(), 0});
  n.last_heard = now;
  n.link.write(greeting.bytes());
  n.link.flush();
}

void router::state::send(node& n, errand e) {
  const batch::group& g = commands->groups()[e.group];
  std::size_t begin = g.begin;
  std::size_t end = g.end;
  std::uint32_t count = g.commands;
  if (e.how != gait::whole) {
    const auto [at, fresh] = stepping.try_emplace(e.group);
    steps& s = at->second;
    if (fresh) s.at = g.begin;
    begin = s.at;
    end = end_of_command(commands->bytes(), begin);
    count = e.how == gait::asking_step ? 2 : 1;
  }
  if (n.under_way.empty()) n.last_heard = now;
  n.under_way.push({sent::kind::group, e.how, false, count, e.group, n.link.queued(), end - begin});
  n.bytes_under_way += end - begin;
  if (e.how == gait::asking_step) n.link.write("*1\r\n$6\r\nASKING\r\n");
  n.link.write(commands->bytes().substr(begin, end - begin));
  if (g.mode != mode::read && n.written_on == 0) n.written_on = n.opened;
}

void router::state::fill(node& n) {
  if (n.to_send.empty() || !n.leaving.empty()) return;
  while (!n.to_send.empty() && n.bytes_under_way < most_under_way) {
    const errand e = n.to_send.front();
    n.to_send.pop();
    send(n, e);
  }
  n.link.flush();
}

void router::state::serve(node& n) {
  if (n.now == node::phase::closed && !n.to_send.empty() && n.not_before <= now) open(n);
  if (n.now == node::phase::opening) n.link.hurry(now);
  if (n.now == node::phase::opening && n.link.is_through()) greet(n);
  if ((n.now == node::phase::opening || n.now == node::phase::greeting) && n.link.is_open() && n.open_until <= now) {
    return lost(n, "no connection within " + std::to_string(options.connect_time.count()) + " ms");
  }
  if (n.now == node::phase::ready) fill(n);
  if (n.now != node::phase::closed && !n.link.is_open()) lost(n, n.link.failure());
}

void router::state::receive(node& n) {
  // Not without end: the others have their turn, too.
  for (int turn = 0; turn < 8 && n.link.is_open(); ++turn) {
    const std::size_t got = n.link.read(buffer);
    if (got == 0) break;
    n.last_heard = now;
    until = std::max(until, std::min(until + time_for(got), latest));
    std::string_view bytes(buffer.data(), got);
    while (true) {
      const reader::found found = n.in->next(bytes, n.replies);
      if (found == reader::found::none) break;
      if (found == reader::found::wrong) {
        const std::string problem = n.in->problem();
        n.link.close();
        refuse(errc::damaged, "what answers is no server of Redis", n.where, problem, hint::check_host_and_port);
      }
      if (n.under_way.empty()) {
        const reply r(n.replies, 0);
        if (r.is_error()) return lost(n, std::string(r.text()));  // its farewell
        n.link.close();
        n.now = node::phase::closed;
        refuse(errc::damaged, "the server speaks without being asked", n.where, "", hint::check_host_and_port);
      }
      replied(n, {n.replies, std::exchange(n.reply_begin, n.replies.nodes_.size())});
      if (n.now == node::phase::closed) return;
    }
    if (got < buffer.size() && !n.link.has_more()) break;  // poll() will tell of more
  }
  if (n.now != node::phase::closed && !n.link.is_open()) lost(n, n.link.failure());
}

void router::state::replied(node& n, reply last) {
  n.failures = n.absences = 0;
  n.absent_until = {};
  sent& first = n.under_way.front();
  if (last.is_error() && verdict_of(last.text()) != verdict::final) first.trouble = true;
  if (--first.commands > 0) return;
  const sent done = first;
  n.under_way.pop();
  n.bytes_under_way -= done.bytes;
  finish(n, done);
  n.replies.clear();
  n.reply_begin = 0;
  if (!n.leaving.empty() && n.under_way.empty() && n.now != node::phase::closed) lost(n, n.leaving);
}

void router::state::finish(node& n, const sent& done) {
  const reply first(n.replies, 0);
  if (done.what == sent::kind::greeting) {
    const std::string problem = check_greeting(n.replies, n.where);
    if (!problem.empty()) return lost(n, problem);
    n.now = node::phase::ready;
    return;
  }
  if (done.what == sent::kind::script) {
    if (first.is_error() && verdict_of(first.text()) == verdict::final) {
      throw_if_error(first, address, "load a script");
    }
    return;
  }
  const batch::group& g = commands->groups()[done.group];
  if (done.how != gait::whole) {
    const reply r = done.how == gait::asking_step ? first.next() : first;
    if (done.trouble) {
      const reply bad = r.is_error() ? r : first;
      return again(n, {done.group, done.how}, verdict_of(bad.text()), bad.text(), done.first_byte);
    }
    steps& s = stepping[done.group];
    r.append_to(s.replies);
    s.at = end_of_command(commands->bytes(), s.at);
    if (++s.command < g.commands) return dispatch({done.group, gait::step});
    const reply_list all = std::move(s.replies);
    stepping.erase(done.group);
    return tell(done.group, {all, 0});
  }
  if (!done.trouble) {
    if (!last_problem.empty() && last_place == n.where.text()) last_problem.clear();  // it is well again
    return tell(done.group, first);
  }
  // Something in the group is to be done again, and with it all of the group.
  verdict worst = verdict::final;
  std::string_view text;
  bool ran = false;  // what must not run twice
  reply r = first;
  for (std::uint32_t i = 0; i < g.commands; ++i, r = r.next()) {
    const verdict v = r.is_error() ? verdict_of(r.text()) : verdict::final;
    if (v == verdict::final && (g.script == nullptr || i == g.script_command)) ran = true;
    if (v <= worst) continue;
    worst = v;
    text = r.text();
  }
  if (g.mode == mode::once && ran) {
    refuse(errc::unavailable, "a part of what was asked is done, and a part is not", n.where, std::string(text), "");
  }
  again(n, {done.group, gait::whole}, worst, text, done.first_byte);
}

void router::state::tell(std::uint32_t group, reply first) {
  --open_groups;
  (*take)(group, first);
}

// ---- once more ------------------------------------------------------------------------------------------------------

// What an error of a server asks for.
void router::state::again(node& n, errand e, verdict v, std::string_view text, std::uint64_t sent_at) {
  repeats[e.group] = true;
  last_problem = text;
  last_place = n.where.text();
  if ((v == verdict::other_node || v == verdict::ask) && !address.cluster) {
    refuse(errc::invalid_argument, "the server is one of a cluster", n.where, last_problem,
           error_hint(hint::give_cluster_address,
                      "give the cluster's address: redis+cluster://" + n.where.text() + "/NAME"));
  }
  switch (v) {
    case verdict::load_script: return load_script(n, e, sent_at);
    case verdict::other_node: return follow_moved(n, e, text);
    case verdict::ask: return follow_ask(n, e, text);
    case verdict::reconnect:
      // What else is under way will be answered the same, or not be needed any more.
      if (n.leaving.empty()) n.leaving = text;
      return put_off(e);
    default:
      if (essence_of(text).starts_with("CLUSTERDOWN")) need_map();
      return put_off(e);
  }
}

// For the first few times without a pause.
bool router::state::may_go_at_once(errand e) {
  if (attempts[e.group] >= most_at_once) return false;
  ++attempts[e.group];
  return true;
}

// Of many groups with one script that were sent at once, the first lets it be loaded for all.
void router::state::load_script(node& n, errand e, std::uint64_t sent_at) {
  const script* const wanted = commands->groups()[e.group].script;
  const auto it = std::find_if(n.loaded.begin(), n.loaded.end(), [&](const auto& l) { return l.what == wanted; });
  if (it == n.loaded.end() || it->at_byte <= sent_at) {
    if (it != n.loaded.end()) n.loaded.erase(it);
    n.loaded.push_back({wanted, n.link.queued()});
    batch load;
    load.begin(0, mode::read);
    load.command({"SCRIPT", "LOAD", wanted != nullptr ? wanted->source : std::string_view()});
    if (n.under_way.empty()) n.last_heard = now;
    n.under_way.push({sent::kind::script, gait::whole, false, 1, 0, n.link.queued(), 0});
    n.link.write(load.bytes());
  }
  if (!may_go_at_once(e)) return put_off(e);
  send(n, e);
}

void router::state::follow_moved(const node& n, errand e, std::string_view text) {
  const std::optional<place> target = target_of(text, n.where);
  need_map();
  if (!target) return put_off(e);
  node& other = node_at(*target);
  other.in_map = true;
  set_role(other, false);
  if (!slots.empty()) slots[commands->groups()[e.group].slot % num_slots] = other.number;
  if (!may_go_at_once(e)) return put_off(e);
  dispatch({e.group, e.how == gait::whole ? gait::whole : gait::step});
}

void router::state::follow_ask(const node& n, errand e, std::string_view text) {
  const std::optional<place> target = target_of(text, n.where);
  if (!target || e.how == gait::asking_step) return put_off(e);
  if (e.how == gait::whole && commands->groups()[e.group].commands > 1) return dispatch({e.group, gait::step});
  node& other = node_at(*target);
  other.in_map = true;
  other.to_send.push({e.group, gait::asking_step});
}

void router::state::dispatch(errand e) {
  node* const n = node_for(e.group);
  if (n != nullptr) return n->to_send.push(e);
  need_map();
  put_off(e);
}

void router::state::put_off(errand e) {
  std::uint8_t& before = attempts[e.group];
  if (e.how == gait::asking_step) e.how = gait::step;
  later.push_back({now + pause_after(before), e});
  if (before < 255) ++before;
}

// What was under way is to be sent again, if it may.
void router::state::lost(node& n, const std::string& why) {
  const std::string problem = why;  // it may be one of the replies
  last_problem = problem;
  last_place = n.where.text();
  const bool for_good = n.link.failed_for_good();
  const std::uint64_t maybe_sent = n.link.maybe_sent();
  if (n.now != node::phase::ready || !n.under_way.empty()) {
    n.absent_until = now + shortest_absence * (1 << std::min(n.absences, 5U));
    if (n.absences < 255) ++n.absences;
  }
  n.link.close();
  n.now = node::phase::closed;
  n.not_before = now + pause_after(n.failures);
  if (n.failures < 255) ++n.failures;
  if (for_good) distrust(n.where, problem);
  need_map();
  bool broken = false;
  while (!n.under_way.empty()) {
    const sent s = n.under_way.front();
    n.under_way.pop();
    if (s.what != sent::kind::group) continue;
    repeats[s.group] = true;
    if (commands->groups()[s.group].mode == mode::once) {
      if (s.first_byte < maybe_sent) broken = true;
      put_off({s.group, s.how});
    } else {
      stepping.erase(s.group);
      put_off({s.group, gait::whole});
    }
  }
  // In a cluster another node may have them soon.
  while (address.cluster && pinned.empty() && !n.to_send.empty()) {
    put_off(n.to_send.front());
    n.to_send.pop();
  }
  n.bytes_under_way = 0;
  n.replies.clear();
  n.reply_begin = 0;
  if (broken) {
    refuse(errc::unavailable, "the connection was lost with something under way that must not be asked twice", n.where,
           problem, hint::check_if_done);
  }
}

// A node of a cluster that says nothing is left when the others have given its slots away. A replica is left at once.
void router::state::look_at_quiet_nodes() {
  if (!address.cluster || !pinned.empty()) return;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    node& n = *nodes[i];
    if (n.now == node::phase::closed || n.under_way.empty() || now - n.last_heard < quiet_time) continue;
    const bool has_slots = std::find(slots.begin(), slots.end(), static_cast<std::uint16_t>(i)) != slots.end();
    // To leave is to lose what must not be asked twice: a node that holds its clients back while its replica takes over
    // answers in the end.
    bool waited_for = false;
    for (std::size_t j = 0; j < n.under_way.size(); ++j) {
      const sent& u = n.under_way[j];
      waited_for |= u.what == sent::kind::group && commands->groups()[u.group].mode == mode::once;
    }
    if (has_slots) {
      need_map();
    } else if (!waited_for) {
      lost(n, "no answer");
    }
  }
}

// ---- a call ---------------------------------------------------------------------------------------------------------

void router::state::close(node& n) noexcept {
  n.under_way.clear();
  n.bytes_under_way = 0;
  n.link.close();
  n.now = node::phase::closed;
}

// Whatever happened: no connection has replies to come that nobody waits for.
void router::state::leave() noexcept {
  for (const std::unique_ptr<node>& n : nodes) {
    n->to_send.clear();
    n->replies.clear();
    n->reply_begin = 0;
    if (n->under_way.empty() && n->leaving.empty() && n->now != node::phase::opening) continue;
    close(*n);
  }
  later.clear();
  stepping.clear();
  commands = nullptr;
  take = nullptr;
  pinned = {};
  allowed = connections::as_needed;
}

void router::state::begin(milliseconds within) {
  began = now = clock::now();
  until = now + within;
  latest = now + most_extension * within;
  stopping = false;
  last_problem.clear();
  last_place.clear();
  map_not_before = now;
  map_failures = 0;
}

void router::state::out_of_time() {
  const auto spent = std::chrono::duration_cast<milliseconds>(now - began);
  throw error(
      errc::unavailable,
      {(stopping ? "stopped, with no answer within " : "no answer within ") + std::to_string(spent.count()) + " ms",
       last_place.empty() ? address.text() : last_place, "", last_problem, hint::check_server});
}

// Until one of these has something, or the time comes. What is to stop has a moment more for what is under way.
bool router::state::wait_for(std::vector<pollfd>& these, moment wake) {
  const std::size_t count = these.size();
  if (options.stop_descriptor >= 0 && !stopping) these.push_back({options.stop_descriptor, POLLIN, 0});
  const auto wait = std::chrono::ceil<milliseconds>(std::max(wake - clock::now(), clock::duration::zero()));
  const int found =
      ::poll(these.data(), these.size(), static_cast<int>(std::min<milliseconds::rep>(wait.count(), 60'000)));
  if (found < 0 && errno != EINTR) throw error(errc::io, {"cannot poll", "", "", std::strerror(errno), ""});
  now = clock::now();
  if (found < 0) {
    for (pollfd& one : these) one.revents = 0;
  }
  if (these.size() > count && these.back().revents != 0) {
    stopping = true;
    until = latest = std::min(until, now + time_to_stop);
  }
  these.resize(count);
  return std::any_of(these.begin(), these.end(), [](const pollfd& one) { return one.revents != 0; });
}

void router::state::wait_for_events() {
  polled.clear();
  polled_nodes.clear();
  moment wake = until;
  for (const delayed& d : later) wake = std::min(wake, d.when);
  if (map_wanted) wake = std::min(wake, map_not_before);
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->now == node::phase::closed && !n->to_send.empty()) wake = std::min(wake, n->not_before);
    if (n->now == node::phase::opening || n->now == node::phase::greeting) {
      wake = std::min({wake, n->open_until, n->link.patient_until()});
    }
    if (address.cluster && !n->under_way.empty()) {
      const moment quiet = n->last_heard + quiet_time;
      wake = std::min(wake, quiet > now ? quiet : now + longest_pause);
    }
    if (!n->link.is_open()) continue;
    if (n->link.has_more()) wake = now;
    polled.push_back({n->link.descriptor(), n->link.wanted_events(), 0});
    polled_nodes.push_back(n.get());
  }
  wait_for(polled, wake);
  for (std::size_t i = 0; i < polled.size(); ++i) {
    node& n = *polled_nodes[i];
    if (polled[i].revents == 0 && !n.link.has_more()) continue;
    n.link.go_on(polled[i].revents);
    if (n.now != node::phase::closed) receive(n);
  }
}

void router::state::run(const batch& all, const on_replies& to, milliseconds within, std::span<node* const> on,
                        connections which) {
  if (all.empty()) return;
  assert(commands == nullptr && "a callback must not call the router");
  struct at_the_end {
    state& s;
    ~at_the_end() { s.leave(); }
  } const guard{*this};
  commands = &all;
  take = &to;
  pinned = on;
  allowed = which;
  begin(within + time_for(all.bytes().size()));
  open_groups = all.groups().size();
  attempts.assign(open_groups, 0);
  repeats.assign(open_groups, false);
  // A server may have hung up since the last call: then nothing of this one is lost by it.
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->now != node::phase::closed) receive(*n);
    n->failures = 0;
    n->not_before = now;
  }
  if (address.cluster && slots.empty()) {
    need_map();
    refresh_map();
  }
  for (std::uint32_t g = 0; g < all.groups().size(); ++g) {
    const batch::group& group = all.groups()[g];
    if (group.commands == 0) {
      --open_groups;
      continue;
    }
    // One after the other, so that none runs before another that was sent elsewhere.
    const bool careful = address.cluster && group.mode == mode::once && group.commands > 1;
    dispatch({g, careful ? gait::step : gait::whole});
  }
  while (open_groups > 0) {
    if (now >= until) out_of_time();
    look_at_quiet_nodes();
    if (map_wanted && map_not_before <= now) {
      refresh_map();
      look_at_quiet_nodes();
    }
    for (std::size_t i = 0; i < later.size();) {
      if (later[i].when > now) {
        ++i;
        continue;
      }
      const errand e = later[i].what;
      later[i] = later.back();
      later.pop_back();
      dispatch(e);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) serve(*nodes[i]);
    if (open_groups > 0) wait_for_events();
  }
}

// Those of a cluster, as its map has them now.
std::vector<node*> router::state::all_nodes(bool replicas_too) {
  if (address.cluster) {
    forget_nodes();
    begin(options.time);
    do {
      need_map();
      refresh_map();
      if (!map_wanted) break;
      if (now >= until) out_of_time();
      polled.clear();
      wait_for(polled, std::min(until, map_not_before));
    } while (true);
  }
  std::vector<node*> found;
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->in_map && (replicas_too || !n->is_replica)) found.push_back(n.get());
  }
  return found;
}

// ---- the router -----------------------------------------------------------------------------------------------------

router::router(redis_address address, redis_connection_options options)
    : state_(std::make_unique<state>(std::move(address), std::move(options))) {}
router::router(router&&) noexcept = default;
router& router::operator=(router&&) noexcept = default;
router::~router() = default;

const redis_address& router::address() const noexcept { return state_->address; }
const redis_connection_options& router::options() const noexcept { return state_->options; }

void router::run(const batch& commands, const on_replies& take) { run(commands, take, state_->options.time); }

void router::run(const batch& commands, const on_replies& take, milliseconds time) {
  state_->forget_nodes();
  state_->run(commands, take, time);
}

bool router::may_have_run_twice(std::size_t group) const noexcept { return state_->repeats[group]; }

namespace {

// A reply and all below it, as a list of its own.
reply_list copy_of(const reply& first) {
  reply_list copy;
  first.append_to(copy);
  return copy;
}

}  // namespace

std::vector<router::node_reply> router::run_on_nodes(const std::vector<std::string_view>& words, bool replicas_too) {
  const std::vector<node*> nodes = state_->all_nodes(replicas_too);
  batch command;
  std::vector<node_reply> replies;
  for (const node* n : nodes) {
    command.begin(0, mode::read);
    command.start(words.size());
    for (const std::string_view word : words) command.word(word);
    replies.push_back({n->where.text(), n->is_replica, {}});
  }
  state_->run(
      command, [&](std::size_t group, reply r) { replies[group].replies = copy_of(r); }, state_->options.time, nodes);
  return replies;
}

std::string router::node_of(std::size_t slot) const {
  if (!state_->address.cluster) return state_->nodes.front()->where.text();
  const std::uint16_t number = state_->slots.empty() ? no_node : state_->slots[slot % num_slots];
  return number == no_node ? "" : state_->nodes[number]->where.text();
}

void router::forget_writes() noexcept {
  for (const std::unique_ptr<node>& n : state_->nodes) n->written_on = 0;
}

unsigned router::wait_for_replicas(unsigned replicas, std::chrono::milliseconds time) {
  time = std::clamp(time, milliseconds(1), longest_time);
  unsigned fewest = replicas;
  std::vector<node*> written;
  node* lost = nullptr;
  batch command;
  for (const std::unique_ptr<node>& n : state_->nodes) {
    if (n->written_on == 0) continue;
    written.push_back(n.get());
    // Another connection may be one to another server, or to one that has forgotten what it had not saved: its replicas
    // prove nothing about what was written on this one.
    if (n->written_on != n->opened) lost = n.get();
    command.begin(0, mode::read);
    command.command({"WAIT", std::to_string(replicas), std::to_string(time.count())});
  }
  forget_writes();
  if (lost != nullptr) state_->lose_writes(*lost);
  state_->run(
      command,
      [&](std::size_t, reply r) {
        // A master that has become a replica meanwhile: nobody knows who has what was written to it.
        const bool demoted = r.is_error() && r.text().find("replica") != std::string_view::npos;
        if (!demoted) throw_if_error(r, state_->address, "wait for replicas");
        fewest = static_cast<unsigned>(std::min<std::int64_t>(fewest, std::max<std::int64_t>(r.integer(), 0)));
      },
      state_->options.time + time, written, state::connections::kept);
  return fewest;
}

}  // namespace bloomery::redis
