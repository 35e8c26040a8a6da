// The slot map: the nodes of a cluster and their slots.
#include "redis/net/router_impl.hpp"
#include "redis/net/slots.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace bloomery::redis {

node& router::impl::node_at(place where) {
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->where == where) return *n;
  }
  return add_node(std::move(where));
}

node& router::impl::add_node(place where) {
  if (nodes.size() >= no_node) refuse(errc::damaged, "the cluster has too many nodes", where, "", {});
  nodes.push_back(std::make_unique<node>());
  nodes.back()->where = std::move(where);
  nodes.back()->number = static_cast<std::uint16_t>(nodes.size() - 1);
  return *nodes.back();
}

// READONLY is part of the handshake, so a connection to a server that was a master cannot be used for a replica.
void router::impl::set_role(node& n, bool is_replica) {
  const bool demoted = is_replica && !n.is_replica;
  n.is_replica = is_replica;
  if (!demoted || (n.now != node::phase::handshake && n.now != node::phase::ready)) return;
  if (n.under_way.empty()) return close(n);
  if (n.leaving.empty()) n.leaving = "the server has become a replica";
}

// Null: no known node has the slot.
node* router::impl::node_for(std::uint32_t group) {
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

void router::impl::need_map() { map_wanted = address.cluster; }

// Requests the slot map from one node after the other, starting with those known to be reachable.
void router::impl::refresh_map() {
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
  const milliseconds usual = std::min(map_time * (1 << std::min(map_failures, 20U)), options.connect_time);
  milliseconds for_each = usual;
  if (!has_replied) {
    const auto rest = std::chrono::ceil<milliseconds>(began + options.connect_time - now);
    for_each = std::clamp(rest, milliseconds(1), usual);
  }
  bool found_no_server = true;
  for (const place& p : places) {
    now = clock::now();
    if (now >= until) break;
    if (!exchange(p, question, answers, for_each, &found_no_server)) {
      // A try that connect_time cuts short explains less than an earlier one.
      if (for_each < usual && !problem_before.empty()) {
        last_problem = problem_before;
        last_place = place_before;
      }
      continue;
    }
    const reply r(answers, 0);
    if (r.is_error()) {
      last_problem = r.text();
      last_place = p.text();
      if (last_problem.find("cluster support disabled") != std::string::npos) {
        refuse(errc::invalid_argument, "the server is not part of a cluster", p, last_problem,
               error_hint(hint::give_server_address, "give the address of one server: redis://" + p.text() + "/NAME"));
      }
      if (error_class_of(last_problem) == error_class::final)
        throw_if_error(r, address, "read the slot map of the cluster");
      continue;
    }
    if (!take_map(r, p)) continue;
    map_wanted = false;
    map_failures = 0;
    last_problem = problem_before;  // errors of other nodes do not matter now
    last_place = place_before;
    now = clock::now();
    map_backoff_until = now + pause_after(3);
    return;
  }
  now = clock::now();
  if (now < until) refuse_if_never_there(places.back(), found_no_server);
  map_backoff_until = now + pause_after(map_failures);
  if (map_failures < 255) ++map_failures;
}

// False: the reply is unusable.
bool router::impl::take_map(const reply& ranges, const place& asked) {
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
  if (!slots.empty() && slots != map) ++links;
  slots = std::move(map);
  return true;
}

// One request on a separate connection. False: no answer; last_problem has the reason, and `found_no_server` becomes
// false if a server may be there.
bool router::impl::exchange(const place& with, const batch& question, reply_list& answers, milliseconds within,
                            bool* found_no_server, greeting how) {
  if (address.tls && tls == nullptr) tls = std::make_unique<tls_settings>(options);
  node other;  // not in `nodes`
  other.where = with;
  last_place = with.text();
  batch all;
  const std::uint32_t handshake_commands = how == greeting::none ? 0 : handshake_for(other, all);
  std::uint32_t checked = 0;
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
      last_problem = (link.waits_for_tls() ? std::string(no_tls_answer) : std::string("no answer")) + " within " +
                     std::to_string(within.count()) + " ms";
      if (found_no_server != nullptr) *found_no_server = false;
      return false;
    }
    polled.assign(1, {link.descriptor(), link.wanted_events(), 0});
    const bool some = wait_for(polled, std::min({until, end, link.address_deadline()}));
    if (!some) {
      link.try_next_address(now);
      continue;
    }
    link.on_events(polled.front().revents);
    while (const std::size_t got = link.read(buffer)) {
      std::string_view bytes(buffer.data(), got);
      while (true) {
        const reader::found found = in.next(bytes, answers);
        if (found == reader::found::wrong) {
          refuse_reply(with, {buffer.data(), got}, in.problem());
        }
        if (found == reader::found::none) break;
        has_replied = true;
        if (checked < handshake_commands) {
          last_problem = check_handshake(answers, with, checked);
          if (!last_problem.empty()) return false;
          ++checked;
          answers.clear();
        } else if (--expected == 0) {
          return true;
        }
      }
      if (clock::now() >= end) break;
    }
  }
  note_failure(link, with, link.failure());
  if (found_no_server != nullptr && !link.found_no_server()) *found_no_server = false;
  if (link.failed_permanently()) distrust(with, last_problem);
  if (link.speaks_no_tls()) refuse_plain_server(with);
  return false;
}

// Removes unused nodes that are no longer in the slot map.
void router::impl::forget_nodes() {
  if (!address.cluster || slots.empty()) return;
  const bool all_in =
      std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return n->in_map || n->written_on != 0; });
  if (all_in) return;
  std::vector<node*> of_slot(num_slots, nullptr);
  for (std::size_t s = 0; s < num_slots; ++s) {
    if (slots[s] != no_node) of_slot[s] = nodes[slots[s]].get();
  }
  for (node* n : of_slot) {
    if (n != nullptr) n->in_map = true;  // known from MOVED
  }
  std::erase_if(nodes, [this](const auto& n) {
    if (n->in_map || n->written_on != 0) return false;
    lose_answers(*n);
    return true;
  });
  for (const std::unique_ptr<node>& n : nodes) {
    std::erase_if(n->replicas, [&](const node* replica) {
      return std::none_of(nodes.begin(), nodes.end(), [&](const auto& other) { return other.get() == replica; });
    });
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i]->number = static_cast<std::uint16_t>(i);
  for (std::size_t s = 0; s < num_slots; ++s) slots[s] = of_slot[s] == nullptr ? no_node : of_slot[s]->number;
}

}  // namespace bloomery::redis
