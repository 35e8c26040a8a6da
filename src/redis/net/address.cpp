// Parsing and formatting of addresses. Parsing is strict, so typing errors are reported; formatting omits user and
// password.
#include <bloomery/redis/address.hpp>

#include <bloomery/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <system_error>
#include <vector>

namespace bloomery {
namespace {

struct scheme {
  std::string_view text;
  bool socket;
  bool cluster;
  bool sentinel;
  bool tls;
};

constexpr std::array<scheme, 7> schemes = {{{"redis://", false, false, false, false},
                                            {"rediss://", false, false, false, true},
                                            {"unix://", true, false, false, false},
                                            {"redis+cluster://", false, true, false, false},
                                            {"rediss+cluster://", false, true, false, true},
                                            {"redis+sentinel://", false, false, true, false},
                                            {"rediss+sentinel://", false, false, true, true}}};

constexpr std::uint16_t server_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;

const scheme* scheme_of(std::string_view text) {
  const auto found =
      std::find_if(schemes.begin(), schemes.end(), [&](const scheme& s) { return text.starts_with(s.text); });
  return found == schemes.end() ? nullptr : &*found;
}

// sockaddr_un::sun_path has 108 bytes, the last of them zero.
constexpr std::size_t longest_socket_path = 107;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Value of a hexadecimal digit, or 16 for other characters.
unsigned hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return 16;
}

// Makes a text safe for terminals: without control characters, and of limited length.
std::string shown(std::string_view text) {
  std::string s(text.substr(0, 300));
  std::replace_if(
      s.begin(), s.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  return s.size() < text.size() ? s + "..." : s;
}

// The parts of an address that may be a password, even a misplaced one: everything before the last '@'; after a host,
// everything that is not a port, or the whole part if there is no host; values of unknown parameters.
class secrets {
 public:
  explicit secrets(std::string_view text) : text_(text) {
    const scheme* const known = scheme_of(text);
    const std::size_t slashes = text.find("://");
    std::size_t at = known != nullptr ? known->text.size() : slashes == text.npos ? 0 : slashes + 3;
    if (const std::size_t sign = text.rfind('@'); sign != text.npos) {
      if (known == nullptr) at = 0;
      hide(at, sign);
      at = sign + 1;
    }
    const std::size_t question = std::min(text.find('?', at), text.size());
    if (known == nullptr || !known->socket) look_at_servers(at, std::min(text.find('/', at), question));
    look_at_words(question);
  }

  bool has_any_of(std::string_view part) const {
    const std::less<> before;
    return std::any_of(hidden_.begin(), hidden_.end(), [&](std::string_view h) {
      return before(part.data(), h.data() + h.size()) && before(h.data(), part.data() + part.size());
    });
  }

  std::string shown_without() const {
    std::string all;
    std::size_t at = 0;
    for (const std::string_view h : hidden_) {
      const auto begin = static_cast<std::size_t>(h.data() - text_.data());
      all += text_.substr(at, begin - at);
      all += "...";
      at = begin + h.size();
    }
    all += text_.substr(at);
    return shown(all);
  }

 private:
  void hide(std::size_t begin, std::size_t end) {
    if (begin < end) hidden_.push_back(text_.substr(begin, end - begin));
  }

  void look_at_servers(std::size_t at, std::size_t end) {
    while (at < end) {
      const std::size_t comma = std::min(text_.find(',', at), end);
      const std::string_view server = text_.substr(at, comma - at);
      const std::size_t colon = server.find(':', server.starts_with('[') ? server.find(']') : 0);
      if (colon != server.npos) {
        const std::string_view port = server.substr(colon + 1);
        if (colon == 0 || !std::all_of(port.begin(), port.end(), is_digit)) hide(at + colon + 1, comma);
      }
      at = comma + 1;
    }
  }

  void look_at_words(std::size_t at) {
    while (at < text_.size()) {
      ++at;  // '?' or '&'
      const std::size_t end = std::min(text_.find('&', at), text_.size());
      const std::size_t equals = text_.find('=', at);
      const std::string_view word = text_.substr(at, std::min(equals, end) - at);
      if (equals < end && word != "db" && word != "name") hide(equals + 1, end);
      at = end;
    }
  }

  std::string_view text_;
  std::vector<std::string_view> hidden_;  // parts of the address, in order
};

// The parser of one address.
class parser {
 public:
  /// @param named  whether the address must have the name of a filter
  parser(std::string_view text, bool named) : text_(text), named_(named), secrets_(text) {}

  redis_address run() {
    redis_address a;
    const scheme* const s = scheme_of(text_);
    if (s == nullptr) {
      refuse("not an address of Redis",
             "redis://, rediss://, unix://, redis+cluster://, rediss+cluster://, redis+sentinel:// or "
             "rediss+sentinel:// at its beginning",
             {});
    }
    a.cluster = s->cluster;
    a.tls = s->tls;
    std::string_view rest = text_.substr(s->text.size());
    if (rest.find('#') != std::string_view::npos) refuse("an address must not contain '#'", "%23 for '#'", {});
    const std::size_t question = rest.find('?');
    std::optional<std::string_view> query;
    if (question != std::string_view::npos) {
      query = rest.substr(question + 1);
      rest = rest.substr(0, question);
    }
    if (s->socket) {
      a.socket = decoded(rest, "/", "the path of the socket");
      if (!a.socket.starts_with('/'))
        refuse("the path of the socket is not absolute", "unix:///path/to/socket?name=NAME", rest);
      if (a.socket.find('\0') != std::string::npos) refuse("the path of the socket has a zero byte", "a path", {});
      if (a.socket.size() > longest_socket_path) {
        refuse("the path of the socket is too long", "at most " + std::to_string(longest_socket_path) + " bytes", {},
               std::to_string(a.socket.size()));
      }
    } else {
      read_path(a, rest, *s);
    }
    if (query) read_query(a, *query, *s);
    if (a.name.empty() && named_) refuse("the filter's name is missing", "?name=NAME after the socket", {});
    if (a.user.empty() && a.password.empty()) take_environment(a);
    return a;
  }

 private:
  [[noreturn]] void refuse(std::string what, std::string expected, std::string_view part,
                           std::string found = {}) const {
    if (!part.empty() && !secrets_.has_any_of(part)) found = "'" + shown(part) + "'";
    throw error(errc::invalid_argument,
                {std::move(what), secrets_.shown_without(), std::move(expected), std::move(found), ""});
  }

  // Decodes literal bytes and %XX. Delimiters of an address are refused unless they are in `also`.
  std::string decoded(std::string_view part, std::string_view also, const std::string& what) const {
    std::string bytes;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      if (c == '%') {
        const unsigned high = i + 2 < part.size() ? hex_value(part[i + 1]) : 16;
        const unsigned low = i + 2 < part.size() ? hex_value(part[i + 2]) : 16;
        if (high > 15 || low > 15) refuse("'%' without two hexadecimal digits in " + what, "%25 for '%' itself", part);
        bytes += static_cast<char>(high << 4 | low);
        i += 2;
        continue;
      }
      const bool parts = std::string_view("/?#[]@&").find(c) != std::string_view::npos;
      if ((parts && also.find(c) == std::string_view::npos) || static_cast<unsigned char>(c) <= ' ' || c == '\x7F') {
        refuse("a byte of " + what + " must be written as % and two digits",
               "%40 for '@', %2F for '/', %20 for a space", part);
      }
      bytes += c;
    }
    return bytes;
  }

  std::uint64_t number(std::string_view part, std::uint64_t most, std::uint64_t least, const std::string& what) const {
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (part.empty() || problem != std::errc() || end != part.data() + part.size() || value > most || value < least) {
      refuse("not " + what, "a number from " + std::to_string(least) + " to " + std::to_string(most), part);
    }
    return value;
  }

  // Servers, "/MASTER" for sentinels, "/NAME".
  void read_path(redis_address& a, std::string_view rest, const scheme& s) const {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const bool has_path = slash < rest.size();
    if (!has_path && named_ && !s.sentinel) refuse("the filter's name is missing", "/NAME after the server", {});
    read_servers(a, rest.substr(0, slash), s.sentinel ? sentinel_port : server_port);
    rest.remove_prefix(has_path ? slash + 1 : slash);
    bool has_name = has_path;
    if (s.sentinel) {
      const std::size_t end = std::min(rest.find('/'), rest.size());
      a.master = decoded(rest.substr(0, end), "", "the master's name");
      if (a.master.empty()) refuse("the master's name is missing", "/MASTER/NAME after the sentinels", {});
      has_name = end < rest.size();
      if (!has_name && named_) refuse("the filter's name is missing", "/MASTER/NAME after the sentinels", {});
      rest.remove_prefix(has_name ? end + 1 : end);
    }
    if (has_name) a.name = decoded(rest, "", "the filter's name");
    if (a.name.empty() && named_) refuse("the filter's name is empty", "/NAME after the server", {});
  }

  void read_servers(redis_address& a, std::string_view authority, std::uint16_t default_port) const {
    const std::size_t at = authority.rfind('@');
    if (at != std::string_view::npos) {
      const std::string_view who = authority.substr(0, at);
      const std::size_t colon = who.find(':');
      if (colon == std::string_view::npos) refuse("no password before '@'", "user:password@ or :password@", {});
      a.user = decoded(who.substr(0, colon), "", "the user's name");
      a.password = decoded(who.substr(colon + 1), "", "the password");
      if (a.password.empty()) refuse("no password before '@'", "user:password@ or :password@", {});
      authority = authority.substr(at + 1);
    }
    while (true) {
      const bool may_be_many = a.cluster || default_port == sentinel_port;
      const std::size_t comma = may_be_many ? authority.find(',') : std::string_view::npos;
      a.endpoints.push_back(endpoint_of(authority.substr(0, comma), default_port));
      if (comma == std::string_view::npos) break;
      authority = authority.substr(comma + 1);
    }
  }

  redis_address::endpoint endpoint_of(std::string_view part, std::uint16_t default_port) const {
    redis_address::endpoint e;
    e.port = default_port;
    std::string_view rest;
    if (part.starts_with('[')) {
      const std::size_t end = part.find(']');
      if (end == std::string_view::npos) refuse("'[' without ']'", "[::1] or [::1]:6379", part);
      e.host = part.substr(1, end - 1);
      rest = part.substr(end + 1);
      const bool good = e.host.find(':') != std::string::npos && std::all_of(e.host.begin(), e.host.end(), [](char c) {
                          return hex_value(c) < 16 || c == ':' || c == '.';
                        });
      if (!good) refuse("not an address of IPv6 in brackets", "[::1] or [::1]:6379", part);
    } else {
      const std::size_t colon = part.find(':');
      e.host = part.substr(0, colon);
      rest = colon == std::string_view::npos ? std::string_view() : part.substr(colon);
      if (e.host.empty()) refuse("the host is missing", "host or host:port", part);
      const bool good = std::all_of(e.host.begin(), e.host.end(), [](char c) {
        return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
      });
      if (!good) refuse("not a host's name", "letters, digits, '-', '.' and '_', or IPv6 in brackets", part);
    }
    if (rest.empty()) return e;
    if (!rest.starts_with(':')) refuse("unexpected text after the host", ":port or nothing", part);
    e.port = static_cast<std::uint16_t>(number(rest.substr(1), 65535, 1, "a port"));
    return e;
  }

  void read_query(redis_address& a, std::string_view query, const scheme& s) const {
    bool has_database = false;
    while (true) {
      const std::size_t end = query.find('&');
      const std::string_view pair = query.substr(0, end);
      const std::size_t equals = pair.find('=');
      const std::string_view word = pair.substr(0, equals);
      const std::string_view value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
      if (word == "db" && !s.cluster && !has_database) {
        a.database = static_cast<std::uint32_t>(number(value, 0x7FFF'FFFF, 0, "the number of a database"));
        has_database = true;
      } else if (word == "name" && s.socket && a.name.empty()) {
        a.name = decoded(value, "", "the filter's name");
        if (a.name.empty()) refuse("the filter's name is empty", "name=NAME", {});
      } else if (word == "db" && s.cluster) {
        refuse("a cluster has one database", "no db=", {});
      } else {
        refuse("an unknown parameter after '?'",
               s.socket    ? "name=NAME and db=N, each once"
               : s.cluster ? "none"
                           : "db=N, once",
               word);
      }
      if (end == std::string_view::npos) return;
      query = query.substr(end + 1);
    }
  }

  void take_environment(redis_address& a) const {
    const char* const user = std::getenv("BLOOMERY_REDIS_USER");
    const char* const password = std::getenv("BLOOMERY_REDIS_PASSWORD");
    if (password != nullptr) a.password = password;
    if (user != nullptr && a.password.empty() && *user != '\0') {
      throw error(errc::invalid_argument, {"the environment has a user and no password", "BLOOMERY_REDIS_USER",
                                           "BLOOMERY_REDIS_PASSWORD, too", "", ""});
    }
    if (user != nullptr) a.user = user;
  }

  std::string_view text_;
  bool named_;
  secrets secrets_;
};

std::string encoded(std::string_view bytes, std::string_view also) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_digit(c) || is_letter(c) || std::string_view("-._~:,+").find(c) != std::string_view::npos ||
        also.find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return text;
}

}  // namespace

redis_address redis_address::parse(std::string_view text) { return parser(text, true).run(); }

redis_address redis_address::parse_server(std::string_view text) { return parser(text, false).run(); }

bool redis_address::is_one(std::string_view text) noexcept { return scheme_of(text) != nullptr; }

std::string redis_address::text() const {
  std::string query;
  const auto add_to_query = [&](const std::string& pair) { query += (query.empty() ? "?" : "&") + pair; };
  if (!socket.empty()) {
    if (!name.empty()) add_to_query("name=" + encoded(name, ""));
    if (database != 0) add_to_query("db=" + std::to_string(database));
    return "unix://" + encoded(socket, "/") + query;
  }
  std::string text = std::string(tls ? "rediss" : "redis") +
                     (cluster           ? "+cluster"
                      : !master.empty() ? "+sentinel"
                                        : "") +
                     "://";
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (i > 0) text += ',';
    const endpoint& e = endpoints[i];
    text += (e.host.find(':') != std::string::npos ? "[" + e.host + "]" : e.host) + ":" + std::to_string(e.port);
  }
  if (!master.empty()) text += "/" + encoded(master, "");
  if (!name.empty()) text += "/" + encoded(name, "");
  if (database != 0) add_to_query("db=" + std::to_string(database));
  return text + query;
}

}  // namespace bloomery
