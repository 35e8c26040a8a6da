// json_fields: the fields of a small JSON object whose values may be long.
#include "app/json_fields.hpp"

#include <bloomery/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

namespace bloomery::app {
namespace {

constexpr std::size_t most_fields = 16;  // no format has more than 7

}  // namespace

// The events of the parser. A function that returns false ends parsing.
class json_fields::handler {
 public:
  explicit handler(json_fields& fields) : fields_(fields) {}

  bool null() { return fail("a value is null"); }
  bool boolean(bool) { return fail("a value is true or false"); }
  bool number_integer(std::int64_t) { return fail("a number is negative"); }
  bool number_float(double, const std::string&) { return fail("a number is not a 64-bit integer"); }
  bool binary(const std::vector<std::uint8_t>&) { return fail("a value is binary"); }

  bool number_unsigned(std::uint64_t number) {
    if (array_ == nullptr) return put(number);
    if (number > std::numeric_limits<std::uint32_t>::max()) return fail("a number in an array has more than 32 bits");
    array_->push_back(static_cast<std::uint32_t>(number));
    return true;
  }

  bool string(std::string& text) {
    return array_ == nullptr ? put(std::move(text)) : fail("an array has other values than numbers");
  }

  bool key(const std::string& name) {
    name_ = outer_ + name;
    return name.find('.') == std::string::npos || fail("the name of a field has a dot");
  }

  bool start_object(std::size_t) {
    if (array_ != nullptr || ++depth_ > 2) return fail("values are nested too deeply");
    if (depth_ == 1) return true;
    outer_ = name_ + '.';
    return put(std::monostate());
  }

  bool end_object() {
    --depth_;
    outer_.clear();
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ == 0) return fail("the value is an array");
    if (array_ != nullptr) return fail("values are nested too deeply");
    if (!put(std::vector<std::uint32_t>())) return false;
    array_ = &std::get<std::vector<std::uint32_t>>(fields_.fields_[name_]);
    return true;
  }

  bool end_array() {
    array_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    return fail("the text is not JSON at byte " + std::to_string(position));
  }

  const std::string& failure() const { return failure_; }

 private:
  bool fail(std::string what) {
    failure_ = std::move(what);
    return false;
  }

  bool put(any_value value) {
    if (depth_ == 0) return fail("the value is not an object");
    if (fields_.fields_.size() == most_fields) return fail("there are too many fields");
    return fields_.fields_.emplace(name_, std::move(value)).second || fail("a field occurs twice");
  }

  json_fields& fields_;
  unsigned depth_ = 0;
  std::string outer_;                            // "a." within object a
  std::string name_;                             // of the next value
  std::vector<std::uint32_t>* array_ = nullptr;  // the values are elements of this array
  std::string failure_;
};

json_fields::json_fields(std::span<const std::uint8_t> text, const std::string& path) : path_(path) {
  handler events(*this);
  // The parser takes a NUL byte for the end of the text.
  if (std::find(text.begin(), text.end(), 0) != text.end()) refuse("not the JSON of a filter", "text", "a NUL byte");
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &events)) return;
  refuse("not the JSON of a filter: " + events.failure(), "", "");
}

bool json_fields::has_exactly(std::span<const std::string_view> names) const {
  return fields_.size() == names.size() &&
         std::all_of(names.begin(), names.end(), [this](std::string_view name) { return fields_.contains(name); });
}

void json_fields::check_names(std::span<const std::string_view> names) const {
  for (const std::string_view name : names) {
    if (!fields_.contains(name)) refuse("a field is missing", std::string(name), "");
  }
  if (fields_.size() == names.size()) return;
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  refuse("the object has other fields", all, std::to_string(fields_.size()) + " fields");
}

template <class T>
const T& json_fields::value_of(const std::string& name, const char* type) const {
  const auto found = fields_.find(name);
  if (found == fields_.end()) refuse("a field is missing", name, "");
  const T* const value = std::get_if<T>(&found->second);
  if (value == nullptr) refuse("field " + name, type, "another type");
  return *value;
}

std::uint64_t json_fields::number(const std::string& name, std::uint64_t least, std::uint64_t most) const {
  const auto value = value_of<std::uint64_t>(name, "a number");
  if (value < least || value > most) {
    const std::string range =
        least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
    refuse("field " + name, range, std::to_string(value));
  }
  return value;
}

const std::string& json_fields::text(const std::string& name) const { return value_of<std::string>(name, "a string"); }

const std::vector<std::uint32_t>& json_fields::numbers(const std::string& name) const {
  return value_of<std::vector<std::uint32_t>>(name, "an array");
}

void json_fields::refuse(std::string what, std::string expected, std::string found) const {
  throw error(errc::damaged, {std::move(what), path_, std::move(expected), std::move(found), hint::restore_file});
}

}  // namespace bloomery::app
