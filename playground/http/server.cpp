#include "playground/http/server.hpp"

#include "playground/host/own_thread.hpp"
#include "playground/http/admission.hpp"
#include "playground/http/page_files.hpp"
#include "playground/json/json.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>
#include <httplib.h>
#include <malloc.h>
#include <netdb.h>
#include <sys/socket.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace bloomery::playground::http {
namespace {

using httplib::Request;
using httplib::Response;

constexpr std::size_t threads = 96;                    // waiting inspections and idle connections occupy one each
constexpr std::size_t most_waiting = 512;              // accepted connections that wait for a thread
constexpr int backlog = 4096;                          // connections that the kernel keeps for the listener
constexpr std::size_t most_requests = 1000;            // per connection
constexpr std::time_t keep_alive_seconds = 1;          // idle time between two requests
constexpr auto read_time = std::chrono::seconds(3);    // idle time within a request
constexpr auto write_time = std::chrono::seconds(10);  // without progress of the client
constexpr std::uint64_t most_bodies = 32 * most_body;  // bytes of all bodies being received
constexpr std::uint64_t large_body = std::uint64_t{1} << 20;  // bytes

// The thread pool of the HTTP library, which counts its active and waiting connections.
class connection_queue final : public httplib::TaskQueue {
 public:
  using task = std::function<void()>;

  connection_queue() : threads_(threads) {}
  ~connection_queue() override { end(); }

  // Blocks while too many connections wait. (Returns bool or nothing, depending on the version of the library.)
  auto enqueue(task serve) -> decltype(std::declval<TaskQueue&>().enqueue(task())) override {
    for (auto now = connections_.load(); now >= threads + most_waiting; now = connections_.load()) {
      connections_.wait(now);
    }
    ++connections_;
    return threads_.enqueue([this, serve = std::move(serve)] {
      try {
        serve();
      } catch (const std::exception&) {
        // Out of memory between two requests: other connections continue.
      }
      --connections_;
      connections_.notify_one();
    });
  }

  void shutdown() override { end(); }

  bool crowded() const { return connections_ > threads; }

 private:
  void end() {
    if (!std::exchange(ended_, true)) threads_.shutdown();
  }

  std::atomic<std::size_t> connections_{0};
  bool ended_ = false;
  httplib::ThreadPool threads_;
};

// Adds to a shared byte count for its lifetime.
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

// Returns freed memory to the system at the end of its lifetime. glibc keeps it for each thread otherwise.
class freed_memory {
 public:
  explicit freed_memory(bool much) : much_(much) {}
  freed_memory(const freed_memory&) = delete;
  freed_memory& operator=(const freed_memory&) = delete;
  ~freed_memory() {
#ifdef __GLIBC__
    if (much_) ::malloc_trim(0);
#endif
  }

 private:
  [[maybe_unused]] bool much_;
};

// Fixed thresholds: glibc raises its own with each large buffer, and each arena keeps as much at its end.
void keep_little_memory() {
#ifdef __GLIBC__
  constexpr int most = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, most);
  ::mallopt(M_TRIM_THRESHOLD, most);
#endif
}

// Sends `body`, which `owner` keeps in memory unless it is static. It is sent by a provider, because the library would
// compress a string. A provider that fails ends the connection; without a length of its own, it does so
// regardless of requested ranges.
void set_body(Response& res, const std::string& type, std::string_view body, bool closes,
              std::shared_ptr<const std::string> owner = nullptr) {
  if (body.empty()) return;
  if (!closes) {
    return res.set_content_provider(
        body.size(), type, [body, owner = std::move(owner)](std::size_t at, std::size_t, httplib::DataSink& sink) {
          return sink.write(body.data() + at, body.size() - at);
        });
  }
  res.set_header("Connection", "close");
  res.set_header("Content-Length", std::to_string(body.size()));
  res.set_content_provider(type, [body, owner = std::move(owner)](std::size_t, httplib::DataSink& sink) {
    sink.write(body.data(), body.size());
    return false;
  });
}

void set_body(Response& res, const std::string& type, std::string&& body, bool closes) {
  const auto owner = std::make_shared<const std::string>(std::move(body));
  set_body(res, type, *owner, closes, owner);
}

// A refusal ends the connection: the request's body may still arrive and would be read as the next request.
void refuse(Response& res, int status, const error& problem) {
  error_text text = problem.text();
  text.found.resize(std::min<std::size_t>(text.found.size(), 100));
  res.status = status;
  res.set_header("Cache-Control", "no-store");
  set_body(res, "application/json", text_of(json_of(error(problem.code(), std::move(text)))), true);
}

// Responses generated by the library have no body yet.
void explain(const Request&, Response& res) {
  if (res.has_header("Content-Type")) return;
  const bool long_path = res.status == 414;
  refuse(
      res, res.status,
      error(long_path ? errc::too_large : errc::invalid_argument,
            {long_path ? "the path is too long" : "malformed request", long_path ? "path" : "request line or headers",
             "", "", "see docs/playground-api.md, and keep lines short"}));
}

void tidy_headers(const Request&, Response& res) {
  if (res.status == 204) res.headers.erase("Content-Length");
  if (!res.has_header("Connection")) return;
  for (const char* name : {"Connection", "Keep-Alive"}) res.headers.erase(name);
  res.set_header("Connection", "close");
}

// Decompresses the page for clients that do not accept gzip.
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

void check_host(const std::string& host) {
  if (host.empty()) {
    throw error(errc::invalid_argument,
                {"an empty host would listen on every address of this machine", "--host", "an address or a name", "''",
                 "omit --host, or use 0.0.0.0 to listen on all addresses"});
  }
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (problem != 0) {
    throw error(errc::invalid_argument,
                {"unknown host", "--host", "an address or a name of this machine",
                 "'" + host + "' (" + ::gai_strerror(problem) + ")", "omit --host to listen on 127.0.0.1"});
  }
  ::freeaddrinfo(found);
}

}  // namespace

struct server::impl {
  impl(api& a, std::string h) : answers(a), host(std::move(h)) {}

  void set_up() {
    http.new_task_queue = [this] { return made_queue.release(); };
    http.set_tcp_nodelay(true);
    http.set_keep_alive_max_count(most_requests);
    http.set_keep_alive_timeout(keep_alive_seconds);
    http.set_read_timeout(read_time);
    http.set_write_timeout(write_time);
    http.set_payload_max_length(most_body);
    http.set_default_headers(
        {{"X-Content-Type-Options", "nosniff"},
         {"Referrer-Policy", "no-referrer"},
         {"X-Frame-Options", "DENY"},
         {"Content-Security-Policy",
          "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
          "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"}});
    http.set_expect_100_continue_handler([this](const Request& req, Response& res) {
      const auto refused = refusal_of(req, host, port);
      if (refused) refuse(res, refused->status, refused->problem);
      return refused ? refused->status : 100;
    });
    // Handles all requests without a body.
    http.set_pre_routing_handler([this](const Request& req, Response& res) {
      using outcome = httplib::Server::HandlerResponse;
      const auto refused = refusal_of(req, host, port);
      if (refused ? refused->drains : req.method == "POST") return outcome::Unhandled;
      if (refused) {
        refuse(res, refused->status, refused->problem);
      } else if (req.method == "DELETE" || req.path.starts_with("/api/")) {
        answer(req, {}, res);
      } else {
        show(req, res);
      }
      return outcome::Handled;
    });
    http.Post(".*", [this](const Request& req, Response& res, const httplib::ContentReader& read) {
      const auto refused = refusal_of(req, host, port);
      if (!refused) return answer_post(req, res, read);
      read([](const char*, std::size_t) { return true; });
      refuse(res, refused->status, refused->problem);
    });
    http.set_error_handler(httplib::Server::Handler(explain));
    http.set_post_routing_handler(tidy_headers);
    http.set_exception_handler([](const Request&, Response& res, std::exception_ptr) {
      refuse(res, 500, error(errc::io, {"internal error", "", "", "", "try again"}));
    });
  }

  void answer_post(const Request& req, Response& res, const httplib::ContentReader& read) {
    const std::uint64_t size = body_size(req);
    const freed_memory freed(size >= large_body);
    const counted_bytes room(bodies, size);
    if (bodies > most_bodies) {
      return refuse(res, 503,
                    error(errc::unavailable, {"too many bytes are being received", "body",
                                              fmt::format("at most {} MiB in all requests together", most_bodies >> 20),
                                              std::to_string(size) + " bytes", "try again in a moment"}));
    }
    std::string body;
    const bool whole = size == 0 || read([&](const char* data, std::size_t bytes) {
                         body.append(data, bytes);
                         return true;
                       });
    if (whole && body.size() == size) return answer(req, std::move(body), res);
    refuse(res, 400,
           error(errc::invalid_argument, {"the request ended early", "body", std::to_string(size) + " bytes",
                                          std::to_string(body.size()), "send it again"}));
  }

  void answer(const Request& req, std::string&& body, Response& res) {
    request asked{req.method == "HEAD" ? "GET" : req.method, req.path, {}, std::move(body)};
    for (const auto& [name, value] : req.params) asked.query.emplace(name, value);
    response made = answers.handle(asked);
    res.status = made.status;
    res.set_header("Cache-Control", "no-store");
    if (!made.type.empty()) set_body(res, made.type, std::move(made.body), queue.crowded());
  }

  void show(const Request& req, Response& res) const {
    const auto files = page_files();
    const std::string path = req.path == "/" ? "/index.html" : req.path;
    const auto file = std::find_if(files.begin(), files.end(), [&](const page_file& f) { return f.path == path; });
    res.status = 200;
    if (file == files.end() && files.empty() && path == "/index.html") {
      return set_body(res, "text/plain; charset=utf-8",
                      std::string_view("This bloomery was built without its page. Its API is available: see "
                                       "docs/playground-api.md.\n"),
                      queue.crowded());
    }
    if (file == files.end()) {
      return refuse(res, 404, error(errc::not_found, {"no such page", "path", "/", req.path, "open /"}));
    }
    // Cacheable forever: names of assets change with their content.
    res.set_header("Cache-Control", path == "/index.html" ? "no-cache" : "max-age=31536000, immutable");
    res.set_header("Vary", "Accept-Encoding");
    const std::string accepted = to_lower(req.get_header_value("Accept-Encoding"));
    if (accepted.find("gzip") == std::string::npos || accepted.find("gzip;q=0") != std::string::npos) {
      return set_body(res, std::string(file->type), unzipped(file->gzipped), queue.crowded());
    }
    res.set_header("Content-Encoding", "gzip");
    set_body(res, std::string(file->type), file->gzipped, queue.crowded());
  }

  // Returns 0, or the system's error.
  int try_to_bind(std::uint16_t wanted) {
    errno = 0;
    const int bound = wanted == 0 ? http.bind_to_any_port(host) : http.bind_to_port(host, wanted) ? wanted : -1;
    if (bound <= 0) return errno == 0 ? EADDRNOTAVAIL : errno;
    port = static_cast<std::uint16_t>(bound);
    return 0;
  }

  void bind(std::optional<std::uint16_t> given) {
    http.set_socket_options([this](socket_t made) {
      // Without SO_REUSEPORT, which would let a second server share the port.
      const int yes = 1;
      ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      listening = made;
    });
    const std::uint16_t wanted = given.value_or(usual_port);
    int problem = try_to_bind(wanted);
    if (problem == EADDRINUSE && !given) problem = try_to_bind(0);
    if (problem != 0) {
      throw error(errc::io,
                  {"cannot listen at this address", fmt::format("{}:{}", host, wanted), "", std::strerror(problem),
                   problem == EADDRINUSE ? "another program uses this port; omit --port, or choose another port"
                                         : "choose another --host or --port"});
    }
    ::listen(listening, backlog);  // the library's own backlog is 5
  }

  api& answers;
  const std::string host;
  std::uint16_t port = 0;
  std::atomic<std::uint64_t> bodies{0};  // bytes of bodies being read or handled
  std::unique_ptr<connection_queue> made_queue = std::make_unique<connection_queue>();  // until the library owns it
  const connection_queue& queue = *made_queue;
  socket_t listening = -1;
  httplib::Server http;
  std::thread listener;
  std::optional<job_thread> job_runner;
};

server::server(api& answers, const std::string& host, std::optional<std::uint16_t> port) {
  check_host(host);
  keep_little_memory();
  impl_ = std::make_unique<impl>(answers, host);
  impl_->set_up();
  impl_->bind(port);
  impl_->job_runner.emplace(answers.queued_jobs());
  impl_->listener = std::thread([b = impl_.get()] { b->http.listen_after_bind(); });
  while (!impl_->http.is_running()) std::this_thread::yield();
}

server::~server() { stop(); }

void server::stop() {
  if (!impl_->listener.joinable()) return;
  impl_->answers.stop();
  impl_->http.stop();
  impl_->listener.join();
  impl_->job_runner.reset();
}

std::uint16_t server::port() const noexcept { return impl_->port; }

std::string server::url() const {
  const std::string& host = impl_->host;
  const bool v6 = host.find(':') != std::string::npos;
  const bool anywhere = host == "0.0.0.0" || host == "::";
  return fmt::format("http://{}:{}/", anywhere ? "127.0.0.1" : v6 ? "[" + host + "]" : host, port());
}

}  // namespace bloomery::playground::http
