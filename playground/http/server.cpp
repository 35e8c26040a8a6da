#include "playground/http/server.hpp"

#include "playground/http/admission.hpp"
#include "playground/http/connection.hpp"
#include "playground/http/listener.hpp"
#include "playground/http/message.hpp"
#include "playground/json.hpp"
#include "playground/page_files.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <utility>

namespace bloomery::playground::http {
namespace {

constexpr std::size_t threads = 96;  // a waiting inspection holds one, and so does a quiet connection
constexpr int most_requests = 1000;  // of one connection
constexpr std::uint64_t most_bodies = 4 * api::most_file;  // bytes of all bodies together, on their way here
constexpr std::size_t small_body = 16'384;                 // sent together with the head

// What every response says, whatever else it is.
const fields& common_headers() {
  static const fields headers = {
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Frame-Options", "DENY"},
      {"Content-Security-Policy",
       "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; base-uri "
       "'none'; frame-ancestors 'none'"}};
  return headers;
}

struct reply {
  int status = 200;
  fields headers;
  std::string body;
  bool closes = false;  // the connection ends after it: where the next request begins is unknown
};

reply refused(int status, const error& problem) {
  error_text text = problem.text();
  text.found.resize(std::min<std::size_t>(text.found.size(), 100));
  return {status,
          {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
          text_of(json_of(error(problem.code(), std::move(text)))),
          true};
}

// Adds to a shared count of bytes while it exists.
class counted_bytes {
 public:
  counted_bytes(std::atomic<std::uint64_t>& all, std::uint64_t bytes) : all_(all), bytes_(bytes) { all_ += bytes_; }
  counted_bytes(const counted_bytes&) = delete;
  counted_bytes& operator=(const counted_bytes&) = delete;
  ~counted_bytes() { all_ -= bytes_; }

 private:
  std::atomic<std::uint64_t>& all_;
  std::uint64_t bytes_;
};

// The page is kept compressed; this is for clients that do not accept gzip.
std::string unzipped(std::string_view gzipped) {
  z_stream stream{};
  constexpr int gzip = 16;
  if (::inflateInit2(&stream, MAX_WBITS + gzip) != Z_OK) return "";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzipped.data()));
  stream.avail_in = static_cast<uInt>(gzipped.size());
  std::string text;
  std::array<char, 1 << 14> piece;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = ::inflate(&stream, Z_NO_FLUSH);
    text.append(piece.data(), piece.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  return text;
}

reply reply_of(response&& answer) {
  reply made{answer.status, {{"Cache-Control", "no-store"}}, {}, false};
  if (!answer.file_name.empty()) {
    made.headers.emplace_back("Content-Disposition", "attachment; filename=\"" + answer.file_name + "\"");
  }
  if (!answer.type.empty()) {
    made.headers.emplace_back("Content-Type", std::move(answer.type));
    made.body = std::move(answer.body);
  }
  return made;
}

reply page_reply(const request_head& head) {
  const auto files = page_files();
  const std::string path = head.path == "/" ? "/index.html" : head.path;
  const auto file = std::find_if(files.begin(), files.end(), [&](const page_file& f) { return f.path == path; });
  if (file == files.end() && files.empty() && path == "/index.html") {
    return {200,
            {{"Content-Type", "text/plain; charset=utf-8"}},
            "This bloomery was built without its page. The API is here: see docs/playground-api.md.\n",
            false};
  }
  if (file == files.end()) {
    return refused(404, error(errc::not_found, {"no such page", "path", "/", head.path, "go to /"}));
  }
  const std::string accepted = to_lower(head.value("accept-encoding"));
  const bool compressed = accepted.find("gzip") != std::string::npos && accepted.find("gzip;q=0") == std::string::npos;
  reply made;
  made.headers = {{"Content-Type", std::string(file->type)}, {"Vary", "Accept-Encoding"}};
  // Names of assets change with their content.
  made.headers.emplace_back("Cache-Control", path == "/index.html" ? "no-cache" : "max-age=31536000, immutable");
  if (compressed) made.headers.emplace_back("Content-Encoding", "gzip");
  made.body = compressed ? std::string(file->gzipped) : unzipped(file->gzipped);
  return made;
}

}  // namespace

struct server::impl {
  impl(api& a, const std::string& h, std::uint16_t port) : answers(a), host(h), port_listener(h, port) {}

  void serve(int socket) noexcept {
    try {
      serve_requests(socket);
    } catch (const std::exception&) {
      // Out of memory between two requests: this connection ends, the others go on.
    }
  }

  void serve_requests(int socket) {
    connection client(
        socket, [this] { return port_listener.crowded(); }, stopping);
    auto patience = connection::head_time;
    for (int left = most_requests; left > 0; --left) {
      const auto found = client.read_head(patience);
      if (found == connection::head_state::none) return;
      const bool last = left == 1 || stopping || port_listener.crowded();
      const bool goes_on = found == connection::head_state::complete ? answer(client, last) : answer_long_head(client);
      if (!goes_on) return;
      patience = connection::time_between_requests;
    }
  }

  // false: the connection ends.
  bool answer(connection& client, bool last) {
    request_head head{};
    reply made;
    try {
      head = parse_request_head(client.head());
      made = reply_to(head, client);
    } catch (const error& problem) {
      made = refused(problem.code() == errc::too_large ? 414 : 400, problem);
    } catch (const std::exception&) {
      made = refused(500, error(errc::io, {"something went wrong here", "", "", "", "try it again"}));
    }
    const bool unread = made.closes;  // of a refused request, the body may still come
    made.closes = unread || last || head.closes();
    const bool sent = send(client, made, head.method == "HEAD");
    if (sent && unread) client.drop_rest();
    return sent && !made.closes;
  }

  bool answer_long_head(connection& client) {
    const error problem(errc::too_large, {"the request's head is too long", "headers",
                                          "at most " + std::to_string(connection::most_head) + " bytes", "more",
                                          "send fewer headers, and long values in the body"});
    if (send(client, refused(431, problem), false)) client.drop_rest();
    return false;
  }

  reply reply_to(const request_head& head, connection& client) {
    if (const auto why = refusal_of(head, host, port_listener.port())) return refused(why->status, why->problem);
    request asked{head.method == "HEAD" ? "GET" : head.method, head.path, {}, {}};
    for (const auto& [name, value] : head.query) asked.query.emplace(name, value);
    const std::uint64_t size = body_size(head);
    const counted_bytes room(bodies, size);
    if (bodies > most_bodies) {
      return refused(503, error(errc::unavailable, {"too many bytes are on their way here", "body",
                                                    fmt::format("{} MiB of all requests together", most_bodies >> 20),
                                                    std::to_string(size) + " bytes", "try it again in a moment"}));
    }
    if (size > 0 && head.has("expect") && head.minor_version > 0) client.write(format_response_head(100, {}));
    if (!client.read_body(size, asked.body)) {
      return refused(400, error(errc::invalid_argument,
                                {"the request did not come to its end", "body", std::to_string(size) + " bytes",
                                 std::to_string(asked.body.size()), "send it again"}));
    }
    if (asked.method == "GET" && !head.path.starts_with("/api/")) return page_reply(head);
    return reply_of(answers.handle(asked));
  }

  static bool send(connection& client, const reply& made, bool head_only) {
    fields headers = made.headers;
    headers.insert(headers.end(), common_headers().begin(), common_headers().end());
    if (made.status != 204) headers.emplace_back("Content-Length", std::to_string(made.body.size()));
    if (made.closes) {
      headers.emplace_back("Connection", "close");
    } else {
      headers.emplace_back("Connection", "keep-alive");
      headers.emplace_back("Keep-Alive", fmt::format("timeout={}, max={}",
                                                     connection::time_between_requests.count() / 1000, most_requests));
    }
    std::string head = format_response_head(made.status, headers);
    if (head_only) return client.write(head);
    if (made.body.size() <= small_body) return client.write(head.append(made.body));
    return client.write(head) && client.write(made.body);
  }

  api& answers;
  const std::string host;
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> bodies{0};  // bytes of bodies that are being read or answered
  listener port_listener;
};

server::server(api& answers, const std::string& host, std::uint16_t port) {
  if (host.empty()) {
    throw error(errc::invalid_argument,
                {"an empty host would be every address of this machine", "--host", "an address or a name", "''",
                 "leave out --host, or say 0.0.0.0 if you mean it"});
  }
  impl_ = std::make_unique<impl>(answers, host, port);
  impl_->port_listener.start(threads, [b = impl_.get()](int socket) { b->serve(socket); });
}

server::~server() { stop(); }

void server::stop() {
  impl_->answers.stop();
  impl_->stopping = true;
  impl_->port_listener.stop();
}

std::uint16_t server::port() const noexcept { return impl_->port_listener.port(); }

std::string server::url() const {
  const std::string& host = impl_->host;
  const bool v6 = host.find(':') != std::string::npos;
  const bool anywhere = host == "0.0.0.0" || host == "::";
  return fmt::format("http://{}:{}/", anywhere ? "127.0.0.1" : v6 ? "[" + host + "]" : host, port());
}

}  // namespace bloomery::playground::http
