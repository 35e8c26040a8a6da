#include "playground/json/base64.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>

namespace bloomery_tests {
namespace {

using bloomery::playground::base64_of;
using bloomery::playground::bytes_of_base64;

TEST(Base64, HasTheVectorsOfItsSpecification) {
  const std::array<std::array<const char*, 2>, 7> vectors = {{{"", ""},
                                                              {"f", "Zg=="},
                                                              {"fo", "Zm8="},
                                                              {"foo", "Zm9v"},
                                                              {"foob", "Zm9vYg=="},
                                                              {"fooba", "Zm9vYmE="},
                                                              {"foobar", "Zm9vYmFy"}}};

  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_of(bytes), text);
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
}

TEST(Base64, KeepsAllBytes) {
  std::mt19937_64 random(7);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string bytes;
    while (bytes.size() < size) bytes += static_cast<char>(random());

    EXPECT_EQ(bytes_of_base64(base64_of(bytes)), bytes);
  }
}

TEST(Base64, RefusesMalformedText) {
  for (const char* wrong :
       {"Z", "Zg", "Zm8", "Zg=", "Zg==Zg==", "Z===", "====", "Zg=a", "Zm 8", "Zm9v\n", "Zm-_", "\xff\xff=="}) {
    EXPECT_FALSE(bytes_of_base64(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace bloomery_tests
