// The event loop of a call: sends its groups and waits until all are answered or the time is over.
#include "redis/net/router_impl.hpp"

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace bloomery::redis {

void router::impl::close(node& n) noexcept {
  lose_answers(n);
  n.under_way.clear();
  n.bytes_under_way = 0;
  n.link.close();
  n.now = node::phase::closed;
}

// Closes all connections with outstanding replies.
void router::impl::leave() noexcept {
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

void router::impl::begin(milliseconds within) {
  began = now = clock::now();
  until = now + within;
  latest = now + most_extension * within;
  stopping = false;
  last_problem.clear();
  last_place.clear();
  map_backoff_until = now;
  map_failures = 0;
}

// Waits for an event or until `wake`. After a stop request, pending groups get a little more time.
bool router::impl::wait_for(std::vector<pollfd>& these, moment wake) {
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

void router::impl::wait_for_events() {
  polled.clear();
  polled_nodes.clear();
  moment wake = until;
  for (const delayed& d : later) wake = std::min(wake, d.when);
  if (map_wanted) wake = std::min(wake, map_backoff_until);
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->now == node::phase::closed && !n->to_send.empty()) wake = std::min(wake, n->backoff_until);
    if (n->now == node::phase::opening || n->now == node::phase::handshake) {
      wake = std::min({wake, n->open_until, n->link.address_deadline()});
    }
    if ((address.cluster || !address.master.empty()) && !n->under_way.empty()) {
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
    n.link.on_events(polled[i].revents);
    if (n.now != node::phase::closed) receive(n);
  }
}

void router::impl::run(const batch& all, const on_replies& to, milliseconds within, std::span<node* const> on,
                       connections which) {
  if (all.empty()) return;
  assert(commands == nullptr && "a callback must not call the router");
  struct at_the_end {
    impl& s;
    ~at_the_end() { s.leave(); }
  } const guard{*this};
  commands = &all;
  take = &to;
  pinned = on;
  allowed = which;
  begin(within + time_for(all.bytes().size()));
  open_groups = all.groups().size();
  groups_run += open_groups;
  ++counters.exchanges;
  attempts.assign(open_groups, 0);
  repeats.assign(open_groups, false);
  // Detect connections that the server has closed since the last call, before anything is sent on them.
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->now != node::phase::closed) receive(*n);
    n->failures = 0;
    n->backoff_until = now;
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
    // One command at a time, so that none runs before an earlier one that is redirected.
    const bool careful = address.cluster && group.mode == mode::once && group.commands > 1;
    dispatch({g, careful ? send_mode::step : send_mode::whole});
  }
  while (open_groups > 0) {
    if (now >= until) out_of_time();
    check_unresponsive_nodes();
    if (map_wanted && map_backoff_until <= now) {
      refresh_map();
      check_unresponsive_nodes();
    }
    for (std::size_t i = 0; i < later.size();) {
      if (later[i].when > now) {
        ++i;
        continue;
      }
      const pending_request e = later[i].what;
      later[i] = later.back();
      later.pop_back();
      dispatch(e);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) serve(*nodes[i]);
    if (open_groups > 0) wait_for_events();
  }
}

// The nodes of the present slot map.
std::vector<node*> router::impl::all_nodes(bool replicas_too) {
  if (address.cluster) {
    forget_nodes();
    begin(options.time);
    do {
      need_map();
      refresh_map();
      if (!map_wanted) break;
      if (now >= until) out_of_time();
      polled.clear();
      wait_for(polled, std::min(until, map_backoff_until));
    } while (true);
  }
  std::vector<node*> found;
  for (const std::unique_ptr<node>& n : nodes) {
    if (n->in_map && (replicas_too || !n->is_replica)) found.push_back(n.get());
  }
  return found;
}

}  // namespace bloomery::redis
