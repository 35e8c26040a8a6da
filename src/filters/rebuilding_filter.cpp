// How a rebuild goes, and why a kill at any moment loses nothing:
//
//   make      FILTER.rebuild is filled from the log up to a position, synced, marked dirty with that position. If the log
//             is to be written anew, FILTER.log.rebuild is made first, with the next generation.
//   publish   the keys that came since are added to both; FILTER.rebuild becomes FILTER, FILTER.log.rebuild FILTER.log.
//
// Whoever opens the filter for writing inserts what the log has behind the position; all of it, if the generation in
// the filter is not the log's. So each of the four pairs that a kill between the two renames can leave is right.
#include <bloomery/rebuilding_filter.hpp>

#include <bloomery/detail/checks.hpp>
#include <bloomery/error.hpp>
#include <bloomery/sizing.hpp>

#include "platform/posix.hpp"
#include "registry/tables.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

constexpr double default_rate = 0.01;
constexpr std::uint64_t least_capacity = 1000;
constexpr std::uint64_t small = 65'536;                     // keys: quicker rebuilt at once than by a thread
constexpr std::uint64_t tiny_log = std::uint64_t{1} << 20;  // bytes: not worth writing anew on its own account

// Thrown through a rebuild that nobody waits for any more.
struct cancelled {};

void check_logs_suit(const params& p) {
  if (!p.scheme.empty()) {
    throw error(errc::incompatible, {"a scheme has hashes of its own, and a log keeps 64 bits of the library's", "log",
                                     "a layout", "scheme " + p.scheme, hint::use_a_layout});
  }
  const layout_row* row = find_layout(p.layout);
  if (row != nullptr && row->family == family::plain && row->bulk != nullptr) return;
  throw error(errc::incompatible,
              {"a log keeps 64 bits of a key's hash, and this layout needs more or other ones", "layout",
               "one of split_block, split_block512, blocked, blocked_page", p.layout, hint::use_listed_layout});
}

std::string layout_for(double rate) {
  constexpr std::uint64_t many = 1'000'000;
  constexpr std::array<std::string_view, 3> quickest_first = {"split_block512", "blocked", "blocked_page"};
  std::array<double, quickest_first.size()> bits{};
  double best = HUGE_VAL;
  for (std::size_t i = 0; i < quickest_first.size(); ++i) {
    try {
      bits[i] = static_cast<double>(find_layout(quickest_first[i])->geometry_for(many, rate).bits);
    } catch (const error& e) {
      if (e.code() != errc::too_large) throw;
      bits[i] = HUGE_VAL;  // it cannot err so seldom
    }
    best = std::min(best, bits[i]);
  }
  for (std::size_t i = 0; i < quickest_first.size(); ++i) {
    if (bits[i] <= 1.25 * best) return std::string(quickest_first[i]);
  }
  return "blocked_page";
}

// The lock of a file, if there is one; nobody may be writing it.
posix::descriptor locked_if_any(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  posix::opened opened = posix::open_regular(path, false);
  if (::access(path.c_str(), W_OK) != 0) posix::fail("replace", path);
  if (::flock(opened.file.get(), LOCK_EX | LOCK_NB) != 0) {
    throw error(errc::locked, {"this filter is open for writing", path, "", "", hint::wait_or_choose_another_name});
  }
  return std::move(opened.file);
}

std::string rebuilt_name(const std::string& path) { return path + ".rebuild"; }

void remove_quietly(const std::string& path) noexcept { ::unlink(path.c_str()); }

std::uint64_t bytes_of_keys(std::uint64_t keys) { return keys * sizeof(std::uint64_t); }

bool differ_in_hash(const params& a, const params& b) {
  return a.hash != b.hash || a.keys != b.keys || a.seed != b.seed || a.key_check != b.key_check;
}

// At most so many keys are in `bytes` of a log that begin with a record.
std::uint64_t keys_in(std::uint64_t bytes) {
  return (bytes - std::min(bytes, key_log::record_header_bytes)) / sizeof(std::uint64_t);
}

bool is_log_of(const params& filter, const params& log) {
  return filter.log_id == log.log_id && !differ_in_hash(filter, log);
}

// The log of a filter that is being made. Who makes the same one at the same moment has the lock, or is about to.
key_log begun_log(const std::string& path, const params& p) {
  try {
    return key_log::create(path, p);
  } catch (const error& e) {
    if (e.code() != errc::already_exists) throw;
    throw error(errc::locked, {"another process is making this filter", path, "", "", hint::wait_for_writer});
  }
}

void refuse_taken(const std::string& path, const std::string& log, bool has_filter, bool has_log) {
  if (!has_filter && !has_log) return;
  throw error(errc::already_exists, {"there is a file already", has_filter ? path : log, "", "",
                                     has_filter ? hint::choose_another_name : hint::rebuild_from_log});
}

}  // namespace

struct rebuilding_filter::impl {
  // What is to be made of the log.
  struct wanted {
    params p;                               // complete but for geometry and capacity
    std::optional<std::uint64_t> capacity;  // as was said
    std::uint64_t least = 0;                // capacity, if it is not said
    std::optional<std::uint64_t> keys;      // distinct ones; counted if not known
    std::uint64_t upto = 0;                 // bytes of the log
    bool anew = false;                      // the log, too
    bool salvage = false;
    std::function<void()> watch = {};
  };

  struct made {
    any_filter filter;
    std::optional<key_log> log;  // if it was written anew
    std::uint64_t upto = 0;      // bytes of the old log that are in
    std::uint64_t lost_keys = 0;
  };

  // A rebuild in another thread.
  struct job {
    std::thread thread;
    std::atomic<bool> cancel = false;
    std::atomic<bool> done = false;
    std::optional<made> result;
    std::exception_ptr failure;

    ~job() {
      cancel = true;
      if (thread.joinable()) thread.join();
    }
  };

  std::string path;
  std::string metadata;
  std::optional<key_log> log;  // if open for writing
  any_filter filter;
  std::function<void(const std::string&)> notes;  // of open_options
  std::unique_ptr<job> rebuilding;
  std::uint64_t grow_at = 0;  // keys certainly new
  std::uint64_t full_at = 0;
  std::uint64_t counted_when_full = 0;  // the same without room for chance
  std::uint64_t rebuilds = 0;
  std::uint64_t lost_keys = 0;
  std::uint64_t overgrown_at = 0;     // bytes of the log
  bool failed = false;                // the last rebuild did
  bool recorded = false;              // keys that are in the log alone
  std::vector<std::uint64_t> record;  // hash64 of the keys that are being logged

  impl(std::string where, any_filter f) : path(std::move(where)), filter(std::move(f)) {}

  void note(const std::string& text) const {
    if (notes) notes(path + ": " + text);
  }

  void want_writable() const {
    if (!log) detail::refuse_writing(path);
  }

  double rate_at(std::uint64_t keys) const { return bloomery::expected_fpr(filter.parameters(), keys); }

  // Up to its capacity the share of keys that are certainly new only falls, from 1 on: its share at capacity gives a
  // number that is a little too large, by 0.2 % at most at a rate of 1 %.
  std::uint64_t distinct() const {
    if (counted_when_full > 0 && filter.insert_count() <= counted_when_full) {
      const double share = static_cast<double>(filter.capacity()) / static_cast<double>(counted_when_full);
      return static_cast<std::uint64_t>(static_cast<double>(filter.insert_count()) * share);
    }
    return estimate_distinct(filter.insert_count(), [this](std::uint64_t n) { return rate_at(n); });
  }

  // The counts at which it is nearly full and full. Of n keys n - losses are certainly new, give or take the root of
  // the losses.
  void set_bounds() {
    const params& p = filter.parameters();
    const auto rate = [this](std::uint64_t n) { return rate_at(n); };
    const auto capacity = static_cast<double>(p.capacity);
    counted_when_full = expected_insertions(capacity, rate);
    const double lost = std::max(capacity - static_cast<double>(counted_when_full), 0.0);
    full_at =
        counted_when_full - std::min(counted_when_full, static_cast<std::uint64_t>(std::ceil(3 * std::sqrt(lost))));
    grow_at = static_cast<std::uint64_t>(nearly_full * static_cast<double>(full_at));
    overgrown_at = std::max(tiny_log, 4 * bytes_of_keys(distinct()));
  }

  // ---- making one

  static made make(const std::string& path, const std::string& metadata, const key_log& log, wanted w,
                   const std::atomic<bool>& cancel) {
    const std::string log_name = rebuilt_name(log_path(path));
    const std::string name = rebuilt_name(path);
    const auto refuse_damage = [&](const log_reading& seen) {
      if (seen.whole() || w.salvage) return;
      throw error(errc::damaged, {"the log is damaged", log_path(path), "", seen.damage_in_words(), hint::salvage_log});
    };
    const auto may_end = [&] {
      if (cancel) throw cancelled();
      if (w.watch) w.watch();
    };
    std::optional<key_log> fresh;
    try {
      log_reading seen;
      if (w.anew) {
        fresh = key_log::create(log_name, w.p, log.generation() + 1);
        posix::take_mode_of(log_path(path), log_name);
        seen = log.write_distinct(*fresh, w.upto, may_end);
        refuse_damage(seen);
        fresh->sync();
        w.keys = fresh->keys();
      } else if (!w.keys) {
        w.keys = log.estimate_distinct(w.upto);
      }
      w.p.geometry = {};
      w.p.capacity = w.capacity.value_or(std::max(w.least, grown_capacity(*w.keys)));
      if (static_cast<double>(w.p.capacity) < 0.99 * static_cast<double>(*w.keys)) {
        throw error(errc::invalid_argument,
                    {"a capacity below the keys it has", path, std::to_string(*w.keys) + " or more",
                     std::to_string(w.p.capacity), hint::use_larger_capacity});
      }
      made m{any_filter::create(name, w.p, {.metadata = metadata, .sync = false}), std::nullopt, w.upto, 0};
      posix::take_mode_of(path, name);  // before there are keys in it
      const key_log& source = fresh ? *fresh : log;
      const std::uint64_t upto = fresh ? fresh->bytes() : w.upto;
      const log_reading read = source.read(
          0,
          [&](std::span<const std::uint64_t> hash64s) {
            may_end();
            m.filter.insert(key_span::of_hash64s(hash64s));
          },
          upto);
      if (!w.anew) seen = read;
      refuse_damage(seen);
      m.lost_keys = seen.lost_keys;
      mapped_storage& bytes = *m.filter.mapped();
      bytes.counts().logged = upto;
      bytes.counts().log_generation = source.generation();
      bytes.checkpoint();
      m.log = std::move(fresh);
      return m;
    } catch (...) {
      remove_quietly(name);
      if (w.anew) remove_quietly(log_name);
      throw;
    }
  }

  void publish(made m) {
    const auto add = [&](std::span<const std::uint64_t> hash64s) {
      m.filter.insert(key_span::of_hash64s(hash64s));
      if (m.log) m.log->append(hash64s);
    };
    const log_reading rest = log->read(m.upto, add, log->bytes());
    if (!rest.whole()) {
      throw error(errc::damaged, {"the log is damaged", log_path(path), "", rest.damage_in_words(), hint::salvage_log});
    }
    // First: the disk must never have a filter that counts bytes of the log which it has not.
    (m.log ? *m.log : *log).sync();
    // If a failure of the machine takes this back, the old one is as right as it was, with what the log has.
    posix::rename_over(rebuilt_name(path), path, false);
    if (mapped_storage* old = filter.mapped()) old->abandon();
    filter = std::move(m.filter);
    lost_keys = m.lost_keys;
    ++rebuilds;
    failed = recorded = false;
    set_bounds();
    if (m.log) {
      m.log->rename(log_path(path), false);
      log = std::move(m.log);  // whatever comes: the old one has no name any more
      posix::sync_folder_of(path);
    }
  }

  // ---- growing

  // More than twice what so many distinct keys need.
  bool log_is_wasteful(std::uint64_t keys) const {
    return log->bytes() > key_log::header_bytes + 65'536 + 2 * bytes_of_keys(keys);
  }

  // Four times: then on its own account, whether the filter grows or not.
  bool log_is_overgrown() const { return log->bytes() > overgrown_at; }

  wanted growth() const {
    wanted w;
    w.p = filter.parameters();
    // Beyond its capacity its bits hardly tell.
    w.keys = filter.insert_count() > counted_when_full ? log->estimate_distinct() : distinct();
    w.least = w.p.capacity;
    w.upto = log->bytes();
    w.anew = log_is_wasteful(*w.keys);
    return w;
  }

  void start() {
    auto next = std::make_unique<job>();
    job& j = *next;
    const auto work = [this, &j, w = growth()] {
      try {
        j.result = make(path, metadata, *log, w, j.cancel);
      } catch (...) {
        j.failure = std::current_exception();
      }
      j.done = true;
    };
    if (filter.capacity() < small) {
      work();
    } else {
      try {
        j.thread = std::thread(work);
      } catch (const std::system_error&) {  // no thread to be had
        work();
      }
    }
    rebuilding = std::move(next);
  }

  void finish() {
    if (!rebuilding) return;
    if (rebuilding->thread.joinable()) rebuilding->thread.join();
    const std::unique_ptr<job> ended = std::move(rebuilding);
    try {
      if (ended->failure) std::rethrow_exception(ended->failure);
      publish(std::move(*ended->result));
    } catch (const std::exception& e) {
      remove_quietly(rebuilt_name(path));
      remove_quietly(rebuilt_name(log_path(path)));
      if (!failed) {
        note(std::string(
                 "warning: it could not be made larger, and goes on as it is; its error will pass the promise: ") +
             e.what());
      }
      failed = true;
      // Not again at once: when there are so many more keys.
      grow_at = std::max(filter.insert_count(), grow_at) + filter.insert_count() / 16 + 1000;
      full_at = std::max(full_at, grow_at);
    }
  }

  // Before `count` keys: takes a new filter that is ready, begins one if it is time. Returns how many keys there is
  // room for, at least one.
  std::uint64_t make_room() {
    for (;;) {
      if (rebuilding && (rebuilding->done || filter.insert_count() >= full_at)) finish();
      if (!rebuilding && (filter.insert_count() >= grow_at || (!failed && log_is_overgrown()))) {
        start();
        if (rebuilding->done) continue;
      }
      if (filter.insert_count() < full_at) return full_at - filter.insert_count();
    }
  }

  // Calls work(hashes, first) for the hashes of keys from `first` on.
  template <class Work>
  void in_hashes(key_span keys, Work work) const {
    if (keys.form() == key_span::form_of_keys::hashes) return work(keys.hashes(), std::size_t{0});
    std::vector<key_hash> room(std::min<std::size_t>(keys.size(), 4096));
    for (std::size_t first = 0; first < keys.size(); first += room.size()) {
      const std::span<key_hash> some(room.data(), std::min(room.size(), keys.size() - first));
      filter.hash(keys.part(first, some.size()), some);
      work(std::span<const key_hash>(some), first);
    }
  }

  void log_keys(std::span<const key_hash> hashes) {
    record.resize(hashes.size());
    std::transform(hashes.begin(), hashes.end(), record.begin(), [](const key_hash& hash) { return hash.hash64; });
    log->append(record);
  }

  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new) {
    std::uint64_t all_new = 0;
    in_hashes(keys, [&](std::span<const key_hash> hashes, std::size_t first) {
      for (std::size_t done = 0; done < hashes.size();) {
        const std::uint64_t room = std::min(make_room(), key_log::most_keys_of_record);
        const auto some =
            hashes.subspan(done, static_cast<std::size_t>(std::min<std::uint64_t>(room, hashes.size() - done)));
        log_keys(some);
        all_new += filter.insert(some, is_new.empty() ? is_new : is_new.subspan(first + done, some.size()));
        done += some.size();
      }
    });
    return all_new;
  }

  // ---- opening

  // The first byte of the log whose keys are not in the bits for certain.
  static std::uint64_t not_in_bits(const file_info& info, const key_log& log) {
    return info.counts.log_generation == log.generation() ? info.counts.logged : 0;
  }

  [[noreturn]] static void lost(const std::string& log, const std::string& what_is_lost) {
    throw error(errc::damaged, {"the log is damaged, and a filter made of it would miss keys; lookups still work", log,
                                "", what_is_lost, hint::salvage_log});
  }

  // Refuses a log that has not all keys, while the filter is untouched.
  static void check_log(const file_info& info, const key_log& log, const std::string& name, file_check what) {
    if (const std::string missing = missing_in(info, log); !missing.empty()) lost(name, missing);
    const log_reading seen =
        log.read(what == file_check::payload ? 0 : not_in_bits(info, log), [](std::span<const std::uint64_t>) {});
    if (!seen.whole()) lost(name, seen.damage_in_words());
  }

  // The log's keys that are not in the bits for certain.
  void catch_up() {
    const std::uint64_t torn = log->torn_bytes();
    const std::uint64_t from = not_in_bits(*filter.opened_from(), *log);
    if (torn > 0) {
      log->cut_torn();
      note("note: the last record of its log was not written to the end, " + std::to_string(torn) +
           " bytes; it is cut off, and no key was reported as added that was in it");
    }
    if (from == log->bytes()) return;
    std::uint64_t fresh = 0;
    const log_reading rest = log->read(
        from, [&](std::span<const std::uint64_t> hash64s) { fresh += filter.insert(key_span::of_hash64s(hash64s)); });
    if (!rest.whole()) lost(log_path(path), rest.damage_in_words());
    note("note: inserted " + std::to_string(rest.keys) + " keys of its log again, " + std::to_string(fresh) +
         " of them were missing");
  }
};

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
    // What the filter does not count is in the log: the next writer takes it from there.
  }
}

std::string rebuilding_filter::log_path(const std::string& path) { return posix::behind_links(path) + ".log"; }

std::uint64_t rebuilding_filter::grown_capacity(std::uint64_t keys) noexcept {
  constexpr std::uint64_t few = 2048;
  if (keys < few) return std::max(2 * keys, least_capacity);
  return keys + keys / 25 * 6 + keys % 25 * 6 / 25;
}

params rebuilding_filter::completed(params p) {
  if (p.target_fpr == 0) p.target_fpr = default_rate;
  if (p.capacity == 0) p.capacity = least_capacity;
  if (p.layout.empty() && p.scheme.empty()) p.layout = layout_for(p.target_fpr);
  check_logs_suit(p);
  return complete(std::move(p));
}

rebuilding_filter rebuilding_filter::create(const std::string& path, params p, const create_options& options) {
  p.log_id = 0;
  p = completed(std::move(p));
  const std::string name = posix::behind_links(path);
  const std::string log_name = log_path(name);
  // Before anything is made: the files of a rebuild belong to who writes this filter.
  posix::descriptor old = locked_if_any(name);
  posix::descriptor old_log = locked_if_any(log_name);
  if (!options.replace) refuse_taken(path, log_name, bool(old), bool(old_log));
  key_log::check_replaceable(log_name);
  // The lock of the nameless one: who else makes this filter has to wait, and then sees it.
  key_log log = begun_log(rebuilt_name(log_name), p);
  bool filter_begun = false;
  try {
    // Who was quicker made them since.
    if (!old) old = locked_if_any(name);
    if (!old_log) old_log = locked_if_any(log_name);
    if (!options.replace) refuse_taken(path, log_name, bool(old), bool(old_log));
    key_log::check_replaceable(log_name);
    p.log_id = log.parameters().log_id;
    filter_begun = true;
    auto b = std::make_unique<impl>(
        name, any_filter::create(rebuilt_name(name), p, {.metadata = options.metadata, .reserve = options.reserve}));
    b->metadata = options.metadata;
    b->set_bounds();
    log.rename(log_name);
    posix::rename_over(rebuilt_name(name), name);
    b->log = std::move(log);
    return rebuilding_filter(std::move(b));
  } catch (...) {
    if (filter_begun) remove_quietly(rebuilt_name(name));
    remove_quietly(rebuilt_name(log_name));
    throw;
  }
}

rebuilding_filter rebuilding_filter::open(const std::string& path, const open_options& options) {
  const std::string name = posix::behind_links(path);
  if (options.mode == access::read_only) {
    any_filter filter = any_filter::open_any(name, options);
    return rebuilding_filter(std::make_unique<impl>(name, std::move(filter)));
  }
  {
    // Before the log is looked for: what is no filter, or has no log, is said to be that.
    const mapped_storage header = mapped_storage::open(name, access::read_only);
    if (header.info().parameters.log_id == 0) {
      throw error(errc::incompatible, {"the filter keeps no log", path, "", "", hint::make_filter_with_log});
    }
  }
  std::optional<key_log> log;
  try {
    log = key_log::open(log_path(name), options.mode, options.waiting);
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;
    throw error(errc::not_found,
                {"the filter's log is missing, and keys cannot be added without it; lookups still work", log_path(name),
                 "", "", hint::bring_back_log});
  }
  // With the log's lock held nobody else writes the filter. What is refused is refused before it is marked dirty.
  {
    const mapped_storage header = mapped_storage::open(name, access::read_only);
    const params& p = header.info().parameters;
    const params& of_log = log->parameters();
    if (!is_log_of(p, of_log)) {
      throw error(errc::incompatible,
                  {"the log beside it belongs to another filter; lookups still work", log_path(name),
                   "log " + std::to_string(p.log_id), std::to_string(of_log.log_id), hint::bring_back_own_log});
    }
    check_logs_suit(p);
    impl::check_log(header.info(), *log, log_path(name), options.check);
  }
  auto b = std::make_unique<impl>(name, any_filter::open_any(name, options));
  b->log = std::move(log);
  b->notes = options.notes;
  b->metadata = b->filter.opened_from()->metadata;
  try {
    b->catch_up();
  } catch (...) {
    b->filter.mapped()->abandon();  // it has not all keys of the log: it must not become clean
    throw;
  }
  remove_quietly(rebuilt_name(name));  // of a rebuild that was killed
  remove_quietly(rebuilt_name(log_path(name)));
  b->set_bounds();
  if (b->filter.insert_count() >= b->full_at) b->make_room();  // a writer was killed before it grew
  return rebuilding_filter(std::move(b));
}

namespace {

// A rebuild from a damaged log loses keys that the filter may still find, and a torn record cannot be told from a
// damaged one: both files stay, as a filter of another name with its log. @throws error already_exists, io
std::string keep_damaged(const std::string& name) {
  const std::string kept = name + ".damaged";
  const auto copy = [](const std::string& from, const std::string& to) {
    std::error_code problem;
    std::filesystem::copy_file(from, to, problem);
    if (!problem) return;
    const bool there = problem == std::errc::file_exists;
    throw error(there ? errc::already_exists : errc::io,
                {"a damaged file is kept before it is replaced: " + problem.message(), to, "", "",
                 there ? hint::remove_earlier_copy : hint::none});
  };
  if (std::filesystem::exists(name)) copy(name, kept);
  copy(rebuilding_filter::log_path(name), rebuilding_filter::log_path(kept));
  return kept;
}

}  // namespace

rebuilding_filter rebuilding_filter::recover(const std::string& path, const rebuild_plan& plan,
                                             const open_options& options) {
  const std::string name = posix::behind_links(path);
  inspection old;
  const auto look = [&] {
    old = inspect(name);
    if (!old.usable || old.info.parameters.log_id != 0) return;
    throw error(errc::incompatible, {"the filter keeps no log", path, "", "", hint::make_filter_with_log});
  };
  look();
  key_log log = key_log::open(log_path(name), access::read_write, options.waiting);
  look();  // who had the lock may have made it another
  const bool its_own = old.usable && is_log_of(old.info.parameters, log.parameters());
  if (old.usable && !its_own && !plan.salvage) {
    throw error(errc::incompatible, {"the log beside it belongs to another filter", log_path(name),
                                     "log " + std::to_string(old.info.parameters.log_id),
                                     std::to_string(log.parameters().log_id), hint::bring_back_own_log});
  }
  const std::string missing = its_own ? missing_in(old.info, log) : "";
  if (!missing.empty() && !plan.salvage) {
    throw error(errc::damaged, {"the log is damaged", log_path(name), "", missing, hint::salvage_log});
  }
  std::uint64_t lost_at_end = 0;
  if (!missing.empty()) {
    const key_counts& counts = old.info.counts;
    lost_at_end = counts.log_generation == log.generation()
                      ? keys_in(counts.logged - log.bytes())
                      : counts.inserted - std::min(counts.inserted, log.estimate_distinct());
  }
  params p = its_own ? old.info.parameters : log.parameters();
  p.secret = options.secret;
  auto b =
      std::make_unique<impl>(name, any_filter(params{.layout = "split_block512", .capacity = 1, .target_fpr = 0.5}));
  b->notes = options.notes;
  if (old.usable) b->metadata = old.info.metadata;
  const bool whole = its_own && missing.empty() && log.torn_bytes() == 0;
  if (plan.salvage && !(whole && log.read(0, [](std::span<const std::uint64_t>) {}).whole())) {
    const std::string kept = keep_damaged(name);
    b->note("warning: the damaged filter and its log are kept, as " + kept + " and " + log_path(kept));
  }
  if (!missing.empty()) b->note("warning: its log is not whole, and it goes on without what is lost: " + missing);
  if (log.torn_bytes() > 0) {
    b->note("note: the last record of its log was not written to the end, " + std::to_string(log.torn_bytes()) +
            " bytes; it is cut off");
    log.cut_torn();
  }
  b->log = std::move(log);
  impl::wanted w;
  w.p = std::move(p);
  rebuilding_filter result(std::move(b));
  try {
    result.impl_->filter = any_filter([&] {
      params small_one = w.p;
      small_one.geometry = {};
      small_one.capacity = 1;
      small_one.target_fpr = 0.5;
      return small_one;
    }());
    const double rate = w.p.target_fpr;
    rebuild_plan as_it_was = plan;
    if (!as_it_was.rate) as_it_was.rate = rate > 0 && rate < 1 ? rate : default_rate;
    result.rebuild(as_it_was);
    result.impl_->lost_keys += lost_at_end;
  } catch (...) {
    result.abandon();
    throw;
  }
  return result;
}

std::string rebuilding_filter::missing_in(const file_info& filter, const key_log& log) {
  const key_counts& counts = filter.counts;
  if (counts.log_generation == log.generation()) {
    if (counts.logged <= log.bytes()) return "";
    return std::to_string(keys_in(counts.logged - log.bytes())) + " keys or fewer are lost at its end";
  }
  // Which of the two is the older one is not known; but a filter's keys were all in its log once.
  if (counts.is_estimate) return "";
  const std::uint64_t keys = log.keys() < counts.inserted ? log.keys() : log.estimate_distinct();
  const std::uint64_t error_of_estimate = keys > key_log::exactly_estimated ? keys / 100 : 0;
  if (keys + error_of_estimate >= counts.inserted) return "";
  return "it has " + std::to_string(keys) + " keys, and the filter " + std::to_string(counts.inserted) +
         ": it is an older one";
}

void rebuilding_filter::move(const std::string& from, const std::string& to) {
  const std::string name = posix::behind_links(to);
  key_log::check_replaceable(log_path(name));
  const posix::descriptor old = locked_if_any(name);
  const posix::descriptor old_log = locked_if_any(log_path(name));
  posix::rename_over(log_path(from), log_path(name));
  posix::rename_over(from, name);
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
  impl_->in_hashes(keys, [&](std::span<const key_hash> hashes, std::size_t) { impl_->log_keys(hashes); });
}

bool rebuilding_filter::may_contain(std::string_view key) const { return impl_->filter.may_contain(key); }
bool rebuilding_filter::may_contain(std::uint64_t key) const { return impl_->filter.may_contain(key); }

void rebuilding_filter::may_contain(key_span keys, std::span<std::uint64_t> bitmap) const {
  impl_->filter.may_contain(keys, bitmap);
}

void rebuilding_filter::rebuild(const rebuild_plan& plan) {
  impl& b = *impl_;
  b.want_writable();
  if (plan.rate && !(*plan.rate > 0 && *plan.rate < 1)) {
    throw error(errc::invalid_argument, {"the false-positive rate is a probability", "rate", "above 0, below 1",
                                         std::to_string(*plan.rate), ""});
  }
  b.rebuilding.reset();  // what it makes would be out of date
  impl::wanted w;
  w.p = b.filter.parameters();
  w.p.log_id = b.log->parameters().log_id;
  if (plan.rate) w.p.target_fpr = *plan.rate;
  if (!plan.layout.empty()) w.p.layout = plan.layout;
  check_logs_suit(w.p);
  w.capacity = plan.capacity;
  w.upto = b.log->bytes();
  w.salvage = plan.salvage;
  w.watch = plan.watch;
  w.anew = plan.salvage || b.log_is_wasteful(b.log->estimate_distinct());
  const std::atomic<bool> never = false;
  impl::made m = impl::make(b.path, b.metadata, *b.log, std::move(w), never);
  try {
    b.publish(std::move(m));
  } catch (...) {
    remove_quietly(rebuilt_name(b.path));
    remove_quietly(rebuilt_name(log_path(b.path)));
    throw;
  }
}

void rebuilding_filter::settle() { impl_->finish(); }

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
