// Sentinels: they are asked for the present master of a name before each connection, so a failover is followed when the
// connection is lost or its node has become a replica.
//
// A sentinel may name the old master for some time. So ROLE is part of the handshake. If a node is not a master, the
// connection is closed and the sentinels are asked again, until the deadline of the call.
#include "redis/net/router_impl.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace bloomery::redis {
namespace {

// The reply to SENTINEL get-master-addr-by-name, which is untrusted.
std::optional<place> master_in(const reply& r) {
  constexpr std::size_t longest_host = 253;
  if (r.size() != 2) return std::nullopt;
  const std::string_view host = r[0].text();
  const std::string_view port = r[1].text();
  place found;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), found.port);
  if (problem != std::errc() || end != port.data() + port.size() || found.port == 0) return std::nullopt;
  const bool is_name = !host.empty() && host.size() <= longest_host &&
                       std::all_of(host.begin(), host.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!is_name) return std::nullopt;
  found.host = host;
  return found;
}

}  // namespace

// Sets the node's place to that of the present master. False: no sentinel knows it now; last_problem has the reason.
bool router::impl::find_master(node& n) {
  const milliseconds for_each = std::min(map_time, options.connect_time);
  bool found_no_server = true;
  bool is_unknown = false;
  for (const redis_address::endpoint& e : address.endpoints) {
    now = clock::now();
    if (now >= until) return false;
    const place sentinel{e.host, e.port, {}};
    // The password is sent only to a sentinel that requires one.
    for (const bool with_password : {false, true}) {
      batch question;
      question.begin(0, mode::read);
      if (with_password && address.user.empty()) question.command({"AUTH", address.password});
      if (with_password && !address.user.empty()) question.command({"AUTH", address.user, address.password});
      question.command({"SENTINEL", "get-master-addr-by-name", address.master});
      reply_list answers;
      if (!exchange(sentinel, question, answers, for_each, &found_no_server, greeting::none)) break;
      const reply first(answers, 0);
      const reply r = with_password ? first.next() : first;
      if (with_password && first.is_error()) {
        refuse(errc::not_permitted, "the sentinel refuses this user or password", sentinel,
               shown_answer_to_auth(first.text()), hint::give_credentials);
      }
      if (r.is_error() && r.text().starts_with("NOAUTH") && !with_password && !address.password.empty()) continue;
      if (r.is_error() && r.text().starts_with("ERR unknown command")) {
        refuse(
            errc::invalid_argument, "the server is not a sentinel", sentinel, "",
            error_hint(hint::give_server_address,
                       "give the addresses of sentinels, or that of the server: redis://" + sentinel.text() + "/NAME"));
      }
      if (const std::optional<place> master = master_in(r)) {
        n.where = *master;
        return true;
      }
      if (r.is_nil()) {
        is_unknown = !has_sent;
        last_problem = "the sentinel does not know this master";
      } else if (r.is_error()) {
        throw_if_error(r, address, "ask a sentinel for the master");
      } else {
        last_problem = "the sentinel's reply is not an address";
      }
      break;
    }
  }
  now = clock::now();
  if (is_unknown) {
    throw error(errc::invalid_argument, {"the sentinels do not know this master", address.text(), "", "",
                                         "check its name, which SENTINEL MASTERS lists; nothing was done"});
  }
  const redis_address::endpoint& last = address.endpoints.back();
  refuse_if_never_there({last.host, last.port, {}}, found_no_server);
  return false;
}

// A master that hangs keeps its connection: asks the sentinels whether another one has taken its place.
void router::impl::check_master() {
  node& n = *nodes.front();
  const moment heard = std::max(n.last_heard, master_checked);
  if (n.now != node::phase::ready || n.under_way.empty() || now - heard < quiet_time) return;
  const place before = n.where;
  find_master(n);
  master_checked = now;
  if (n.where != before) lost(n, "the sentinels name another master");
}

// Whether a reply to ROLE is that of a master.
bool router::impl::is_master(const reply& role) { return role.size() > 0 && role[0].text() == "master"; }

}  // namespace bloomery::redis
