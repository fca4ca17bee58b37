// Loops over the elements of each channel of a tensor: what batch normalisation is made of.
//
// Sums are kept in double precision, as eager keeps them, with many lanes at a time. Where the
// elements of a channel lie in planes, one after the other (contiguous tensors), the loops go along
// the planes; where channels lie next to each other (channels last), they go over all channels of a
// row.
#pragma once

#include <cstdint>
#include <vector>

namespace janus::torch {

/// Element [o, c, i] lies at (o * channels + c) * inner + i; inner == 1: channels are neighbours.
struct ChannelShape {
  int64_t outer = 0, channels = 0, inner = 0;
  int64_t count() const { return outer * inner; }  ///< elements of a channel
};

/// Two sums for each channel.
struct ChannelSums {
  std::vector<double> first, second;
};

/// sums.first = sum of (x - shift), sums.second = sum of (x - shift)^2; shift by channel.
template <class T>
void sum_squares(const T* x, const ChannelShape& shape, const T* shift, ChannelSums& sums);

/// sums.first = sum of dy, sums.second = sum of dy (x - shift).
template <class T>
void sum_products(const T* dy, const T* x, const ChannelShape& shape, const T* shift,
                  ChannelSums& sums);

/// y = x scale + offset, both by channel.
template <class T>
void scale_channels(const T* x, const ChannelShape& shape, const T* scale, const T* offset, T* y);

/// dx = (dy - average - (x - shift) slope) scale, all by channel.
template <class T>
struct ChannelGradient {
  const T *average, *shift, *slope, *scale;
};
template <class T>
void channel_gradient(const T* dy, const T* x, const ChannelShape& shape,
                      const ChannelGradient<T>& gradient, T* dx);

}  // namespace janus::torch
