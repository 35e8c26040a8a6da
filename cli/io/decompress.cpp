#include "cli/io/decompress.hpp"

#include "app/signals.hpp"

#include <bloomery/error.hpp>

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace bloomery::cli {

using namespace app;

namespace {

constexpr std::size_t packed_bytes = std::size_t{64} << 10;

// A compression format: decodes concatenated members or frames.
class decoder {
 public:
  virtual ~decoder() = default;

  /// Decodes bytes of `in` to `out`; removes from both what it has read and written. May be called with no input.
  /// @throws std::string  why the data is invalid
  virtual void decode(std::span<char>& in, std::span<char>& out) = 0;

  /// Whether the input may end here.
  virtual bool is_between_frames() const = 0;
};

template <class Size>
Size at_most(std::size_t size) {
  return static_cast<Size>(std::min<std::size_t>(size, 1u << 30));
}

class gzip_decoder final : public decoder {
 public:
  gzip_decoder() {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK) throw std::bad_alloc();
  }
  gzip_decoder(const gzip_decoder&) = delete;
  gzip_decoder& operator=(const gzip_decoder&) = delete;
  ~gzip_decoder() override { inflateEnd(&stream_); }

  void decode(std::span<char>& in, std::span<char>& out) override {
    if (between_members_) {
      if (in.empty()) return;
      inflateReset(&stream_);
      between_members_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(in.data());
    stream_.avail_in = at_most<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = at_most<uInt>(out.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END)
      throw std::string(stream_.msg == nullptr ? "invalid data" : stream_.msg);
    between_members_ = result == Z_STREAM_END;
    in = in.subspan(static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_in) - in.data()));
    out = out.subspan(static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_out) - out.data()));
  }

  bool is_between_frames() const override { return between_members_; }

 private:
  z_stream stream_{};
  bool between_members_ = false;
};

class zstd_decoder final : public decoder {
 public:
  zstd_decoder() : stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  void decode(std::span<char>& in, std::span<char>& out) override {
    if (between_frames_ && in.empty()) return;
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(stream_.get(), &to, &from);
    if (ZSTD_isError(left) != 0) throw std::string(ZSTD_getErrorName(left));
    between_frames_ = left == 0;
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
  }

  bool is_between_frames() const override { return between_frames_; }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  bool between_frames_ = false;
};

std::unique_ptr<decoder> decoder_of(compression format) {
  if (format == compression::gzip) return std::make_unique<gzip_decoder>();
  return std::make_unique<zstd_decoder>();
}

class decompressed_source final : public byte_source {
 public:
  decompressed_source(compression format, std::string name, std::unique_ptr<byte_source> packed)
      : name_(std::move(name)), packed_(std::move(packed)), decoder_(decoder_of(format)) {}

  std::size_t read(std::span<char> to) override {
    for (;;) {
      std::span<char> room = to;
      const std::size_t before = left_.size();
      try {
        decoder_->decode(left_, room);
      } catch (const std::string& why) {
        refuse(why);
      }
      if (room.size() < to.size()) return to.size() - room.size();
      if (left_.size() < before) continue;
      if (!left_.empty()) refuse("invalid data");
      const std::size_t got = packed_->read(buffer_);
      if (got == 0) {
        if (!decoder_->is_between_frames() && stop_signal() == 0) refuse("unexpected end");
        return 0;
      }
      left_ = std::span(buffer_).first(got);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw error(errc::damaged, {"compressed data is damaged or cut short: " + why, shown_input(name_), "", "", ""});
  }

  std::string name_;
  std::unique_ptr<byte_source> packed_;
  std::unique_ptr<decoder> decoder_;
  std::vector<char> buffer_ = std::vector<char>(packed_bytes);
  std::span<char> left_;  // of buffer_, not decoded yet
};

}  // namespace

std::unique_ptr<byte_source> decompress(compression format, std::string name, std::unique_ptr<byte_source> packed) {
  return std::make_unique<decompressed_source>(format, std::move(name), std::move(packed));
}

}  // namespace bloomery::cli
