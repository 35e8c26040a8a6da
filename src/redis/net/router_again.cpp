// Retries: after transient errors, redirections, and lost connections.
#include "redis/net/router_impl.hpp"
#include "redis/net/slots.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

namespace bloomery::redis {

milliseconds router::impl::pause_after(unsigned failures) {
  const milliseconds most = std::min(longest_pause, shortest_pause * (1 << std::min(failures, 6U)));
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(most.count() / 2, most.count())(random));
}

// Handles an error by its class.
void router::impl::again(node& n, pending_request e, error_class v, std::string_view text, std::uint64_t sent_at) {
  ++counters.retries;
  last_problem = text;
  last_place = n.where.text();
  if ((v == error_class::other_node || v == error_class::ask) && !address.cluster) {
    refuse(errc::invalid_argument, "the server is part of a cluster", n.where, last_problem,
           error_hint(hint::give_cluster_address,
                      "give the cluster's address: redis+cluster://" + n.where.text() + "/NAME"));
  }
  switch (v) {
    case error_class::load_script: return load_script(n, e, sent_at);
    case error_class::other_node: return follow_moved(n, e, text);
    case error_class::ask: return follow_ask(n, e, text);
    case error_class::reconnect:
      // Other pending groups will get the same answer or will not be needed.
      if (n.leaving.empty()) n.leaving = text;
      return put_off(e);
    default:
      if (essence_of(text).starts_with("CLUSTERDOWN")) need_map();
      return put_off(e);
  }
}

// The first few retries need no backoff.
bool router::impl::may_retry_at_once(pending_request e) {
  if (attempts[e.group] >= most_at_once) return false;
  ++attempts[e.group];
  return true;
}

// If many groups with one script were sent together, the first one to fail loads the script for all.
void router::impl::load_script(node& n, pending_request e, std::uint64_t sent_at) {
  const script* const wanted = commands->groups()[e.group].script;
  const auto it = std::find_if(n.loaded.begin(), n.loaded.end(), [&](const auto& l) { return l.what == wanted; });
  if (it == n.loaded.end() || it->at_byte <= sent_at) {
    if (it != n.loaded.end()) n.loaded.erase(it);
    n.loaded.push_back({wanted, n.link.queued()});
    batch load;
    load.begin(0, mode::read);
    load.command({"SCRIPT", "LOAD", wanted != nullptr ? wanted->source : std::string_view()});
    if (n.under_way.empty()) n.last_heard = now;
    n.under_way.push({sent::kind::script, send_mode::whole, false, 1, 0, n.link.queued(), 0});
    n.link.write(load.bytes());
  }
  if (!may_retry_at_once(e)) return put_off(e);
  send(n, e);
}

void router::impl::follow_moved(const node& n, pending_request e, std::string_view text) {
  const std::optional<place> target = target_of(text, n.where);
  ++links;
  ++counters.redirects;
  need_map();
  if (!target) return put_off(e);
  node& other = node_at(*target);
  other.in_map = true;
  set_role(other, false);
  if (!slots.empty()) slots[commands->groups()[e.group].slot % num_slots] = other.number;
  if (!may_retry_at_once(e)) return put_off(e);
  dispatch({e.group, e.how == send_mode::whole ? send_mode::whole : send_mode::step});
}

void router::impl::follow_ask(const node& n, pending_request e, std::string_view text) {
  const std::optional<place> target = target_of(text, n.where);
  ++counters.redirects;
  if (!target || e.how == send_mode::asking_step) return put_off(e);
  if (e.how == send_mode::whole && commands->groups()[e.group].commands > 1)
    return dispatch({e.group, send_mode::step});
  node& other = node_at(*target);
  other.in_map = true;
  other.to_send.push({e.group, send_mode::asking_step});
}

void router::impl::dispatch(pending_request e) {
  node* const n = node_for(e.group);
  if (n != nullptr) return n->to_send.push(e);
  need_map();
  put_off(e);
}

void router::impl::put_off(pending_request e) {
  std::uint8_t& before = attempts[e.group];
  if (e.how == send_mode::asking_step) e.how = send_mode::step;
  later.push_back({now + pause_after(before), e});
  if (before < 255) ++before;
}

// A server that crashed may come back without writes that it has acknowledged.
void router::impl::lose_answers(node& n) noexcept {
  if (std::exchange(n.has_answered, false)) answers_lost = true;
}

// Sends pending groups again, if allowed.
void router::impl::lost(node& n, const std::string& why) {
  const std::string problem = why;  // a copy, since `why` may refer to a reply
  note_failure(n.link, n.where, problem);
  const bool for_good = n.link.failed_permanently();
  const std::uint64_t maybe_sent = n.link.maybe_sent();
  const bool was_opening = n.now == node::phase::opening;
  const bool found_no_server = n.link.found_no_server();
  const bool speaks_no_tls = n.link.speaks_no_tls();
  if (n.now != node::phase::ready || !n.under_way.empty()) {
    n.absent_until = now + shortest_absence * (1 << std::min(n.absences, 5U));
    if (n.absences < 255) ++n.absences;
  }
  lose_answers(n);
  n.link.close();
  n.now = node::phase::closed;
  n.backoff_until = now + pause_after(n.failures);
  if (n.failures < 255) ++n.failures;
  if (for_good) distrust(n.where, problem);
  if (speaks_no_tls) refuse_plain_server(n.where);
  refuse_if_never_answering(n);
  if (was_opening && !address.cluster) refuse_if_never_there(n.where, found_no_server);
  need_map();
  bool broken = false;
  while (!n.under_way.empty()) {
    const sent s = n.under_way.front();
    n.under_way.pop();
    if (s.what != sent::kind::group) continue;
    // A group that is sent command by command may have run in part before.
    if (s.first_byte < maybe_sent || s.how != send_mode::whole) repeats[s.group] = true;
    ++counters.retries;
    if (commands->groups()[s.group].mode == mode::once) {
      if (s.first_byte < maybe_sent) broken = true;
      put_off({s.group, s.how});
    } else {
      stepping.erase(s.group);
      put_off({s.group, send_mode::whole});
    }
  }
  // In a cluster another node may take over the slots.
  while (address.cluster && pinned.empty() && !n.to_send.empty()) {
    put_off(n.to_send.front());
    n.to_send.pop();
  }
  n.bytes_under_way = 0;
  n.replies.clear();
  n.reply_begin = 0;
  if (broken) {
    refuse(errc::unavailable, "the connection was lost with a pending command that must not run twice", n.where,
           problem, hint::check_if_done);
  }
}

// Gives up an unresponsive cluster node when the other nodes have reassigned its slots. A replica is given up at once.
void router::impl::check_unresponsive_nodes() {
  if (!address.master.empty()) return check_master();
  if (!address.cluster || !pinned.empty()) return;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    node& n = *nodes[i];
    if (n.now == node::phase::closed || n.under_way.empty() || now - n.last_heard < quiet_time) continue;
    const bool has_slots = std::find(slots.begin(), slots.end(), static_cast<std::uint16_t>(i)) != slots.end();
    // Closing the connection would lose groups of mode::once. A node that pauses its clients during a failover will
    // answer eventually.
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

}  // namespace bloomery::redis
