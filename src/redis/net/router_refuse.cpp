// Errors of connections: what failed, whether anything was done, and what to do.
#include "redis/net/router_impl.hpp"

#include <array>
#include <string>
#include <string_view>

namespace bloomery::redis {
namespace {

constexpr std::string_view closes_each = "the server closes each connection without a reply";

// "write rediss:// instead of redis://"
std::string other_scheme(const redis_address& address) {
  const std::string rest = std::string(address.cluster           ? "+cluster"
                                       : !address.master.empty() ? "+sentinel"
                                                                 : "") +
                           "://";
  const std::string plain = "redis" + rest;
  const std::string secured = "rediss" + rest;
  return address.tls ? "write " + plain + " instead of " + secured : "write " + secured + " instead of " + plain;
}

// What to do if the server may be on the other side of TLS.
std::string tls_hint(const redis_address& address) {
  if (!address.socket.empty()) return "check the server's log";
  return (address.tls ? "if the server does not use TLS at this port, " : "if the server expects TLS at this port, ") +
         other_scheme(address);
}

bool is_closing(std::string_view problem) {
  constexpr std::array<std::string_view, 3> texts = {"the server closed the connection", "Connection reset by peer",
                                                     "Broken pipe"};
  return std::find(texts.begin(), texts.end(), problem) != texts.end();
}

}  // namespace

// A hint that ends with "nothing was done" if no command was sent.
error_hint router::impl::with_outcome(hint code, std::string to_do) const {
  return {code, std::move(to_do) + (has_sent ? "" : "; nothing was done")};
}

void router::impl::refuse_plain_server(const place& where) {
  refuse(errc::invalid_argument, "the server does not use TLS at this port", where, "",
         with_outcome(hint::check_host_and_port, other_scheme(address) + ", or check the host and the port"));
}

// Bytes that are not a reply. A server that expects TLS may send an alert, a record of type 21.
void router::impl::refuse_reply(const place& where, std::string_view bytes, const std::string& problem) {
  if (bytes.starts_with("\x15\x03")) {
    refuse(errc::invalid_argument, "the server expects TLS at this port", where, "",
           error_hint(hint::check_host_and_port,
                      other_scheme(address) + ", or check the host and the port; nothing was done"));
  }
  refuse(errc::damaged, "the reply is not from a Redis server", where, problem, hint::check_host_and_port);
}

// Remembers why a connection failed, for the message when the time is over. A server that refuses a connection with an
// error also closes it: the error is the better reason.
void router::impl::note_failure(const connection& link, const place& where, const std::string& problem) {
  const std::string name = where.text();
  if (is_closing(problem) && last_place == name && explanation_of(last_problem) != nullptr) return;
  last_problem = problem;
  last_place = name;
  last_had_no_address = link.found_no_address();
}

// Before the first reply, there is no connection to restore: a missing server is reported at once, and an address that
// does not answer is tried for connect_time.
void router::impl::refuse_if_never_there(const place& where, bool found_no_server) {
  if (has_replied || (!found_no_server && now - began < options.connect_time)) return;
  std::string to_do = "check the host and the port";
  if (found_no_server) {
    const bool no_name = last_had_no_address;
    refuse(errc::unavailable, no_name ? "cannot connect, because the host name has no address" : "cannot connect",
           where, last_problem,
           with_outcome(hint::check_host_and_port, no_name ? to_do : to_do + ", and that the server runs"));
  }
  const auto spent = std::chrono::duration_cast<milliseconds>(now - began);
  const std::string within = " within " + std::to_string(spent.count()) + " ms";
  const bool waits_for_tls = address.tls && last_problem.starts_with(no_tls_answer);
  const bool is_closed = is_closing(last_problem);
  if (is_closed || waits_for_tls) to_do = tls_hint(address) + ", or " + to_do;
  refuse(errc::unavailable,
         is_closed       ? std::string(closes_each)
         : waits_for_tls ? std::string(no_tls_answer) + within
                         : "cannot connect" + within,
         where, last_problem.starts_with("no ") ? "" : last_problem, with_outcome(hint::check_host_and_port, to_do));
}

// A server that accepts connections and closes each without a reply, as one that expects TLS does.
void router::impl::refuse_if_never_answering(const node& n) {
  constexpr unsigned most_tries = 4;
  if (has_replied || n.failures < most_tries || !is_closing(last_problem)) return;
  refuse(errc::unavailable, std::string(closes_each), n.where, last_problem,
         with_outcome(hint::check_host_and_port, tls_hint(address) + ", or check the host and the port"));
}

void router::impl::out_of_time() {
  const auto spent = std::chrono::duration_cast<milliseconds>(now - began);
  const std::string time = std::to_string(spent.count()) + " ms";
  const std::string where = last_place.empty() ? address.text() : last_place;
  const explanation* const known = explanation_of(last_problem);
  if (known != nullptr && !stopping) {
    throw error(errc::unavailable,
                {std::string(known->what) + ", still after " + time, where, "", shown_text(last_problem),
                 with_outcome(hint::check_server, std::string(known->to_do))});
  }
  throw error(
      errc::unavailable,
      {(stopping ? "stopped, with no answer within " : "no answer within ") + time, where, "", shown_text(last_problem),
       has_sent ? error_hint(hint::check_server)
                : with_outcome(hint::check_server, "check that the server runs and can be reached")});
}

}  // namespace bloomery::redis
