// See windows.h. Everything here moves memory: runs of a row of pixels, or of a pixel's channels.
#include "torch/windows.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "torch/grain.h"

namespace janus::torch {

namespace {

/// The windows [first, last) along one dimension of which a tap lies in the image; that of window
/// i lies at i * stride + offset.
struct Span {
  int64_t first = 0, last = 0, offset = 0;
};

Span span(const Windows& windows, size_t dimension, int64_t tap) {
  const int64_t stride = windows.stride[dimension];
  const int64_t offset = tap * windows.dilation[dimension] - windows.padding[dimension];
  const int64_t room = windows.image[dimension] - offset;  // below it a window has to begin
  Span result{.offset = offset};
  result.first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  result.last = room <= 0 ? 0 : (room + stride - 1) / stride;
  result.first = std::min(result.first, windows.result[dimension]);
  result.last = std::clamp(result.last, result.first, windows.result[dimension]);
  return result;
}

/// Of each tap along one dimension.
std::vector<Span> spans(const Windows& windows, size_t dimension) {
  std::vector<Span> result;
  for (int64_t tap = 0; tap < windows.filter[dimension]; ++tap)
    result.push_back(span(windows, dimension, tap));
  return result;
}

struct AllSpans {
  std::vector<Span> rows, columns;
  explicit AllSpans(const Windows& windows) : rows(spans(windows, 0)), columns(spans(windows, 1)) {}
};

/// One tap of all windows of a plane.
void gather_tap(const float* plane, const Windows& windows, const Span& down, const Span& across,
                float* __restrict to) {
  const int64_t width = windows.result[1], stride = windows.stride[1];
  std::fill(to, to + down.first * width, 0.0F);
  for (int64_t y = down.first; y < down.last; ++y) {
    const float* from =
        plane + (y * windows.stride[0] + down.offset) * windows.image[1] + across.offset;
    float* __restrict row = to + y * width;
    for (int64_t x = 0; x < across.first; ++x) row[x] = 0;
    if (stride == 1) {
      for (int64_t x = across.first; x < across.last; ++x) row[x] = from[x];
    } else {
      for (int64_t x = across.first; x < across.last; ++x) row[x] = from[x * stride];
    }
    for (int64_t x = across.last; x < width; ++x) row[x] = 0;
  }
  std::fill(to + down.last * width, to + windows.count(), 0.0F);
}

/// The way back; adds.
void scatter_tap(const float* from, const Windows& windows, const Span& down, const Span& across,
                 float* __restrict plane) {
  const int64_t stride = windows.stride[1];
  for (int64_t y = down.first; y < down.last; ++y) {
    const float* row = from + y * windows.result[1];
    float* __restrict to =
        plane + (y * windows.stride[0] + down.offset) * windows.image[1] + across.offset;
    if (stride == 1) {
      for (int64_t x = across.first; x < across.last; ++x) to[x] += row[x];
    } else {
      for (int64_t x = across.first; x < across.last; ++x) to[x * stride] += row[x];
    }
  }
}

/// Calls `plane(channel, image)` for all of them.
template <class Plane>
void for_each_plane(int64_t batch, const Windows& windows, const Plane& plane) {
  const int64_t work = windows.taps() * windows.count();
  const int64_t count = windows.channels * batch;
  parallel_for(count, grain(count, work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) plane(i / batch, i % batch);
  });
}

/// Calls `line(image, y)` for these lines, of windows or of pixels, `height` an image.
template <class Line>
void for_each_line(Lines lines, int64_t height, int64_t work, const Line& line) {
  const int64_t count = lines.last - lines.first;
  parallel_for(count, grain(count, work), [&](int64_t begin, int64_t end) {
    for (int64_t i = lines.first + begin; i < lines.first + end; ++i) line(i / height, i % height);
  });
}

/// The taps of one window, each a pixel's channels; null where there is no pixel.
void find_pixels(const float* image, const Windows& windows, int64_t y, int64_t x,
                 std::vector<const float*>& taps) {
  size_t tap = 0;
  for (int64_t r = 0; r < windows.filter[0]; ++r) {
    const int64_t row = y * windows.stride[0] - windows.padding[0] + r * windows.dilation[0];
    for (int64_t s = 0; s < windows.filter[1]; ++s, ++tap) {
      const int64_t column = x * windows.stride[1] - windows.padding[1] + s * windows.dilation[1];
      const bool inside =
          row >= 0 && row < windows.image[0] && column >= 0 && column < windows.image[1];
      taps[tap] = inside ? image + (row * windows.image[1] + column) * windows.channels : nullptr;
    }
  }
}

void gather_window(const std::vector<const float*>& taps, int64_t channels, RowOrder order,
                   float* __restrict to) {
  const auto count = static_cast<int64_t>(taps.size());
  for (int64_t tap = 0; tap < count; ++tap) {
    const float* from = taps[static_cast<size_t>(tap)];
    const bool apart = order == RowOrder::channels_taps;
    float* __restrict first = apart ? to + tap : to + tap * channels;
    if (from == nullptr) {
      for (int64_t c = 0; c < channels; ++c) first[apart ? c * count : c] = 0;
    } else if (apart) {
      for (int64_t c = 0; c < channels; ++c) first[c * count] = from[c];
    } else {
      std::copy_n(from, channels, first);
    }
  }
}

/// Which window a pixel is in as a tap, along one dimension; below zero: none.
int64_t window_of(const Windows& windows, size_t dimension, int64_t pixel, int64_t tap) {
  const int64_t from = pixel + windows.padding[dimension] - tap * windows.dilation[dimension];
  if (from < 0 || from % windows.stride[dimension] != 0) return -1;
  const int64_t window = from / windows.stride[dimension];
  return window < windows.result[dimension] ? window : -1;
}

bool is_among(int64_t window, Lines lines) {
  return window >= std::max<int64_t>(0, lines.first) && window < lines.last;
}

/// Whether windows of the image's lines see anything of that row of pixels.
bool see_pixels(const Windows& windows, Lines lines, int64_t y) {
  for (int64_t r = 0; r < windows.filter[0]; ++r)
    if (is_among(window_of(windows, 0, y, r), lines)) return true;
  return false;
}

/// Adds what the windows of the image's lines have for one pixel.
void scatter_to_pixel(const float* rows, const Windows& windows, RowOrder order, Lines lines,
                      int64_t y, int64_t x, float* __restrict to) {
  const int64_t channels = windows.channels, taps = windows.taps();
  for (int64_t r = 0; r < windows.filter[0]; ++r) {
    const int64_t row = window_of(windows, 0, y, r);
    if (!is_among(row, lines)) continue;
    for (int64_t s = 0; s < windows.filter[1]; ++s) {
      const int64_t column = window_of(windows, 1, x, s);
      if (column < 0) continue;
      const int64_t tap = r * windows.filter[1] + s;
      const float* from =
          rows + ((row - lines.first) * windows.result[1] + column) * taps * channels;
      if (order == RowOrder::taps_channels) {
        for (int64_t c = 0; c < channels; ++c) to[c] += from[tap * channels + c];
      } else {
        for (int64_t c = 0; c < channels; ++c) to[c] += from[c * taps + tap];
      }
    }
  }
}

}  // namespace

bool Windows::are_pixels() const {
  return filter == Pair{1, 1} && stride == Pair{1, 1} && padding == Pair{0, 0};
}

void gather_planes(const float* images, int64_t batch, const Windows& windows, float* columns) {
  const AllSpans taps(windows);
  const int64_t count = windows.count();
  for_each_plane(batch, windows, [&](int64_t channel, int64_t image) {
    const float* plane = images + (image * windows.channels + channel) * windows.pixels();
    float* to = columns + (channel * windows.taps() * batch + image) * count;
    for (const Span& down : taps.rows) {
      for (const Span& across : taps.columns) {
        gather_tap(plane, windows, down, across, to);
        to += batch * count;
      }
    }
  });
}

void scatter_planes(const float* columns, int64_t batch, const Windows& windows, float* images) {
  const AllSpans taps(windows);
  const int64_t count = windows.count();
  for_each_plane(batch, windows, [&](int64_t channel, int64_t image) {
    float* plane = images + (image * windows.channels + channel) * windows.pixels();
    const float* from = columns + (channel * windows.taps() * batch + image) * count;
    if (windows.are_pixels()) return static_cast<void>(std::copy_n(from, count, plane));
    std::fill_n(plane, windows.pixels(), 0.0F);
    for (const Span& down : taps.rows) {
      for (const Span& across : taps.columns) {
        scatter_tap(from, windows, down, across, plane);
        from += batch * count;
      }
    }
  });
}

void gather_rows(const float* images, const Windows& windows, RowOrder order, Lines lines,
                 float* rows) {
  const int64_t size = windows.taps() * windows.channels, width = windows.result[1];
  for_each_line(lines, windows.result[0], width * size, [&](int64_t image, int64_t y) {
    std::vector<const float*> taps(static_cast<size_t>(windows.taps()));
    float* to = rows + (image * windows.result[0] + y - lines.first) * width * size;
    for (int64_t x = 0; x < width; ++x, to += size) {
      find_pixels(images + image * windows.pixels() * windows.channels, windows, y, x, taps);
      gather_window(taps, windows.channels, order, to);
    }
  });
}

void scatter_rows(const float* rows, const Windows& windows, RowOrder order, Lines lines,
                  float* images) {
  const int64_t size = windows.taps() * windows.channels, width = windows.image[1];
  const int64_t height = windows.image[0], lines_of_one = windows.result[0];
  const Lines pixels{lines.first / lines_of_one * height,
                     (lines.last + lines_of_one - 1) / lines_of_one * height};
  for_each_line(pixels, height, width * size, [&](int64_t image, int64_t y) {
    const Lines own{lines.first - image * lines_of_one, lines.last - image * lines_of_one};
    if (!see_pixels(windows, own, y)) return;
    float* to = images + (image * windows.pixels() + y * width) * windows.channels;
    for (int64_t x = 0; x < width; ++x, to += windows.channels)
      scatter_to_pixel(rows, windows, order, own, y, x, to);
  });
}

}  // namespace janus::torch
