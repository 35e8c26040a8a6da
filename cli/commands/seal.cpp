// bloomery seal INPUT... -o OUT: builds a static filter, the smallest one for keys that do not change.
//
//   $ bloomery seal users.txt -o users.bloom
//   bloomery: users.bloom: 1,000,000 lines, 999,871 keys; static filter of 1.08 MiB (fuse8, ...), FPR 0.391%
//
// The low 8 bytes of each key's hash are kept in memory until all keys are read. Then the filter is built, and every
// key is looked up in it. The file appears when it is complete.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/progress.hpp"
#include "cli/io/system_error.hpp"

#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/key_log.hpp>
#include <bloomery/error.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/static_filter.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <system_error>

namespace bloomery::cli {
namespace {

struct seal_options {
  std::string output;
  std::optional<std::uint64_t> width;  ///< bits of a fingerprint: 1 to 32
  std::optional<double> rate;          ///< target FPR, instead of a width
  bool ribbon = false;
  making_options wanted;  ///< only hash, seed, kind of keys, secret
  std::string note;
  input_options inputs;  ///< files of keys, or one filter with a key log
  common_options common;
};

// A growing list of hashes of 8 bytes. It grows without copying if the system can move pages.
class hash64_list {
 public:
  void append(std::span<const key_hash> hashes) {
    make_room(hashes.size());
    for (const key_hash& hash : hashes) words_.get()[size_++] = hash.hash64;
  }

  void append(std::span<const std::uint64_t> more) {
    make_room(more.size());
    std::copy(more.begin(), more.end(), words_.get() + size_);
    size_ += more.size();
  }

  std::span<std::uint64_t> all() const { return {words_.get(), size_}; }
  std::uint64_t size() const { return size_; }

 private:
  struct giver_back {
    void operator()(std::uint64_t* words) const { std::free(words); }
  };

  void make_room(std::size_t more) {
    if (size_ + more <= room_) return;
    const std::size_t room = std::max<std::size_t>(size_ + more + room_ / 2, 1 << 16);
    const std::uint64_t memory =
        static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    void* moved = (size_ + more) * sizeof(std::uint64_t) < memory
                      ? std::realloc(words_.get(), room * sizeof(std::uint64_t))
                      : nullptr;
    if (moved == nullptr) {
      throw error(errc::too_large, {"not enough memory for this number of keys", "memory",
                                    bytes_text((size_ + more) * sizeof(std::uint64_t)) + " and the filter",
                                    bytes_text(memory), "seal fewer keys at a time"});
    }
    static_cast<void>(words_.release());  // realloc owns it
    words_.reset(static_cast<std::uint64_t*>(moved));
    room_ = room;
  }

  std::unique_ptr<std::uint64_t, giver_back> words_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

bool is_filter(const std::string& path) {
  constexpr char magic[] = "\x89\x42\x4C\x4D\x52\x0D\x0A\x1A";
  std::error_code none;
  if (path == "-" || !std::filesystem::is_regular_file(path, none))
    return false;  // (reading would consume bytes of a pipe)
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("open", path);  // otherwise a filter might be read as a file of keys
  char start[8] = {};
  file.read(start, sizeof start);
  if (file.bad()) fail("read", path);
  return file && std::memcmp(start, magic, sizeof start) == 0;
}

// The hashes to be sealed, and their parameters.
struct collected {
  params hashing;
  hash64_list hash64s;
  std::uint64_t keys = 0;  // with repetitions
};

// Reads the hashes in the key log of the filter with this `info`.
void read_log(const std::string& filter, const file_info& info, hash64_list& to) {
  const std::string path = rebuilding_filter::log_path(filter);
  const key_log log = key_log::open(path);
  const params& p = info.parameters;
  const params& of_log = log.parameters();
  if (of_log.log_id() != p.log_id() || of_log.hash != p.hash || of_log.keys != p.keys || of_log.seed != p.seed ||
      of_log.key_check != p.key_check) {
    throw error(errc::incompatible, {"the log belongs to another filter", path, "the log of " + filter, "another", ""});
  }
  const std::string hint = "'bloomery rebuild " + filter + " --salvage' continues without them";
  if (const std::string missing = rebuilding_filter::missing_in(info, log); !missing.empty()) {
    throw error(errc::damaged, {"the log has lost keys", path, "", missing, hint});
  }
  const log_reading seen = log.read(0, [&](std::span<const std::uint64_t> hash64s) {
    if (stop_signal() != 0) throw interrupted();
    to.append(hash64s);
  });
  if (!seen.whole()) {
    throw error(errc::damaged, {"the log has lost keys", path, "", seen.damage_in_words(), hint});
  }
}

collected from_filter(const seal_options& options, const std::string& path) {
  if (options.inputs.files.size() > 1) {
    throw error(errc::invalid_argument, {"a filter cannot be sealed together with other inputs", path, "one INPUT",
                                         std::to_string(options.inputs.files.size()), ""});
  }
  const std::unique_ptr<filter_handle> filter =
      open_handle({.name = path, .secret = options.wanted.secret, .quiet = true, .facts_only = true});
  collected result{filter->parameters(), {}, 0};
  const params& p = result.hashing;
  if (!capabilities_of(p).can_insert) {
    throw error(errc::incompatible, {"the filter is static already", path, "", p.layout, ""});
  }
  if (p.log_id() == 0) {
    throw error(errc::invalid_argument, {"a filter without a key log cannot be sealed, because it cannot list its keys",
                                         path, "files of keys, or a filter with a key log", "a filter without one",
                                         "seal the keys themselves, or build with --grow"});
  }
  if (!options.wanted.hash.empty() || options.wanted.seed != 0 || options.wanted.keys != key_kind::bytes) {
    throw error(errc::invalid_argument,
                {"the keys of a log are already hashed", path, "", "--hash, --seed or --u64", "leave them out"});
  }
  read_log(path, *filter->local()->opened_from(), result.hash64s);
  result.keys = result.hash64s.size();
  return result;
}

collected from_keys(const seal_options& options) {
  making_options hashing = options.wanted;
  hashing.layout = "split_block512";
  collected result{params_for(hashing, 1, 0.01), {}, 0};
  for_each_hash(result.hashing, options.inputs,
                {options.common.threads, options.common.progress && !options.common.quiet, "read"},
                [&](std::span<const key_hash> hashes) { result.hash64s.append(hashes); });
  result.keys = result.hash64s.size();
  return result;
}

collected collect(const seal_options& options) {
  for (const std::string& name : options.inputs.files) {
    if (is_filter(name)) return from_filter(options, name);
  }
  return from_keys(options);
}

constexpr unsigned usual_width = 8;

// Before the keys are read.
void check_width(const seal_options& options) {
  if (options.width && (*options.width == 0 || *options.width > fuse::most_width)) {
    throw error(errc::invalid_argument,
                {"invalid fingerprint width", "--width", "1 to 32", std::to_string(*options.width), ""});
  }
  if (options.rate && !(*options.rate > 0 && *options.rate < 1)) {
    throw error(errc::invalid_argument, {"the false-positive rate is out of range", "--rate", "above 0 and below 1",
                                         rate_text(*options.rate), ""});
  }
}

unsigned width_for(const seal_options& options, std::uint64_t keys) {
  if (!options.rate) return static_cast<unsigned>(options.width.value_or(usual_width));
  if (const std::optional<unsigned> width = static_width_for(*options.rate, keys)) return *width;
  throw error(errc::too_large, {"no fingerprint is long enough for this false-positive rate", "--rate",
                                "at least " + rate_text(static_rate(fuse::most_width, keys)), rate_text(*options.rate),
                                hint::use_higher_rate});
}

exit_status seal(const seal_options& options) {
  refuse_shared(options.output, "seal", true);
  for (const std::string& input : options.inputs.files) refuse_shared(input, "seal", true);
  check_width(options);
  check_target_fpr(options.wanted);
  check_not_an_input(options.output, "--output", options.inputs);
  check_not_the_key(options.output, "--output", options.wanted.secret);
  check_replaceable(options.output, "--output");
  check_locks(options.output);
  collected what = collect(options);
  const unsigned width = width_for(options, what.hash64s.size());
  check_room(options.output, what.hash64s.size() * width / 8);

  progress bar(options.common.progress && !options.common.quiet, "seal");
  const static_structure structure = options.ribbon ? static_structure::ribbon : static_structure::fuse;
  static_bytes sealed =
      static_build(structure, what.hash64s.all(), width, options.common.threads, [&](std::uint64_t keys) {
        if (stop_signal() != 0) throw interrupted();
        if (bar.due()) bar.show({keys, keys, what.hash64s.size(), -1, -1});
      });
  bar.wipe();
  const params p = static_params(what.hashing, width, sealed, structure);
  point_of_no_return();
  save_file(options.output, p, {sealed.payload.data(), sealed.payload.size()}, {.inserted = sealed.keys},
            create_options{.metadata = options.note, .no_lock = no_lock()});

  const double bits_per_key =
      sealed.keys == 0 ? 0 : static_cast<double>(p.geometry.bits) / static_cast<double>(sealed.keys);
  if (options.common.json) {
    print_result(
        {{"filter", options.output},
         {"lines", what.keys},
         {"keys", sealed.keys},
         {"bytes", sealed.payload.size()},
         {"bits_a_key", sealed.keys == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(bits_per_key)},
         {"rate", p.target_fpr},
         {"layout", p.layout},
         {"hash", p.hash},
         {"bits", p.geometry.bits}});
  } else if (!options.common.quiet) {
    say(fmt::format("{}: {}, {}; static filter of {} ({}{}), FPR {}", options.output, counted(what.keys, "line"),
                    counted(sealed.keys, "key"), bytes_text(sealed.payload.size()), p.layout,
                    sealed.keys == 0 ? "" : fmt::format(", {:.4g} bits per key", bits_per_key),
                    rate_text(p.target_fpr)));
  }
  return exit_status::found;
}

}  // namespace

void add_seal(command_line& line) {
  command& c = line.root.subcommand("seal", "build a static filter, which is smaller but accepts no more keys");
  auto& o = line.options_of(c, seal);
  c.option("-o,--output", o.output, "FILE", "new file; an existing file is replaced once the new one is complete")
      .required()
      .file();
  argument& rate = parsed(c, "-p,--rate", o.rate, parse_rate, "RATE",
                          "target false-positive rate: chooses the shortest fingerprints");
  rate.group(of_size);
  parsed(c, "--width", o.width, parse_count, "BITS",
         "fingerprint bits, 1 to 32; default: 8 (0.39%); fastest: 8, 16, 32")
      .suggest("8, 16, 32")
      .group(of_size)
      .excludes(rate);
  c.flag("--ribbon", o.ribbon, "take the least memory: 11% less, but slower lookups").group(of_size);
  c.option("--hash", o.wanted.hash, "NAME", hash_help).suggest(hash_names()).not_empty().group(of_size);
  c.option("--seed", o.wanted.seed, {}, "N", "hash seed (not a secret)").group(of_size);
  c.flag(
       "--u64", [&] { o.wanted.keys = key_kind::u64le; }, "keys are integers from 0 to 2^64-1, in decimal")
      .group(of_input);
  add_secret(c, o.wanted.secret);
  add_no_lock(c);
  c.option("--note", o.note, "TEXT", "a comment stored in the file");
  add_inputs(line, c, o.inputs);
  c.find("INPUT")->describe("files with one key per line, or one filter that has a key log");
  add_common(c, o.common, "print only errors and warnings");
  c.example("bloomery seal users.txt -o users.bloom");
  c.example("bloomery seal -p 0.1% users.txt -o users.bloom");
  c.example("bloomery seal seen.bloom -o seen.sealed");
}

}  // namespace bloomery::cli
