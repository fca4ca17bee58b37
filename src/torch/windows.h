// What a convolution's filter sees of images, as a matrix: the convolution is a product with it
// then. And back: what comes for each window is added up where the windows lie.
//
// Of images in planes the matrix has a column for each window; of images channels last, a row.
#pragma once

#include <array>
#include <cstdint>

namespace janus::torch {

/// Where the windows lie in an image. Pairs are of rows and columns.
struct Windows {
  using Pair = std::array<int64_t, 2>;
  int64_t channels = 0;
  Pair image{}, filter{}, result{};  ///< sizes; `result` counts the windows
  Pair stride{}, padding{}, dilation{};

  int64_t taps() const { return filter[0] * filter[1]; }
  int64_t count() const { return result[0] * result[1]; }
  int64_t pixels() const { return image[0] * image[1]; }
  /// Whether each window is one pixel, and all of them are the image.
  bool are_pixels() const;
};

/// columns[channel, tap, image, window] of images[image, channel, pixel].
void gather_planes(const float* images, int64_t batch, const Windows& windows, float* columns);
void scatter_planes(const float* columns, int64_t batch, const Windows& windows, float* images);

/// How a row of the other kind is sorted.
enum class RowOrder : uint8_t { taps_channels, channels_taps };

/// Windows that stand side by side are a line; those of all images are counted one after the other.
struct Lines {
  int64_t first = 0, last = 0;
};

/// rows[window, ...] of images[image, pixel, channel], for the windows of these lines.
void gather_rows(const float* images, const Windows& windows, RowOrder order, Lines lines,
                 float* rows);
/// The way back; adds.
void scatter_rows(const float* rows, const Windows& windows, RowOrder order, Lines lines,
                  float* images);

}  // namespace janus::torch
