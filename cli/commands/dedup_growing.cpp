// dedup in memory when nobody knows how many lines will come: from a pipe without -n, or with --grow.
//
//   $ seq 300000 | bloomery dedup > distinct.txt
// bloomery: grows with its input, at most 0.01 % in total
// bloomery: 300,000 lines in, 299,994 out, 6 dropped; expected wrongly dropped: 3.69 lines (0.00123 % of the distinct);
// 2.29 MiB in 4 layers
#include "cli/commands/dedup.hpp"

#include "app/numbers.hpp"

#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <fmt/format.h>

#include <string>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 1e-4;

void refuse(const char* why, const char* option, const std::string& found, const std::string& hint) {
  throw error(errc::invalid_argument, {why, option, "", found, hint});
}

// The share of distinct lines that may be lost is below the rate at any time, so this is a rate that keeps it.
double rate_of(const dedup_options& options) {
  if (options.max_loss && options.wanted.rate) refuse("two promises", "--max-loss", "", "give -p or --max-loss");
  return options.max_loss.value_or(options.wanted.rate.value_or(default_rate));
}

void check_growing(const dedup_options& options) {
  const making_options& w = options.wanted;
  if (options.exact) {
    refuse("--exact counts lines first, and its filter does not grow", "--grow", "", "leave out --grow or --exact");
  }
  if (w.capacity) {
    refuse("a filter that grows asks for no number of lines", "-n", count_text(*w.capacity), "leave out -n or --grow");
  }
  if (!w.layout.empty() && w.layout != scalable_layers::layout_name()) {
    refuse("a filter that grows has layers of layout split_block512", "--layout", w.layout,
           "leave out --layout, or say -n and not --grow");
  }
  if (w.prefer) {
    refuse("a filter that grows has layers of layout split_block512", "--prefer", name_of(*w.prefer),
           "leave out --prefer, or say -n and not --grow");
  }
}

// Hashes keys as the options want them; it is never filled.
any_filter hasher(const making_options& wanted) {
  params p;
  p.layout = layouts::split_block512::name;
  p.hash = wanted.hash;
  p.keys = wanted.keys;
  p.seed = wanted.seed;
  p.secret = secret_of(wanted.secret);
  p.geometry = {layouts::split_block512::block_bits, layouts::split_block512::lanes};
  return any_filter(complete(p));
}

}  // namespace

bool dedup_grows(const dedup_options& options) {
  if (!options.state.empty() || options.wanted.window.asked()) return false;
  return options.wanted.growing || (!options.exact && !options.wanted.capacity && !can_reread(options.inputs));
}

dedup_result dedup_growing(const dedup_options& options, output& out, output* suspects) {
  check_growing(options);
  const any_filter hashes = hasher(options.wanted);
  scalable_layers seen(rate_of(options));
  if (!options.common.quiet && !options.common.json) {
    say(fmt::format("grows with its input, at most {} in total", rate_text(seen.target_fpr())));
  }
  const char line_end = options.inputs.line_end();
  line_writer kept(out, line_end);
  pass_options pass{options.common.threads, options.common.progress && !options.common.quiet && !out.watched(),
                    "dedup"};
  pass.growing = &seen;
  dedup_result result;
  result.finished = for_each_batch(
      hashes, options.inputs, pass, [](key_batch&) {},
      [&](key_batch& batch) {
        batch.is_new.resize(batch.hashes.size());
        seen.insert(hash_span::hashes(batch.hashes), batch.is_new.data());
        for (std::size_t i = 0; i < batch.lines.size(); ++i) {
          if (batch.is_new[i] != 0) {
            kept.add(batch.lines[i]);
          } else if (suspects != nullptr) {
            suspects->write(batch.lines[i]);
            suspects->write({&line_end, 1});
          }
        }
        kept.finish(batch.text.text().data() + batch.text.size);
        result.lines_in += batch.lines.size();
        if (out.watched() || batch.text.may_wait) out.flush();
        return true;
      });
  out.flush();
  if (suspects != nullptr) suspects->flush();
  result.lines_out = seen.size();
  result.expected_losses = seen.expected_losses();
  result.rate = seen.expected_fpr();
  result.bytes = seen.byte_size();
  result.layers = seen.layers().size();
  return result;
}

}  // namespace bloomery::cli
