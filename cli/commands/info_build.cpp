// bloomery info --build: shows the parts of this program and the kernels that this processor can run.
#include "cli/commands/info_build.hpp"
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/io/output.hpp"

#include <bloomery/kernel.hpp>
#include <bloomery/params.hpp>

#include "platform/machine.hpp"  // the cache's size, which has no public call

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

// The words of a text, separated by spaces or commas.
std::vector<std::string> words_of(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The processor features reported by the system; empty if it reports none.
std::vector<std::string> processor_features() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags") || line.starts_with("Features")) return words_of(line.substr(line.find(':') + 1));
  }
  return {};
}

std::vector<std::string> needs_of(const kernel_description& set) {
  return set.needs == "nothing" ? std::vector<std::string>{} : words_of(set.needs);
}

// Missing processor features; empty if the set runs here or if the features are unknown.
std::vector<std::string> lacks_of(const kernel_description& set, const std::vector<std::string>& features) {
  std::vector<std::string> lacks;
  if (set.supported || features.empty()) return lacks;
  for (const std::string& need : needs_of(set)) {
    if (std::find(features.begin(), features.end(), need) == features.end()) lacks.push_back(need);
  }
  return lacks;
}

std::string reason_of_choice(const std::string& chosen) {
  return kernel_is_forced() ? "BLOOMERY_KERNEL=" + chosen : "the best this processor supports";
}

std::string verdict(const kernel_description& set, const std::vector<std::string>& lacks) {
  if (set.chosen) return "chosen: " + reason_of_choice(set.name);
  if (set.supported) return "available";
  return lacks.empty() ? "not available" : fmt::format("not available: lacks {}", fmt::join(lacks, " "));
}

}  // namespace

exit_status info_of_build(bool json) {
  const std::vector<kernel_description> sets = kernel_list();
  const std::vector<std::string> features = processor_features();
  output out(STDOUT_FILENO, "standard output");
  if (json) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const kernel_description& set : sets) {
      kernels.push_back({{"name", set.name},
                         {"needs", needs_of(set)},
                         {"supported", set.supported},
                         {"lacks", lacks_of(set, features)},
                         {"chosen", set.chosen}});
    }
    out.write(json_line({{"version", BLOOMERY_VERSION},
                         {"compiler", compiler},
                         {"kernel", kernel_name()},
                         {"kernel_reason", reason_of_choice(kernel_name())},
                         {"kernels", kernels},
                         {"own_cache_bytes", own_cache_size()},
                         {"layouts", words_of(layout_names())},
                         {"hashes", words_of(hash_names())},
                         {"schemes", words_of(scheme_names())}}));
  } else {
    const auto line = [&](const char* name, const std::string& value) {
      out.write(fmt::format("{:<14}{}\n", name, value));
    };
    line("version", BLOOMERY_VERSION);
    line("compiler", compiler);
    for (const kernel_description& set : sets) {
      line(&set == &sets.front() ? "kernels" : "",
           fmt::format("{:<8}{}; needs {}", set.name, verdict(set, lacks_of(set, features)), set.needs));
    }
    line("own cache", bytes_text(own_cache_size()) + " per core; the data of larger filters is prefetched");
    line("layouts", layout_names());
    line("hashes", hash_names());
    line("schemes", scheme_names());
  }
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
