// Secrets: generation, check value, and key files of hexadecimal text.
#include <bloomery/secret.hpp>

#include <bloomery/detail/key_file.hpp>
#include <bloomery/detail/new_file.hpp>
#include <bloomery/error.hpp>

#include "hash/siphash.hpp"
#include "platform/posix.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace bloomery {
namespace {

using key_bytes = std::array<std::uint8_t, 16>;
constexpr std::size_t key_digits = 2 * sizeof(key_bytes);
constexpr std::string_view digits = "0123456789ABCDEF";

static_assert(sizeof(secret_key) == sizeof(key_bytes));

key_bytes bytes_of(const secret_key& key) {
  key_bytes bytes;
  std::memcpy(bytes.data(), &key, bytes.size());
  return bytes;
}

secret_key key_of(const key_bytes& bytes) {
  secret_key key;
  std::memcpy(&key, bytes.data(), bytes.size());
  return key;
}

// Value of a hexadecimal digit, or 16 for other characters.
std::size_t value_of(char c) {
  const char upper = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  const std::size_t value = digits.find(upper);
  return value == std::string_view::npos ? 16 : value;
}

// Report only length and position: the text may be a mistyped key.
[[noreturn]] void refuse_text(const std::string& path, const std::string& found) {
  throw error(errc::invalid_argument,
              {"not a key file", path, "32 hexadecimal digits and a newline", found, hint::give_a_key_file});
}

// Reads up to `most` bytes of a file or pipe.
std::string text_of(int fd, const std::string& path, std::size_t most) {
  std::string text(most, '\0');
  std::size_t filled = 0;
  while (filled < most) {
    const ssize_t got = ::read(fd, text.data() + filled, most - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) posix::fail("read", path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

}  // namespace

secret_key random_secret() {
  key_bytes bytes;
  if (::getentropy(bytes.data(), bytes.size()) != 0) posix::fail("get random bytes", "the system");
  return key_of(bytes);
}

std::uint64_t key_check(const secret_key& key) noexcept {
  const std::uint64_t check = hashes::siphash<2, 4, 16>("bloomery key check", key).hash64;
  return check != 0 ? check : 1;
}

std::string key_check_text(std::uint64_t check) {
  if (check == 0) return "none";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[check >> shift & 15];
  return text;
}

secret_key read_secret(const std::string& path, bool* readable_by_others) {
  const posix::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file) posix::fail("open", path);
  if (::fstat(file.get(), &status) != 0) posix::fail("read the state of", path);
  if (readable_by_others != nullptr) {
    *readable_by_others = S_ISREG(status.st_mode) && (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
  }
  constexpr std::size_t most = 4096;
  std::string text = text_of(file.get(), path, most);
  if (text.size() == most) refuse_text(path, std::to_string(most) + " or more bytes");
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (value_of(text[i]) > 15) refuse_text(path, "another character at position " + std::to_string(i + 1));
  }
  if (text.size() != key_digits) refuse_text(path, std::to_string(text.size()) + " digits");
  key_bytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value_of(text[2 * i]) << 4 | value_of(text[2 * i + 1]));
  }
  return key_of(bytes);
}

std::string detail::key_file_text(const secret_key& key) {
  std::string text;
  for (const std::uint8_t byte : bytes_of(key)) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text + '\n';
}

void write_secret(const std::string& path, const secret_key& key) {
  const auto refuse = [&] {
    throw error(errc::already_exists,
                {"the file already exists, and key files are never replaced", path, "", "", hint::choose_another_name});
  };
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) refuse();  // also for a device, or a link to a missing file
  try {
    detail::new_file file(path, false, S_IRUSR | S_IWUSR);
    file.write(detail::key_file_text(key));
    file.publish();
  } catch (const error& e) {
    if (e.code() != errc::already_exists || e.text().where != path) throw;
    refuse();
  }
}

}  // namespace bloomery
