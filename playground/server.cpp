#include "playground/server.hpp"

#include "playground/connections.hpp"
#include "playground/page_files.hpp"

#include <bloomery/error.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::size_t threads = 96;  // a waiting inspection holds one, and so does a quiet connection
constexpr int most_pending = 1024;   // connections that nobody has taken yet
constexpr std::size_t most_file = api::most_file;
constexpr std::uint64_t most_on_its_way = 4 * most_file;  // bytes of all bodies together

bool is_address(const std::string& host) {
  in6_addr any;
  const std::string bare = host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
  return ::inet_pton(AF_INET, bare.c_str(), &any) == 1 || ::inet_pton(AF_INET6, bare.c_str(), &any) == 1;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void refuse(httplib::Response& res, int status, errc code, error_text text) {
  text.found.resize(std::min<std::size_t>(text.found.size(), 100));
  res.status = status;
  res.set_content(text_of(json_of(error(code, std::move(text)))), "application/json");
  res.set_header("Connection", "close");
}

// Bytes that are counted while they are on their way.
class reserved {
 public:
  reserved(std::atomic<std::uint64_t>& all, std::uint64_t bytes) : all_(all), bytes_(bytes) { all_ += bytes_; }
  reserved(const reserved&) = delete;
  reserved& operator=(const reserved&) = delete;
  ~reserved() { all_ -= bytes_; }

 private:
  std::atomic<std::uint64_t>& all_;
  std::uint64_t bytes_;
};

// The page is kept compressed; who cannot read that gets it plain.
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

void answer_with(httplib::Response& res, response&& answer) {
  res.status = answer.status;
  if (!answer.file_name.empty()) {
    res.set_header("Content-Disposition", "attachment; filename=\"" + answer.file_name + "\"");
  }
  res.set_header("Cache-Control", "no-store");
  if (!answer.type.empty()) res.set_content(std::move(answer.body), answer.type);
}

}  // namespace

bool is_own_host(const std::string& host_header, const std::string& host, std::uint16_t port) {
  const std::string asked = in_lower_case(host_header);
  const std::string at_port = ":" + std::to_string(port);
  const bool names_port = asked.ends_with(at_port);
  if (!names_port && port != 80) return false;
  const std::string name = names_port ? asked.substr(0, asked.size() - at_port.size()) : asked;
  return name == "localhost" || name == in_lower_case(host) || name == "[" + in_lower_case(host) + "]" ||
         is_address(name);
}

bool is_this_machine(const std::string& host) {
  const std::string name = in_lower_case(host);
  return name == "localhost" || name == "::1" || (is_address(name) && name.starts_with("127."));
}

struct server::body {
  body(api& a, std::string h) : answers(a), host(std::move(h)) {}

  // Whether the request may go on. Asked before its body is read.
  bool admits(const httplib::Request& req, httplib::Response& res) const {
    const std::string host_header = req.get_header_value("Host");
    if (!is_own_host(host_header, host, port)) {
      refuse(res, 403, errc::not_permitted,
             {"this is another host's page", "Host", fmt::format("{}:{}", host, port), host_header,
              "go to " + fmt::format("http://127.0.0.1:{}/", port)});
      return false;
    }
    // A link from elsewhere may lead to the page, but no other page may use the API.
    const std::string origin = req.get_header_value("Origin");
    const std::string site = req.get_header_value("Sec-Fetch-Site");
    const bool own = site.empty() || site == "same-origin" || site == "none";
    const bool link =
        req.method == "GET" && !req.path.starts_with("/api/") && req.get_header_value("Sec-Fetch-Mode") == "navigate";
    if ((!origin.empty() && in_lower_case(origin) != "http://" + in_lower_case(host_header)) || !(own || link)) {
      refuse(res, 403, errc::not_permitted,
             {"another page asks", "Origin", "http://" + host_header, origin.empty() ? site : origin,
              "use the playground's own page"});
      return false;
    }
    if (req.method != "GET" && req.method != "POST" && req.method != "DELETE" && req.method != "HEAD") {
      refuse(res, 405, errc::invalid_argument,
             {"no such method", "method", "GET, POST, DELETE or HEAD", req.method, "see docs/playground-api.md"});
      return false;
    }
    if (req.has_header("Transfer-Encoding")) {
      refuse(res, 411, errc::invalid_argument,
             {"the length must be said beforehand", "Transfer-Encoding", "Content-Length",
              req.get_header_value("Transfer-Encoding"), "send the body in one piece, with its length"});
      return false;
    }
    if (req.has_header("Content-Encoding") || req.is_multipart_form_data()) {
      refuse(res, 415, errc::invalid_argument,
             {"a body is sent as it is", "Content-Type", "JSON, or bytes",
              req.has_header("Content-Encoding") ? req.get_header_value("Content-Encoding")
                                                 : req.get_header_value("Content-Type"),
              "send it uncompressed, and in one part"});
      return false;
    }
    // Of a length that is none, nobody knows where the next request begins.
    const std::string length = req.get_header_value("Content-Length");
    if (req.get_header_value_count("Content-Length") > 1 || (req.has_header("Content-Length") && !is_number(length))) {
      refuse(
          res, 400, errc::invalid_argument,
          {"this is no length", "Content-Length", "one whole number of bytes",
           req.get_header_value_count("Content-Length") > 1 ? "several" : length, "say how many bytes the body has"});
      return false;
    }
    if (req.method == "POST" && length.empty()) {
      refuse(res, 411, errc::invalid_argument,
             {"the length must be said beforehand", "Content-Length", "a number of bytes", "none",
              "send the body with its length: Content-Length: 0 if there is none"});
      return false;
    }
    const std::size_t most = most_body(req);
    if (req.get_header_value<std::uint64_t>("Content-Length") > most) {
      refuse(res, 413, errc::too_large,
             {"the request is too long", "body", fmt::format("at most {} MiB", most >> 20),
              req.get_header_value("Content-Length") + " bytes",
              most == 0 ? "send this request without a body" : "send it in parts"});
      return false;
    }
    return true;
  }

  static std::size_t most_body(const httplib::Request& req) {
    if (req.method != "POST") return 0;
    return req.path == "/api/1/files" ? most_file : api::most_body;
  }

  static request request_of(const httplib::Request& req) {
    request r{req.method == "HEAD" ? "GET" : req.method, req.path, {}, {}};
    for (const auto& [name, value] : req.params) r.query.emplace(name, value);
    return r;
  }

  void post(const httplib::Request& req, httplib::Response& res, const httplib::ContentReader& reader) {
    const auto size = req.get_header_value<std::uint64_t>("Content-Length");
    const reserved room(on_its_way, size);
    if (on_its_way > most_on_its_way) {
      refuse(
          res, 503, errc::unavailable,
          {"too much is on its way here", "body", fmt::format("{} MiB of all requests together", most_on_its_way >> 20),
           std::to_string(size) + " bytes", "try it again in a moment"});
      return;
    }
    request r = request_of(req);
    const bool whole = size == 0 || reader([&](const char* data, std::size_t some) {
                         r.body.append(data, some);
                         return r.body.size() <= size;
                       });
    if (whole && r.body.size() == size) return answer_with(res, answers.handle(r));
    refuse(res, 400, errc::invalid_argument,
           {"the request did not come to its end", "body", std::to_string(size) + " bytes",
            std::to_string(r.body.size()), "send it again"});
  }

  void show(const httplib::Request& req, httplib::Response& res) const {
    const auto files = page_files();
    const std::string path = req.path == "/" ? "/index.html" : req.path;
    const auto file = std::find_if(files.begin(), files.end(), [&](const page_file& f) { return f.path == path; });
    if (file == files.end() && files.empty() && path == "/index.html") {
      res.set_content("This bloomery was built without its page. The API is here: see docs/playground-api.md.\n",
                      "text/plain; charset=utf-8");
      return;
    }
    if (file == files.end()) {
      refuse(res, 404, errc::not_found, {"no such page", "path", "/", req.path, "go to /"});
      return;
    }
    const std::string accepted = in_lower_case(req.get_header_value(accepted_encodings));
    const bool compressed =
        accepted.find("gzip") != std::string::npos && accepted.find("gzip;q=0") == std::string::npos;
    if (compressed) res.set_header("Content-Encoding", "gzip");
    // Names of assets change with their content.
    res.set_header("Cache-Control", path == "/index.html" ? "no-cache" : "max-age=31536000, immutable");
    res.set_header("Vary", "Accept-Encoding");
    res.set_content(compressed ? std::string(file->gzipped) : unzipped(file->gzipped), std::string(file->type).c_str());
  }

  api& answers;
  std::string host;
  std::uint16_t port = 0;
  std::atomic<std::uint64_t> on_its_way{0};  // bytes of bodies
  http_server http{threads};
  std::thread listener;
};

server::server(api& answers, const std::string& host, std::uint16_t port)
    : body_(std::make_unique<body>(answers, host)) {
  if (host.empty()) {
    throw error(errc::invalid_argument,
                {"an empty host would be every address of this machine", "--host", "an address or a name", "''",
                 "leave out --host, or say 0.0.0.0 if you mean it"});
  }
  body& b = *body_;
  int descriptor = -1;
  b.http.set_socket_options([&descriptor](int fd) {
    // Without SO_REUSEPORT, which would let a second server share the port.
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    descriptor = fd;
  });
  b.http.set_tcp_nodelay(true);
  b.http.set_keep_alive_max_count(1000);
  b.http.set_keep_alive_timeout(2);  // what clients are told; connections.cpp keeps it
  b.http.set_payload_max_length(most_file);
  b.http.set_default_headers(
      {{"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"X-Frame-Options", "DENY"},
       {"Content-Security-Policy",
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; base-uri "
        "'none'; frame-ancestors 'none'"}});
  b.http.set_pre_routing_handler([&b](const httplib::Request& req, httplib::Response& res) {
    return b.admits(req, res) ? httplib::Server::HandlerResponse::Unhandled : httplib::Server::HandlerResponse::Handled;
  });
  b.http.Get("/api/.*", [&b](const httplib::Request& req, httplib::Response& res) {
    answer_with(res, b.answers.handle(body::request_of(req)));
  });
  b.http.Delete(".*", [&b](const httplib::Request& req, httplib::Response& res) {
    answer_with(res, b.answers.handle(body::request_of(req)));
  });
  b.http.Post(".*", [&b](const httplib::Request& req, httplib::Response& res, const httplib::ContentReader& reader) {
    b.post(req, res, reader);
  });
  b.http.Get(".*", [&b](const httplib::Request& req, httplib::Response& res) { b.show(req, res); });
  b.http.set_error_handler([](const httplib::Request& req, httplib::Response& res) {
    if (res.body.empty() && res.status != 204) {
      refuse(res, res.status, res.status == 404 ? errc::not_found : errc::invalid_argument,
             {"no such thing", "path", "", req.path, "see docs/playground-api.md"});
    }
  });
  b.http.set_exception_handler([](const httplib::Request&, httplib::Response& res, std::exception_ptr) {
    refuse(res, 500, errc::io, {"something went wrong here", "", "", "", "try it again"});
  });

  errno = 0;
  const bool bound = port == 0 ? (b.port = static_cast<std::uint16_t>(std::max(0, b.http.bind_to_any_port(host)))) != 0
                               : b.http.bind_to_port(host, port);
  if (!bound) {
    const int problem = errno;
    throw error(errc::io,
                {"cannot listen there", fmt::format("{}:{}", host, port), "",
                 problem == 0 ? "no such host" : std::strerror(problem),
                 port == 0 ? "see --host" : "another program may have it: leave out --port, or name another"});
  }
  if (port != 0) b.port = port;
  // The library lets five wait, and makes the others try again after a second.
  if (descriptor >= 0) ::listen(descriptor, most_pending);
  b.listener = std::thread([&b] { b.http.listen_after_bind(); });
  while (!b.http.is_running()) std::this_thread::yield();
}

server::~server() { stop(); }

void server::stop() {
  if (!body_->listener.joinable()) return;
  body_->answers.stop();
  body_->http.end();
  body_->http.stop();
  body_->listener.join();
}

std::uint16_t server::port() const noexcept { return body_->port; }

std::string server::url() const {
  const bool v6 = body_->host.find(':') != std::string::npos;
  const bool anywhere = body_->host == "0.0.0.0" || body_->host == "::";
  return fmt::format("http://{}:{}/", anywhere ? "127.0.0.1" : v6 ? "[" + body_->host + "]" : body_->host, body_->port);
}

}  // namespace bloomery::playground
