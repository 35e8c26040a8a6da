// The handling of one connection: opening, handshake, writing, reading, and matching replies to groups.
#include "redis/net/router_impl.hpp"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace bloomery::redis {
namespace {

// The end of the command that begins at `at`.
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

// The 40 digits behind "run_id:" in the reply to INFO; empty: there are none.
std::string run_id_in(std::string_view info) {
  constexpr std::string_view name = "\nrun_id:";
  constexpr std::size_t digits = 40;
  const std::size_t at = info.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view id = info.substr(at + name.size(), digits);
  const bool good = id.size() == digits && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return good ? std::string(id) : std::string();
}

}  // namespace

void router::impl::open(node& n) {
  if (allowed == connections::kept) lose_writes(n);
  if (address.tls && tls == nullptr) tls = std::make_unique<tls_settings>(options);
  n.in.emplace();
  n.replies.clear();
  n.reply_begin = 0;
  n.under_way.clear();
  n.loaded.clear();
  n.leaving.clear();
  n.bytes_under_way = 0;
  n.run_id_due = false;
  n.now = node::phase::opening;
  n.open_until = now + options.connect_time;
  ++n.opened;
  ++links;
  if (!address.master.empty() && !find_master(n)) return lost(n, last_problem);
  n.link.open(n.where, address.tls ? tls.get() : nullptr, options.connect_time);
}

// Writes the handshake of a new connection; returns the number of its commands.
std::uint32_t router::impl::handshake_for(const node& n, batch& handshake) const {
  handshake.begin(0, mode::read);
  if (!address.password.empty()) {
    if (address.user.empty()) {
      handshake.command({"AUTH", address.password});
    } else {
      handshake.command({"AUTH", address.user, address.password});
    }
  }
  if (address.database != 0) handshake.command({"SELECT", std::to_string(address.database)});
  if (address.cluster && n.is_replica) handshake.command({"READONLY"});
  if (!address.master.empty()) handshake.command({"ROLE"});
  return handshake.groups().front().commands;
}

// Checks the replies to the handshake, from number `first` on. Returns the text of a transient error; empty if there is
// none.
std::string router::impl::check_handshake(const reply_list& replies, const place& where, std::uint32_t first) {
  for (std::size_t at = 0; at < replies.nodes_.size(); at += replies.nodes_[at].nodes) {
    const reply each(replies, at);
    if (!address.master.empty() && each.is(reply_type::array) && !is_master(each)) return "the server is not a master";
    if (!each.is_error()) continue;
    const bool to_auth = first + at == 0 && !address.password.empty();
    std::string text = to_auth ? shown_answer_to_auth(each.text()) : std::string(each.text());
    if (error_class_of(each.text()) != error_class::final) return text;
    const std::string database = std::to_string(address.database);
    if (text.starts_with("ERR DB ") || text.starts_with("ERR invalid DB")) {
      refuse(errc::invalid_argument, "the server has no database " + database, where, text,
             with_outcome(hint::none, "leave out db=" + database + ", or raise 'databases' in its configuration"));
    }
    if (text.starts_with("ERR SELECT is not allowed in cluster mode")) {
      refuse(errc::invalid_argument, "the server is part of a cluster, which has no database " + database, where, text,
             with_outcome(hint::give_cluster_address, "leave out db=" + database +
                                                          ", and give the cluster's address: redis+cluster://" +
                                                          where.text() + "/NAME"));
    }
    if (text == no_password_there) {
      refuse(errc::not_permitted, "a password was given, but the server has none", where, "",
             with_outcome(hint::give_credentials, "leave out the password, or give the user it belongs to"));
    }
    const explanation* const known = explanation_of(text);
    refuse(errc::not_permitted,
           known != nullptr ? std::string(known->what) : std::string("the server refuses this user"), where, text,
           with_outcome(hint::give_credentials,
                        known != nullptr ? std::string(known->to_do) : error_hint(hint::give_credentials).words()));
  }
  return {};
}

void router::impl::shake_hands(node& n) {
  batch handshake;
  const std::uint32_t count = handshake_for(n, handshake);
  if (count == 0) return become_ready(n);
  n.now = node::phase::handshake;
  n.under_way.push({sent::kind::handshake, send_mode::whole, false, count, 0, n.link.queued(), 0});
  n.last_heard = now;
  n.link.write(handshake.bytes());
  n.link.flush();
}

void router::impl::become_ready(node& n) {
  n.now = node::phase::ready;
  n.is_reopened = std::exchange(n.was_ready, true);
  n.run_id_due = watches_restarts && !n.is_replica && !n.hides_run_id;
  if (!n.is_reopened) return;
  ++counters.reconnects;
  if (!n.run_id_due) ++possible_restarts;
}

// Sent before the groups: when their replies arrive, a restart is known.
void router::impl::ask_run_id(node& n) {
  n.run_id_due = false;
  batch question;
  question.begin(0, mode::read);
  question.command({"INFO", "server"});
  if (n.under_way.empty()) n.last_heard = now;
  n.under_way.push({sent::kind::run_id, send_mode::whole, false, 1, 0, n.link.queued(), 0});
  n.link.write(question.bytes());
}

void router::impl::take_run_id(node& n, reply r) {
  n.hides_run_id = r.is_error() && error_class_of(r.text()) == error_class::final;
  const std::string id = run_id_in(r.text());
  if (n.is_reopened && (id.empty() || id != n.run_id)) {
    ++possible_restarts;
    if (!id.empty() && !n.run_id.empty()) ++counters.restarts_seen;
  }
  n.run_id = id;
}

void router::impl::send(node& n, pending_request e) {
  const batch::group& g = commands->groups()[e.group];
  std::size_t begin = g.begin;
  std::size_t end = g.end;
  std::uint32_t count = g.commands;
  if (e.how != send_mode::whole) {
    const auto [at, fresh] = stepping.try_emplace(e.group);
    steps& s = at->second;
    if (fresh) s.at = g.begin;
    begin = s.at;
    end = end_of_command(commands->bytes(), begin);
    count = e.how == send_mode::asking_step ? 2 : 1;
  }
  if (n.under_way.empty()) n.last_heard = now;
  has_sent = true;
  n.under_way.push({sent::kind::group, e.how, false, count, e.group, n.link.queued(), end - begin});
  n.bytes_under_way += end - begin;
  if (e.how == send_mode::asking_step) n.link.write("*1\r\n$6\r\nASKING\r\n");
  n.link.write(commands->bytes().substr(begin, end - begin));
  if (g.mode != mode::read && n.written_on == 0) n.written_on = n.opened;
}

void router::impl::fill(node& n) {
  if (n.to_send.empty() || !n.leaving.empty()) return;
  if (n.run_id_due) ask_run_id(n);
  while (!n.to_send.empty() && n.bytes_under_way < most_under_way) {
    const pending_request e = n.to_send.front();
    n.to_send.pop();
    send(n, e);
  }
  n.link.flush();
}

void router::impl::serve(node& n) {
  if (n.now == node::phase::closed && !n.to_send.empty() && n.backoff_until <= now) open(n);
  if (n.now == node::phase::opening) n.link.try_next_address(now);
  if (n.now == node::phase::opening && n.link.is_ready()) shake_hands(n);
  if ((n.now == node::phase::opening || n.now == node::phase::handshake) && n.link.is_open() && n.open_until <= now) {
    return lost(n, (n.link.waits_for_tls() ? std::string(no_tls_answer) : std::string("no connection")) + " within " +
                       std::to_string(options.connect_time.count()) + " ms");
  }
  if (n.now == node::phase::ready) fill(n);
  if (n.now != node::phase::closed && !n.link.is_open()) lost(n, n.link.failure());
}

void router::impl::receive(node& n) {
  // Limited, so that other connections get their turn.
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
        refuse_reply(n.where, {buffer.data(), got}, problem);
      }
      if (n.under_way.empty()) {
        const reply r(n.replies, 0);
        if (r.is_error()) return lost(n, std::string(r.text()));  // the reason for closing
        n.link.close();
        n.now = node::phase::closed;
        refuse(errc::damaged, "the server sent an unrequested reply", n.where, "", hint::check_host_and_port);
      }
      replied(n, {n.replies, std::exchange(n.reply_begin, n.replies.nodes_.size())});
      if (n.now == node::phase::closed) return;
    }
    if (got < buffer.size() && !n.link.has_more()) break;  // poll() reports more
  }
  if (n.now != node::phase::closed && !n.link.is_open()) lost(n, n.link.failure());
}

void router::impl::replied(node& n, reply last) {
  has_replied = true;
  n.failures = n.absences = 0;
  n.absent_until = {};
  sent& first = n.under_way.front();
  if (last.is_error() && error_class_of(last.text()) != error_class::final) {
    first.trouble = true;
    last_problem = last.text();  // the server may close the connection before the other replies
    last_place = n.where.text();
  }
  if (--first.commands > 0) return;
  const sent done = first;
  n.under_way.pop();
  n.bytes_under_way -= done.bytes;
  finish(n, done);
  n.replies.clear();
  n.reply_begin = 0;
  if (!n.leaving.empty() && n.under_way.empty() && n.now != node::phase::closed) lost(n, n.leaving);
}

void router::impl::finish(node& n, const sent& done) {
  const reply first(n.replies, 0);
  if (done.what == sent::kind::handshake) {
    const std::string problem = check_handshake(n.replies, n.where);
    if (!problem.empty()) return lost(n, problem);
    return become_ready(n);
  }
  if (done.what == sent::kind::run_id) return take_run_id(n, first);
  if (done.what == sent::kind::script) {
    if (first.is_error() && error_class_of(first.text()) == error_class::final) {
      throw_if_error(first, address, "load a script");
    }
    return;
  }
  if (!done.trouble) n.has_answered = true;
  const batch::group& g = commands->groups()[done.group];
  if (done.how != send_mode::whole) {
    const reply r = done.how == send_mode::asking_step ? first.next() : first;
    if (done.trouble) {
      const reply bad = r.is_error() ? r : first;
      return again(n, {done.group, done.how}, error_class_of(bad.text()), bad.text(), done.first_byte);
    }
    steps& s = stepping[done.group];
    r.append_to(s.replies);
    s.at = end_of_command(commands->bytes(), s.at);
    if (++s.command < g.commands) return dispatch({done.group, send_mode::step});
    const reply_list all = std::move(s.replies);
    stepping.erase(done.group);
    return tell(done.group, {all, 0});
  }
  if (!done.trouble) {
    if (!last_problem.empty() && last_place == n.where.text()) last_problem.clear();  // the node answers again
    return tell(done.group, first);
  }
  // If any command of the group must run again, the whole group does.
  error_class worst = error_class::final;
  std::string_view text;
  bool ran = false;  // whether the part that must not run twice was executed
  reply r = first;
  for (std::uint32_t i = 0; i < g.commands; ++i, r = r.next()) {
    const error_class v = r.is_error() ? error_class_of(r.text()) : error_class::final;
    if (v == error_class::final) repeats[done.group] = true;
    if (v == error_class::final && (g.script == nullptr || i == g.script_command)) ran = true;
    if (v <= worst) continue;
    worst = v;
    text = r.text();
  }
  if (g.mode == mode::once && ran) {
    refuse(errc::unavailable, "the operation was executed in part", n.where, std::string(text), "");
  }
  again(n, {done.group, send_mode::whole}, worst, text, done.first_byte);
}

void router::impl::tell(std::uint32_t group, reply first) {
  --open_groups;
  (*take)(group, first);
}

}  // namespace bloomery::redis
