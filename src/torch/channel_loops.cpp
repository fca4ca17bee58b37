// See channel_loops.h. Each loop is written once, and compiled for several instruction sets.
#include "torch/channel_loops.h"

#include <algorithm>

#include "base/policy.h"
#include "base/processor.h"
#include "base/thread_pool.h"
#include "torch/grain.h"

#if defined(__x86_64__)
#define JANUS_TARGET_AVX512 [[gnu::target("avx512f,avx512vl,avx512dq,avx512bw,fma")]]
#define JANUS_TARGET_AVX2 [[gnu::target("avx2,fma")]]
#endif

namespace janus::torch {

namespace {

constexpr int64_t lanes = 32;           ///< of sums along a plane
constexpr int64_t neighbours = 16;      ///< channels that are summed side by side in rows
constexpr int64_t rows_at_a_time = 32;  ///< so that they stay in the first cache

// ---- Loops for one thread ---------------------------------------------------------------------
// `Terms` says which two terms an element adds to the sums: of one tensor or of two.

struct Squares {
  template <class T>
  [[gnu::always_inline]] static void add(const T* x, const T*, int64_t i, T shift, double& first,
                                         double& second) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(shift);
    first += d;
    second += d * d;
  }
};

struct Products {
  template <class T>
  [[gnu::always_inline]] static void add(const T* x, const T* dy, int64_t i, T shift, double& first,
                                         double& second) {
    const double g = static_cast<double>(dy[i]);
    first += g;
    second += g * (static_cast<double>(x[i]) - static_cast<double>(shift));
  }
};

template <class Terms, class T>
[[gnu::always_inline]] inline void sum_planes(const T* x, const T* dy, const ChannelShape& shape,
                                              T shift, double& first, double& second) {
  double a[lanes] = {}, b[lanes] = {};
  for (int64_t o = 0; o < shape.outer; ++o) {
    const int64_t begin = o * shape.channels * shape.inner, end = begin + shape.inner;
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      for (int64_t k = 0; k < lanes; ++k) Terms::add(x, dy, i + k, shift, a[k], b[k]);
    }
    for (; i < end; ++i) Terms::add(x, dy, i, shift, first, second);
  }
  for (int64_t k = 0; k < lanes; ++k) {
    first += a[k];
    second += b[k];
  }
}

template <class Terms, class T>
[[gnu::always_inline]] inline void sum_rows(const T* x, const T* dy, int64_t rows, int64_t channels,
                                            const T* shift, double* first, double* second) {
  for (int64_t row = 0; row < rows; row += rows_at_a_time) {
    const int64_t end = std::min(rows, row + rows_at_a_time);
    int64_t c = 0;
    for (; c + neighbours <= channels; c += neighbours) {
      double a[neighbours], b[neighbours];
      for (int64_t k = 0; k < neighbours; ++k) a[k] = first[c + k];
      for (int64_t k = 0; k < neighbours; ++k) b[k] = second[c + k];
      for (int64_t r = row; r < end; ++r) {
        const int64_t at = r * channels + c;
        for (int64_t k = 0; k < neighbours; ++k) {
          Terms::add(x, dy, at + k, shift[c + k], a[k], b[k]);
        }
      }
      for (int64_t k = 0; k < neighbours; ++k) first[c + k] = a[k];
      for (int64_t k = 0; k < neighbours; ++k) second[c + k] = b[k];
    }
    for (; c < channels; ++c) {
      for (int64_t r = row; r < end; ++r) {
        Terms::add(x, dy, r * channels + c, shift[c], first[c], second[c]);
      }
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void scale_plane(const T* x, int64_t count, T scale, T offset,
                                               T* __restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * scale + offset;
}

template <class T>
[[gnu::always_inline]] inline void scale_rows(const T* x, int64_t rows, int64_t channels,
                                              const T* scale, const T* offset, T* __restrict y) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * channels;
    T* __restrict to = y + r * channels;
    for (int64_t c = 0; c < channels; ++c) to[c] = from[c] * scale[c] + offset[c];
  }
}

template <class T>
[[gnu::always_inline]] inline void gradient_plane(const T* dy, const T* x, int64_t count,
                                                  const ChannelGradient<T>& g, int64_t channel,
                                                  T* __restrict dx) {
  const T average = g.average[channel], shift = g.shift[channel];
  const T slope = g.slope[channel], scale = g.scale[channel];
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = (dy[i] - average - (x[i] - shift) * slope) * scale;
  }
}

template <class T>
[[gnu::always_inline]] inline void gradient_rows(const T* dy, const T* x, int64_t rows,
                                                 int64_t channels, const ChannelGradient<T>& g,
                                                 T* __restrict dx) {
  const T *average = g.average, *shift = g.shift, *slope = g.slope, *scale = g.scale;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * channels;
    for (int64_t c = 0; c < channels; ++c) {
      dx[row + c] = (dy[row + c] - average[c] - (x[row + c] - shift[c]) * slope[c]) * scale[c];
    }
  }
}

// ---- One set of loops for each instruction set ------------------------------------------------

template <class T>
struct Loops {
  void (*squares_planes)(const T*, const T*, const ChannelShape&, T, double&, double&);
  void (*products_planes)(const T*, const T*, const ChannelShape&, T, double&, double&);
  void (*squares_rows)(const T*, const T*, int64_t, int64_t, const T*, double*, double*);
  void (*products_rows)(const T*, const T*, int64_t, int64_t, const T*, double*, double*);
  void (*scale_plane)(const T*, int64_t, T, T, T*);
  void (*scale_rows)(const T*, int64_t, int64_t, const T*, const T*, T*);
  void (*gradient_plane)(const T*, const T*, int64_t, const ChannelGradient<T>&, int64_t, T*);
  void (*gradient_rows)(const T*, const T*, int64_t, int64_t, const ChannelGradient<T>&, T*);
};

#define JANUS_LOOPS(NAME, TARGET)                                                                 \
  template <class T>                                                                              \
  struct NAME {                                                                                   \
    template <class Terms>                                                                        \
    TARGET static void sum_of_planes(const T* x, const T* dy, const ChannelShape& shape, T shift, \
                                     double& first, double& second) {                             \
      sum_planes<Terms>(x, dy, shape, shift, first, second);                                      \
    }                                                                                             \
    template <class Terms>                                                                        \
    TARGET static void sum_of_rows(const T* x, const T* dy, int64_t rows, int64_t channels,       \
                                   const T* shift, double* first, double* second) {               \
      sum_rows<Terms>(x, dy, rows, channels, shift, first, second);                               \
    }                                                                                             \
    TARGET static void scaled_plane(const T* x, int64_t count, T scale, T offset, T* y) {         \
      scale_plane(x, count, scale, offset, y);                                                    \
    }                                                                                             \
    TARGET static void scaled_rows(const T* x, int64_t rows, int64_t channels, const T* scale,    \
                                   const T* offset, T* y) {                                       \
      scale_rows(x, rows, channels, scale, offset, y);                                            \
    }                                                                                             \
    TARGET static void gradient_of_plane(const T* dy, const T* x, int64_t count,                  \
                                         const ChannelGradient<T>& g, int64_t channel, T* dx) {   \
      gradient_plane(dy, x, count, g, channel, dx);                                               \
    }                                                                                             \
    TARGET static void gradient_of_rows(const T* dy, const T* x, int64_t rows, int64_t channels,  \
                                        const ChannelGradient<T>& g, T* dx) {                     \
      gradient_rows(dy, x, rows, channels, g, dx);                                                \
    }                                                                                             \
    static constexpr Loops<T> all = {sum_of_planes<Squares>, sum_of_planes<Products>,             \
                                     sum_of_rows<Squares>,   sum_of_rows<Products>,               \
                                     scaled_plane,           scaled_rows,                         \
                                     gradient_of_plane,      gradient_of_rows};                   \
  };

JANUS_LOOPS(Anywhere, )
#if defined(__x86_64__)
JANUS_LOOPS(OnAvx2, JANUS_TARGET_AVX2)
JANUS_LOOPS(OnAvx512, JANUS_TARGET_AVX512)
#endif
#undef JANUS_LOOPS

template <class T>
const Loops<T>& loops() {
  static const Loops<T>& best = []() -> const Loops<T>& {
#if defined(__x86_64__)
    if (instruction_set() == InstructionSet::avx512) return OnAvx512<T>::all;
    if (instruction_set() == InstructionSet::avx2) return OnAvx2<T>::all;
#endif
    return Anywhere<T>::all;
  }();
  return best;
}

// ---- All threads ------------------------------------------------------------------------------

/// Sums of planes, channel by channel: `planes(offset, channel, first, second)`.
template <class Planes>
void sum_all_planes(const ChannelShape& shape, ChannelSums& sums, const Planes& planes) {
  parallel_for(shape.channels, grain(shape.channels, shape.count()),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) {
                   planes(c * shape.inner, c, sums.first[c], sums.second[c]);
                 }
               });
}

/// Sums of rows, in chunks that do not depend on the number of threads, so that neither do the
/// sums: `rows(begin, count, firsts, seconds)`.
template <class Rows>
void sum_all_rows(const ChannelShape& shape, ChannelSums& sums, const Rows& rows) {
  const auto channels = static_cast<size_t>(shape.channels);
  const int64_t length = std::max(
      (shape.outer + policy::kMostChannelChunks - 1) / policy::kMostChannelChunks, rows_at_a_time);
  const int64_t chunks = (shape.outer + length - 1) / length;
  std::vector<double> parts(static_cast<size_t>(2 * chunks) * channels);
  const auto part = [&](int64_t chunk, int64_t which) {
    return parts.data() + static_cast<size_t>(2 * chunk + which) * channels;
  };
  parallel_for(chunks, grain(chunks, length * shape.channels), [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * length;
      rows(first, std::min(length, shape.outer - first), part(chunk, 0), part(chunk, 1));
    }
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (size_t c = 0; c < channels; ++c) sums.first[c] += part(chunk, 0)[c];
    for (size_t c = 0; c < channels; ++c) sums.second[c] += part(chunk, 1)[c];
  }
}

void clear(ChannelSums& sums, const ChannelShape& shape) {
  sums.first.assign(static_cast<size_t>(shape.channels), 0);
  sums.second.assign(static_cast<size_t>(shape.channels), 0);
}

/// Each plane: `plane(offset, channel)`.
template <class Plane>
void for_each_plane(const ChannelShape& shape, const Plane& plane) {
  const int64_t count = shape.outer * shape.channels;
  parallel_for(count, grain(count, shape.inner), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) plane(p * shape.inner, p % shape.channels);
  });
}

/// Ranges of rows: `rows(offset, count)`.
template <class Rows>
void for_each_rows(const ChannelShape& shape, const Rows& rows) {
  parallel_for(shape.outer, grain(shape.outer, shape.channels),
               [&](int64_t begin, int64_t end) { rows(begin * shape.channels, end - begin); });
}

}  // namespace

template <class T>
void sum_squares(const T* x, const ChannelShape& shape, const T* shift, ChannelSums& sums) {
  const Loops<T>& run = loops<T>();
  clear(sums, shape);
  if (shape.inner == 1) {
    return sum_all_rows(shape, sums, [&](int64_t row, int64_t count, double* a, double* b) {
      run.squares_rows(x + row * shape.channels, nullptr, count, shape.channels, shift, a, b);
    });
  }
  sum_all_planes(shape, sums, [&](int64_t at, int64_t c, double& a, double& b) {
    run.squares_planes(x + at, nullptr, shape, shift[c], a, b);
  });
}

template <class T>
void sum_products(const T* dy, const T* x, const ChannelShape& shape, const T* shift,
                  ChannelSums& sums) {
  const Loops<T>& run = loops<T>();
  clear(sums, shape);
  if (shape.inner == 1) {
    return sum_all_rows(shape, sums, [&](int64_t row, int64_t count, double* a, double* b) {
      const int64_t at = row * shape.channels;
      run.products_rows(x + at, dy + at, count, shape.channels, shift, a, b);
    });
  }
  sum_all_planes(shape, sums, [&](int64_t at, int64_t c, double& a, double& b) {
    run.products_planes(x + at, dy + at, shape, shift[c], a, b);
  });
}

template <class T>
void scale_channels(const T* x, const ChannelShape& shape, const T* scale, const T* offset, T* y) {
  const Loops<T>& run = loops<T>();
  if (shape.inner == 1) {
    return for_each_rows(shape, [&](int64_t at, int64_t count) {
      run.scale_rows(x + at, count, shape.channels, scale, offset, y + at);
    });
  }
  for_each_plane(shape, [&](int64_t at, int64_t c) {
    run.scale_plane(x + at, shape.inner, scale[c], offset[c], y + at);
  });
}

template <class T>
void channel_gradient(const T* dy, const T* x, const ChannelShape& shape,
                      const ChannelGradient<T>& gradient, T* dx) {
  const Loops<T>& run = loops<T>();
  if (shape.inner == 1) {
    return for_each_rows(shape, [&](int64_t at, int64_t count) {
      run.gradient_rows(dy + at, x + at, count, shape.channels, gradient, dx + at);
    });
  }
  for_each_plane(shape, [&](int64_t at, int64_t c) {
    run.gradient_plane(dy + at, x + at, shape.inner, gradient, c, dx + at);
  });
}

template void sum_squares(const float*, const ChannelShape&, const float*, ChannelSums&);
template void sum_squares(const double*, const ChannelShape&, const double*, ChannelSums&);
template void sum_products(const float*, const float*, const ChannelShape&, const float*,
                           ChannelSums&);
template void sum_products(const double*, const double*, const ChannelShape&, const double*,
                           ChannelSums&);
template void scale_channels(const float*, const ChannelShape&, const float*, const float*, float*);
template void scale_channels(const double*, const ChannelShape&, const double*, const double*,
                             double*);
template void channel_gradient(const float*, const float*, const ChannelShape&,
                               const ChannelGradient<float>&, float*);
template void channel_gradient(const double*, const double*, const ChannelShape&,
                               const ChannelGradient<double>&, double*);

}  // namespace janus::torch
