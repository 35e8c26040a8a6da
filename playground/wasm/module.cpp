// The API of the playground as a WebAssembly module: the functions that a worker of the page calls. The module has one
// API, one thread, and no server. See playground/page/src/host/worker.ts.
#include "playground/api/demo_api.hpp"
#include "playground/inspect/inspected_file.hpp"
#include "playground/inspect/watched.hpp"

#include <bloomery/sliced_filter.hpp>

#include <emscripten/em_js.h>
#include <emscripten/emscripten.h>

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Reports a change while a call runs: the worker posts it to the page.
EM_JS(void, post_progress, (const char* text), { Module["onProgress"](UTF8ToString(text)); })

namespace bloomery::playground {
namespace {

demo_api& the_api() {
  static demo_api it({});
  return it;
}

response& last_response() {
  static response it;
  return it;
}

// "from=1&to=2"
std::map<std::string, std::string> query_of(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    const std::size_t middle = std::min(part.find('='), part.size());
    query.emplace(part.substr(0, middle), part.substr(std::min(middle + 1, part.size())));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return query;
}

// A larger file takes too long in one thread.
void check_size(const char* path) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  struct stat facts {};
  if (::stat(path, &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) <= most) return;
  throw error(errc::too_large, {"the file is too large to inspect in the browser", path, "at most 1 GiB",
                                std::to_string(facts.st_size) + " bytes", "run 'bloomery playground FILE'"});
}

// The number of the inspection of this file, which reads it.
std::size_t number_of(const std::string& name) {
  static std::vector<watched*> all;  // the API owns them
  const auto known = std::find_if(all.begin(), all.end(), [&](const watched* one) { return one->name() == name; });
  const auto number = static_cast<std::size_t>(known - all.begin());
  if (number == all.size()) {
    auto made = inspect_in_slices(name, bloomery::sliced_filter::usual_slice);
    all.push_back(made.get());
    the_api().rest().add(std::move(made));
  }
  all[number]->update();
  return number;
}

}  // namespace
}  // namespace bloomery::playground

extern "C" {

using namespace bloomery::playground;

/// Handles a request whose body is `size` bytes at `body`, and returns the status. The functions below return the other
/// parts of the response until the next call.
EMSCRIPTEN_KEEPALIVE int bloomery_handle(const char* method, const char* path, const char* query, const char* body,
                                         std::size_t size) {
  last_response() = answered([&] {
    return the_api().handle({method, path, query_of(query), std::string(body, size)});
  });
  return last_response().status;
}

EMSCRIPTEN_KEEPALIVE const char* bloomery_type() { return last_response().type.c_str(); }
EMSCRIPTEN_KEEPALIVE const char* bloomery_body() { return last_response().body.data(); }
EMSCRIPTEN_KEEPALIVE std::size_t bloomery_body_size() { return last_response().body.size(); }

/// Frees the memory of the last response.
EMSCRIPTEN_KEEPALIVE void bloomery_forget() { last_response() = {}; }

/// Runs the job that waits, and calls onProgress with its state up to ten times a second.
EMSCRIPTEN_KEEPALIVE void bloomery_run_job(const char* id) {
  jobs& queue = the_api().rest().queued_jobs();
  auto last = std::chrono::steady_clock::now();
  queue.when_progressed([&] {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(100)) return;
    last = now;
    post_progress(text_of(queue.look(id)).c_str());
  });
  queue.run_one();
  queue.when_progressed(nullptr);
  post_progress(text_of(queue.look(id)).c_str());
}

/// Reads a file of the current folder, which becomes the next inspection, or again one that has been read before.
/// Returns a status and leaves a response, as bloomery_handle() does: the number of the inspection.
EMSCRIPTEN_KEEPALIVE int bloomery_inspect(const char* name) {
  try {
    check_size(name);
    last_response() = {200, "application/json", text_of({{"number", number_of(name)}})};
  } catch (const bloomery::error& e) {
    last_response() = {status_of(e.code()), "application/json", text_of(json_of(e))};
  } catch (const std::exception& e) {
    const bloomery::error failed(bloomery::errc::unavailable, {e.what(), name, "", "", "choose a smaller file"});
    last_response() = {status_of(failed.code()), "application/json", text_of(json_of(failed))};
  }
  return last_response().status;
}
}
