// A filter's file, which others may be writing, replacing or removing.
#include "playground/inspected.hpp"

#include "playground/fill_pass.hpp"
#include "playground/filter_facts.hpp"
#include "playground/findings.hpp"
#include "playground/shown_filter.hpp"
#include "playground/verdict.hpp"
#include "playground/watched.hpp"

#include "app/signals.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/generations.hpp>
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

// The library tells the system that keys land anywhere in a file's bytes. Who reads all of them wants those that
// follow, too.
void will_read_all(std::span<const std::uint8_t> bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = at / page * page;
  ::madvise(reinterpret_cast<void*>(from), bytes.size() + (at - from), MADV_SEQUENTIAL);
}

class inspected_file final : public watched {
 public:
  inspected_file(const std::string& path, const std::string& keyfile)
      : watched(path, "file"), secret_(cli::secret_of(keyfile)) {
    start();
  }
  ~inspected_file() override { end(); }

  json ask(const key_list& keys) override {
    const shown_filter filter(open());
    const cli::readable_while_cut readable(filter.bytes());
    json answers = answers_of(
        keys, [&](const std::string& key) { return filter.may_contain(key); }, &filter);
    if (readable.was_cut()) throw_cut();
    return answers;
  }

 private:
  any_filter open() const { return any_filter::open(name(), {.secret = secret_}); }

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
    // Opened for its facts alone, it takes no secret; a window as of its newest generation.
    std::unique_ptr<filter_handle> opened = open_filter(name(), {.clock = [] { return 0; }, .facts_only = true});
    const file_info file = *opened->local()->opened_from();
    const params p = file.parameters;
    const shown_filter shown(std::move(opened));
    const cli::readable_while_cut readable(shown.bytes());
    // Of a window by time, generations run out though nobody writes.
    const std::uint64_t epoch = p.window_milliseconds == 0 ? 0 : moment_of(shown);
    // A writer that has the file mapped changes its bytes long before its times: while it is at work, all is read
    // again.
    const mark_of_file mark{now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec, file.counts.inserted,
                            file.clean, epoch};
    if (mark_ == mark && file.clean) return;
    const bool asks = p.hash != "siphash" || secret_;
    const bool sealed = family_of(p) == family::sealed;
    will_read_all(shown.bytes());
    // Both go over all the bits, and at the same time, so that they come from the disk once.
    auto audited = std::async(std::launch::async, [&] { return shown.info(info_depth::bits); });
    std::optional<fill_seen> fill;
    if (!sealed && shown.cells() != 0) fill = fill_of(shown, [&](double done) { progress(done); });
    const bloomery::filter_facts truth = audited.get();
    const consistency_facts& consistency = *truth.consistency;
    json seen = {{"file_bytes", file.file_bytes},
                 {"clean", file.clean},
                 {"note", file.metadata},
                 {"expires_at", nullptr},
                 {"measured", nullptr},
                 {"growth", nullptr},
                 {"shards", nullptr},
                 {"nodes", nullptr},
                 {"heat", nullptr},
                 {"histogram", nullptr}};
    filter_facts facts = shown.forgets() ? shown.facts(std::nullopt) : facts_of(truth, p, shown.cells());
    if (readable.was_cut()) throw_cut();
    if (asks) seen["measured"] = json_of(measured());
    facts.alarm = consistency.alarm ? alarm_of(consistency.count) : "";
    facts.fuller = consistency.alarm && consistency.count.deviation() > 0;
    add_facts(seen, shown, facts, shown.forgets() ? facts.window->keys_held() : truth.distinct_keys);
    if (sealed) seen["verdict"] = verdict("good", "sealed", "it is sealed: its error stays as it is");
    if (fill) {
      if (!file.clean) fill->by_blocks.unseen = of_live_filters;  // somebody adds to it
      const double held = static_cast<double>(truth.distinct_keys);
      expect(*fill, p, truth.fill->estimated_keys.value_or(estimate{held, 0}));
      add_fill(seen, p, *fill);
    }
    // A writer that has the file mapped, and time itself, change it without its time.
    const bool dated = !mark_ || mark_->seconds != mark.seconds || mark_->nanoseconds != mark.nanoseconds;
    publish(std::move(seen), dated ? std::optional(milliseconds_of(now.st_mtim)) : std::nullopt);
    mark_ = mark;
  }

  // By random keys, each of which looks somewhere else.
  measured_rate measured() {
    const any_filter filter = open();
    const cli::readable_while_cut readable(filter.bytes());
    const std::uint64_t queries = filter.uses_hashes() ? queries_of_file : queries_of_file / 10;
    const measured_rate m = measure_rate(filter, queries, 0, 0, [&] { return !ending() && !readable.was_cut(); });
    if (readable.was_cut()) throw_cut();
    return m;
  }

  // The epoch at which lookups see it, until all has run out.
  static std::uint64_t moment_of(const shown_filter& filter) {
    return std::min(filter.epoch(), window_state::of(filter.bytes().data()).newest + window_generations);
  }

  static std::int64_t milliseconds_of(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  }

  static filter_facts facts_of(const bloomery::filter_facts& truth, const params& p, std::uint64_t cells) {
    filter_facts f;
    f.counted = truth.consistency->keys;
    f.certified = truth.fill->current_fpr;
    f.predicted = *truth.expected_fpr;
    f.cells = cells;
    f.ones = truth.static_keys ? cells : truth.fill->cells_set;
    if (truth.static_keys) return f;
    f.estimated = *truth.fill->estimated_keys;
    f.keys_left = *truth.keys_left;
    f.layers.push_back(
        {.cells = cells, .capacity = p.capacity, .keys = truth.distinct_keys, .ones = f.ones, .share = p.target_fpr});
    return f;
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

std::unique_ptr<inspection> inspect_file(const std::string& path, const std::string& keyfile) {
  return std::make_unique<inspected_file>(path, keyfile);
}

}  // namespace bloomery::playground
