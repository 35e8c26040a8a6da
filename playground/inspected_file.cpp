// Inspection of a filter in a file, which other processes may write, replace or remove meanwhile.
#include "playground/inspected.hpp"

#include "playground/fill_pass.hpp"
#include "playground/findings.hpp"
#include "playground/shown_filter.hpp"
#include "playground/watched.hpp"

#include "app/signals.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/secret.hpp>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t queries_of_file = 100'000;

// Enables read-ahead for a full scan; the library has advised the system to expect random access.
void will_read_all(std::span<const std::uint8_t> bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = at / page * page;
  ::madvise(reinterpret_cast<void*>(from), bytes.size() + (at - from), MADV_SEQUENTIAL);
}

class inspected_file final : public watched {
 public:
  inspected_file(const std::string& path, const std::optional<secret_key>& secret)
      : watched(path, "file"), secret_(secret) {
    start();
  }
  ~inspected_file() override { end(); }

  json ask(const key_list& keys) override {
    const std::unique_ptr<filter_handle> filter = open();
    const app::readable_while_cut readable(filter->local()->bytes());
    json answers = answers_of(keys, *filter);
    if (readable.was_cut()) throw_cut();
    return answers;
  }

 private:
  std::unique_ptr<filter_handle> open() const { return open_filter(name(), {.secret = secret_}); }

  [[noreturn]] void throw_cut() const {
    throw error(errc::damaged,
                {"the file was cut short while it was read", name(), "a file that is replaced as a whole",
                 "fewer bytes than its header says", looked_for_again});
  }

  void read_if_changed() override {
    struct stat now {};
    if (::stat(name().c_str(), &now) != 0) {
      throw error(errc::not_found,
                  {"cannot read this file any more", name(), "", std::strerror(errno), looked_for_again});
    }
    const std::unique_ptr<filter_handle> filter = open_filter(name(), {.facts_only = true});
    const any_filter& bits = *filter->local();
    const file_info& file = *bits.opened_from();
    const app::readable_while_cut readable(bits.bytes());
    // Generations of a window by time expire even without a writer.
    const std::uint64_t epoch = file.parameters.window_milliseconds == 0 ? 0 : moment_of(bits);
    // A writer with a mapping changes the bytes long before the file's modification time, so the file is read again
    // until the writer has closed it.
    const mark_of_file mark{now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec, file.counts.inserted,
                            file.clean, epoch};
    if (mark_ == mark && file.clean) return;
    will_read_all(bits.bytes());
    // Both passes read all bits. They run at the same time, so that the disk is read once.
    auto info = std::async(std::launch::async, [&] { return filter->info(info_depth::bits); });
    const cell_view cells = filter->cells();
    std::optional<fill_seen> fill;
    if (cells.shows_fill() && cells.size() != 0) fill = fill_of(cells, [&](double done) { progress(done); });
    filter_facts facts = info.get();
    if (facts.window) facts.fill = fill_of_window(*filter);
    if (readable.was_cut()) throw_cut();
    const bool can_look_up = filter->capabilities().can_look_up || secret_;
    json seen = finding_of(facts, can_look_up ? std::optional(measured()) : std::nullopt);
    if (fill) {
      if (!file.clean) fill->by_blocks.tolerated = tolerated_while_written;  // a writer may be adding keys
      if (facts.fill->estimated_keys) expect(fill->by_blocks, facts.parameters, facts.fill->estimated_keys->value);
      add_fill(seen, facts.parameters, *fill);
    }
    // Mapped writes and expiry do not update the modification time.
    const bool dated = !mark_ || mark_->seconds != mark.seconds || mark_->nanoseconds != mark.nanoseconds;
    publish(std::move(seen), dated ? std::optional(milliseconds_of(now.st_mtim)) : std::nullopt);
    mark_ = mark;
  }

  measured_rate measured() {
    const std::unique_ptr<filter_handle> filter = open();
    const app::readable_while_cut readable(filter->local()->bytes());
    const bool hashes_quickly = filter->parameters().scheme.empty();
    const std::uint64_t queries = hashes_quickly ? queries_of_file : queries_of_file / 10;
    const measured_rate m = measure_rate(*filter, queries, 0, 0, [&] { return !ending() && !readable.was_cut(); });
    if (readable.was_cut()) throw_cut();
    return m;
  }

  // The epoch of lookups in a window by time; constant once all keys have expired.
  static std::uint64_t moment_of(const any_filter& filter) {
    return std::min(filter.epoch(), window_state::of(filter.bytes().data()).newest + window_generations);
  }

  static std::int64_t milliseconds_of(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  }

  struct mark_of_file {
    ino_t file;
    off_t bytes;
    time_t seconds;
    long nanoseconds;
    std::uint64_t inserted;
    bool clean;
    std::uint64_t epoch;

    friend bool operator==(const mark_of_file&, const mark_of_file&) = default;
  };

  std::optional<secret_key> secret_;
  std::optional<mark_of_file> mark_;
};

}  // namespace

std::unique_ptr<inspection> inspect_file(const std::string& path, const std::optional<secret_key>& secret) {
  return std::make_unique<inspected_file>(path, secret);
}

}  // namespace bloomery::playground
