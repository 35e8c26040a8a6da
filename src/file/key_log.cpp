// key_log: the file of a key log, its records, and the estimate of distinct keys.
#include <bloomery/detail/key_log.hpp>

#include <bloomery/detail/file_magic.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>

#include "file/fields.hpp"
#include "file/unfinished.hpp"
#include "platform/posix.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using format::get;
using format::name_bytes;
using format::put;

constexpr const file_magic& magic = key_log_magic;
constexpr std::uint32_t version = 1;

// Offsets of the header's fields.
constexpr std::size_t at_version = 8;
constexpr std::size_t at_header_bytes = 12;
constexpr std::size_t at_id = 16;
constexpr std::size_t at_generation = 24;
constexpr std::size_t at_hash = 32;
constexpr std::size_t at_layout = 64;
constexpr std::size_t at_seed = 96;
constexpr std::size_t at_key_check = 104;
constexpr std::size_t at_target_rate = 112;
constexpr std::size_t at_key_kind = 120;
constexpr std::size_t at_reserved = 124;
constexpr std::size_t at_checksum = 248;

constexpr std::uint32_t marker = 0x52474F4C;  // "LOGR"
constexpr std::uint64_t word = sizeof(std::uint64_t);
constexpr std::uint64_t record_words = key_log::record_header_bytes / word;
constexpr std::uint64_t most_record_bytes = key_log::record_header_bytes + word * key_log::most_keys_of_record;

using header_image = std::array<std::uint8_t, key_log::header_bytes>;

bool is_name(const std::string& name) {
  return !name.empty() && name.size() < name_bytes &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

header_image encode(const params& p, std::uint64_t generation) {
  if (!is_name(p.hash) || !is_name(p.layout)) {
    throw error(errc::invalid_argument, {"names in the header of a log", "log", "a hash and a layout",
                                         "'" + p.hash + "' and '" + p.layout + "'", ""});
  }
  header_image bytes{};
  std::copy(magic.begin(), magic.end(), bytes.begin());
  put(bytes, at_version, version);
  put(bytes, at_header_bytes, static_cast<std::uint32_t>(key_log::header_bytes));
  put(bytes, at_id, p.log_id());
  put(bytes, at_generation, generation);
  std::copy(p.hash.begin(), p.hash.end(), bytes.begin() + at_hash);
  std::copy(p.layout.begin(), p.layout.end(), bytes.begin() + at_layout);
  put(bytes, at_seed, p.seed);
  put(bytes, at_key_check, p.key_check);
  put(bytes, at_target_rate, p.target_fpr);
  put(bytes, at_key_kind, static_cast<std::uint32_t>(p.keys));
  put(bytes, at_checksum, static_cast<std::uint64_t>(XXH3_64bits(bytes.data(), at_checksum)));
  return bytes;
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw error(errc::damaged, {"the log's header: " + what, path, "", "", hint::restore_log});
}

std::string get_name(std::span<const std::uint8_t> bytes, std::size_t at, const std::string& path) {
  std::optional<std::string> name = format::name_at(bytes, at);
  if (!name || !is_name(*name)) damaged(path, "a name is unreadable");
  return *std::move(name);
}

params decode(std::span<const std::uint8_t> bytes, std::uint64_t& generation, const std::string& path) {
  const std::size_t seen = std::min(bytes.size(), magic.size());
  if (seen == 0 || !std::equal(magic.begin(), magic.begin() + static_cast<std::ptrdiff_t>(seen), bytes.begin())) {
    throw error(errc::not_a_filter, {"not a key log", path, "a file that starts with 89 'BLML'",
                                     bytes.empty() ? "an empty file" : "other bytes", ""});
  }
  if (bytes.size() < key_log::header_bytes) damaged(path, "it is truncated");
  if (const auto found = get<std::uint32_t>(bytes, at_version); found != version) {
    throw error(errc::wrong_version,
                {"unsupported version of a key log", path, "version 1", std::to_string(found), hint::use_its_version});
  }
  if (get<std::uint64_t>(bytes, at_checksum) != XXH3_64bits(bytes.data(), at_checksum)) {
    damaged(path, "it does not match its checksum");
  }
  if (get<std::uint32_t>(bytes, at_header_bytes) != key_log::header_bytes) damaged(path, "its length is wrong");
  params p;
  p.extra = key_log_id{get<std::uint64_t>(bytes, at_id)};
  generation = get<std::uint64_t>(bytes, at_generation);
  p.hash = get_name(bytes, at_hash, path);
  p.layout = get_name(bytes, at_layout, path);
  p.seed = get<std::uint64_t>(bytes, at_seed);
  p.key_check = get<std::uint64_t>(bytes, at_key_check);
  p.target_fpr = get<double>(bytes, at_target_rate);
  const auto kind = get<std::uint32_t>(bytes, at_key_kind);
  if (p.log_id() == 0 || generation == 0) damaged(path, "number or generation is 0");
  if (kind > 1) damaged(path, "unknown kind of keys");
  p.keys = static_cast<key_kind>(kind);
  if (!(p.target_fpr >= 0 && p.target_fpr <= 1)) damaged(path, "the target FPR is not a probability");
  if ((p.hash == siphash::name) != (p.key_check != 0)) damaged(path, "hash and secret are inconsistent");
  const auto reserved = bytes.subspan(at_reserved, at_checksum - at_reserved);
  if (!std::all_of(reserved.begin(), reserved.end(), [](std::uint8_t byte) { return byte == 0; })) {
    damaged(path, "reserved bytes are not 0");
  }
  return p;
}

// The checksum of a record in memory: marker and count, keys before, checksum, keys. It covers all words, with the
// log's number in the place of the checksum.
std::uint64_t checksum_of(std::uint64_t* record, std::uint64_t count, std::uint64_t id) {
  const std::uint64_t stored = std::exchange(record[2], id);
  const std::uint64_t sum = XXH3_64bits(record, (record_words + count) * word);
  record[2] = stored;
  return sum;
}

std::uint64_t record_bytes(std::uint64_t count) { return key_log::record_header_bytes + count * word; }

// Iterator over the records.
class scanner {
 public:
  scanner(int fd, std::uint64_t from, std::uint64_t to, std::uint64_t id, const std::string& path)
      : fd_(fd), at_(from), to_(to), id_(id), path_(path) {
    const std::uint64_t room = std::min<std::uint64_t>(2 * most_record_bytes, to - std::min(from, to));
    words_.resize(static_cast<std::size_t>(room / word + 1));
    // In a malicious file, every word could look like the start of a record. Limit the work; real files need far less.
    most_hashed_ = 64 * (to - std::min(from, to)) + (std::uint64_t{64} << 20);
  }

  /// The keys of the record at `at`, if it is complete and valid.
  std::optional<std::span<const std::uint64_t>> record() {
    if (to_ - at_ <= key_log::record_header_bytes || hashed_ > most_hashed_) return std::nullopt;
    std::uint64_t* here = words_at(at_, key_log::record_header_bytes);
    const std::uint64_t count = here[0] >> 32;
    if (static_cast<std::uint32_t>(here[0]) != marker || count == 0 || count > key_log::most_keys_of_record) {
      return std::nullopt;
    }
    if (record_bytes(count) > to_ - at_) return std::nullopt;
    here = words_at(at_, record_bytes(count));
    before_ = here[1];
    if (before_ > key_log::all - count) return std::nullopt;
    hashed_ += record_bytes(count);
    if (here[2] != checksum_of(here, count, id_)) return std::nullopt;
    return std::span<const std::uint64_t>(here + record_words, static_cast<std::size_t>(count));
  }

  std::uint64_t before() const { return before_; }  // keys before the last record
  std::uint64_t at() const { return at_; }
  bool at_end() const { return at_ >= to_; }
  void skip(std::uint64_t bytes) { at_ += std::min(bytes, to_ - at_); }

 private:
  std::uint64_t* words_at(std::uint64_t at, std::uint64_t bytes) {
    if (at < start_ || at + bytes > start_ + filled_) {
      const std::span buffer(reinterpret_cast<std::uint8_t*>(words_.data()), words_.size() * word);
      start_ = at;
      filled_ = posix::read_at(fd_, buffer.first(std::min<std::uint64_t>(buffer.size(), to_ - at)), at, path_);
      if (filled_ < bytes) throw error(errc::damaged, {"the log was truncated while it was read", path_, "", "", ""});
    }
    return words_.data() + (at - start_) / word;
  }

  int fd_;
  std::uint64_t at_;
  std::uint64_t to_;
  std::uint64_t id_;
  const std::string& path_;
  std::vector<std::uint64_t> words_;
  std::uint64_t start_ = 0;   // file offset of words_
  std::uint64_t filled_ = 0;  // bytes in words_
  std::uint64_t before_ = 0;
  std::uint64_t hashed_ = 0;
  std::uint64_t most_hashed_ = 0;
};

std::uint64_t new_id() {
  std::random_device random;
  for (;;) {
    const std::uint64_t id = std::uint64_t{random()} << 32 | random();
    if (id != 0) return id;
  }
}

// A sample of distinct hashes: all hashes while they fit, then those below a bound that is halved whenever the sample
// is full.
class distinct_sample {
 public:
  explicit distinct_sample(std::uint64_t most_keys)
      : slots_(static_cast<std::size_t>(
            std::bit_ceil(2 * std::clamp<std::uint64_t>(most_keys, 1, key_log::exactly_estimated)))) {}

  void add(std::uint64_t hash) {
    if (hash > bound_) return;
    if (hash == 0) {  // marks an empty slot
      has_zero_ = true;
      return;
    }
    if (!put(hash) || ++size_ <= key_log::exactly_estimated) return;
    std::vector<std::uint64_t> some(slots_.size());
    std::swap(slots_, some);
    bound_ /= 2;
    ++halvings_;
    size_ = 0;
    for (const std::uint64_t kept : some) size_ += kept != 0 && kept <= bound_ && put(kept) ? 1 : 0;
  }

  std::uint64_t estimate() const { return (size_ + (has_zero_ ? 1 : 0)) << halvings_; }

 private:
  // False: already present. Indexed by the lower bits, because the upper bits are equal below the bound.
  bool put(std::uint64_t hash) {
    const std::size_t last = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash) & last;
    while (slots_[at] != 0 && slots_[at] != hash) at = (at + 1) & last;
    return std::exchange(slots_[at], hash) == 0;
  }

  std::vector<std::uint64_t> slots_;
  std::uint64_t bound_ = ~std::uint64_t{0};
  std::uint64_t size_ = 0;
  unsigned halvings_ = 0;
  bool has_zero_ = false;
};

}  // namespace

std::string log_reading::damage_in_words() const {
  if (whole()) return "nothing is lost";
  return std::to_string(lost_keys) + (lost_keys == 1 ? " key lost in " : " keys lost in ") +
         std::to_string(damaged_places) + (damaged_places == 1 ? " place" : " places") + ", the first at byte " +
         std::to_string(first_damage);
}

struct key_log::impl {
  std::string path;
  params parameters;
  std::uint64_t generation = 1;
  posix::descriptor file;
  std::uint64_t keys = 0;
  std::uint64_t bytes = header_bytes;
  std::uint64_t torn = 0;
  std::vector<std::uint64_t> records;  // buffer for writing

  scanner scan(std::uint64_t from, std::uint64_t to) const { return {file.get(), from, to, parameters.log_id(), path}; }

  // Finds the last whole record. It or its predecessor begins within the last two maximum record sizes.
  void find_end(std::uint64_t file_bytes) {
    const std::uint64_t near = file_bytes > header_bytes + 2 * most_record_bytes
                                   ? (file_bytes - 2 * most_record_bytes) / word * word
                                   : header_bytes;
    for (const std::uint64_t from : {near, header_bytes}) {
      bool found = false;
      for (scanner records_from = scan(from, file_bytes); !records_from.at_end();) {
        if (const auto hash64s = records_from.record()) {
          found = true;
          keys = records_from.before() + hash64s->size();
          records_from.skip(record_bytes(hash64s->size()));
          bytes = records_from.at();
        } else {
          records_from.skip(word);
        }
      }
      if (found || from == header_bytes) break;
    }
    torn = file_bytes - bytes;
  }
};

key_log::key_log(std::unique_ptr<impl> i) noexcept : impl_(std::move(i)) {}
key_log::key_log(key_log&&) noexcept = default;
key_log& key_log::operator=(key_log&&) noexcept = default;
key_log::~key_log() = default;

key_log key_log::create(const std::string& path, const params& p, std::uint64_t generation,
                        const create_options& options) {
  auto s = std::make_unique<impl>();
  s->path = path;
  s->parameters = {.layout = p.layout,
                   .hash = p.hash,
                   .keys = p.keys,
                   .seed = p.seed,
                   .target_fpr = p.target_fpr,
                   .key_check = p.key_check,
                   .extra = key_log_id{p.log_id() != 0 ? p.log_id() : new_id()}};
  s->generation = generation;
  const header_image header = encode(s->parameters, generation);
  posix::replacement file(path, {.replace = options.replace, .lock = format::locking_of(options.no_lock)});
  posix::write_at(file.fd(), header, 0, path);
  s->file = file.publish();
  return key_log(std::move(s));
}

key_log key_log::open(const std::string& path, const open_options& options) {
  posix::opened opened = options.mode == access::read_write
                             ? posix::open_locked(path, options.waiting, format::locking_of(options.no_lock))
                             : posix::open_regular(path, false);
  header_image header{};
  const std::size_t got = posix::read_at(opened.file.get(), header, 0, path);
  auto s = std::make_unique<impl>();
  s->path = path;
  s->parameters = decode(std::span(header).first(got), s->generation, path);
  s->file = std::move(opened.file);
  s->find_end(opened.bytes);
  return key_log(std::move(s));
}

void key_log::append(std::span<const std::uint64_t> hash64s) {
  constexpr std::size_t written_together = 8;  // records
  cut_torn();
  impl& s = *impl_;
  while (!hash64s.empty()) {
    s.records.clear();
    std::uint64_t keys = s.keys;
    for (std::size_t i = 0; i < written_together && !hash64s.empty(); ++i) {
      const std::size_t count = std::min<std::size_t>(hash64s.size(), most_keys_of_record);
      const std::size_t start = s.records.size();
      s.records.push_back(std::uint64_t{count} << 32 | marker);
      s.records.push_back(keys);
      s.records.push_back(0);
      s.records.insert(s.records.end(), hash64s.begin(), hash64s.begin() + static_cast<std::ptrdiff_t>(count));
      s.records[start + 2] = checksum_of(s.records.data() + start, count, s.parameters.log_id());
      keys += count;
      hash64s = hash64s.subspan(count);
    }
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(s.records.data()), s.records.size() * word);
    s.torn = bytes.size();  // until the write is complete
    posix::write_at(s.file.get(), bytes, s.bytes, s.path);
    s.torn = 0;
    s.bytes += bytes.size();
    s.keys = keys;
  }
}

void key_log::sync() { posix::sync(impl_->file.get(), impl_->path); }

void key_log::cut_torn() {
  if (impl_->torn == 0) return;
  if (::ftruncate(impl_->file.get(), static_cast<off_t>(impl_->bytes)) != 0) posix::fail("cut", impl_->path);
  impl_->torn = 0;
}

log_reading key_log::read(std::uint64_t from, const visitor& visit, std::uint64_t to) const {
  const std::uint64_t start = std::max(from, header_bytes);
  // Up to the last whole record. Bytes after it were found when the log was opened.
  const std::uint64_t end = to == all ? bytes() : to;
  log_reading result;
  result.end = start;
  result.torn_bytes = to == all ? torn_bytes() : 0;
  if (end < start) return result;
  ::posix_fadvise(impl_->file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::optional<std::uint64_t> expected;  // keys before the next record
  if (start == header_bytes) expected = 0;
  bool in_damage = false;
  const auto damage_at = [&](std::uint64_t byte) {
    if (!in_damage && result.damaged_places++ == 0) result.first_damage = byte;
    in_damage = true;
  };
  for (scanner records = impl_->scan(start, end); !records.at_end();) {
    const auto hash64s = records.record();
    if (!hash64s) {
      damage_at(records.at());
      records.skip(word);
      continue;
    }
    if (expected && records.before() != *expected) {
      damage_at(records.at());
      // A smaller number than expected indicates a manipulated log. Its keys are visited nevertheless, so that none is
      // hidden.
      if (records.before() > *expected) result.lost_keys += records.before() - *expected;
    }
    in_damage = false;
    expected = records.before() + hash64s->size();
    visit(*hash64s);
    result.keys += hash64s->size();
    records.skip(record_bytes(hash64s->size()));
    result.end = records.at();
  }
  return result;
}

log_reading key_log::write_distinct(key_log& into, std::uint64_t to, const std::function<void()>& watch) const {
  constexpr std::uint64_t least_memory = std::uint64_t{16} << 20;
  const std::uint64_t end = to == all ? bytes() : to;
  const std::uint64_t most_keys = end / word;  // an upper bound that does not depend on the records
  const std::uint64_t together = std::max(most_keys, least_memory) / word;
  const std::uint64_t parts = most_keys / together + 1;
  std::vector<std::uint64_t> some;
  some.reserve(static_cast<std::size_t>(std::min(most_keys, 2 * together + most_keys_of_record)));
  const auto make_distinct = [&some] {
    std::sort(some.begin(), some.end());
    some.erase(std::unique(some.begin(), some.end()), some.end());
  };
  log_reading result;
  for (std::uint64_t part = 0; part < parts; ++part) {
    some.clear();
    std::uint64_t limit = 2 * together;  // beyond that, remove repetitions: a log may consist of a single key
    result = read(
        0,
        [&](std::span<const std::uint64_t> hash64s) {
          if (watch) watch();
          for (const std::uint64_t hash64 : hash64s) {
            if (multiply_high(hash64, parts) == part) some.push_back(hash64);
          }
          if (some.size() < limit) return;
          make_distinct();
          limit = std::max<std::uint64_t>(2 * together, 2 * some.size());
        },
        end);
    make_distinct();
    into.append(some);
  }
  return result;
}

std::uint64_t key_log::estimate_distinct(std::uint64_t to) const {
  const std::uint64_t end = to == all ? bytes() : to;
  distinct_sample sample(end / word);
  read(
      0,
      [&](std::span<const std::uint64_t> hash64s) {
        // Not hash64 itself: its upper bits select the block, and a log may be sorted by them.
        for (const std::uint64_t hash64 : hash64s) sample.add(mix64(hash64));
      },
      end);
  return sample.estimate();
}

void key_log::remove_duplicates() {
  key_log fresh = create(format::rebuilt_name(impl_->path), impl_->parameters, impl_->generation + 1);
  const log_reading seen = write_distinct(fresh);
  if (!seen.whole()) {
    ::unlink(fresh.impl_->path.c_str());
    throw error(errc::damaged, {"the log is damaged", impl_->path, "", seen.damage_in_words(), hint::salvage_log});
  }
  fresh.sync();
  fresh.rename(impl_->path);
  *this = std::move(fresh);
}

void key_log::rename(const std::string& path, bool synced) {
  posix::rename_over(impl_->path, path, false);
  impl_->path = path;
  if (synced) posix::sync_folder_of(path);
}

void key_log::check_replaceable(const std::string& path) {
  posix::descriptor file;
  try {
    file = posix::open_regular(path, false).file;
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;
    return;
  }
  std::array<std::uint8_t, magic.size()> start{};
  if (posix::read_at(file.get(), start, 0, path) == start.size() && start == magic) return;
  throw error(errc::not_a_filter, {"a file that is not a log has the name of the filter's log", path,
                                   "no file, or an old log", "other bytes", hint::move_file_away});
}

std::uint64_t key_log::keys() const noexcept { return impl_->keys; }
std::uint64_t key_log::bytes() const noexcept { return impl_->bytes; }
std::uint64_t key_log::torn_bytes() const noexcept { return impl_->torn; }
std::uint64_t key_log::generation() const noexcept { return impl_->generation; }
const params& key_log::parameters() const noexcept { return impl_->parameters; }

}  // namespace bloomery
