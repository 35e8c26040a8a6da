// meta and shard_view: parsing and formatting the data of a shared filter on its servers.
#include "redis/filter/meta.hpp"

#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/layouts/sliding.hpp>

#include "redis/net/router.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <random>
#include <utility>

namespace bloomery::redis {
namespace {

constexpr std::string_view magic = "bloomery=1\n";

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw error(errc::damaged, {"the description of the filter: " + what, where, "", "", hint::remove_and_build_again});
}

const char* name_of(redis_growth g) {
  constexpr const char* names[] = {"none", "to_maximum", "unlimited"};
  return names[static_cast<std::size_t>(g)];
}

template <class Number>
Number number_in(std::string_view text, const std::string& where) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) {
    damaged(where, "'" + std::string(text.substr(0, 40)) + "' is not a number");
  }
  return value;
}

std::string exactly(double value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string key_of(std::string_view instance, std::uint64_t shard, std::string_view rest) {
  return "{" + std::string(instance) + ":" + std::to_string(shard) + "}:" + std::string(rest);
}

redis_layer layer_in(std::string_view text, const std::string& where) {
  const std::size_t first = text.find(' ');
  const std::size_t second = first == text.npos ? text.npos : text.find(' ', first + 1);
  if (second == text.npos) damaged(where, "a layer is unreadable");
  redis_layer layer{number_in<std::uint64_t>(text.substr(0, first), where),
                    number_in<std::uint32_t>(text.substr(first + 1, second - first - 1), where),
                    number_in<std::uint64_t>(text.substr(second + 1), where)};
  if (layer.lines == 0 || layer.lines > std::uint64_t{1} << 23 || layer.probes == 0 || layer.probes > 255) {
    damaged(where, "the size of a layer is out of range");
  }
  return layer;
}

}  // namespace

stamp new_stamp() {
  std::random_device random;
  stamp s;
  for (std::size_t i = 0; i < s.size(); i += sizeof(std::uint32_t)) {
    const std::uint32_t some = random();
    std::memcpy(s.data() + i, &some, sizeof some);
  }
  s[0] = static_cast<char>(s[0] | 1);  // neither zeros, which end a closed layer, nor the token of a repair
  return s;
}

stamp new_repair_token() {
  stamp s = new_stamp();
  s[0] = 'r';
  static_assert('r' % 2 == 0);
  return s;
}

bool is_stamp(std::string_view text) noexcept { return text.size() == stamp{}.size() && (text[0] & 1) != 0; }

stamp first_stamp(std::uint64_t epoch, std::uint64_t shard) noexcept {
  const std::uint64_t both[2] = {epoch, shard};
  const key_hash hash = xxh3{epoch}({reinterpret_cast<const char*>(both), sizeof both});
  stamp s;
  std::memcpy(s.data(), &hash, s.size());
  s[0] = static_cast<char>(s[0] | 1);
  return s;
}

std::int64_t meta::end_of_generation(std::int64_t generation) const noexcept {
  const std::uint64_t start = static_cast<std::uint64_t>(generation) * slice();
  return static_cast<std::int64_t>(expiry_of_slice(parameters.filter.window(), start));
}

std::int64_t meta::earliest_end_of_generation(std::int64_t generation) const noexcept {
  return (generation + window_generations) * static_cast<std::int64_t>(slice());
}

bool meta::may_have(std::int64_t generation) const noexcept {
  constexpr std::uint64_t latest = std::uint64_t{1} << 58;  // milliseconds
  return generation >= 0 && static_cast<std::uint64_t>(generation) <= latest / std::max<std::uint64_t>(slice(), 1);
}

std::string meta::text() const {
  const params& p = parameters.filter;
  std::string text(magic);
  const auto line = [&](std::string_view name, const std::string& value) {
    text.append(name).append("=").append(value).append("\n");
  };
  line("state", ready ? "ready" : "in the making");
  line("instance", instance);
  line("epoch", std::to_string(epoch));
  line("layout", p.layout);
  line("hash", p.hash);
  line("keys", bloomery::name_of(p.keys));
  line("seed", std::to_string(p.seed));
  line("key_check", std::to_string(p.key_check));
  line("capacity", std::to_string(p.capacity));
  line("rate", exactly(p.target_fpr));
  line("window", std::to_string(p.window().milliseconds()));
  line("growth", name_of(parameters.growth));
  line("maximum", std::to_string(parameters.maximum));
  line("shards", std::to_string(parameters.shards));
  line("layer", text_of(first));
  line("expires", std::to_string(expires_at));
  line("generation", std::to_string(first_generation));
  return text;
}

meta meta::parse(std::string_view text, const redis_address& address) {
  const std::string where = address.text();
  if (!text.starts_with("bloomery=")) {
    throw error(errc::not_a_filter,
                {"the key with this name is not a filter", where, "a description that starts with 'bloomery='",
                 "other bytes", hint::choose_another_name});
  }
  if (!text.starts_with(magic)) {
    throw error(errc::wrong_version,
                {"unsupported version of a shared filter", where, "version 1",
                 std::string(text.substr(0, std::min<std::size_t>(text.find('\n'), 20))), hint::use_its_version});
  }
  std::map<std::string_view, std::string_view, std::less<>> fields;
  for (std::string_view rest = text.substr(magic.size()); !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::size_t equals = rest.find('=');
    if (end == rest.npos || equals > end) damaged(where, "a line is unreadable");
    fields[rest.substr(0, equals)] = rest.substr(equals + 1, end - equals - 1);
    rest.remove_prefix(end + 1);
  }
  const auto field = [&](std::string_view name) {
    const auto found = fields.find(name);
    if (found == fields.end()) damaged(where, "'" + std::string(name) + "' is missing");
    return found->second;
  };
  const auto number = [&](std::string_view name) { return number_in<std::uint64_t>(field(name), where); };
  meta m;
  redis_params& all = m.parameters;
  params& p = all.filter;
  m.ready = field("state") == "ready";
  m.instance = field("instance");
  m.epoch = number("epoch");
  p.layout = field("layout");
  p.hash = field("hash");
  p.keys = field("keys") == bloomery::name_of(key_kind::u64le) ? key_kind::u64le : key_kind::bytes;
  p.seed = number("seed");
  p.key_check = number("key_check");
  p.capacity = number("capacity");
  p.target_fpr = number_in<double>(field("rate"), where);
  if (const std::uint64_t window = number("window"); window != 0) p.extra = window_of_milliseconds(window);
  all.growth = field("growth") == name_of(redis_growth::none)         ? redis_growth::none
               : field("growth") == name_of(redis_growth::to_maximum) ? redis_growth::to_maximum
                                                                      : redis_growth::unlimited;
  all.maximum = number("maximum");
  all.shards = number("shards");
  m.first = layer_in(field("layer"), where);
  m.expires_at = number_in<std::int64_t>(field("expires"), where);
  m.first_generation = number_in<std::int64_t>(field("generation"), where);
  const layout_facts* layout = find_layout_facts(p.layout);
  if (layout == nullptr || !layout->may_be_shared || all.shards == 0 || all.shards > std::uint64_t{1} << 24 ||
      !(p.target_fpr > 0 && p.target_fpr < 1) ||
      (layout->fixed_probes != 0 && m.first.probes != layout->fixed_probes) || (p.window().count >> 53) != 0 ||
      !m.may_have(m.first_generation)) {
    damaged(where, "its values are inconsistent");
  }
  if (m.instance != instance_of(address.name, m.epoch)) damaged(where, "its shards belong to another filter");
  p.geometry = m.first.whole(all.shards);
  return m;
}

std::optional<meta> read_meta(router& servers) {
  const redis_address& address = servers.address();
  const std::string key = meta_key(address.name);
  batch commands;
  commands.begin(slot_of(key), mode::write);
  commands.command({"GET", key});
  commands.command({"GET", second_key(address.name)});
  std::optional<meta> found;
  servers.run(commands, [&](std::size_t, reply r) {
    throw_if_error(r, address, "open the filter");
    throw_if_error(r.next(), address, "open the filter");
    if (r.is_nil()) r = r.next();
    if (!r.is_nil()) found = meta::parse(r.text(), address);
  });
  return found;
}

bool hash_alike(const params& a, const params& b) noexcept {
  return a.hash == b.hash && a.keys == b.keys && a.seed == b.seed && a.key_check == b.key_check;
}

std::string key_name(std::string_view name) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string result;
  for (const char c : name) {
    if (c == '{' || c == '}' || c == '%' || c == '~' || c == '\n') {
      const auto byte = static_cast<unsigned char>(c);
      result += {'%', digits[byte >> 4], digits[byte & 15]};
    } else {
      result += c;
    }
  }
  return result;
}

std::string instance_of(std::string_view name, std::uint64_t epoch) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = key_name(name) + "~";
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[epoch >> shift & 15];
  return text;
}

std::string meta_key(std::string_view name) { return "{" + key_name(name) + "}:m"; }
std::string second_key(std::string_view name) { return "{" + key_name(name) + "}:m2"; }
std::string replacement_key(std::string_view name) { return "{" + key_name(name) + "}:n"; }
std::string mark_key(std::string_view instance) {
  const std::size_t tilde = std::min(instance.find('~'), instance.size());
  return "{" + std::string(instance.substr(0, tilde)) + "}:gone" + std::string(instance.substr(tilde));
}
std::string repair_key(std::string_view name) { return "{" + key_name(name) + "}:repair"; }
std::string header_key(const meta& m, std::uint64_t shard) { return header_key(m.instance, shard); }
std::string header_key(std::string_view instance, std::uint64_t shard) { return key_of(instance, shard, "h"); }
std::string layer_key(const meta& m, std::uint64_t shard, std::int64_t layer) {
  return key_of(m.instance, shard, std::to_string(layer));
}
std::string closed_layer_key(const meta& m, std::uint64_t shard, std::int64_t layer) {
  return layer_key(m, shard, layer) + (m.renames_closed_layers() ? "c" : "");
}
std::string layer_key(const meta& m, std::uint64_t shard, const shard_view& v, std::size_t l) {
  return l + 1 < v.numbers.size() ? closed_layer_key(m, shard, v.numbers[l]) : layer_key(m, shard, v.numbers[l]);
}

std::uint64_t shard_view::capacity() const noexcept {
  std::uint64_t sum = 0;
  for (const redis_layer& layer : layers) sum += layer.capacity;
  return sum;
}

std::string_view field_of(const reply& header, std::string_view name) noexcept {
  for (std::size_t i = 0; i + 1 < header.size(); i += 2) {
    if (header[i].text() == name) return header[i + 1].text();
  }
  return {};
}

shard_view first_view(const meta& m, std::uint64_t shard) {
  shard_view view;
  view.stamp = first_stamp(m.epoch, shard);
  view.layers = {m.first};
  view.numbers = {m.first_generation};
  return view;
}

std::string text_of(const redis_layer& layer) {
  return std::to_string(layer.lines) + " " + std::to_string(layer.probes) + " " + std::to_string(layer.capacity);
}

std::string text_of(std::span<const std::int64_t> numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::optional<shard_view> view_of(const meta& m, const reply& header, const std::string& where,
                                  const shard_view* before) {
  std::map<std::string_view, std::string_view, std::less<>> fields;
  if (header.size() > 1000) damaged(where, "a header has too many fields");
  for (std::size_t i = 0; i + 1 < header.size(); i += 2) fields[header[i].text()] = header[i + 1].text();
  const auto found = fields.find("epoch");
  if (found == fields.end() || found->second != std::to_string(m.epoch)) return std::nullopt;
  shard_view view;
  view.known = true;
  const std::string_view stamped = fields["stamp"];
  if (stamped.size() != view.stamp.size()) damaged(where, "a shard's version is unreadable");
  std::copy(stamped.begin(), stamped.end(), view.stamp.begin());
  view.next = fields["next"];
  const std::string others = m.instance.substr(0, m.instance.find('~')) + "~";
  if (!view.next.empty() && !view.next.starts_with(others))
    damaged(where, "the replacement mark of a shard names another filter");
  view.repairing = fields["repairing"];
  view.repaired = fields["repaired"];
  if (!view.repairing.empty() && (view.repairing.size() != view.stamp.size() || is_stamp(view.repairing))) {
    damaged(where, "the repair token of a shard is unreadable");
  }
  if (before != nullptr && before->repaired != view.repaired) before = nullptr;
  for (std::string_view rest = fields["layers"];;) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const auto number = number_in<std::int64_t>(rest.substr(0, end), where);
    const std::size_t l = view.numbers.size();
    const bool follows = m.has_window() ? l == 0 || number > view.newest() : number == static_cast<std::int64_t>(l);
    if (!follows) damaged(where, "the layers of a shard are inconsistent");
    if (l >= 64) damaged(where, "a shard has too many layers");
    if (m.has_window() && !m.may_have(number)) damaged(where, "the number of a generation is out of range");
    view.numbers.push_back(number);
    view.layers.push_back(m.has_window() ? m.first : layer_in(fields["layer" + std::to_string(number)], where));
    const redis_layer& layer = view.layers.back();
    const redis_layer* const was = before != nullptr && l < before->layers.size() ? &before->layers[l]
                                   : l == 0                                       ? &m.first
                                                                                  : nullptr;
    if (was != nullptr && layer != *was) damaged(where, "the size of a layer has changed");
    const layout_row& layout = *find_layout(m.parameters.filter.layout);
    if (layout.fixed_probes != 0 && layer.probes != layout.fixed_probes) damaged(where, "a layer has another layout");
    layout.check(layer.whole(m.shards()));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return view;
}

}  // namespace bloomery::redis
