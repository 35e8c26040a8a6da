// Machine and build information for benchmark results.
#pragma once

#include <bloomery/kernel.hpp>

#include <nlohmann/json.hpp>

#include <sys/utsname.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace bench {

inline std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

inline std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

inline nlohmann::ordered_json caches() {
  nlohmann::ordered_json all;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string type = first_line_of(folder + "type");
    if (type.empty() || type == "Instruction") continue;
    all["L" + first_line_of(folder + "level")] = first_line_of(folder + "size");
  }
  return all;
}

inline double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

inline nlohmann::ordered_json machine_facts() {
  utsname system{};
  uname(&system);
  const std::string release = system.release;  // reported up to the second number
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {
    {"cpu", cpu_model()}, {"cores", std::thread::hardware_concurrency()}, {"caches", caches()},
        {"system", std::string(system.sysname) + " " + release.substr(0, release.find('.', release.find('.') + 1))},
        {"huge_pages", first_line_of("/sys/kernel/mm/transparent_hugepage/enabled")},
        {"kernels", bloomery::kernel_name()},
#if defined(__clang__)
        {"compiler", "clang++ " __clang_version__},
#else
        {"compiler", "g++ " __VERSION__},
#endif
        {"date", date}, {"load_at_begin", load_average()},
  };
}

/// Writes results and the present load of the machine to a file, unless its name is empty.
/// @throws std::runtime_error  the file cannot be written
inline void write_json(const std::string& path, nlohmann::ordered_json results) {
  if (path.empty()) return;
  if (results.contains("machine")) {
    results["machine"]["load_at_end"] = load_average();
  } else {
    results["load_at_end"] = load_average();
  }
  std::ofstream out(path);
  out << results.dump(1) << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace bench
