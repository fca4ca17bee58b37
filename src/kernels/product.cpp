// See product.h. Two functions in LLVM's text: @tile computes a tile of the result, @transpose
// lays a square of a transposed right operand out.
#include "kernels/product.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/policy.h"
#include "base/thread_pool.h"
#include "jit/jit.h"
#include "kernels/sharing.h"

namespace janus::kernels {

namespace {

/// Vectors side by side in a panel.
constexpr int width = 2;

int lanes() { return jit::vector_bytes() / static_cast<int>(sizeof(float)); }
/// Of a tile: so many sums, the vectors of the right operand and one of the left one fit the
/// registers.
int64_t tile_rows() { return jit::vector_bytes() == 64 ? 8 : 6; }
int64_t panel_columns() { return int64_t{width} * lanes(); }

/// LLVM text, line by line; `V` stands for the vector type, `N` for its name in intrinsics.
class Text {
 public:
  template <class... Parts>
  void line(const Parts&... parts) {
    text_ += cat(parts..., "\n");
  }
  /// `%name = vector of which lanes lie below count`, for lanes from `first` on.
  void mask(const std::string& name, int first, const std::string& count) {
    line("  %", name, ".i = insertelement <", lanes(), " x i64> poison, i64 ", count, ", i32 0");
    line("  %", name, ".s = shufflevector <", lanes(), " x i64> %", name, ".i, <", lanes(),
         " x i64> poison, <", lanes(), " x i32> zeroinitializer");
    std::string numbers;
    for (int lane = 0; lane < lanes(); ++lane)
      numbers += cat(lane == 0 ? "i64 " : ", i64 ", first + lane);
    line("  %", name, " = icmp ult <", lanes(), " x i64> <", numbers, ">, %", name, ".s");
  }
  /// `%name = base + index * step` elements.
  void element(const std::string& name, const std::string& base, const std::string& index,
               const std::string& step) {
    line("  %", name, ".o = mul i64 ", index, ", ", step);
    line("  %", name, " = getelementptr float, ptr ", base, ", i64 %", name, ".o");
  }
  void load(const std::string& name, const std::string& from, const std::string& mask) {
    line("  %", name, " = call ", vector(), " @llvm.masked.load.", suffix(), ".p0(ptr ", from,
         ", i32 4, ", flags(), " ", mask, ", ", vector(), " zeroinitializer)");
  }
  void store(const std::string& value, const std::string& to, const std::string& mask) {
    line("  call void @llvm.masked.store.", suffix(), ".p0(", vector(), " ", value, ", ptr ", to,
         ", i32 4, ", flags(), " ", mask, ")");
  }
  /// Row `i` after `first`, or the last one where there are fewer.
  void row(const std::string& name, const std::string& first, int i, const std::string& last) {
    line("  %", name, ".n = add i64 ", first, ", ", i);
    line("  %", name, " = call i64 @llvm.umin.i64(i64 %", name, ".n, i64 ", last, ")");
  }

  static std::string vector() { return cat("<", lanes(), " x float>"); }
  static std::string flags() { return cat("<", lanes(), " x i1>"); }
  static std::string suffix() { return cat("v", lanes(), "f32"); }

  std::string take() {
    line("declare ", vector(), " @llvm.masked.load.", suffix(), ".p0(ptr, i32, ", flags(), ", ",
         vector(), ")");
    line("declare void @llvm.masked.store.", suffix(), ".p0(", vector(), ", ptr, i32, ", flags(),
         ")");
    line("declare ", vector(), " @llvm.fmuladd.", suffix(), "(", vector(), ", ", vector(), ", ",
         vector(), ")");
    line("declare i64 @llvm.umin.i64(i64, i64)");
    return std::move(text_);
  }

 private:
  std::string text_;
};

/// A tile from a panel. Where there are fewer rows, the last one is computed again.
std::string tile_text() {
  Text text;
  const int rows = static_cast<int>(tile_rows());
  text.line("define void @tile(ptr %left, i64 %down, i64 %across, ptr %right, i64 %right_down, ",
            "ptr %out, i64 %out_down, ptr %start, i64 %start_down, i64 %rows, i64 %columns, ",
            "i64 %inner) {");
  text.line("entry:");
  for (int v = 0; v < width; ++v) text.mask(cat("mask", v), v * lanes(), "%columns");
  text.line("  %last = sub i64 %rows, 1");
  for (int i = 0; i < rows; ++i) {
    text.row(cat("row", i), "0", i, "%last");
    text.element(cat("left", i), "%left", cat("%row", i), "%down");
    text.element(cat("out", i), "%out", cat("%row", i), "%out_down");
    text.element(cat("start", i), "%start", cat("%row", i), "%start_down");
    for (int v = 0; v < width; ++v) {
      const std::string at = cat("start", i, "_", v);
      text.line("  %", at, ".p = getelementptr float, ptr %start", i, ", i64 ", v * lanes());
      text.load(at, cat("%", at, ".p"), cat("%mask", v));
    }
  }
  text.line("  br label %step");

  text.line("step:");
  text.line("  %k = phi i64 [0, %entry], [%k.next, %step]");
  text.line("  %right.k = phi ptr [%right, %entry], [%right.next, %step]");
  text.line("  %left.k = phi i64 [0, %entry], [%left.next, %step]");
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < width; ++v)
      text.line("  %sum", i, "_", v, " = phi ", Text::vector(), " [%start", i, "_", v,
                ", %entry], [%new", i, "_", v, ", %step]");
  for (int v = 0; v < width; ++v) {
    text.line("  %right", v, ".p = getelementptr float, ptr %right.k, i64 ", v * lanes());
    text.load(cat("right", v), cat("%right", v, ".p"), cat("%mask", v));
  }
  for (int i = 0; i < rows; ++i) {
    text.line("  %x", i, ".p = getelementptr float, ptr %left", i, ", i64 %left.k");
    text.line("  %x", i, ".e = load float, ptr %x", i, ".p");
    text.line("  %x", i, ".i = insertelement ", Text::vector(), " poison, float %x", i,
              ".e, i32 0");
    text.line("  %x", i, " = shufflevector ", Text::vector(), " %x", i, ".i, ", Text::vector(),
              " poison, <", lanes(), " x i32> zeroinitializer");
    for (int v = 0; v < width; ++v)
      text.line("  %new", i, "_", v, " = call ", Text::vector(), " @llvm.fmuladd.", Text::suffix(),
                "(", Text::vector(), " %x", i, ", ", Text::vector(), " %right", v, ", ",
                Text::vector(), " %sum", i, "_", v, ")");
  }
  text.line("  %left.next = add i64 %left.k, %across");
  text.line("  %right.next = getelementptr float, ptr %right.k, i64 %right_down");
  text.line("  %k.next = add i64 %k, 1");
  text.line("  %more = icmp ult i64 %k.next, %inner");
  text.line("  br i1 %more, label %step, label %done");

  text.line("done:");
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < width; ++v) {
      text.line("  %to", i, "_", v, " = getelementptr float, ptr %out", i, ", i64 ", v * lanes());
      text.store(cat("%new", i, "_", v), cat("%to", i, "_", v), cat("%mask", v));
    }
  }
  text.line("  ret void");
  text.line("}");
  return text.take();
}

/// to[j, i] = from[i, j] for a square of as many rows as a vector has lanes, of which `rows` and
/// `columns` exist; beyond them the result is anything.
std::string transpose_text() {
  Text text;
  const int count = lanes();
  text.line("define void @transpose(ptr %from, i64 %down, i64 %rows, i64 %columns, ptr %to, ",
            "i64 %to_down) {");
  text.mask("mask", 0, "%columns");
  text.mask("all", 0, cat(count));
  text.line("  %last = sub i64 %rows, 1");
  std::vector<std::string> rows;
  for (int i = 0; i < count; ++i) {
    text.row(cat("row", i), "0", i, "%last");
    text.element(cat("from", i), "%from", cat("%row", i), "%down");
    text.load(cat("r", i), cat("%from", i), "%mask");
    rows.push_back(cat("%r", i));
  }
  // Squares of half the size trade places across the diagonal, then those in each of them, ...
  for (int half = count / 2; half > 0; half /= 2) {
    std::string low, high;
    for (int j = 0; j < count; ++j) {
      const bool is_left = (j & half) == 0;
      low += cat(j == 0 ? "i32 " : ", i32 ", is_left ? j : count + j - half);
      high += cat(j == 0 ? "i32 " : ", i32 ", is_left ? j + half : count + j);
    }
    for (int i = 0; i < count; ++i) {
      if ((i & half) != 0) continue;
      const std::string one = rows[static_cast<size_t>(i)];
      const std::string other = rows[static_cast<size_t>(i + half)];
      for (const bool is_low : {true, false}) {
        std::string& made = rows[static_cast<size_t>(is_low ? i : i + half)];
        made = cat("%s", half, "_", is_low ? i : i + half);
        text.line("  ", made, " = shufflevector ", Text::vector(), " ", one, ", ", Text::vector(),
                  " ", other, ", <", count, " x i32> <", is_low ? low : high, ">");
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    text.element(cat("to", i), "%to", cat(i), "%to_down");
    text.store(rows[static_cast<size_t>(i)], cat("%to", i), "%all");
  }
  text.line("  ret void");
  text.line("}");
  return text.take();
}

struct Code {
  void (*tile)(const float* left, int64_t down, int64_t across, const float* right,
               int64_t right_down, float* out, int64_t out_down, const float* start,
               int64_t start_down, int64_t rows, int64_t columns, int64_t inner);
  void (*transpose)(const float* from, int64_t down, int64_t rows, int64_t columns, float* to,
                    int64_t to_down);

  static const Code& instance() {
    static const Code code{
        reinterpret_cast<decltype(Code::tile)>(jit::compile(tile_text(), "tile")),
        reinterpret_cast<decltype(Code::transpose)>(jit::compile(transpose_text(), "transpose"))};
    return code;
  }
};

/// Memory for a part of the right operand, kept for the next product on this thread.
float* packed_memory(int64_t elements) {
  struct alignas(64) Line {
    float elements[16];
  };
  static thread_local std::vector<Line> memory;
  const size_t lines = (static_cast<size_t>(elements) + 15) / 16;
  if (memory.size() < lines) memory.resize(lines);
  return memory.front().elements;
}

int64_t round_up(int64_t number, int64_t step) { return (number + step - 1) / step * step; }

/// A part of the right operand.
struct Part {
  const float* data = nullptr;
  int64_t rows = 0, down = 0;
  int64_t from_panel_to_panel = 0;

  const float* panel(int64_t index) const { return data + index * from_panel_to_panel; }
};

/// Rows `k` ... `k + inner` and columns `first` ... `first + columns`, in the order in which they
/// lie: they may come from far away.
Part pack(const Factor& right, int64_t k, int64_t inner, int64_t first, int64_t columns) {
  const int64_t width = panel_columns(), side = lanes();
  const int64_t step = round_up(inner, side) * width;
  float* const memory = packed_memory(step * (round_up(columns, width) / width));
  const auto place = [&](int64_t i, int64_t j) {
    return memory + j / width * step + i * width + j % width;
  };
  const float* const from = right.data + k * right.down + first * right.across;
  if (right.across == 1) {
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t j = 0; j < columns; j += width)
        std::memcpy(place(i, j), from + i * right.down + j,
                    static_cast<size_t>(std::min(width, columns - j)) * sizeof(float));
  } else {
    for (int64_t j = 0; j < columns; j += side)
      for (int64_t i = 0; i < inner; i += side)
        Code::instance().transpose(from + i + j * right.across, right.across,
                                   std::min(side, columns - j), std::min(side, inner - i),
                                   place(i, j), width);
  }
  return {memory, inner, width, step};
}

/// That part, as it lies where the cache holds all and few rows of the left operand go over it.
Part part_of(const Product& product, int64_t k, int64_t inner, int64_t first, int64_t columns) {
  const Factor& right = product.right;
  const bool is_small = product.inner * columns <= policy::kPanelElements;
  if (right.across == 1 && is_small && product.rows <= policy::kFewTiles * tile_rows())
    return {right.data + k * right.down + first, inner, right.down, panel_columns()};
  return pack(right, k, inner, first, columns);
}

/// Columns `first` ... `first + columns`.
void multiply_columns(const Product& product, int64_t first, int64_t columns) {
  static const std::vector<float> zeros(static_cast<size_t>(panel_columns()));
  const auto tile = Code::instance().tile;
  const int64_t width = panel_columns(), height = tile_rows();
  const int64_t at_once =
      std::min(policy::kPanelInner, policy::kPanelElements / round_up(columns, width));
  for (int64_t k = 0; k < product.inner; k += at_once) {
    const Part right = part_of(product, k, std::min(at_once, product.inner - k), first, columns);
    for (int64_t i = 0; i < product.rows; i += height) {
      const int64_t rows = std::min(height, product.rows - i);
      const float* const left = product.left.data + i * product.left.down + k * product.left.across;
      for (int64_t j = 0; j < columns; j += width) {
        float* const out = product.out + i * product.out_down + first + j;
        const float* start = zeros.data();
        int64_t start_down = 0;
        if (k > 0) {
          start = out;
          start_down = product.out_down;
        } else if (product.start != nullptr) {
          start = product.start + i * product.start_down + first + j;
          start_down = product.start_down;
        }
        tile(left, product.left.down, product.left.across, right.panel(j / width), right.down, out,
             product.out_down, start, start_down, rows, std::min(width, columns - j), right.rows);
      }
    }
  }
}

}  // namespace

bool has_products() { return jit::vector_bytes() >= 32; }

/// Two multiplications with their additions at once.
int64_t work_of(const Product& product) {
  return product.rows * product.columns * product.inner / 2;
}

void multiply(const Product& product) {
  const int64_t width = panel_columns();
  const int64_t panels = (product.columns + width - 1) / width;
  parallel_for(panels, least_pieces(work_of(product), panels), [&](int64_t begin, int64_t end) {
    const int64_t last = std::min(product.columns, end * width);
    for (int64_t j = begin * width; j < last; j += policy::kPanelColumns)
      multiply_columns(product, j, std::min(policy::kPanelColumns, last - j));
  });
}

}  // namespace janus::kernels
