#include "cli/commands/seen_lines.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/redis.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace bloomery::cli {
namespace {

// Limits of the pending lines of a file: in number because of memory, in bytes so that a killed run repeats little. The
// exact set has space for another batch: a chunk of input has fewer lines than that.
constexpr std::size_t most_pending = std::size_t{256} << 10;
constexpr std::uint64_t most_pending_bytes = std::uint64_t{64} << 20;

}  // namespace

seen_lines::seen_lines(std::unique_ptr<filter_handle> filter, bool in_file, output& out, window_clock clock)
    : filter_(std::move(filter)), out_(out), clock_(clock ? std::move(clock) : milliseconds_since_1970) {
  const capabilities can = filter_->capabilities();
  if (can.has_window && !can.is_remote) {
    const params& p = filter_->parameters();
    keys_per_step_ = std::clamp<std::size_t>(static_cast<std::size_t>(p.capacity / 32), 512, 8192);
    if (p.window().by_time()) slice_ms_ = filter_->summary().window->slice;
    if (in_file) {
      file_ = std::move(filter_);
      filter_ = make_handle(file_->local()->clone());
    }
    come_to(slice_ms_ == 0 ? 0 : clock_());
  } else if (in_file) {
    unwritten_.emplace(2 * most_pending);
  }
  if (!can.is_remote) fpr_ = fpr_now();
}

void seen_lines::take(key_batch& batch) {
  batch.is_new.resize(batch.keys.size());
  if (unwritten_) return look_up(batch);
  if (slice_ms_ != 0 && !batch.times.empty()) {
    if (!record_clock_) record_clock_.emplace(*filter_);
    record_clock_->each_run(batch.times, [&](std::size_t first, std::size_t count, std::uint64_t now) {
      come_to(now);
      insert(batch, first, count);
    });
  } else {
    if (slice_ms_ != 0) come_to(clock_());
    insert(batch, 0, batch.keys.size());
  }
  if (file_) pending_bytes_ += batch.text.size;
}

void seen_lines::written() {
  if (pending_.size() >= most_pending || pending_bytes_ >= most_pending_bytes) write_down();
}

void seen_lines::finish() {
  if (waits_for_output())
    write_down();
  else
    out_.flush();
}

void seen_lines::close() { (file_ ? file_ : filter_)->commit(); }

// Keys belong to the generation of their time, so the clock of the file is set to that time.
void seen_lines::come_to(std::uint64_t now) {
  if (slice_ms_ == 0) return;
  if (file_ && (slices_.empty() || now / slice_ms_ != moment_ / slice_ms_)) slices_.push_back({pending_.size(), now});
  moment_ = now;
  filter_->tick(now);
}

void seen_lines::insert(key_batch& batch, std::size_t from, std::size_t keys) {
  if (file_) {
    const std::span<const key_hash> hashes = batch.prepared.hashes().subspan(from, keys);
    pending_.insert(pending_.end(), hashes.begin(), hashes.end());
  }
  const std::span<std::uint8_t> is_new = batch.is_new;
  for (std::size_t first = from; first < from + keys;) {
    const std::size_t rest = from + keys - first;
    const std::size_t count = keys_per_step_ == 0 ? rest : std::min(keys_per_step_, rest);
    const std::span<std::uint8_t> answers = is_new.subspan(first, count);
    const change_result done = filter_->insert(batch.prepared.part(first, count), answers);
    uncertain_lines_ += static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), maybe_new));
    first += count;
    if (keys_per_step_ == 0) continue;
    const double before = std::exchange(fpr_, fpr_now());
    add_losses(done.changed, (before + fpr_) / 2);
  }
}

void seen_lines::look_up(key_batch& batch) {
  batch.maybe.resize((batch.keys.size() + 63) / 64);
  filter_->contains(batch.prepared, batch.maybe);
  const std::span<const key_hash> hashes = batch.prepared.hashes();
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    batch.is_new[i] = !batch.may_contain(i) && unwritten_->insert(hashes[i]) ? 1 : 0;
    if (batch.is_new[i] == 0) continue;
    pending_.push_back(hashes[i]);
    pending_bytes_ += batch.lines[i].size() + 1;
  }
}

void seen_lines::write_down() {
  out_.sync();
  const std::span<const key_hash> pending = pending_;
  if (slices_.empty()) (file_ ? file_ : filter_)->insert(pending);
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const std::size_t end = i + 1 < slices_.size() ? slices_[i + 1].first : pending.size();
    file_->tick(slices_[i].moment);
    file_->insert(pending.subspan(slices_[i].first, end - slices_[i].first));
  }
  if (!slices_.empty()) slices_ = {{0, moment_}};
  if (unwritten_) {
    add_losses(pending_.size(), fpr_);
    fpr_ = fpr_now();
    unwritten_->clear();
  }
  pending_.clear();
  pending_bytes_ = 0;
}

// At an FPR of r, a share r of the new lines was dropped: r / (1 - r) for each line that was kept.
void seen_lines::add_losses(std::uint64_t kept, double fpr) {
  const double share = std::min(fpr, 0.999);
  expected_losses_ += static_cast<double>(kept) * share / (1 - share);
}

}  // namespace bloomery::cli
