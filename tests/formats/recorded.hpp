// Files in tests/golden/foreign and the keys in them.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace bloomery_tests {

inline std::string recorded(const std::string& name) {
#ifdef BLOOMERY_SOURCE_DIR
  return BLOOMERY_SOURCE_DIR "/tests/golden/foreign/" + name;
#else
  return "tests/golden/foreign/" + name;
#endif
}

inline std::vector<std::string> inserted_keys() {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back("key-" + std::to_string(i));
  keys.insert(keys.end(),
              {"Zürich", "布隆过滤器", "a key with spaces, which is longer than two blocks of sixteen bytes"});
  return keys;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

/// The lines of NAME.positives that a filter gives.
template <class MayContain>
std::string positives_by(MayContain may_contain) {
  std::string positives;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "other-" + std::to_string(i);
    if (may_contain(key)) positives += key + '\n';
  }
  return positives;
}

template <class Filter>
std::string positives_of(Filter& filter) {
  return positives_by([&filter](const std::string& key) { return filter.contains(key); });
}

}  // namespace bloomery_tests
