// bloomery seal INPUT... -o OUT: builds a static filter, the smallest one for keys that do not change.
//
//   $ bloomery seal users.txt -o users.bloom
//   bloomery: users.bloom: 1,000,000 lines, 999,871 keys; static filter of 1.08 MiB (fuse8, ...), FPR 0.391%
//
// The low 8 bytes of each key's hash are kept in memory, or in a temporary file if they exceed the memory limit, until
// all keys are read. Then the filter is built, and every key is looked up in it. The file appears when it is complete.
#include "cli/commands/seal.hpp"
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/system_error.hpp"

#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/key_log.hpp>
#include <bloomery/error.hpp>
#include <bloomery/memory.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/static_file_builder.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

namespace bloomery::cli {
namespace {

std::uint64_t memory_limit_of(const seal_options& options) {
  return options.memory ? std::max<std::uint64_t>(1, *options.memory / 8) : available_memory().bytes / 2;
}

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

// Passes hashes to the builder. When they move to a temporary file, checks its disk space and reports the folder.
class key_collector {
 public:
  key_collector(static_file_builder& builder, std::uint64_t memory, const seal_options& options)
      : builder_(builder),
        memory_(memory),
        quiet_(options.common.quiet),
        bytes_total_(bytes_of_files(options.inputs)) {}

  void append(std::span<const std::uint64_t> hash64s, std::uint64_t text_bytes) {
    builder_.append(hash64s);
    bytes_read_ += text_bytes;
    if (reported_ || builder_.temporary_bytes() == 0) return;
    reported_ = true;
    const double share = bytes_read_ == 0 ? 1 : static_cast<double>(bytes_total_) / static_cast<double>(bytes_read_);
    if (quiet_) return;
    try {
      builder_.check_room(static_cast<std::uint64_t>(static_cast<double>(builder_.size()) * std::max(1.0, share)));
    } catch (const error& e) {  // only an estimate, so it does not end the command
      say(std::string("warning: ") + e.what());
    }
    say(fmt::format("the keys do not fit into {} of memory; their hashes are kept in a temporary file in {}",
                    bytes_text(memory_), builder_.temporary_folder()));
  }

 private:
  static std::uint64_t bytes_of_files(const input_options& inputs) {
    std::uint64_t bytes = 0;
    for (const std::string& name : inputs.files) {
      std::error_code none;
      const std::uintmax_t size = std::filesystem::file_size(name, none);
      if (!none) bytes += size;
    }
    return bytes;
  }

  static_file_builder& builder_;
  std::uint64_t memory_;
  bool quiet_;
  std::uint64_t bytes_total_;  // compressed inputs have more text
  std::uint64_t bytes_read_ = 0;
  bool reported_ = false;
};

// Reads the hashes in the key log of the filter with this `info`.
void read_log(const std::string& filter, const file_info& info, const hash_sink& to) {
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
    to(hash64s, 0);
  });
  if (!seen.whole()) {
    throw error(errc::damaged, {"the log has lost keys", path, "", seen.damage_in_words(), hint});
  }
}

params collect_log(const seal_options& options, const std::string& path, const hash_sink& to) {
  if (options.inputs.files.size() > 1) {
    throw error(errc::invalid_argument, {"a filter cannot be sealed together with other inputs", path, "one INPUT",
                                         std::to_string(options.inputs.files.size()), ""});
  }
  const std::unique_ptr<filter_handle> filter =
      open_handle({.name = path, .secret = options.wanted.secret, .quiet = true, .facts_only = true});
  params p = filter->parameters();
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
  read_log(path, *filter->local()->opened_from(), to);
  return p;
}

params collect_keys(const seal_options& options, const hash_sink& to) {
  making_options wanted = options.wanted;
  wanted.layout = "split_block512";
  params hashing = params_for(wanted, 1, 0.01);
  const std::unique_ptr<filter_handle> hasher = make_hasher(hashing);
  std::vector<std::uint64_t> hash64s;
  const bool whole = for_each_batch(
      *hasher, options.inputs, {options.common.threads, options.common.progress && !options.common.quiet, "read", true},
      [](key_batch&) {},
      [&](key_batch& batch) {
        hash64s.clear();
        for (const key_hash& hash : batch.prepared.hashes()) hash64s.push_back(hash.hash64);
        to(hash64s, batch.text.size);
        return true;
      });
  if (!whole) throw interrupted();
  return hashing;
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

exit_status seal(const seal_options& options) {
  refuse_shared(options.output, "seal", true);
  for (const std::string& input : options.inputs.files) refuse_shared(input, "seal", true);
  check_width(options);
  check_target_fpr(options.wanted);
  check_not_an_input(options.output, "--output", options.inputs);
  check_not_the_key(options.output, "--output", options.wanted.secret);
  const file_version replaced = check_replaceable(options.output, "--output");
  check_locks(options.output);
  if (!options.never_for.empty()) return seal_never_for(options, replaced);

  build_progress bars(options.common);
  const std::uint64_t memory = memory_limit_of(options);
  static_file_builder builder(options.output,
                              {.memory = memory,
                               .threads = options.common.threads,
                               .file = {.metadata = options.note, .expected = replaced, .no_lock = no_lock()},
                               .watch = [&](static_step step, std::uint64_t keys) {
                                 if (stop_signal() != 0) throw interrupted();
                                 bars.show(step == static_step::count ? "count" : "seal", keys);
                               }});
  key_collector keys(builder, memory, options);
  const params hashing = collect_hashes(
      options, [&](std::span<const std::uint64_t> hash64s, std::uint64_t bytes) { keys.append(hash64s, bytes); });
  const unsigned width = width_for(options, builder.size());
  check_room(options.output, builder.size() * width / 8);
  bars.expect(builder.size());
  const params p = builder.build(hashing, width, options.ribbon ? static_structure::ribbon : static_structure::fuse);
  bars.wipe();
  point_of_no_return();
  builder.publish();

  report_sealed(options, p, builder.size(), {{"temporary_bytes", builder.temporary_bytes()}}, "FPR ");
  return exit_status::found;
}

}  // namespace

unsigned width_for(const seal_options& options, std::uint64_t keys) {
  if (!options.rate) return static_cast<unsigned>(options.width.value_or(usual_width));
  if (const std::optional<unsigned> width = static_width_for(*options.rate, keys)) return *width;
  throw error(errc::too_large, {"no fingerprint is long enough for this false-positive rate", "--rate",
                                "at least " + rate_text(static_rate(fuse::most_width, keys)), rate_text(*options.rate),
                                hint::use_higher_rate});
}

params collect_hashes(const seal_options& options, const hash_sink& to) {
  for (const std::string& name : options.inputs.files) {
    if (is_filter(name)) return collect_log(options, name, to);
  }
  return collect_keys(options, to);
}

void report_sealed(const seal_options& options, const params& p, std::uint64_t lines,
                   const nlohmann::ordered_json& more, const std::string& rate_words) {
  const std::uint64_t distinct = p.capacity;
  const std::uint64_t bytes = bytes_for(p.geometry.bits);
  const double bits_per_key = distinct == 0 ? 0 : static_cast<double>(p.geometry.bits) / static_cast<double>(distinct);
  if (options.common.json) {
    nlohmann::ordered_json object = {
        {"filter", options.output},
        {"lines", lines},
        {"keys", distinct},
        {"bytes", bytes},
        {"bits_a_key", distinct == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(bits_per_key)},
        {"rate", p.target_fpr},
        {"layout", p.layout},
        {"hash", p.hash},
        {"bits", p.geometry.bits}};
    object.update(more);
    print_result(object);
  } else if (!options.common.quiet) {
    say(fmt::format("{}: {}, {}; static filter of {} ({}{}), {}{}", options.output, counted(lines, "line"),
                    counted(distinct, "key"), bytes_text(bytes), p.layout,
                    distinct == 0 ? "" : fmt::format(", {:.4g} bits per key", bits_per_key), rate_words,
                    rate_text(p.target_fpr)));
  }
}

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
  argument& never_for =
      c.option("--never-for", o.never_for, "FILE", "report no key of FILE; default width: the smallest filter");
  never_for.file().group(of_size);
  c.flag("--ribbon", o.ribbon, "take the least memory: 11% less, but slower lookups")
      .group(of_size)
      .excludes(never_for);
  c.option("--hash", o.wanted.hash, "NAME", hash_help).suggest(hash_names()).not_empty().group(of_size);
  c.option("--seed", o.wanted.seed, {}, "N", "hash seed (not a secret)").group(of_size);
  c.flag(
       "--u64", [&] { o.wanted.keys = key_kind::u64le; }, "keys are integers from 0 to 2^64-1, in decimal")
      .group(of_input);
  add_secret(c, o.wanted.secret);
  add_no_lock(c);
  parsed(c, "--memory", o.memory, parse_bits, "SIZE",
         "above this, use a temporary file; default: half of the free memory")
      .excludes(never_for);
  c.option("--note", o.note, "TEXT", "a comment stored in the file");
  add_inputs(line, c, o.inputs);
  c.find("INPUT")->describe("files with one key per line, or one filter that has a key log");
  add_common(c, o.common, "print only errors and warnings");
  c.example("bloomery seal users.txt -o users.bloom");
  c.example("bloomery seal -d : -f 1 --width 7 --memory 4GiB hashes.txt -o breached.bloom");
  c.example("bloomery seal seen.bloom -o seen.sealed");
}

}  // namespace bloomery::cli
