// connection: connecting, the TLS handshake, and transport of bytes.
#include "redis/net/connection.hpp"

#include <bloomery/error.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace bloomery::redis {
namespace {

std::string system_text(int number) { return std::generic_category().message(number); }

// The oldest error in OpenSSL's queue, which caused the later ones. Clears the queue.
std::string tls_text() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  if (code == 0) return "TLS failed";
  const char* const reason = ::ERR_reason_error_string(code);
  return reason != nullptr ? reason : "TLS failed";
}

constexpr std::size_t tls_chunk = 16 << 10;  // size of a TLS record in bytes

// Without this callback OpenSSL would prompt for a passphrase at the terminal and block.
int give_no_passphrase(char*, int, int, void* was_asked) {
  if (was_asked != nullptr) *static_cast<bool*>(was_asked) = true;
  return -1;
}

}  // namespace

std::string place::text() const {
  if (!socket.empty()) return socket;
  return (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// ---- TLS ------------------------------------------------------------------------------------------------------------

struct tls_settings::context {
  SSL_CTX* tls = nullptr;
  ~context() { ::SSL_CTX_free(tls); }
};

tls_settings::~tls_settings() = default;

tls_settings::tls_settings(const redis_connection_options& options) : context_(std::make_unique<context>()) {
  const auto refuse = [](const std::string& what, const std::string& file) {
    throw error(errc::invalid_argument, {what, file, "a file in PEM", tls_text(), ""});
  };
  ::ERR_clear_error();
  SSL_CTX* const tls = context_->tls = ::SSL_CTX_new(::TLS_client_method());
  if (tls == nullptr) throw error(errc::unavailable, {"OpenSSL does not provide TLS", "", "", tls_text(), ""});
  ::SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
  ::SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION);  // so reading never waits for writing, or vice versa
  ::SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.certificate_authorities.empty()) {
    ::SSL_CTX_set_default_verify_paths(tls);
  } else if (::SSL_CTX_load_verify_locations(tls, options.certificate_authorities.c_str(), nullptr) != 1) {
    refuse("cannot read the certificates to trust", options.certificate_authorities);
  }
  if (!options.certificate.empty()) {
    bool is_encrypted = false;
    ::SSL_CTX_set_default_passwd_cb(tls, give_no_passphrase);
    ::SSL_CTX_set_default_passwd_cb_userdata(tls, &is_encrypted);
    if (::SSL_CTX_use_certificate_chain_file(tls, options.certificate.c_str()) != 1) {
      refuse("cannot read this client's certificate", options.certificate);
    }
    const std::string& key = options.certificate_key.empty() ? options.certificate : options.certificate_key;
    const bool good = ::SSL_CTX_use_PrivateKey_file(tls, key.c_str(), SSL_FILETYPE_PEM) == 1;
    ::SSL_CTX_set_default_passwd_cb_userdata(tls, nullptr);
    if (is_encrypted) {
      ::ERR_clear_error();
      throw error(errc::invalid_argument, {"the key of this client's certificate is encrypted", key,
                                           "a key in PEM without a passphrase", "", hint::decrypt_key});
    }
    if (!good || ::SSL_CTX_check_private_key(tls) != 1) {
      refuse("cannot use the key of this client's certificate", key);
    }
  } else if (!options.certificate_key.empty()) {
    refuse("a key without a certificate", options.certificate_key);
  }
}

// OpenSSL reads from and writes to memory buffers, and this class uses the socket. So OpenSSL never writes to a closed
// socket, which would raise SIGPIPE.
struct connection::secured {
  SSL* tls = nullptr;
  BIO* in = nullptr;
  BIO* out = nullptr;
  bool has_heard = false;  // the server's first bytes
  bool agreed = false;
  bool ended = false;

  ~secured() { ::SSL_free(tls); }
};

// ---- connecting -----------------------------------------------------------------------------------------------------

connection::connection() = default;
connection::~connection() = default;

void connection::close() noexcept {
  socket_ = posix::descriptor();
  secured_.reset();
  candidates_.clear();
  waiting_.clear();
  wire_.clear();
  waiting_at_ = wire_at_ = 0;
  queued_ = maybe_sent_ = 0;
  connecting_ = ready_ = has_more_ = false;
}

void connection::fail(std::string why) {
  const std::uint64_t queued = queued_;
  const std::uint64_t sent = maybe_sent_;
  close();
  queued_ = queued;  // callers read it afterwards to find out what may have been sent
  maybe_sent_ = sent;
  failure_ = std::move(why);
}

void connection::open(const place& where, const tls_settings* tls, std::chrono::milliseconds time) {
  close();
  failure_.clear();
  last_refusal_.clear();
  failed_permanently_ = found_no_server_ = found_no_address_ = speaks_no_tls_ = false;
  all_refused_ = true;
  where_ = where;
  tls_ = tls;
  const auto add = [&](const sockaddr* address, std::size_t length, int family) {
    candidates_.push_back({std::vector<char>(length), family});
    std::memcpy(candidates_.back().address.data(), address, length);
  };
  if (!where.socket.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (where.socket.size() >= sizeof address.sun_path) return fail("the path of the socket is too long");
    std::memcpy(address.sun_path, where.socket.data(), where.socket.size());
    add(reinterpret_cast<const sockaddr*>(&address), sizeof address, AF_UNIX);
  } else {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(where.port);
    int problem = ::getaddrinfo(where.host.c_str(), port.c_str(), &hints, &found);
    if (problem == EAI_NONAME || problem == EAI_NODATA) {
      hints.ai_flags = AI_NUMERICSERV;  // not AI_ADDRCONFIG, which finds nothing if loopback is the only network
      problem = ::getaddrinfo(where.host.c_str(), port.c_str(), &hints, &found);
    }
    if (problem != 0) {
      found_no_server_ = problem == EAI_NONAME || problem == EAI_NODATA || problem == EAI_AGAIN;
      found_no_address_ = true;
      return fail(problem == EAI_SYSTEM ? system_text(errno) : std::string(::gai_strerror(problem)));
    }
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next) add(a->ai_addr, a->ai_addrlen, a->ai_family);
    ::freeaddrinfo(found);
    std::reverse(candidates_.begin(), candidates_.end());  // taken from the back
  }
  time_of_each_ = time / std::max<std::size_t>(candidates_.size(), 1);
  connect_next();
}

void connection::try_next_address(moment now) {
  if (now < address_deadline()) return;
  last_refusal_ = "no answer";
  all_refused_ = false;
  connect_next();
}

void connection::refused_by_address(int number) {
  last_refusal_ = system_text(number);
  if (number != ECONNREFUSED && number != ENOENT) all_refused_ = false;
}

void connection::connect_next() {
  connecting_ = false;
  next_at_ = std::chrono::steady_clock::now() + time_of_each_;
  while (!candidates_.empty()) {
    const candidate next = std::move(candidates_.back());
    candidates_.pop_back();
    socket_ = posix::descriptor(::socket(next.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_) {
      refused_by_address(errno);
      continue;
    }
    if (next.family != AF_UNIX) {
      const int on = 1;
      ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    connecting_ = true;
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(next.address.data()),
                  static_cast<socklen_t>(next.address.size())) == 0) {
      return connected();
    }
    if (errno == EINPROGRESS) return;
    refused_by_address(errno);  // EAGAIN for a Unix socket: its queue is full
  }
  found_no_server_ = all_refused_;
  fail(last_refusal_);
}

void connection::connected() {
  connecting_ = false;
  candidates_.clear();
  if (tls_ == nullptr) {
    ready_ = true;
    return;
  }
  secured_ = std::make_unique<secured>();
  secured& s = *secured_;
  s.tls = ::SSL_new(tls_->get().tls);
  s.in = ::BIO_new(::BIO_s_mem());
  s.out = ::BIO_new(::BIO_s_mem());
  if (s.tls == nullptr || s.in == nullptr || s.out == nullptr) return fail("no memory for TLS");
  ::SSL_set_bio(s.tls, s.in, s.out);
  ::SSL_set_connect_state(s.tls);
  // The certificate must match the requested host, which is a numeric address or a name.
  std::array<unsigned char, sizeof(in6_addr)> numbers;
  const bool numeric = ::inet_pton(AF_INET, where_.host.c_str(), numbers.data()) == 1 ||
                       ::inet_pton(AF_INET6, where_.host.c_str(), numbers.data()) == 1;
  bool good = true;
  if (numeric) {
    good = ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(s.tls), where_.host.c_str()) == 1;
  } else {
    ::SSL_set_hostflags(s.tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    good =
        ::SSL_set1_host(s.tls, where_.host.c_str()) == 1 && ::SSL_set_tlsext_host_name(s.tls, where_.host.c_str()) == 1;
  }
  if (!good) return fail(tls_text());
  shake_hands();
}

void connection::fail_by_tls() {
  const long verified = ::SSL_get_verify_result(secured_->tls);
  const bool untrusted = !secured_->agreed && verified != X509_V_OK;
  const std::string why =
      untrusted ? std::string("its certificate is not trusted: ") + ::X509_verify_cert_error_string(verified)
                : "TLS: " + tls_text();
  ::ERR_clear_error();
  fail(why);
  failed_permanently_ = untrusted;
}

void connection::shake_hands() {
  ::ERR_clear_error();
  const int done = ::SSL_do_handshake(secured_->tls);
  if (done != 1) {
    const int problem = ::SSL_get_error(secured_->tls, done);
    if (problem != SSL_ERROR_WANT_READ && problem != SSL_ERROR_WANT_WRITE) return fail_by_tls();
  } else {
    secured_->agreed = true;
    ready_ = true;
  }
  flush();
}

short connection::wanted_events() const noexcept {
  if (connecting_) return POLLOUT;
  // Bytes queued while reading are encrypted by flush().
  const bool may_write = secured_ == nullptr || secured_->agreed;
  const bool some = wire_.size() > wire_at_ || (may_write && waiting_.size() > waiting_at_);
  return static_cast<short>(some ? POLLIN | POLLOUT : POLLIN);
}

void connection::on_events(short events) {
  if (!socket_) return;
  if (connecting_) {
    if ((events & (POLLOUT | POLLERR | POLLHUP)) == 0) return;
    int problem = 0;
    socklen_t length = sizeof problem;
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &problem, &length) != 0) problem = errno;
    if (problem != 0) {
      refused_by_address(problem);
      return connect_next();
    }
    connected();
    if (!socket_) return;
  }
  flush();
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

// False: the socket accepts no more data now, or it failed.
bool connection::send_from(std::string& bytes, std::size_t& at) {
  while (at < bytes.size()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) fail(system_text(errno));
      return false;
    }
    at += static_cast<std::size_t>(sent);
    if (&bytes == &waiting_) maybe_sent_ += static_cast<std::uint64_t>(sent);
  }
  bytes.clear();
  at = 0;
  return true;
}

// Encrypts waiting_ into wire_, record by record. False: it failed.
bool connection::encrypt() {
  ::ERR_clear_error();
  if (ready_ && waiting_at_ < waiting_.size()) {
    const std::size_t chunk = std::min(waiting_.size() - waiting_at_, tls_chunk);
    maybe_sent_ += chunk;
    std::size_t taken = 0;
    if (::SSL_write_ex(secured_->tls, waiting_.data() + waiting_at_, chunk, &taken) != 1) {
      fail_by_tls();
      return false;
    }
    maybe_sent_ -= chunk - taken;
    waiting_at_ += taken;
    if (waiting_at_ == waiting_.size()) {
      waiting_.clear();
      waiting_at_ = 0;
    }
  }
  char* bytes = nullptr;
  const long length = ::BIO_get_mem_data(secured_->out, &bytes);
  if (length > 0) {
    wire_.append(bytes, static_cast<std::size_t>(length));
    (void)BIO_reset(secured_->out);
  }
  return true;
}

void connection::flush() {
  if (!socket_ || connecting_) return;
  if (secured_ == nullptr) {
    send_from(waiting_, waiting_at_);
    return;
  }
  do {
    if (!send_from(wire_, wire_at_)) return;
    if (!encrypt()) return;
  } while (!wire_.empty());
}

std::size_t connection::read(std::span<char> into) {
  has_more_ = false;
  if (!socket_ || connecting_) return 0;
  while (true) {
    if (secured_ != nullptr && secured_->agreed) {
      ::ERR_clear_error();
      std::size_t got = 0;
      if (::SSL_read_ex(secured_->tls, into.data(), into.size(), &got) == 1) {
        has_more_ = true;
        return got;
      }
      const int problem = ::SSL_get_error(secured_->tls, 0);
      if (problem == SSL_ERROR_ZERO_RETURN || secured_->ended) {
        fail("the server closed the connection");
        return 0;
      }
      if (problem != SSL_ERROR_WANT_READ) {
        fail_by_tls();
        return 0;
      }
    }
    const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (got < 0) {
      fail(system_text(errno));
      return 0;
    }
    if (got == 0) {
      if (secured_ == nullptr || secured_->ended || !secured_->agreed) {
        fail("the server closed the connection");
        return 0;
      }
      secured_->ended = true;
      continue;
    }
    if (secured_ == nullptr) return static_cast<std::size_t>(got);
    constexpr char first_record = 0x14;  // types of TLS records
    constexpr char last_record = 0x17;
    if (!secured_->has_heard && (into[0] < first_record || into[0] > last_record)) {
      fail("its answer to the TLS handshake is not TLS");
      speaks_no_tls_ = true;
      return 0;
    }
    secured_->has_heard = true;
    ::BIO_write(secured_->in, into.data(), static_cast<int>(got));
    if (!secured_->agreed) {
      shake_hands();
      if (!socket_) return 0;
    }
    flush();  // replies of the TLS protocol itself
    if (!socket_) return 0;
  }
}

}  // namespace bloomery::redis
