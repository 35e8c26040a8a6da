// Decoders of compressed input: truncated or damaged data gives an error or the original text, never another text.
#include "cli/io/decompress.hpp"

#include "support/test.hpp"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

namespace bloomery::cli {
namespace {

using namespace bloomery_tests;

// Bytes that arrive a few at a time.
class pieces final : public byte_source {
 public:
  pieces(std::string_view data, std::size_t most) : data_(data), most_(most) {}

  std::size_t read(std::span<char> to) override {
    const std::size_t size = std::min({to.size(), most_, data_.size()});
    std::memcpy(to.data(), data_.data(), size);
    data_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view data_;
  std::size_t most_;
};

std::string unpacked(compression format, std::string_view data, std::size_t piece = 1 << 16, std::size_t room = 4096) {
  const auto source = decompress(format, "f", std::make_unique<pieces>(data, piece));
  std::string text;
  std::string buffer(room, '\0');
  while (const std::size_t got = source->read(buffer)) text.append(buffer, 0, got);
  return text;
}

// One member or frame of the format's own library, with a checksum of the text.
std::string packed(compression format, const std::string& text) {
  std::string data(text.size() + 4096, '\0');
  std::size_t size = 0;
  char* const plain = const_cast<char*>(text.data());  // which bzlib and zlib only read
  const auto* const in = reinterpret_cast<const std::uint8_t*>(text.data());
  auto* const out = reinterpret_cast<std::uint8_t*>(data.data());
  switch (format) {
    case compression::gzip: {
      z_stream stream{};
      deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
      stream.next_in = reinterpret_cast<Bytef*>(plain);
      stream.avail_in = static_cast<uInt>(text.size());
      stream.next_out = out;
      stream.avail_out = static_cast<uInt>(data.size());
      EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
      size = stream.total_out;
      deflateEnd(&stream);
      break;
    }
    case compression::zstd: {
      const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
      ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
      size = ZSTD_compress2(context.get(), data.data(), data.size(), text.data(), text.size());
      EXPECT_FALSE(ZSTD_isError(size));
      break;
    }
    case compression::lz4: {
      LZ4F_preferences_t with_checksum{};
      with_checksum.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
      size = LZ4F_compressFrame(data.data(), data.size(), text.data(), text.size(), &with_checksum);
      EXPECT_FALSE(LZ4F_isError(size));
      break;
    }
    case compression::xz:
      EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, in, text.size(), out, &size, data.size()),
                LZMA_OK);
      break;
    case compression::bzip2: {
      auto length = static_cast<unsigned>(data.size());
      EXPECT_EQ(BZ2_bzBuffToBuffCompress(data.data(), &length, plain, static_cast<unsigned>(text.size()), 1, 0, 0),
                BZ_OK);
      size = length;
      break;
    }
  }
  data.resize(size);
  return data;
}

std::string some_lines() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "key-" + std::to_string(i * i) + "\n";
  return text;
}

constexpr std::array<std::pair<compression, std::string_view>, 5> formats = {{{compression::gzip, "gzip"},
                                                                              {compression::zstd, "zstd"},
                                                                              {compression::lz4, "lz4"},
                                                                              {compression::xz, "xz"},
                                                                              {compression::bzip2, "bzip2"}}};

TEST(Decompress, GivesTheTextHoweverTheDataArrives) {
  const std::string text = some_lines();
  for (const auto& [format, name] : formats) {
    const std::string one = packed(format, text);
    const std::string two = one + packed(format, "") + packed(format, "another\n");
    for (const std::size_t piece : {1u, 2u, 7u, 1000u}) {
      for (const std::size_t room : {1u, 3u, 1000u}) {
        EXPECT_EQ(unpacked(format, one, piece, room), text) << name;
        EXPECT_EQ(unpacked(format, two, piece, room), text + "another\n") << name;
      }
    }
  }
}

TEST(Decompress, OfDataCutShortAnywhereIsAnError) {
  for (const auto& [format, name] : formats) {
    const std::string data = packed(format, some_lines());
    for (std::size_t length = 1; length < data.size(); ++length) {
      for (const std::size_t piece : {1u, 1u << 16}) {
        const auto thrown = error_of([&, f = format] { unpacked(f, std::string_view(data).substr(0, length), piece); });
        ASSERT_TRUE(thrown) << name << ", " << length << " bytes";
        ASSERT_EQ(thrown->code(), errc::damaged) << name;
        ASSERT_THAT(thrown->what(),
                    HasSubstr("f: compressed data is truncated: expected further data, found the end after " +
                              std::to_string(length) + (length == 1 ? " byte;" : " bytes;")))
            << name;
      }
    }
  }
}

TEST(Decompress, OfDataWithAnyBitFlippedGivesNoOtherText) {
  const std::string text = some_lines();
  for (const auto& [format, name] : formats) {
    std::string data = packed(format, text);
    std::size_t refused = 0;
    for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
      data[bit / 8] = static_cast<char>(data[bit / 8] ^ (1 << bit % 8));
      std::string found = text;
      const auto thrown = error_of([&, f = format] { found = unpacked(f, data); });
      data[bit / 8] = static_cast<char>(data[bit / 8] ^ (1 << bit % 8));
      refused += thrown.has_value();
      ASSERT_EQ(found, text) << name << ", bit " << bit;
    }
    EXPECT_GT(refused, 8 * data.size() * 7 / 10) << name;
  }
}

}  // namespace
}  // namespace bloomery::cli
