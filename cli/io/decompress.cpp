#include "cli/io/decompress.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"

#include <bloomery/error.hpp>

#include <bzlib.h>
#include <fmt/format.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace bloomery::cli {

using namespace app;

namespace {

constexpr std::size_t packed_bytes = std::size_t{64} << 10;

// Why data cannot be decompressed.
struct undecodable {
  errc code;
  std::string what;
  std::string expected;
  std::string found;
  std::string hint;
};

// A compression format: decodes concatenated members or frames.
class decoder {
 public:
  virtual ~decoder() = default;

  /// Decodes bytes of `in` to `out`, which is not empty; removes from both what it has read and written.
  /// @param ended  `in` has the last bytes of the input
  /// @throws undecodable
  virtual void decode(std::span<char>& in, std::span<char>& out, bool ended) = 0;

  /// Whether the input may end here.
  virtual bool is_complete() const = 0;
};

[[noreturn]] void invalid(const std::string& format, const std::string& why) {
  throw undecodable{errc::damaged, "compressed data is damaged", "valid " + format + " data", why, ""};
}

[[noreturn]] void needs_memory(const std::string& needed, const std::string& most, const std::string& tool) {
  throw undecodable{errc::too_large, "decompression needs too much memory", "at most " + most, needed,
                    "if you trust the file, use: " + tool + " FILE | bloomery ..."};
}

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

  void decode(std::span<char>& in, std::span<char>& out, bool) override {
    if (between_members_) {
      // Tapes and tar pad files with zeros, which gzip ignores.
      in = in.subspan(
          static_cast<std::size_t>(std::find_if(in.begin(), in.end(), [](char c) { return c != 0; }) - in.begin()));
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
      invalid("gzip", stream_.msg == nullptr ? "other data" : stream_.msg);
    between_members_ = result == Z_STREAM_END;
    in = in.subspan(static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_in) - in.data()));
    out = out.subspan(static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_out) - out.data()));
  }

  bool is_complete() const override { return between_members_; }

 private:
  z_stream stream_{};
  bool between_members_ = false;
};

class zstd_decoder final : public decoder {
 public:
  zstd_decoder() : stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  void decode(std::span<char>& in, std::span<char>& out, bool) override {
    if (between_frames_ && in.empty()) return;
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(stream_.get(), &to, &from);
    if (ZSTD_isError(left) != 0) {
      const ZSTD_ErrorCode code = ZSTD_getErrorCode(left);
      if (code == ZSTD_error_memory_allocation) throw std::bad_alloc();
      if (code == ZSTD_error_frameParameter_windowTooLarge)
        needs_memory("a larger window", "a window of 128 MiB", "zstd -dc --long=31");
      invalid("zstd", ZSTD_getErrorName(left));
    }
    between_frames_ = left == 0;
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
  }

  bool is_complete() const override { return between_frames_; }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  bool between_frames_ = false;
};

class lz4_decoder final : public decoder {
 public:
  lz4_decoder() {
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context_, LZ4F_VERSION)) != 0) throw std::bad_alloc();
  }
  lz4_decoder(const lz4_decoder&) = delete;
  lz4_decoder& operator=(const lz4_decoder&) = delete;
  ~lz4_decoder() override { LZ4F_freeDecompressionContext(context_); }

  void decode(std::span<char>& in, std::span<char>& out, bool) override {
    if (between_frames_ && in.empty()) return;
    std::size_t read = in.size();
    std::size_t written = out.size();
    const std::size_t left = LZ4F_decompress(context_, out.data(), &written, in.data(), &read, nullptr);
    if (LZ4F_isError(left) != 0) invalid("LZ4", LZ4F_getErrorName(left));
    between_frames_ = left == 0;
    in = in.subspan(read);
    out = out.subspan(written);
  }

  bool is_complete() const override { return between_frames_; }

 private:
  LZ4F_dctx* context_ = nullptr;
  bool between_frames_ = false;
};

class xz_decoder final : public decoder {
 public:
  xz_decoder() {
    if (lzma_stream_decoder(&stream_, most_decoder_bytes, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  }
  xz_decoder(const xz_decoder&) = delete;
  xz_decoder& operator=(const xz_decoder&) = delete;
  ~xz_decoder() override { lzma_end(&stream_); }

  void decode(std::span<char>& in, std::span<char>& out, bool ended) override {
    if (ended_) return;
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret result = lzma_code(&stream_, ended ? LZMA_FINISH : LZMA_RUN);
    in = in.last(stream_.avail_in);
    out = out.last(stream_.avail_out);
    switch (result) {
      case LZMA_OK:
      case LZMA_BUF_ERROR: return;
      case LZMA_STREAM_END: ended_ = true; return;
      case LZMA_MEM_ERROR: throw std::bad_alloc();
      case LZMA_MEMLIMIT_ERROR:
        needs_memory(bytes_text(lzma_memusage(&stream_)), bytes_text(most_decoder_bytes), "xz -dc");
      case LZMA_OPTIONS_ERROR:
        throw undecodable{errc::incompatible, "this xz data needs a feature that is not supported", "", "",
                          "decompress it first: xz -dc FILE | bloomery ..."};
      case LZMA_FORMAT_ERROR: invalid("xz", "other data");
      default: invalid("xz", "corrupt data");
    }
  }

  bool is_complete() const override { return ended_; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

class bzip2_decoder final : public decoder {
 public:
  bzip2_decoder() { begin(); }
  bzip2_decoder(const bzip2_decoder&) = delete;
  bzip2_decoder& operator=(const bzip2_decoder&) = delete;
  ~bzip2_decoder() override { BZ2_bzDecompressEnd(&stream_); }

  void decode(std::span<char>& in, std::span<char>& out, bool) override {
    if (between_streams_) {
      if (in.empty()) return;
      BZ2_bzDecompressEnd(&stream_);
      begin();
      between_streams_ = false;
    }
    stream_.next_in = in.data();
    stream_.avail_in = at_most<unsigned>(in.size());
    stream_.next_out = out.data();
    stream_.avail_out = at_most<unsigned>(out.size());
    const int result = BZ2_bzDecompress(&stream_);
    if (result == BZ_MEM_ERROR) throw std::bad_alloc();
    if (result == BZ_DATA_ERROR_MAGIC) invalid("bzip2", "other data");
    if (result != BZ_OK && result != BZ_STREAM_END) invalid("bzip2", "corrupt data");
    between_streams_ = result == BZ_STREAM_END;
    in = in.subspan(static_cast<std::size_t>(stream_.next_in - in.data()));
    out = out.subspan(static_cast<std::size_t>(stream_.next_out - out.data()));
  }

  bool is_complete() const override { return between_streams_; }

 private:
  void begin() {
    stream_ = {};
    constexpr int silent = 0;
    constexpr int fast = 0;
    if (BZ2_bzDecompressInit(&stream_, silent, fast) != BZ_OK) throw std::bad_alloc();
  }

  bz_stream stream_{};
  bool between_streams_ = false;
};

std::unique_ptr<decoder> decoder_of(compression format) {
  switch (format) {
    case compression::gzip: return std::make_unique<gzip_decoder>();
    case compression::zstd: return std::make_unique<zstd_decoder>();
    case compression::lz4: return std::make_unique<lz4_decoder>();
    case compression::xz: return std::make_unique<xz_decoder>();
    case compression::bzip2: break;
  }
  return std::make_unique<bzip2_decoder>();
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
        decoder_->decode(left_, room, ended_);
        if (left_.size() == before && before > 0 && room.size() == to.size()) invalid("compressed", "other data");
      } catch (const undecodable& why) {
        throw error(why.code, {why.what, shown_input(name_), why.expected, why.found, why.hint});
      }
      if (room.size() < to.size()) return to.size() - room.size();
      if (!left_.empty()) continue;
      if (ended_) {
        if (decoder_->is_complete() || stop_signal() != 0) return 0;
        throw error(errc::damaged, {"compressed data is truncated", shown_input(name_), "further data",
                                    fmt::format("the end after {} byte{}", packed_read_, packed_read_ == 1 ? "" : "s"),
                                    "fetch or create the file again"});
      }
      const std::size_t got = packed_->read(buffer_);
      ended_ = got == 0;
      packed_read_ += got;
      left_ = std::span(buffer_).first(got);
    }
  }

 private:
  std::string name_;
  std::unique_ptr<byte_source> packed_;
  std::unique_ptr<decoder> decoder_;
  std::vector<char> buffer_ = std::vector<char>(packed_bytes);
  std::span<char> left_;  // of buffer_, not decoded yet
  std::uint64_t packed_read_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<byte_source> decompress(compression format, std::string name, std::unique_ptr<byte_source> packed) {
  return std::make_unique<decompressed_source>(format, std::move(name), std::move(packed));
}

}  // namespace bloomery::cli
