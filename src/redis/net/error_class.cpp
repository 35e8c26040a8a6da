// Classes of server errors, and explanations of known errors.
#include "redis/net/error_class.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace bloomery::redis {

std::string_view essence_of(std::string_view text) {
  const std::size_t at = text.starts_with("ERR Error running script") ? text.rfind(": -") : std::string_view::npos;
  return at == std::string_view::npos ? text : text.substr(at + 3);
}

namespace {

struct known_error {
  std::string_view begin;
  error_class means;
};

// Null for errors without a special meaning.
const known_error* known_error_of(std::string_view text) {
  static constexpr std::array<known_error, 11> rows = {{
      {"NOSCRIPT ", error_class::load_script},
      {"MOVED ", error_class::other_node},
      {"ASK ", error_class::ask},
      {"TRYAGAIN ", error_class::later},
      {"CLUSTERDOWN ", error_class::later},
      {"LOADING ", error_class::later},
      {"MASTERDOWN ", error_class::later},
      {"NOREPLICAS ", error_class::later},
      {"BUSY ", error_class::later},
      {"READONLY ", error_class::reconnect},
      {"ERR max number of clients reached", error_class::reconnect},
  }};
  text = essence_of(text);
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return text.starts_with(row.begin); });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

error_class error_class_of(std::string_view text) {
  const known_error* const known = known_error_of(text);
  return known == nullptr ? error_class::final : known->means;
}

const explanation* explanation_of(std::string_view problem) {
  static constexpr std::array<explanation, 9> rows = {{
      {"READONLY ", "the server is a replica, which accepts no writes",
       "give the address of its master, or use sentinels: redis+sentinel://HOST/MASTER/NAME"},
      {"CLUSTERDOWN ", "the cluster does not serve all its slots",
       "find the missing node with CLUSTER NODES, and try again"},
      {"LOADING ", "the server is loading its data", "wait until it has loaded them, or allow more time"},
      {"MASTERDOWN ", "the replica has lost its master", "wait for the master, or read from masters"},
      {"NOREPLICAS ", "the server accepts no writes without its replicas",
       "connect replicas, or lower min-replicas-to-write"},
      {"BUSY ", "a script has been running on the server for too long", "wait for it, or end it with SCRIPT KILL"},
      {"ERR max number of clients reached", "the server accepts no more connections",
       "close other connections, or raise maxclients"},
      {"NOAUTH ", "the server requires a password, and none was given",
       "give it in BLOOMERY_REDIS_PASSWORD, or in the address"},
      {"WRONGPASS ", "the server refuses this user and password",
       "check user and password, in the address or in BLOOMERY_REDIS_USER and BLOOMERY_REDIS_PASSWORD"},
  }};
  problem = essence_of(problem);
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return problem.starts_with(row.begin); });
  return found == rows.end() ? nullptr : &*found;
}

std::string shown_text(std::string_view text) {
  constexpr std::size_t longest = 300;
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string shown;
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 0x7F)
      shown += c;
    else
      shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
  return shown;
}

std::string shown_answer_to_auth(std::string_view text) {
  for (const std::string_view begin : {"WRONGPASS ", "NOAUTH ", "NOPERM "}) {
    if (text.starts_with(begin)) return std::string(text);
  }
  if (const known_error* const known = known_error_of(text)) return std::string(known->begin);
  for (const std::string_view none :
       {"ERR AUTH <password> called without any password configured", "ERR Client sent AUTH, but no password is set"}) {
    if (text.starts_with(none)) return std::string(no_password_there);
  }
  return "an error in reply to AUTH";
}

void throw_if_error(const reply& r, const redis_address& address, std::string_view doing) {
  if (!r.is_error()) return;
  const std::string_view text = essence_of(r.text());
  const std::string what = "cannot " + std::string(doing);
  const auto fail = [&](errc code, error_hint to_do) {
    throw error(code, {what, address.text(), "", shown_text(text), std::move(to_do)});
  };
  const auto explain = [&](errc code, hint to_do) {
    const explanation* const known = explanation_of(text);
    if (known == nullptr) fail(code, to_do);
    throw error(code, {what + ": " + std::string(known->what), address.text(), "", shown_text(text),
                       error_hint(to_do, std::string(known->to_do))});
  };
  // The second is the answer to a script.
  if (text.starts_with("NOPERM") || text.find("executing the script can't run this command") != text.npos) {
    fail(errc::not_permitted, hint::allow_command);
  }
  if (text.starts_with("NOAUTH") || text.starts_with("WRONGPASS") || text.starts_with("DENIED")) {
    explain(errc::not_permitted, hint::give_credentials);
  }
  if (text.starts_with("ERR unknown command")) {
    fail(errc::not_permitted,
         {hint::allow_renamed_command, "the server does not have the command, or its name was changed there"});
  }
  if (text.starts_with("WRONGTYPE"))
    fail(errc::incompatible, {hint::choose_another_name, "the key belongs to something else: choose another name"});
  if (text.starts_with("OOM")) fail(errc::too_large, {hint::raise_server_memory, "the server's maxmemory is reached"});
  if (text.starts_with("MISCONF"))
    fail(errc::unavailable, {hint::fix_server_disk, "the server cannot save to its disk and accepts no writes"});
  if (error_class_of(text) != error_class::final) explain(errc::unavailable, hint::none);
  fail(errc::io, {});
}

}  // namespace bloomery::redis
