// Inspection of a filter in a file, which other processes may write, replace or remove meanwhile.
#include "playground/inspect/inspected_file.hpp"

#include "playground/inspect/fill_pass.hpp"
#include "playground/inspect/findings.hpp"
#include "playground/inspect/verdict.hpp"
#include "playground/session/shown_filter.hpp"

#include "app/parallel.hpp"
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
#include <span>
#include <string_view>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t queries_of_file = 100'000;

std::unique_ptr<filter_handle> of_one_layer(std::unique_ptr<filter_handle> filter, const std::string& path) {
  if (filter->local() != nullptr) return filter;
  throw error(
      errc::incompatible,
      {filter->parameters().has_window() ? "the playground cannot inspect files with the slices of a shared window"
                                         : "the playground cannot inspect files with several layers",
       path, "a filter of one layer", "several layers", "use 'bloomery info' and 'bloomery check'"});
}

// Opens a file for its facts, which need no secret.
std::unique_ptr<filter_handle> open_for_facts(const std::string& path, file_check check) {
  try {
    return of_one_layer(open_filter(path, {.check = check, .facts_only = true}), path);
  } catch (const error& e) {
    if (e.code() != errc::not_a_filter) throw;
    constexpr std::string_view ending = ".log";
    const std::string filter = path.substr(0, path.size() - std::min(path.size(), ending.size()));
    if (!path.ends_with(ending) || ::access(filter.c_str(), R_OK) != 0) throw;
    error_text text = e.text();
    text.hint = "name " + filter + "; this file is its log";
    throw error(e.code(), std::move(text));
  }
}

// Enables read-ahead for a full scan; the library has advised the system to expect random access.
void will_read_all(std::span<const std::uint8_t> bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = at / page * page;
  ::madvise(reinterpret_cast<void*>(from), bytes.size() + (at - from), MADV_SEQUENTIAL);
}

class inspected_file final : public watched {
 public:
  inspected_file(const std::string& path, const std::optional<secret_key>& secret, unsigned threads)
      : watched(path, "file"), secret_(secret), threads_(threads) {}

  json ask(const key_list& keys) override {
    const std::unique_ptr<filter_handle> filter = open();
    const app::readable_while_cut readable(filter->local()->bytes());
    json answers = answers_of(keys, *filter);
    if (readable.was_cut()) throw_cut();
    return answers;
  }

 private:
  // Findings are about the bits as they are, so a damaged file is shown, too, with that verdict. Answers about keys are
  // not given from it.
  std::unique_ptr<filter_handle> open(file_check check = file_check::automatic) const {
    return of_one_layer(open_filter(name(), {.check = check, .secret = secret_}), name());
  }

  [[noreturn]] void throw_cut() const {
    throw error(errc::damaged, {"the file was truncated while it was read", name(), "a complete file",
                                "fewer bytes than its header declares", looked_for_again});
  }

  void read_if_changed() override {
    // Before the file is opened: otherwise a new file that takes its name in between would seem to have been read.
    struct stat now {};
    const int problem = ::stat(name().c_str(), &now) == 0 ? 0 : errno;
    const std::unique_ptr<filter_handle> filter = open_for_facts(name(), file_check::header);
    if (problem != 0) {
      throw error(errc::not_found,
                  {"the file can no longer be read", name(), "", std::strerror(problem), looked_for_again});
    }
    const any_filter& bits = *filter->local();
    const file_info& file = *bits.opened_from();
    const app::readable_while_cut readable(bits.bytes());
    // Generations of a window by time expire even without a writer.
    const std::uint64_t epoch = file.parameters.window().by_time() ? moment_of(bits) : 0;
    // A writer with a mapping changes the bytes long before the file's modification time, so the file is read again
    // until the writer has closed it.
    const mark_of_file mark{now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec, file.counts.inserted,
                            file.clean, epoch};
    if (mark_ == mark && file.clean) return;
    will_read_all(bits.bytes());
    const cell_view cells = filter->cells();
    // Both passes read all bits, and at the same time, so that the bits come from the disk once. A handle is for one
    // thread at a time: until info() returns, the other pass reads `cells` only, which refers to the bytes.
    std::optional<fill_seen> fill;
    filter_facts facts;
    app::parallel_for(threads_, 2, [&](unsigned, std::uint64_t pass) {
      if (pass == 0) {
        facts = filter->info(info_depth::bits);
      } else if (cells.shows_fill() && cells.size() != 0) {
        fill = fill_of(cells, threads_, [&](double done) { progress(done); });
      }
    });
    if (facts.window) facts.fill = fill_of_window(*filter);
    if (readable.was_cut()) throw_cut();
    const bool can_look_up = filter->capabilities().can_look_up || secret_;
    json seen = finding_of(facts, can_look_up ? std::optional(measured()) : std::nullopt);
    if (fill) {
      if (!file.clean) fill->by_blocks.tolerated = tolerated_while_written;  // a writer may be adding keys
      if (facts.fill->estimated_keys) expect(fill->by_blocks, facts.parameters, facts.fill->estimated_keys->value);
      add_fill(seen, facts.parameters, *fill);
    }
    // A writer changes pages before their checksums.
    if (file.clean && is_damaged())
      seen["verdict"] = verdict("bad", "damaged",
                                "the file is damaged: pages do not match their checksums, so keys are not looked up");
    // Mapped writes and expiry do not update the modification time.
    const bool dated = !mark_ || mark_->seconds != mark.seconds || mark_->nanoseconds != mark.nanoseconds;
    publish(std::move(seen), dated ? std::optional(milliseconds_of(now.st_mtim)) : std::nullopt);
    mark_ = mark;
  }

  // Whether ask() may refuse the file for its pages.
  bool is_damaged() {
    std::unique_ptr<filter_handle> filter;
    std::optional<app::readable_while_cut> readable;
    bool matches = true;
    try {
      filter = open_for_facts(name(), file_check::on_use);
      readable.emplace(filter->local()->bytes());
      filter->local()->verify([&](double) { return !ending() && !readable->was_cut(); });
    } catch (const error& e) {
      if (e.code() != errc::damaged) throw;
      matches = false;
    }
    if (readable && readable->was_cut()) throw_cut();
    return !matches;
  }

  measured_rate measured() {
    const std::unique_ptr<filter_handle> filter = open(file_check::header);
    const app::readable_while_cut readable(filter->local()->bytes());
    const bool hashes_quickly = filter->parameters().scheme.empty();
    const std::uint64_t queries = hashes_quickly ? queries_of_file : queries_of_file / 10;
    const measured_rate m =
        measure_rate(*filter, queries, 0, threads_, [&] { return !ending() && !readable.was_cut(); });
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

  const std::optional<secret_key> secret_;
  const unsigned threads_;
  std::optional<mark_of_file> mark_;
};

}  // namespace

std::unique_ptr<watched> inspect_file(const std::string& path, const std::optional<secret_key>& secret,
                                      unsigned threads) {
  check_file(path);
  return inspect_file_once_readable(path, secret, threads);
}

std::unique_ptr<watched> inspect_file_once_readable(const std::string& path, const std::optional<secret_key>& secret,
                                                    unsigned threads) {
  return std::make_unique<inspected_file>(path, secret, threads);
}

void check_file(const std::string& path) {
  try {
    open_for_facts(path, file_check::header);
  } catch (const error& e) {
    if (e.code() != errc::not_a_filter || !e.text().hint.empty()) throw;
    error_text text = e.text();
    text.hint = "name a filter's file or its address on Redis";
    throw error(e.code(), std::move(text));
  }
}

}  // namespace bloomery::playground
