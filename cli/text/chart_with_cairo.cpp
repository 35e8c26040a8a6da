// Charts drawn by cairo: one drawing function for all file types, in points on a page of 960 by 600.
//
//   title
//   subtitle
//   legend            n = ...
//         +--------------+----------+
//   rate  |              :     ___/ |
//         | . . . . . . .:__/ . . . | p = ...
//         |_______/------:          |
//         +--------------+----------+
//                 keys inserted
#include "cli/text/chart.hpp"

#include "app/numbers.hpp"
#include "cli/text/axis.hpp"

#include <bloomery/error.hpp>

#include <cairo-svg.h>
#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>

namespace bloomery::cli {
namespace {

constexpr double width = 960;
constexpr double height = 600;
constexpr double left = 92;  // the frame
constexpr double right = 850;
constexpr double top = 128;
constexpr double bottom = 536;
constexpr double png_scale = 2;  // pixels per point, for high-resolution screens and print

struct color {
  double red, green, blue;
};

// Distinct for color-blind readers and in grayscale. [Okabe & Ito 2008]
constexpr color ink{0.13, 0.13, 0.13};
constexpr color faint{0.88, 0.88, 0.88};
constexpr color orange{0.90, 0.62, 0.00};
constexpr color blue{0.00, 0.27, 0.55};
constexpr color sky{0.34, 0.71, 0.91};
constexpr color vermillion{0.84, 0.37, 0.00};

class drawing {
 public:
  drawing(cairo_t* to, const chart& c)
      : to_(to),
        chart_(c),
        keys_(linear_axis(static_cast<double>(c.points.back().keys) * 1.01, c.capacity < 100'000'000 ? 8 : 4)),
        rates_(rate_axis(c.highest_rate(), c.target_fpr, 7)) {}

  void draw() {
    set(color{1, 1, 1});
    cairo_paint(to_);
    text(left, 34, 0, 18, chart_.title, true);
    text(left, 56, 0, 13, chart_.subtitle);
    draw_legend();
    draw_grid();
    draw_curves();
    draw_targets();
    draw_frame();
  }

 private:
  double x(double keys) const { return left + keys_.place(keys) * (right - left); }
  double y(double rate) const { return bottom - rates_.place(rate) * (bottom - top); }

  void set(color c, double alpha = 1) { cairo_set_source_rgba(to_, c.red, c.green, c.blue, alpha); }

  // @param anchor  0: the text starts at x, 1: it ends at x, 0.5: it is centered. Returns the width.
  double text(double at_x, double at_y, double anchor, double size, const std::string& words, bool bold = false) {
    set(ink);
    cairo_select_font_face(to_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(to_, size);
    cairo_text_extents_t extents;
    cairo_text_extents(to_, words.c_str(), &extents);
    cairo_move_to(to_, at_x - anchor * extents.x_advance, at_y);
    cairo_show_text(to_, words.c_str());
    cairo_new_path(to_);
    return extents.x_advance;
  }

  void line(double x1, double y1, double x2, double y2, double thickness) {
    cairo_move_to(to_, x1, y1);
    cairo_line_to(to_, x2, y2);
    cairo_set_line_width(to_, thickness);
    cairo_stroke(to_);
  }

  // Dots are strokes of length 0 with round caps: a compact form for thousands of dots.
  void dot(double at_x, double at_y) {
    cairo_move_to(to_, at_x, at_y);
    cairo_line_to(to_, at_x, at_y);
  }

  void stroke_dots(double size) {
    cairo_set_line_cap(to_, CAIRO_LINE_CAP_ROUND);
    cairo_set_line_width(to_, size);
    cairo_stroke(to_);
    cairo_set_line_cap(to_, CAIRO_LINE_CAP_BUTT);
  }

  void dashes(bool on) {
    static constexpr double pattern[] = {7, 5};
    cairo_set_dash(to_, pattern, on ? 2 : 0, 0);
  }

  void legend_entry(double& at, const std::string& words, const std::function<void(double x)>& sample) {
    sample(at);
    at += 34 + text(at + 34, 85, 0, 13, words) + 22;
  }

  void draw_legend() {
    constexpr double middle = 80;
    double at = left;
    legend_entry(at, "expected", [&](double x1) {
      set(orange);
      line(x1, middle, x1 + 28, middle, 5);
    });
    legend_entry(at, chart_.runs == 1 ? "measured" : "measured, mean", [&](double x1) {
      set(blue);
      line(x1, middle, x1 + 28, middle, 1.8);
    });
    if (chart_.runs > 1) {
      legend_entry(at, "± 1 standard deviation", [&](double x1) {
        set(sky, 0.4);
        cairo_rectangle(to_, x1, middle - 7, 28, 14);
        cairo_fill(to_);
      });
    }
    legend_entry(at, "single run", [&](double x1) {
      set(blue, 0.55);
      for (const double by : {4, 14, 24}) dot(x1 + by, middle + (by == 14 ? -3 : 3));
      stroke_dots(3.4);
    });
    legend_entry(at, "capacity and target FPR", [&](double x1) {
      set(vermillion);
      dashes(true);
      line(x1, middle, x1 + 28, middle, 1.5);
      dashes(false);
    });
  }

  void draw_grid() {
    for (const double tick : keys_.ticks) {
      set(faint);
      line(x(tick), top, x(tick), bottom, 1);
      text(x(tick), bottom + 20, 0.5, 13, count_text(static_cast<std::uint64_t>(std::llround(tick))));
    }
    for (const double tick : rates_.ticks) {
      set(faint);
      line(left, y(tick), right, y(tick), 1);
      text(left - 8, y(tick) + 4.5, 1, 13, rate_label(rates_, tick));
    }
    text((left + right) / 2, height - 18, 0.5, 14, "keys inserted");
    cairo_save(to_);
    cairo_translate(to_, 22, (top + bottom) / 2);
    cairo_rotate(to_, -std::numbers::pi / 2);
    text(0, 0, 0.5, 14, rates_.logarithmic ? "false-positive rate (powers of ten)" : "false-positive rate");
    cairo_restore(to_);
  }

  void draw_curves() {
    cairo_save(to_);
    cairo_rectangle(to_, left, top, right - left, bottom - top + 4);  // does not clip dots at 0
    cairo_clip(to_);
    const auto& points = chart_.points;
    if (chart_.runs > 1) {
      for (const measured_point& p : points) cairo_line_to(to_, x_of(p), y(p.mean + p.deviation));
      for (auto p = points.rbegin(); p != points.rend(); ++p) cairo_line_to(to_, x_of(*p), y(p->mean - p->deviation));
      set(sky, 0.4);
      cairo_fill(to_);
    }
    for (const theory_point& p : chart_.theory) cairo_line_to(to_, x(static_cast<double>(p.keys)), y(p.rate));
    set(orange);
    cairo_set_line_join(to_, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_width(to_, 5);
    cairo_stroke(to_);
    // One stroke per run, so that overlapping dots of several runs are darker.
    for (std::size_t run = 0; run < chart_.runs; ++run) {
      for (const measured_point& p : points) dot(x_of(p), y(p.rates[run]));
      set(blue, points.size() > 50 ? 0.35 : 0.55);
      stroke_dots(points.size() > 50 ? 2.4 : 3.4);
    }
    for (const measured_point& p : points) cairo_line_to(to_, x_of(p), y(p.mean));
    set(blue);
    cairo_set_line_width(to_, 1.8);
    cairo_stroke(to_);
    cairo_restore(to_);
  }

  double x_of(const measured_point& p) const { return x(static_cast<double>(p.keys)); }

  void draw_targets() {
    const double at_x = x(static_cast<double>(chart_.capacity));
    const double at_y = y(chart_.target_fpr);
    dashes(true);
    set(vermillion);
    line(left, at_y, right, at_y, 1.5);
    set(vermillion);
    line(at_x, top - 4, at_x, bottom, 1.5);
    dashes(false);
    text(at_x, top - 10, 0.5, 13, "n = " + count_text(chart_.capacity));
    text(right + 8, at_y + 4.5, 0, 13, "p = " + rate_text(chart_.target_fpr));
  }

  void draw_frame() {
    set(ink);
    line(left, top, left, bottom, 1.2);
    line(left, bottom, right, bottom, 1.2);
  }

  cairo_t* to_;
  const chart& chart_;
  axis keys_;
  axis rates_;
};

cairo_status_t append_to(void* bytes, const unsigned char* some, unsigned size) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(some), size);
  return CAIRO_STATUS_SUCCESS;
}

void check(cairo_status_t status) {
  if (status == CAIRO_STATUS_SUCCESS) return;
  throw error(errc::io,
              {std::string("cannot draw the chart: ") + cairo_status_to_string(status), "--output", "", "", ""});
}

struct destroy {
  void operator()(cairo_t* c) const { cairo_destroy(c); }
  void operator()(cairo_surface_t* s) const { cairo_surface_destroy(s); }
};
using surface = std::unique_ptr<cairo_surface_t, destroy>;

void draw_on(cairo_surface_t* page, const chart& c, double scale) {
  const std::unique_ptr<cairo_t, destroy> to(cairo_create(page));
  cairo_scale(to.get(), scale, scale);
  drawing(to.get(), c).draw();
  check(cairo_status(to.get()));
}

}  // namespace

void require_charts() {}

std::string svg_of(const chart& c) {
  std::string bytes;
  const surface page(cairo_svg_surface_create_for_stream(append_to, &bytes, width, height));
  draw_on(page.get(), c, 1);
  cairo_surface_finish(page.get());
  check(cairo_surface_status(page.get()));
  return bytes;
}

std::string png_of(const chart& c) {
  std::string bytes;
  const surface page(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width * png_scale),
                                                static_cast<int>(height * png_scale)));
  draw_on(page.get(), c, png_scale);
  check(cairo_surface_write_to_png_stream(page.get(), append_to, &bytes));
  return bytes;
}

}  // namespace bloomery::cli
