#include "playground/json/json.hpp"

#include "app/numbers.hpp"
#include "playground/json/base64.hpp"

#include <bloomery/cells.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/scheme.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

namespace bloomery::playground {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& expected, const std::string& found,
                         const std::string& hint) {
  constexpr std::size_t most_shown = 80;
  throw error(errc::invalid_argument, {"invalid value", field, expected,
                                       found.size() > most_shown ? found.substr(0, most_shown) + "..." : found, hint});
}

// Validates a body before it is parsed: limits on depth and length, and no duplicate names.
class body_check final : public nlohmann::json_sax<json> {
 public:
  static constexpr std::size_t most_depth = 8;
  static constexpr std::size_t most_values = 300'000;
  static constexpr std::size_t most_names = 64;  // per object

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(json::number_integer_t) override { return value(); }
  bool number_unsigned(json::number_unsigned_t) override { return value(); }
  bool number_float(json::number_float_t, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(json::binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return start(); }
  bool start_array(std::size_t) override { return start(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool key(std::string& name) override {
    std::vector<std::string>& names = names_.back();
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return stop({"duplicate name", name.substr(0, 40), "every name once", "", "omit one of the two"});
    }
    if (names.size() == most_names) {
      return stop({"too many names in an object", "body", fmt::format("at most {}", most_names), "",
                   "use the names in docs/playground-api.md"});
    }
    names.push_back(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last, const nlohmann::detail::exception& e) override {
    constexpr int out_of_range = 406;
    return e.id == out_of_range ? stop({"a number is too large", "body", "numbers below 1e308", "'" + last + "'",
                                        "send a smaller number"})
                                : not_json(position);
  }

  /// @throws error  invalid_argument, too_large
  void read(std::string_view text) {
    // The parser would stop at a NUL.
    const std::size_t nul = text.find('\0');
    if (nul == std::string_view::npos ? json::sax_parse(text, this) : not_json(nul)) return;
    throw error(code_, problem_);
  }

 private:
  bool stop(error_text problem, errc code = errc::invalid_argument) {
    problem_ = std::move(problem);
    code_ = code;
    return false;
  }
  bool not_json(std::size_t position) {
    return stop({"the body is not JSON in UTF-8", "body", "a JSON object", fmt::format("byte {}", position),
                 "check this byte; send keys that are not UTF-8 as {\"base64\": \"...\"}"});
  }
  bool value() {
    if (++values_ <= most_values) return true;
    return stop({"the body has too many values", "body", fmt::format("at most {}", app::count_text(most_values)), "",
                 "split the keys into several requests"},
                errc::too_large);
  }
  bool start() {
    if (names_.size() == most_depth) {
      return stop({"the body is nested too deeply", "body", fmt::format("at most {} levels", most_depth), "",
                   "use the shapes in docs/playground-api.md"});
    }
    names_.emplace_back();
    return value();
  }
  bool end() {
    names_.pop_back();
    return true;
  }

  std::vector<std::vector<std::string>> names_;  // of the open objects; empty for arrays
  std::size_t values_ = 0;
  error_text problem_;
  errc code_ = errc::invalid_argument;
};

std::string shown(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace); }

// Whether a field is absent or null.
std::string given(const json& value) { return value.is_null() ? "nothing" : shown(value); }

std::string key_from(const std::string& field, const json& value) {
  const bool in_base64 =
      value.is_object() && value.size() == 1 && value.contains("base64") && value["base64"].is_string();
  if (!value.is_string() && !in_base64) {
    refuse(field, "a string, or {\"base64\": \"...\"}", shown(value), "put the key in quotes");
  }
  std::string key;
  if (in_base64) {
    const auto text = value["base64"].get<std::string>();
    std::optional<std::string> bytes = bytes_of_base64(text);
    if (!bytes) refuse(field, "base64", text, "encode the key's bytes with the letters A-Z a-z 0-9 + / and =");
    key = *std::move(bytes);
  } else {
    key = value.get<std::string>();
  }
  if (key.size() <= demo_session::most_key_bytes) return key;
  throw error(errc::too_large, {"the key is too long for a demo filter", field,
                                fmt::format("at most {} bytes", app::count_text(demo_session::most_key_bytes)),
                                app::count_text(key.size()), "use the command-line tool, or insert a hash of the key"});
}

// The range of numbers, for errors.
std::string range_text(std::uint64_t least, std::uint64_t most) {
  return fmt::format("a whole number, {} to {}", app::count_text(least), app::count_text(most));
}

json or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }
json finite_or_null(double number) { return std::isfinite(number) ? json(number) : json(nullptr); }

// Whether the scheme counts cells from 1.
std::uint64_t first_number(const params& p) { return p.scheme == "pharo" ? 1 : 0; }

}  // namespace

fields::fields(std::string_view text) {
  body_check().read(text);
  object_ = json::parse(text);
  if (!object_.is_object()) refuse("body", "a JSON object", shown(object_), "put it in braces: {\"keys\": [...]}");
}

fields fields::of(json object) {
  if (!object.is_object()) refuse("body", "a JSON object", shown(object), "put it in braces");
  fields f;
  f.object_ = std::move(object);
  return f;
}

json fields::take(const std::string& name) {
  const auto at = object_.find(name);
  if (at == object_.end()) return nullptr;
  json value = std::move(*at);
  object_.erase(at);
  return value;
}

std::optional<std::uint64_t> fields::number_if_any(const std::string& name, std::uint64_t least, std::uint64_t most) {
  const json value = take(name);
  if (value.is_null()) return std::nullopt;
  std::uint64_t number = 0;
  const auto refused = [&](const std::string& hint) { refuse(name, range_text(least, most), shown(value), hint); };
  if (value.is_number_unsigned()) {
    number = value.get<std::uint64_t>();
  } else if (value.is_number_float() && value.get<double>() >= 0 &&
             value.get<double>() <= static_cast<double>(most_exact) &&
             std::floor(value.get<double>()) == value.get<double>()) {
    number = static_cast<std::uint64_t>(value.get<double>());  // such as 1e3
  } else {
    refused(value.is_number() ? fmt::format("give a whole number of at least {}", app::count_text(least))
                              : "give a number, without quotes");
  }
  if (number < least) refused(fmt::format("give {} or more", app::count_text(least)));
  if (number > most) refused(fmt::format("give {} or less", app::count_text(most)));
  return number;
}

std::uint64_t fields::number(const std::string& name, std::uint64_t least, std::uint64_t most) {
  const std::optional<std::uint64_t> number = number_if_any(name, least, most);
  if (!number) refuse(name, range_text(least, most), "nothing", "give a number");
  return *number;
}

std::optional<double> fields::rate_if_any(const std::string& name) {
  const json value = take(name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number() || !(value.get<double>() > 0 && value.get<double>() < 1)) {
    refuse(name, "a number between 0 and 1", shown(value), "use 0.01 for 1%");
  }
  return value.get<double>();
}

std::string fields::text_if_any(const std::string& name) {
  const json value = take(name);
  if (value.is_null()) return "";
  if (!value.is_string()) refuse(name, "a string", shown(value), "put it in quotes");
  return value.get<std::string>();
}

bool fields::flag(const std::string& name) {
  const json value = take(name);
  if (value.is_null()) return false;
  if (!value.is_boolean()) refuse(name, "true or false", shown(value), "use true or false, without quotes");
  return value.get<bool>();
}

std::uint64_t fields::seed(const std::string& name) {
  const json value = take(name);
  if (value.is_null()) return 0;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= most_exact) return value.get<std::uint64_t>();
  std::uint64_t number = 0;
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) {
    refuse(name, "a string of digits, up to 18446744073709551615", shown(value), "for example \"7\", with the quotes");
  }
  return number;
}

std::string fields::key(const std::string& name) {
  const json value = take(name);
  if (value.is_null()) refuse(name, "a string, or {\"base64\": \"...\"}", given(value), "give a key");
  return key_from(name, value);
}

fields fields::object(const std::string& name) {
  json value = take(name);
  if (!value.is_object()) refuse(name, "an object", given(value), "put it in braces: {\"capacity\": 1000}");
  return of(std::move(value));
}

key_list fields::keys(std::uint64_t most) {
  const json list = take("keys");
  if (list.is_null() && object_.contains("addresses")) {
    fields range = object("addresses");
    address_range addresses;
    addresses.seed = range.seed("seed");
    addresses.first = range.number_if_any("first", 0, most_exact).value_or(0);
    addresses.count = range.number("count", 1, demo_session::most_keys);
    range.end();
    return addresses;
  }
  if (!list.is_array()) refuse("keys", "a list of keys", given(list), "for example {\"keys\": [\"Madrid\"]}");
  if (list.size() > most) {
    throw error(errc::too_large,
                {"too many keys at once", "keys", fmt::format("at most {} per request", app::count_text(most)),
                 app::count_text(list.size()), "split them into several requests"});
  }
  std::vector<std::string> keys;
  keys.reserve(list.size());
  for (const json& key : list) keys.push_back(key_from("keys", key));
  return keys;
}

void fields::end() const {
  if (object_.empty()) return;
  throw error(errc::invalid_argument, {"unknown field", object_.begin().key().substr(0, 40), "", "",
                                       "omit it; docs/playground-api.md lists the fields"});
}

wanted_filter wanted_from(fields& body) {
  wanted_filter w;
  w.layout = body.text_if_any("layout");
  w.scheme = body.text_if_any("scheme");
  w.hash = body.text_if_any("hash");
  w.seed = body.seed("seed");
  w.capacity = body.number_if_any("capacity", 1, most_exact);
  w.rate = body.rate_if_any("rate");
  w.bits = body.number_if_any("bits", 1, most_exact);
  w.probes = body.number_if_any("probes", 1, 255);
  if (const auto keys = body.number_if_any("window_keys", 1, most_exact)) w.window = window_of_keys(*keys);
  if (const auto time = body.number_if_any("window_milliseconds", 1, most_exact)) {
    if (w.window) {
      throw error(errc::invalid_argument,
                  {"the window has two lengths", "window_milliseconds", "", "window_keys and window_milliseconds",
                   "omit window_keys or window_milliseconds"});
    }
    w.window = window_of_milliseconds(*time);
  }
  w.grows = body.flag("grows");
  return w;
}

json json_of_key(std::string_view key) {
  // nlohmann's serializer throws if the text is not UTF-8.
  json text = std::string(key);
  try {
    static_cast<void>(text.dump());
    return text;
  } catch (const json::type_error&) {
    return {{"base64", base64_of(key)}};
  }
}

json json_of_keys(const std::vector<std::string>& keys) {
  json list = json::array();
  for (const std::string& key : keys) list.push_back(json_of_key(key));
  return list;
}

json json_of(const params& p) {
  return {{"layout", or_null(p.layout)},
          {"scheme", or_null(p.scheme)},
          {"hash", or_null(p.hash)},
          {"family", name_of(family_of(p))},
          {"keys", name_of(p.keys)},
          {"seed", std::to_string(p.seed)},
          {"bits", p.geometry.bits},
          {"probes", p.geometry.probes},
          {"capacity", p.capacity},
          {"rate", p.target_fpr},
          {"block_cells", block_cells_of(p)},
          {"cell_bits", cell_bits_of(p)},
          {"cells", cells_of(p)},
          {"first_number", first_number(p)},
          {"window_keys", p.window().keys()},
          {"window_milliseconds", p.window().milliseconds()}};
}

json params_json(const filter_facts& f) {
  const params& p = f.parameters;
  json result = json_of(p);
  if (!f.layers.empty() || f.shared) {
    result["bits"] = f.bits;
    result["cells"] = f.bits / cell_bits_of(p);
  }
  if (f.shared ? f.shared->grows : !f.layers.empty()) result["family"] = "growing";
  if (f.shared && p.has_window()) result["family"] = "windowed";
  return result;
}

std::string alarm_of(const filter_facts& f) {
  if (!f.consistency || !f.consistency->alarm) return "";
  return fmt::format("{} bits are set than the key count explains",
                     f.consistency->count.deviation() > 0 ? "more" : "fewer");
}

json facts_json(const filter_facts& f, std::optional<std::uint64_t> keys) {
  const params& p = f.parameters;
  // Cells of static filters do not show which keys are present: all count as set.
  const std::uint64_t cells = f.static_keys ? cells_of(p) : f.fill->cells;
  const std::uint64_t ones = f.static_keys ? cells : f.fill->cells_set;
  json layers = json::array();
  std::uint64_t first_cell = 0;
  const auto add_layer = [&](std::uint64_t of_layer, const layer_facts& layer) {
    layers.push_back({{"first_cell", first_cell},
                      {"cells", of_layer},
                      {"capacity", layer.capacity},
                      {"keys", layer.insert_count},
                      {"ones", *layer.cells_set},
                      {"share", layer.target_fpr}});
    first_cell += of_layer;
  };
  for (const layer_facts& layer : f.layers) add_layer(layer.geometry.bits / cell_bits_of(p), layer);
  if (f.layers.empty() && !f.static_keys)
    add_layer(cells, {p.geometry, p.capacity, f.insert_count.value_or(f.distinct_keys), p.target_fpr, ones});
  json window = nullptr;
  if (f.window) {
    json generations = json::array();
    const std::uint64_t oldest = f.window->epoch - std::min<std::uint64_t>(f.window->epoch, window_slices);
    for (std::uint64_t epoch = f.window->epoch + 1; epoch-- > oldest;) {
      generations.push_back({{"epoch", epoch},
                             {"lane", epoch % window_generations},
                             {"keys", f.window->keys[epoch % window_generations]},
                             {"capacity", f.window->keys_per_slice}});
    }
    window = {{"epoch", f.window->epoch},
              {"part", f.window->slice},
              {"insertions", f.window->insertions},
              {"generations", generations}};
  }
  const estimate estimated =
      f.static_keys ? estimate{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}
                    : f.fill->estimated_keys.value_or(estimate{static_cast<double>(f.distinct_keys), 0});
  const bool counted = f.insert_count && !f.count_is_estimate;
  return {{"keys", keys ? json(*keys) : json(nullptr)},
          {"counted", counted ? json(*f.insert_count) : json(nullptr)},
          {"estimated", {{"value", finite_or_null(estimated.value)}, {"sigma", finite_or_null(estimated.sigma)}}},
          {"ones", ones},
          {"cells", cells},
          {"fill", cells == 0 ? 0 : static_cast<double>(ones) / static_cast<double>(cells)},
          {"certified", f.fill->current_fpr},
          {"predicted", f.expected_fpr.value_or(f.fill->current_fpr)},
          {"promised", p.target_fpr},
          {"keys_left", f.keys_left ? json(*f.keys_left) : json(nullptr)},
          {"alarm", or_null(alarm_of(f))},
          {"layers", layers},
          {"window", window}};
}

json json_of(const key_view& view, std::uint64_t block_cells) {
  json cells = json::array();
  for (const key_cell& c : view.cells) {
    cells.push_back({{"cell", c.at.cell},
                     {"layer", c.at.layer},
                     {"value", c.value},
                     {"again", c.again},
                     {"new", c.becomes_set},
                     {"owners", json_of_keys(c.owners)},
                     {"owner_count", c.owner_count}});
  }
  return {
      {"key", json_of_key(view.key)},
      {"answer", view.maybe ? "maybe" : "no"},
      {"truth", view.actual == membership::unknown ? json(nullptr) : json(name_of(view.actual))},
      {"false_positive", view.false_positive()},
      {"hash", view.hash ? json(fmt::format("{:016X} {:016X}", view.hash->hash64, view.hash->high64)) : json(nullptr)},
      {"numbers", view.numbers.empty() ? json(nullptr) : json(view.numbers)},
      {"block", block_cells == 0 || view.cells.empty() ? json(nullptr) : json(view.cells.back().at.cell / block_cells)},
      {"cells", cells}};
}

int status_of(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument: return 400;
    case errc::too_large: return 413;
    case errc::not_found: return 404;
    case errc::not_permitted: return 403;
    case errc::not_a_filter:
    case errc::wrong_version:
    case errc::damaged: return 422;
    case errc::incompatible:
    case errc::full: return 409;
    case errc::already_exists:
    case errc::locked: return 409;
    case errc::unavailable: return 503;
    case errc::io: return 500;
  }
  return 500;
}

json json_of(const error& e) {
  return {{"error",
           {{"code", name_of(e.code())},
            {"what", e.text().what},
            {"where", e.text().where},
            {"expected", e.text().expected},
            {"found", e.text().found},
            {"hint", name_of(e.text().hint.code)},
            {"way_out", e.text().hint.words()}}}};
}

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

}  // namespace bloomery::playground
