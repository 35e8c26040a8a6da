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
#include <bloomery/sliced_filter.hpp>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace bloomery::playground {
namespace {

std::unique_ptr<filter_handle> of_one_layer(std::unique_ptr<filter_handle> filter, const std::string& path) {
  if (filter->local() != nullptr) return filter;
  throw error(
      errc::incompatible,
      {filter->parameters().has_window() ? "the playground cannot inspect files with the slices of a shared window"
                                         : "the playground cannot inspect files with several layers",
       path, "a filter of one layer", "several layers", "use 'bloomery info' and 'bloomery check'"});
}

// Calls open(path). A hint in its error tells a filter from its log.
template <class Open>
auto opened(const std::string& path, Open open) {
  try {
    return open(path);
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

// Opens a file for its facts, which need no secret.
std::unique_ptr<filter_handle> open_for_facts(const std::string& path, file_check check) {
  return opened(path, [&](const std::string& name) {
    return of_one_layer(open_filter(name, {.check = check, .facts_only = true}), name);
  });
}

// Whether the filter can be read in slices. If not, it must fit into memory.
bool comes_in_slices(const std::string& path) {
  constexpr std::uintmax_t most_whole = std::uintmax_t{256} << 20;
  if (opened(path, sliced_filter::can_read)) return true;
  const std::uintmax_t bytes = std::filesystem::file_size(path);
  if (bytes <= most_whole) return false;
  throw error(errc::too_large, {"sliding-window and static filters of this size are not inspected in the browser", path,
                                "at most 256 MiB", std::to_string(bytes) + " bytes", "run 'bloomery playground FILE'"});
}

std::uint64_t queries_for(const params& p) {
  constexpr std::uint64_t queries_of_file = 100'000;
  const bool hashes_quickly = p.scheme.empty();
  return hashes_quickly ? queries_of_file : queries_of_file / 10;
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
  /// @param slice_bytes  0: the file is mapped
  inspected_file(const std::string& path, const std::optional<secret_key>& secret, unsigned threads,
                 std::uint64_t slice_bytes)
      : watched(path, "file"), secret_(secret), threads_(threads), slice_bytes_(slice_bytes) {}

  // Findings are about the bits as they are, so a damaged file is shown, too, with that verdict. Answers about keys are
  // not given from it.
  json ask(const key_list& keys) override {
    if (slice_bytes_ != 0 && comes_in_slices(name())) {
      sliced_filter filter(name(), {.secret = secret_}, slice_bytes_);
      if (damage_) throw error(*damage_);
      return answers_of(keys, filter);
    }
    const std::unique_ptr<filter_handle> filter = open();
    const app::readable_while_cut readable(filter->local()->bytes());
    filter->local()->verify();
    json answers = answers_of(keys, *filter);
    if (readable.was_cut()) throw_cut();
    return answers;
  }

 private:
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

  struct findings {
    filter_facts facts;
    std::optional<measured_rate> measured;
    std::optional<fill_seen> fill;
    bool is_damaged;
  };

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
    const bool in_slices = slice_bytes_ != 0 && comes_in_slices(name());
    in_slices ? read_slices(now, problem) : read_whole(now, problem);
  }

  // Whether the file must be read, and its new mark. A writer with a mapping changes the bytes long before the file's
  // modification time, so the file is read again until the writer has closed it.
  std::optional<mark_of_file> news(const struct stat& now, int problem, const file_info& file, std::uint64_t epoch) {
    if (problem != 0) {
      throw error(errc::not_found,
                  {"the file can no longer be read", name(), "", std::strerror(problem), looked_for_again});
    }
    const mark_of_file mark{now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec, file.counts.inserted,
                            file.clean, epoch};
    if (mark_ == mark && file.clean) return std::nullopt;
    return mark;
  }

  void read_whole(const struct stat& now, int problem) {
    const std::unique_ptr<filter_handle> filter = open_for_facts(name(), file_check::header);
    const any_filter& bits = *filter->local();
    const file_info& file = *bits.opened_from();
    const app::readable_while_cut readable(bits.bytes());
    // Generations of a window by time expire even without a writer.
    const std::uint64_t epoch = file.parameters.window().by_time() ? moment_of(bits) : 0;
    const std::optional<mark_of_file> mark = news(now, problem, file, epoch);
    if (!mark) return;
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
    std::optional<measured_rate> rate;
    if (can_look_up) rate = measured();
    show({std::move(facts), rate, std::move(fill), file.clean && is_damaged()}, *mark);
  }

  // One pass over the file, which is never in memory as a whole.
  void read_slices(const struct stat& now, int problem) {
    sliced_filter filter(name(), {.facts_only = true}, slice_bytes_);
    const params& p = filter.parameters();
    const std::optional<mark_of_file> mark = news(now, problem, filter.opened_from(), 0);
    if (!mark) return;
    fill_pass fill(cell_view(p, {}));
    const bool can_look_up = filter.capabilities().can_look_up;
    const auto count = [&](std::uint64_t first, std::span<const std::uint8_t> bytes) {
      params of_slice = p;
      of_slice.geometry.bits = std::min<std::uint64_t>(8 * bytes.size(), p.geometry.bits - 8 * first);
      fill.add(cell_view(of_slice, bytes), 1, [&](double done) { progress(done); });
    };
    sliced_reading seen = filter.read(can_look_up ? queries_for(p) : 0, count);
    show({std::move(seen.facts), can_look_up ? std::optional(seen.measured) : std::nullopt, std::move(fill).result(),
          seen.damage.has_value()},
         *mark);
    damage_ = std::move(seen.damage);
  }

  void show(findings found, const mark_of_file& mark) {
    const filter_facts& facts = found.facts;
    json seen = finding_of(facts, found.measured);
    if (found.fill) {
      histogram& by_blocks = found.fill->by_blocks;
      if (!facts.file->clean) by_blocks.tolerated = tolerated_while_written;  // a writer may be adding keys
      if (facts.fill->estimated_keys) expect(by_blocks, facts.parameters, facts.fill->estimated_keys->value);
      add_fill(seen, facts.parameters, *found.fill);
    }
    // A writer changes pages before their checksums.
    if (found.is_damaged)
      seen["verdict"] = verdict("bad", "damaged",
                                "the file is damaged: pages do not match their checksums, so keys are not looked up");
    // Mapped writes and expiry do not update the modification time.
    const bool dated = !mark_ || mark_->seconds != mark.seconds || mark_->nanoseconds != mark.nanoseconds;
    const std::int64_t milliseconds = std::int64_t{mark.seconds} * 1000 + mark.nanoseconds / 1'000'000;
    publish(std::move(seen), dated ? std::optional(milliseconds) : std::nullopt);
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
    const measured_rate m = measure_rate(*filter, queries_for(filter->parameters()), 0, threads_,
                                         [&] { return !ending() && !readable.was_cut(); });
    if (readable.was_cut()) throw_cut();
    return m;
  }

  // The epoch of lookups in a window by time; constant once all keys have expired.
  static std::uint64_t moment_of(const any_filter& filter) {
    return std::min(filter.epoch(), window_state::of(filter.bytes().data()).newest + window_generations);
  }

  const std::optional<secret_key> secret_;
  const unsigned threads_;
  const std::uint64_t slice_bytes_;
  std::optional<mark_of_file> mark_;
  std::optional<error> damage_;  // of slices, as of the last reading
};

// Calls check(path). The errors of its first reading tell what a filter is.
template <class Check>
void with_way_out(const std::string& path, Check check) {
  try {
    check(path);
  } catch (const error& e) {
    if (e.code() != errc::not_a_filter || !e.text().hint.empty()) throw;
    error_text text = e.text();
    text.hint = "name a filter's file or its address on Redis";
    throw error(e.code(), std::move(text));
  }
}

}  // namespace

std::unique_ptr<watched> inspect_mapped(const std::string& path, const std::optional<secret_key>& secret,
                                        unsigned threads) {
  return std::make_unique<inspected_file>(path, secret, threads, 0);
}

std::unique_ptr<watched> inspect_in_slices(const std::string& path, std::uint64_t slice_bytes) {
  with_way_out(path, [](const std::string& name) {
    if (!comes_in_slices(name)) open_for_facts(name, file_check::header);
  });
  return std::make_unique<inspected_file>(path, std::nullopt, 1, slice_bytes);
}

void check_file(const std::string& path) {
  with_way_out(path, [](const std::string& name) { open_for_facts(name, file_check::header); });
}

}  // namespace bloomery::playground
