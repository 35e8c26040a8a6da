// The control groups of this process: the folders that may hold its limits.
#pragma once

#include "platform/memory.hpp"

#include <fstream>
#include <optional>
#include <string>

namespace bloomery {

/// The folder and the version of one control group.
struct control_group {
  std::string folder;  ///< in system_folders::groups
  bool is_version_2 = false;
};

/// The number in a file; none if the file does not exist or says "max".
template <class Number>
std::optional<Number> number_in(const std::string& path) {
  std::ifstream file(path);
  Number number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// Calls `with(group)` for each control group of this process that may have a controller, such as "memory" or "cpu".
///
/// In a container, /proc may give the group's path on the host, while the container sees its own group as the root. So
/// all parent folders of the path are tried as well, which nested groups require anyway.
template <class With>
void for_each_control_group(const system_folders& from, const std::string& controller, With with) {
  std::ifstream list(from.proc + "/self/cgroup");
  for (std::string line; std::getline(list, line);) {  // number:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_version_2 = controllers == ",,";
    if (!is_version_2 && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::string hierarchy = is_version_2 ? from.groups : from.groups + "/" + controller;
    std::string path = line.substr(second + 1);
    while (path.ends_with('/')) path.pop_back();
    for (;;) {
      with(control_group{hierarchy + path, is_version_2});
      const std::size_t slash = path.rfind('/');
      if (slash == std::string::npos) break;
      path.resize(slash);
    }
  }
}

}  // namespace bloomery
