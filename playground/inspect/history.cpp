#include "playground/inspect/history.hpp"

#include <algorithm>
#include <vector>

namespace bloomery::playground {
namespace {

constexpr std::int64_t least_for_pace = 10'000;

}  // namespace

void history::add(std::int64_t at, std::uint64_t keys, double fpr) { add(sample{at, keys, fpr}); }

void history::add_gap(std::int64_t at) {
  if (!samples_.empty() && samples_.back().keys) add(sample{at, std::nullopt, 0});
}

void history::add(const sample& next) {
  if (!samples_.empty() && next.at < samples_.back().at) samples_.clear();
  const auto replaces = [&](const sample& last) {
    return last.at / step == next.at / step && last.keys.has_value() == next.keys.has_value();
  };
  if (!samples_.empty() && replaces(samples_.back())) samples_.pop_back();
  samples_.push_back(next);
  while (samples_.front().at < next.at - reach || samples_.size() > most_samples) samples_.pop_front();
}

std::optional<double> history::keys_per_second() const {
  std::vector<sample> recent;  // the newest first
  for (auto s = samples_.rbegin(); s != samples_.rend(); ++s) {
    if (!s->keys || s->at < samples_.back().at - reach_of_pace) break;
    if (!recent.empty() && *recent.back().keys < *s->keys / 2) break;
    recent.push_back(*s);
  }
  if (recent.empty() || recent.front().at - recent.back().at < least_for_pace) return {};
  std::vector<double> slopes;
  for (auto later = recent.begin(); later != recent.end(); ++later) {
    for (auto earlier = later + 1; earlier != recent.end(); ++earlier) {
      const double keys = static_cast<double>(*later->keys) - static_cast<double>(*earlier->keys);
      slopes.push_back(1000 * keys / static_cast<double>(later->at - earlier->at));
    }
  }
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return *middle > 0 ? std::optional(*middle) : std::nullopt;
}

json history::samples_after(std::int64_t at) const {
  json list = json::array();
  for (const sample& s : samples_) {
    if (s.at <= at) continue;
    list.push_back({{"at", s.at},
                    {"keys", s.keys ? json(*s.keys) : json(nullptr)},
                    {"rate", s.keys ? json(s.fpr) : json(nullptr)}});
  }
  return list;
}

}  // namespace bloomery::playground
