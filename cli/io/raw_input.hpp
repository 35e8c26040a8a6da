// The bytes of an input as they are: a file or standard input, read with a wait that signals and cancellation end.
#pragma once

#include "cli/io/byte_source.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery::cli {

class raw_input final : public byte_source {
 public:
  /// @param bytes_read  counts the bytes that were read
  /// @param cancelled   a descriptor that becomes readable when waiting shall end
  /// @throws error not_found, not_permitted, io
  raw_input(const std::string& name, std::atomic<std::uint64_t>& bytes_read, int cancelled);
  raw_input(const raw_input&) = delete;
  raw_input& operator=(const raw_input&) = delete;
  ~raw_input() override;

  std::size_t read(std::span<char> to) override;

  /// The bytes that peek_more() has read and read() has not returned yet.
  std::string_view peeked() const { return std::string_view(peeked_).substr(taken_); }

  /// Reads further bytes into peeked(); false at the end or after a signal.
  bool peek_more();

  const std::string& name() const { return name_; }

 private:
  std::size_t read_file(std::span<char> to);
  bool wait() const;

  std::string name_;
  std::atomic<std::uint64_t>& bytes_read_;
  int cancelled_;
  bool owned_;
  int fd_ = -1;
  bool regular_ = false;
  std::string peeked_;
  std::size_t taken_ = 0;  // bytes of peeked_ that read() has returned
};

}  // namespace bloomery::cli
