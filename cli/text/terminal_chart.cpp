// Charts in block characters: bars show the measured mean, marks the expected FPR. If both agree, the marks are at the
// top of the bars.
#include "cli/text/terminal_chart.hpp"

#include "app/numbers.hpp"
#include "cli/text/axis.hpp"
#include "cli/text/color.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr unsigned rows = 16;
constexpr unsigned least_columns = 40;
constexpr unsigned most_columns = 120;

struct symbols {
  std::array<const char*, 9> bar;  // in eighths of a cell
  const char* spread;
  const char* theory;
  const char* across;
  const char* down;
  const char* side;
  const char* tick;
  const char* corner;
  const char* floor;
  const char* floor_tick;
};

constexpr symbols in_unicode = {
    {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "░", "●", "╌", "┊", "│", "┤", "└", "─", "┬"};
constexpr symbols in_ascii = {
    {" ", " ", " ", " ", "#", "#", "#", "#", "#"}, ":", "o", "-", "!", "|", "+", "+", "-", "+"};

enum class paint { none, measured, theory, target };

const char* code(paint p) {
  switch (p) {
    case paint::measured: return "\x1B[34m";
    case paint::theory: return "\x1B[33m";
    case paint::target: return "\x1B[31m";
    default: return "\x1B[0m";
  }
}

struct cell {
  const char* symbol = " ";
  paint color = paint::none;
};

// Linear interpolation between points; constant before the first.
template <class Point, class Value>
double at_keys(const std::vector<Point>& points, double keys, Value value) {
  const auto next =
      std::find_if(points.begin(), points.end(), [&](const Point& p) { return static_cast<double>(p.keys) >= keys; });
  if (next == points.begin()) return value(points.front());
  if (next == points.end()) return value(points.back());
  const auto before = next - 1;
  const double share = (keys - static_cast<double>(before->keys)) / static_cast<double>(next->keys - before->keys);
  return value(*before) + share * (value(*next) - value(*before));
}

class picture {
 public:
  picture(const chart& c, const terminal_look& look)
      : chart_(c),
        look_(look),
        s_(look.unicode ? in_unicode : in_ascii),
        rates_(rate_axis(c.highest_rate(), c.target_fpr, 4)) {
    for (const double tick : rates_.ticks) margin_ = std::max(margin_, rate_label(rates_, tick).size());
    columns_ = std::min(look.columns, most_columns) - static_cast<unsigned>(margin_) - 3;
    keys_ = linear_axis(static_cast<double>(c.points.back().keys), columns_ / 16 + 1);
    cells_.resize(std::size_t{rows} * columns_);
  }

  std::string text() {
    fill();
    std::string all = "false-positive rate\n";
    for (unsigned row = rows; row-- > 0;) all += line(row);
    return all + floor() + key_labels() + legend();
  }

 private:
  cell& at(unsigned column, unsigned row) { return cells_[std::size_t{row} * columns_ + column]; }
  unsigned row_of(double rate) const { return std::min(rows - 1, static_cast<unsigned>(rates_.place(rate) * rows)); }
  unsigned column_of(double keys) const {
    return std::min(columns_ - 1, static_cast<unsigned>(keys_.place(keys) * columns_));
  }

  void fill() {
    const unsigned target_row = row_of(chart_.target_fpr);
    const unsigned capacity_column = column_of(static_cast<double>(chart_.capacity));
    for (unsigned column = 0; column < columns_; ++column) at(column, target_row) = {s_.across, paint::target};
    for (unsigned row = 0; row < rows; ++row) at(capacity_column, row) = {s_.down, paint::target};
    for (unsigned column = 0; column < columns_; ++column) {
      const double keys = (column + 0.5) / columns_ * keys_.high;
      const double mean = at_keys(chart_.points, keys, [](const measured_point& p) { return p.mean; });
      const double deviation = at_keys(chart_.points, keys, [](const measured_point& p) { return p.deviation; });
      for (unsigned row = 0; row <= row_of(mean + deviation); ++row) {
        if (rates_.place(mean + deviation) * rows > row + 0.5) at(column, row) = {s_.spread, paint::measured};
        const double eighths = std::clamp((rates_.place(mean) * rows - row) * 8, 0.0, 8.0);
        if (const auto symbol = s_.bar[static_cast<std::size_t>(eighths)]; *symbol != ' ') {
          at(column, row) = {symbol, paint::measured};
        }
      }
      const double theory = at_keys(chart_.theory, keys, [](const theory_point& p) { return p.rate; });
      at(column, row_of(theory)) = {s_.theory, paint::theory};
    }
  }

  std::string line(unsigned row) const {
    std::string label;
    for (const double tick : rates_.ticks) {
      if (row_of(tick) == row) label = rate_label(rates_, tick);
    }
    std::string text = fmt::format("{:>{}} {}", label, margin_, label.empty() ? s_.side : s_.tick);
    paint before = paint::none;
    for (unsigned column = 0; column < columns_; ++column) {
      const cell& c = cells_[std::size_t{row} * columns_ + column];
      if (look_.color && c.color != before) text += code(c.color);
      before = c.color;
      text += c.symbol;
    }
    if (look_.color && before != paint::none) text += code(paint::none);
    return trimmed(text) + "\n";
  }

  std::string floor() const {
    std::vector<const char*> marks(columns_, s_.floor);
    for (const double tick : keys_.ticks) marks[column_of(tick)] = s_.floor_tick;
    std::string text = std::string(margin_ + 1, ' ') + s_.corner;
    for (const char* mark : marks) text += mark;
    return text + "\n";
  }

  std::string key_labels() const {
    std::string text(margin_ + 2, ' ');
    for (const double tick : keys_.ticks) {
      const std::string label = count_text(static_cast<std::uint64_t>(std::llround(tick)));
      const std::size_t middle = margin_ + 2 + column_of(tick);
      const std::size_t start = std::min(middle - label.size() / 2, margin_ + 2 + columns_ - label.size());
      if (start < text.size() && tick != 0) continue;  // would overlap the previous label
      text.resize(std::max(text.size(), start), ' ');
      text.replace(start, std::string::npos, label + " ");
    }
    return trimmed(text) + "\n";
  }

  std::string legend() const {
    struct entry {
      const char* symbol;
      paint color;
      std::string words;
    };
    std::vector<entry> entries = {{s_.bar[8], paint::measured, chart_.runs == 1 ? "measured" : "measured, mean"}};
    if (chart_.runs > 1) entries.push_back({s_.spread, paint::measured, "+ 1 deviation"});
    entries.push_back({s_.theory, paint::theory, "expected"});
    entries.push_back({s_.across, paint::target, "p = " + rate_text(chart_.target_fpr)});
    entries.push_back({s_.down, paint::target, "n = " + count_text(chart_.capacity)});
    const std::string indent(margin_ + 2, ' ');
    std::string text = indent + "keys inserted";
    std::size_t space = 0;  // left on the line
    for (const entry& e : entries) {
      const std::size_t wanted = e.words.size() + 4;  // including the symbol and three spaces
      const bool fits = wanted <= space;
      if (!fits) space = std::max<std::size_t>(columns_ + 2, wanted);  // the first on a line needs no spaces before it
      space -= wanted;
      text += fits ? "  " : "\n" + indent;
      text += look_.color ? code(e.color) + std::string(e.symbol) + code(paint::none) : e.symbol;
      text += " " + e.words;
    }
    return text + "\n";
  }

  static std::string trimmed(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  const chart& chart_;
  terminal_look look_;
  const symbols& s_;
  axis rates_;
  axis keys_;
  std::size_t margin_ = 0;  // columns of the labels of the vertical axis
  unsigned columns_ = 0;    // of the plot
  std::vector<cell> cells_;
};

// The locale for characters; empty if the environment names none.
std::string_view locale_name() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

}  // namespace

terminal_look look_of_standard_output() {
  terminal_look look;
  const std::string_view locale = locale_name();
  look.unicode = locale.empty() || locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos ||
                 locale.find("utf-8") != locale.npos || locale.find("UTF8") != locale.npos;
  look.color = wants_color(STDOUT_FILENO);
  if (::isatty(STDOUT_FILENO) == 0) return look;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) look.columns = size.ws_col;
  return look;
}

std::string terminal_chart(const chart& c, const terminal_look& look) {
  if (look.columns < least_columns) return "";
  return picture(c, look).text();
}

}  // namespace bloomery::cli
