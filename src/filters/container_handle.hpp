// A handle of a file of another system with several filters, or layers: for lookups of keys that are given as text.
#pragma once

#include <bloomery/detail/checks.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace bloomery {

class container_handle : public filter_handle {
 public:
  explicit container_handle(params parameters) : parameters_(std::move(parameters)) {}

  bloomery::capabilities capabilities() const override {
    bloomery::capabilities result;
    result.can_insert = result.has_cells = false;
    return result;
  }

  const params& parameters() const noexcept override { return parameters_; }

  filter_summary summary() override { return {}; }

 protected:
  static void require_text(key_span keys) {
    if (keys.empty() || keys.is_text()) return;
    throw error(errc::incompatible, {"the keys of this file are given as text", "", "text", "other keys", hint::none});
  }

  virtual bool may_contain(std::string_view key) const = 0;

  std::uint64_t insert_some(key_span, std::uint8_t*) override { detail::refuse_writing(); }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override {
    require_text(keys);
    std::fill_n(bitmap, detail::bitmap_words(keys.size()), std::uint64_t{0});
    for (std::size_t i = 0; i < keys.size(); ++i) bitmap[i / 64] |= std::uint64_t{may_contain(keys.text(i))} << i % 64;
  }

 private:
  params parameters_;
};

}  // namespace bloomery
