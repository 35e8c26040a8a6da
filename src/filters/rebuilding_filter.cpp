// rebuilding_filter: the public API. rebuilding_make.cpp describes rebuilds.
#include "filters/rebuilding_impl.hpp"

#include <bloomery/detail/checks.hpp>

#include "platform/posix.hpp"

namespace bloomery {

rebuilding_filter::rebuilding_filter(std::unique_ptr<impl> b) noexcept : impl_(std::move(b)) {}
rebuilding_filter::rebuilding_filter(rebuilding_filter&&) noexcept = default;

rebuilding_filter& rebuilding_filter::operator=(rebuilding_filter&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

rebuilding_filter::~rebuilding_filter() {
  try {
    close();
  } catch (...) {
    // Keys missing from the filter are in the log: the next writer inserts them.
  }
}

std::string rebuilding_filter::log_path(const std::string& path) { return posix::behind_links(path) + ".log"; }

std::uint64_t rebuilding_filter::grown_capacity(std::uint64_t keys) noexcept {
  constexpr std::uint64_t few = 2048;
  if (keys < few) return std::max(2 * keys, rebuilding::least_capacity);
  return keys + keys / 25 * 6 + keys % 25 * 6 / 25;
}

void rebuilding_filter::impl::want_writable() const {
  if (!log) detail::refuse_writing(path);
}

void rebuilding_filter::impl::log_keys(key_log& to, std::span<const key_hash> hashes) {
  record.resize(hashes.size());
  std::transform(hashes.begin(), hashes.end(), record.begin(), [](const key_hash& hash) { return hash.hash64; });
  to.append(record);
}

std::uint64_t rebuilding_filter::impl::insert(key_span keys, std::span<std::uint8_t> is_new) {
  std::uint64_t all_new = 0;
  in_hashes(keys, [&](std::span<const key_hash> hashes, std::size_t first) {
    for (std::size_t done = 0; done < hashes.size();) {
      const std::uint64_t room = std::min(make_room(), key_log::most_keys_of_record);
      const auto some =
          hashes.subspan(done, static_cast<std::size_t>(std::min<std::uint64_t>(room, hashes.size() - done)));
      log_keys(*log, some);
      all_new += filter.insert(some, is_new.empty() ? is_new : is_new.subspan(first + done, some.size()));
      done += some.size();
    }
  });
  return all_new;
}

bool rebuilding_filter::insert(std::string_view key) { return insert(std::span<const std::string_view>(&key, 1)) == 1; }
bool rebuilding_filter::insert(std::uint64_t key) { return insert(std::span<const std::uint64_t>(&key, 1)) == 1; }

std::uint64_t rebuilding_filter::insert(key_span keys, std::span<std::uint8_t> is_new) {
  detail::check_answers("rebuilding_filter::insert", keys.size(), is_new.size());
  impl_->want_writable();
  return impl_->insert(keys, is_new);
}

void rebuilding_filter::record(key_span keys) {
  impl_->want_writable();
  impl_->recorded = true;
  impl_->in_hashes(keys, [&](std::span<const key_hash> hashes, std::size_t) { impl_->log_keys(*impl_->log, hashes); });
}

bool rebuilding_filter::may_contain(std::string_view key) const { return impl_->filter.may_contain(key); }
bool rebuilding_filter::may_contain(std::uint64_t key) const { return impl_->filter.may_contain(key); }

void rebuilding_filter::may_contain(key_span keys, std::span<std::uint64_t> bitmap) const {
  impl_->filter.may_contain(keys, bitmap);
}

void rebuilding_filter::set_growing_target(callback<double(std::uint64_t)> target) {
  impl_->target = std::move(target);
}

void rebuilding_filter::settle() {
  impl_->finish();
  impl_->throw_failure();
}

void rebuilding_filter::flush() {
  if (impl_->log) impl_->log->sync();
}

void rebuilding_filter::close() {
  if (!impl_) return;
  if (impl_->recorded) rebuild();
  const std::unique_ptr<impl> b = std::move(impl_);
  if (!b->log) return;
  b->finish();
  b->log->sync();
  if (mapped_storage* bytes = b->filter.mapped()) {
    bytes->counts().logged = b->log->bytes();
    bytes->counts().log_generation = b->log->generation();
  }
  b->filter.close();
  b->throw_failure();
}

void rebuilding_filter::abandon() noexcept {
  if (!impl_) return;
  impl_->rebuilding.reset();
  if (mapped_storage* bytes = impl_->filter.mapped(); bytes != nullptr && bytes->writable()) bytes->abandon();
  impl_.reset();
}

const any_filter& rebuilding_filter::view() const noexcept { return impl_->filter; }
const key_log& rebuilding_filter::log() const noexcept { return *impl_->log; }
const params& rebuilding_filter::parameters() const noexcept { return impl_->filter.parameters(); }
std::uint64_t rebuilding_filter::insert_count() const noexcept { return impl_->filter.insert_count(); }
std::uint64_t rebuilding_filter::capacity() const noexcept { return impl_->filter.capacity(); }
double rebuilding_filter::expected_fpr() const { return impl_->filter.expected_fpr(); }
std::uint64_t rebuilding_filter::rebuilds() const noexcept { return impl_->rebuilds; }
std::uint64_t rebuilding_filter::lost_keys() const noexcept { return impl_->lost_keys; }

}  // namespace bloomery
