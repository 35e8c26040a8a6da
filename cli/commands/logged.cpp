#include "cli/commands/logged.hpp"

#include <bloomery/error.hpp>

#include <string>
#include <utility>

namespace bloomery::cli {

void check_growing(const making_options& wanted) {
  const auto refuse = [](const char* what, const char* option) {
    throw error(errc::invalid_argument, {what, "--grow", "", option, std::string("leave out --grow or ") + option});
  };
  if (wanted.bits) refuse("a filter that grows has no fixed size", "--bits");
  if (!wanted.scheme.empty()) refuse("a scheme has its own hashes, which a key log does not store", "--scheme");
  if (const char* const option = wanted.removal_option())
    refuse("a filter with removal cannot be rebuilt from a key log, which does not record removals", option);
  if (wanted.window.length) refuse("a sliding-window filter cannot be rebuilt from a key log", wanted.window.option());
  growing_params(wanted, 0.01);  // checks the other options; the rate does not matter
}

params growing_params(const making_options& wanted, double rate) {
  params p;
  p.layout = wanted.layout;
  p.hash = wanted.hash;
  p.keys = wanted.keys;
  p.seed = wanted.seed;
  p.capacity = wanted.capacity.value_or(0);
  p.target_fpr = wanted.rate.value_or(rate);
  p.secret = secret_of(wanted.secret);
  if (wanted.prefer == preference::memory && p.layout.empty()) p.layout = "blocked_page";
  return rebuilding_filter::completed(std::move(p));
}

}  // namespace bloomery::cli
