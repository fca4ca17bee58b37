// Where instructions stand. Each has a level, as far out as its operands allow: numbers and
// constants before all loops, what is the same for a row before the row's loop, what is the same
// for all of a vector's points before the loops over reduced dimensions, the rest inside. And it
// has a stage: how many reductions must be done before it can be computed. Pass n over a row
// combines what is of stage n; whatever is inside the loops is computed anew in each pass that
// needs it. The last pass stores, so that results may take the place of operands.
#include "kernels/emit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/policy.h"
#include "kernels/arguments.h"
#include "kernels/kernel.h"
#include "kernels/vector_math.h"
#include "kernels/vector_text.h"

namespace janus::kernels {
namespace {

enum class Level : uint8_t { kernel, row, vector, element };

class Emitter : VectorText {
 public:
  Emitter(const LoopNest& nest, const Order& order, const Target& target)
      : VectorText(nest, target), order_(order), unused_look_ups_(nest.unused_look_ups()) {
    walks_ = order.walks;
    past_cache_ = order.past_cache;
    reduced_loops_ = order.reduced_loops;
    find_same_in_lanes();
    place_instructions();
    count_passes();
    choose_lanes();
    if (order.keeps) choose_kept();
    choose_pass_ahead();
  }

  std::string emit() {
    emit_function();
    std::string head;
    for_each_line(print(nest_), [&](std::string_view one) { head += cat("; ", one, "\n"); });
    for (const std::string& declaration : declarations_) head += declaration;
    for (const std::string& helper : helpers_) head += helper;
    if (past_cache_ != 0) body_ += "!0 = !{i32 1}\n";
    return head + body_;
  }

 private:
  // --- placing -----------------------------------------------------------------------------------

  bool runs_along_reduced(size_t tensor) const {
    return nest_.has_rank && nest_.runs_along_reduced(tensor);
  }

  /// The innermost level of what is the same along the reduced dimensions.
  Level level_beside_reduced() const { return order_.lanes_reduced ? Level::row : Level::vector; }

  Level level_of_load(size_t tensor) const {
    if (runs_along_reduced(tensor)) return Level::element;
    return walks_[tensor] == Walk::broadcast ? Level::row : level_beside_reduced();
  }

  void place_instructions() {
    for (const Instruction& one : nest_.code) {
      Level level = Level::kernel;
      if (one.opcode == Opcode::load) level = level_of_load(one.index);
      if (one.opcode == Opcode::position)
        level = level_of_load(nest_.tensor_of_position(one.index));
      int stage = 0;
      for (int operand : one.operands) {
        if (operand < 0) continue;
        level = std::max(level, levels_[static_cast<size_t>(operand)]);
        stage = std::max(stage, stages_[static_cast<size_t>(operand)]);
      }
      if (one.opcode == Opcode::pick) level = std::max(level, level_beside_reduced());
      const bool reduce = one.opcode == Opcode::reduce;
      levels_.push_back(reduce ? level_beside_reduced() : level);
      stages_.push_back(reduce ? stage + 1 : stage);
    }
  }

  bool is_reduction(size_t i, int pass) const {
    return nest_.code[i].opcode == Opcode::reduce && stages_[i] == pass + 1;
  }

  void count_passes() {
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (nest_.code[i].opcode == Opcode::reduce) passes_ = std::max(passes_, stages_[i]);
    for (size_t i = 0; i < nest_.results.size(); ++i)
      if (runs_along_reduced(nest_.inputs.size() + i))
        passes_ = std::max(passes_, stages_[static_cast<size_t>(nest_.results[i])] + 1);
    for (const size_t i : unused_look_ups_)
      if (is_element(i)) passes_ = std::max(passes_, stages_[i] + 1);
  }

  // --- what is kept from pass to pass

  bool is_element(size_t i) const { return levels_[i] == Level::element; }
  bool is_kept(size_t i) const { return std::ranges::find(kept_, i) != kept_.end(); }

  /// Work to compute an element-level instruction from what is in memory.
  int cost_of_element(size_t i) const {
    std::vector<bool> counted(nest_.code.size());
    counted[i] = true;
    int cost = 0;
    for (size_t k = i + 1; k-- > 0;) {
      if (!counted[k] || !is_element(k)) continue;
      cost += kernels::cost(nest_.code[k]);
      for (const int operand : nest_.code[k].operands)
        if (operand >= 0) counted[static_cast<size_t>(operand)] = true;
    }
    return cost;
  }

  /// What a pass needs and an earlier one had, where it cost something.
  void choose_kept() {
    first_pass_.assign(nest_.code.size(), passes_);
    for (int pass = 0; pass < passes_; ++pass) {
      const std::vector<bool> needed = needed_in(pass);
      for (size_t i = nest_.code.size(); i-- > 0;) {
        if (!needed[i] || !is_element(i)) continue;
        first_pass_[i] = std::min(first_pass_[i], pass);
      }
    }
    for (int pass = 1; pass < passes_; ++pass) {
      std::vector<bool> needed = roots_of(pass);
      for (size_t i = nest_.code.size(); i-- > 0;) {
        if (is_reduction(i, pass)) mark_operands(i, needed);
        if (!needed[i] || !is_element(i)) continue;
        const DType dtype = nest_.code[i].dtype;
        const bool keeps = first_pass_[i] < pass && kept_.size() < policy::kMostKept &&
                           !is_kept(i) && (dtype == DType::f32 || dtype == DType::f64) &&
                           cost_of_element(i) >= policy::kKeptCost;
        if (keeps) kept_.push_back(i);
        if (!is_kept(i)) mark_operands(i, needed);
      }
    }
  }

  void mark_operands(size_t i, std::vector<bool>& needed) const {
    for (const int operand : nest_.code[i].operands)
      if (operand >= 0) needed[static_cast<size_t>(operand)] = true;
  }

  bool is_loaded_in(size_t i, int pass) const { return is_kept(i) && first_pass_[i] < pass; }

  /// As many as the widest type of the inner loop has in a vector; of positions, which are only
  /// compared, several vectors. What is the same in all lanes takes none.
  void choose_lanes() {
    int64_t widest = 1;
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (nest_.code[i].opcode == Opcode::position || is_same_in_lanes(static_cast<int>(i)))
        continue;
      else if (levels_[i] >= Level::vector || nest_.code[i].opcode == Opcode::reduce)
        widest = std::max(widest, computing_bytes(nest_.code[i].dtype));
    for (DType output : nest_.outputs) widest = std::max(widest, computing_bytes(output));
    lanes_ = static_cast<int>(target_.vector_bytes / widest) * order_.registers;
  }

  static int64_t computing_bytes(DType dtype) {
    return is_half(dtype) ? 4 : graph::byte_size(dtype);
  }

  // --- the function ------------------------------------------------------------------------------

  void emit_function() {
    line(
        "define void @kernel(ptr %tensors, ptr %strides, ptr %sizes, ptr %numbers, ptr %extents) "
        "{");
    start_block("entry");
    emit_sizes();
    for (size_t t = 0; t < nest_.tensor_count(); ++t) emit_tensor(t);
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (nest_.code[i].opcode == Opcode::reduce) emit_memory_of_accumulator(i);
    if (!kept_.empty()) emit_kept_memory();
    emit_level(Level::kernel, 0);
    line("  %rest = urem i64 %inner, #");
    line("  %whole = sub i64 %inner, %rest");
    line("  %has_rest = icmp ne i64 %rest, 0");
    emit_mask();
    emit_loop("%outer", 1, [&](const std::string& row) { emit_row(row); });
    // Such stores are in no order with others: not with those that say that a thread is done.
    if (past_cache_ != 0) line("  fence seq_cst");
    line("  ret void");
    line("}");
  }

  /// Room for a row of each value that is kept.
  void emit_kept_memory() {
    std::string vectors = "1";
    if (order_.lanes_reduced) {
      line("  %kept.more = add i64 %inner, $d", {int64_t{lanes_} - 1});
      line("  %kept.lanes = udiv i64 %kept.more, #");
      vectors = "%kept.lanes";
    }
    for (int loop = 0; loop < order_.reduced_loops; ++loop) {
      const auto product = temporary();
      line("  $s = mul i64 $s, %reduced$d", {product, vectors, int64_t{loop}});
      vectors = product;
    }
    for (const size_t i : kept_)
      line("  %kept$d = alloca $T, i64 $s, align 64", {index(i), nest_.code[i].dtype, vectors});
    line("  %kept.vector = alloca i64");
  }

  std::string emit_kept_place(size_t i) {
    const auto vector = temporary(), place = temporary();
    line("  $s = load i64, ptr %kept.vector", {vector});
    line("  $s = getelementptr $T, ptr %kept$d, i64 $s",
         {place, nest_.code[i].dtype, index(i), vector});
    return place;
  }

  void emit_kept_store(size_t i) {
    const std::string place = emit_kept_place(i);
    line("  store $T $v, ptr $s", {nest_.code[i].dtype, index(i), place});
  }

  void emit_kept_load(size_t i) {
    const std::string place = emit_kept_place(i);
    name_value(static_cast<int>(i));
    line("  $v = load $T, ptr $s", {index(i), nest_.code[i].dtype, place});
  }

  void emit_sizes() {
    emit_size("%inner", 0);
    emit_size("%outer", 1);
    for (int loop = 0; loop < order_.reduced_loops; ++loop)
      emit_size(cat("%reduced", loop), 2 + loop);
  }

  void emit_size(const std::string& name, int64_t dim) {
    line("  $s.slot = getelementptr i64, ptr %sizes, i64 $d", {name, dim});
    line("  $s = load i64, ptr $s.slot", {name, name});
  }

  void emit_tensor(size_t t) {
    line("  %t$d.slot = getelementptr ptr, ptr %tensors, i64 $d", {index(t), index(t)});
    line("  %t$d.base = load ptr, ptr %t$d.slot", {index(t), index(t)});
    emit_stride(t, "outer", 1);
    for (int loop = 0; loop < order_.reduced_loops && runs_along_reduced(t); ++loop)
      emit_stride(t, cat("reduced", loop), 2 + loop);
    if (is_fetched_ahead(t) && !goes_down_columns()) emit_distance_ahead(t);
    if (walks_[t] != Walk::strided) return;
    emit_stride(t, "inner", 0);
    const std::string stride = splat("i64", cat("%t", t, ".inner"));
    line("  %t$d.lanes = mul <# x i64> $s, $s", {index(t), stride, lane_numbers("i64")});
  }

  void emit_stride(size_t t, const std::string& name, int64_t dim) {
    const auto number = dim * static_cast<int64_t>(kMaxTensors) + index(t);
    line("  %t$d.$s.slot = getelementptr i64, ptr %strides, i64 $d", {index(t), name, number});
    line("  %t$d.$s = load i64, ptr %t$d.$s.slot", {index(t), name, index(t), name});
  }

  void emit_mask() {
    line("  %rest32 = trunc i64 %rest to i32");
    const std::string rest = splat("i32", "%rest32");
    line("  %mask = icmp ult <# x i32> $s, $s", {lane_numbers("i32"), rest});
  }

  // --- loops -------------------------------------------------------------------------------------

  /// body(index) for index = 0, step, ... below `end`, which may be 0.
  template <class Body>
  void emit_loop(const std::string& end, int step, Body&& body) {
    const std::string name = cat("l", loops_++);
    line("  %$s.any = icmp ne i64 $s, 0", {name, end});
    line("  br i1 %$s.any, label %$s, label %$s.end", {name, name, name});
    const std::string before = block_;
    start_block(name);
    line("  %$s.i = phi i64 [ 0, %$s ], [ %$s.i.next, %$s.next ]", {name, before, name, name});
    body(cat("%", name, ".i"));
    line("  br label %$s.next", {name});
    start_block(cat(name, ".next"));
    line("  %$s.i.next = add nuw i64 %$s.i, $d", {name, name, int64_t{step}});
    line("  %$s.more = icmp ult i64 %$s.i.next, $s", {name, name, end});
    line("  br i1 %$s.more, label %$s, label %$s.end", {name, name, name});
    start_block(cat(name, ".end"));
  }

  /// body() for each whole vector of the row and, masked, for the rest.
  template <class Body>
  void emit_lanes(Body&& body) {
    mode_ = Mode::whole;
    emit_loop("%whole", lanes_, [&](const std::string& i) {
      position_ = i;
      body();
    });
    const std::string name = cat("l", loops_++);
    line("  br i1 %has_rest, label %$s, label %$s.end", {name, name});
    start_block(name);
    mode_ = Mode::masked;
    position_ = "%whole";
    body();
    mode_ = Mode::whole;
    line("  br label %$s.end", {name});
    start_block(cat(name, ".end"));
  }

  /// body() for each combination of the reduced dimensions that have loops of their own.
  template <class Body>
  void emit_reduced_loops(int loop, Body&& body) {
    if (loop < 0) return body();
    const std::string size = cat("%reduced", loop);
    emit_loop(size, 1, [&](const std::string& i) {
      const std::vector<std::string> before = places_;
      for (size_t t = 0; t < nest_.tensor_count(); ++t)
        if (runs_along_reduced(t)) move_place(t, i, cat("reduced", loop));
      emit_reduced_loops(loop - 1, body);
      places_ = before;
    });
  }

  void move_place(size_t t, const std::string& i, const std::string& stride) {
    const auto offset = temporary(), place = temporary();
    line("  $s = mul i64 $s, %t$d.$s", {offset, i, index(t), stride});
    line("  $s = getelementptr $E, ptr $s, i64 $s",
         {place, nest_.tensor_dtype(t), places_[t], offset});
    places_[t] = place;
  }

  void emit_row(const std::string& row) {
    for (size_t t = 0; t < nest_.tensor_count(); ++t) {
      places_[t] = cat("%t", t, ".base");
      move_place(t, row, "outer");
    }
    emit_level(Level::row, 0);
    if (order_.lanes_reduced)
      emit_passes();
    else
      emit_lanes([&] { emit_passes(); });
  }

  // --- passes ------------------------------------------------------------------------------------

  /// All of a row, or of one vector of columns.
  void emit_passes() {
    if (passes_ == 0) emit_fetches_ahead();
    if (!order_.lanes_reduced) emit_level(Level::vector, 0);
    for (int pass = 0; pass < passes_; ++pass) emit_pass(pass);
    for (size_t i = 0; i < nest_.results.size(); ++i)
      if (!runs_along_reduced(nest_.inputs.size() + i)) emit_store(i, !order_.lanes_reduced);
  }

  void emit_pass(int pass) {
    const std::vector<bool> needed = needed_in(pass);
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (is_reduction(i, pass)) emit_accumulator(i);
    if (!kept_.empty()) line("  store i64 0, ptr %kept.vector");
    emit_reduced_loops(order_.reduced_loops - 1, [&] {
      if (order_.lanes_reduced)
        emit_lanes([&] { emit_elements(pass, needed); });
      else
        emit_elements(pass, needed);
    });
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (is_reduction(i, pass)) emit_combined(i);
    emit_level(level_beside_reduced(), pass + 1);
  }

  bool is_stored_in(size_t output, int pass) const {
    return pass == passes_ - 1 && runs_along_reduced(nest_.inputs.size() + output);
  }

  /// The values that a pass stores, or looks at for the sake of their indices alone.
  std::vector<bool> roots_of(int pass) const {
    std::vector<bool> needed(nest_.code.size());
    for (size_t i = 0; i < nest_.results.size(); ++i)
      if (is_stored_in(i, pass)) needed[static_cast<size_t>(nest_.results[i])] = true;
    if (pass == passes_ - 1)
      for (const size_t i : unused_look_ups_) needed[i] = true;
    return needed;
  }

  /// What the loops of a pass have to compute, or load where it was kept.
  std::vector<bool> needed_in(int pass) const {
    std::vector<bool> needed = roots_of(pass);
    for (size_t i = nest_.code.size(); i-- > 0;) {
      const bool computed = needed[i] && is_element(i) && !is_loaded_in(i, pass);
      if (computed || is_reduction(i, pass)) mark_operands(i, needed);
    }
    return needed;
  }

  // --- what is fetched from memory beforehand

  bool is_fetched_ahead(size_t t) const { return (order_.ahead >> t & 1) != 0; }
  bool goes_down_columns() const { return !order_.lanes_reduced && order_.reduced_loops > 0; }

  /// The pass that computes most, while memory has nothing else to do.
  void choose_pass_ahead() {
    int most = 0;
    for (int pass = 0; pass < passes_; ++pass) {
      const std::vector<bool> needed = needed_in(pass);
      int cost = 0;
      for (size_t i = 0; i < nest_.code.size(); ++i)
        if (needed[i] && is_element(i) && !is_loaded_in(i, pass))
          cost += kernels::cost(nest_.code[i]);
      if (cost <= most) continue;
      most = cost;
      pass_ahead_ = pass;
    }
  }

  /// How far, in bytes.
  void emit_distance_ahead(size_t t) {
    const int64_t bytes = graph::byte_size(nest_.tensor_dtype(t));
    const auto row = temporary(), is_longer = temporary(), fits = temporary(), takes = temporary();
    line("  $s = mul i64 %inner, $d", {row, bytes});
    line("  $s = icmp ugt i64 $s, $d", {is_longer, row, policy::kBytesAhead});
    line("  $s = icmp ule i64 $s, $d", {fits, row, passes_ > 1 ? policy::kMostBytesAhead : 0});
    line("  $s = and i1 $s, $s", {takes, is_longer, fits});
    line("  %t$d.ahead = select i1 $s, i64 $s, i64 $d",
         {index(t), takes, row, policy::kBytesAhead});
  }

  void emit_fetches_ahead() {
    if (mode_ != Mode::whole) return;
    for (size_t t = 0; t < nest_.inputs.size(); ++t)
      if (is_fetched_ahead(t)) emit_fetch_ahead(t);
  }

  void emit_fetch_ahead(size_t t) {
    declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)");
    const DType dtype = nest_.tensor_dtype(t);
    const auto now = temporary(), later = temporary();
    line("  $s = getelementptr $E, ptr $s, i64 $s", {now, dtype, places_[t], position_});
    if (goes_down_columns()) {
      const auto rows = temporary();
      line("  $s = mul i64 %t$d.reduced0, $d", {rows, index(t), policy::kRowsAhead});
      line("  $s = getelementptr $E, ptr $s, i64 $s", {later, dtype, now, rows});
    } else {
      line("  $s = getelementptr i8, ptr $s, i64 %t$d.ahead", {later, now, index(t)});
    }
    for (int64_t at = 0; at < lanes_ * graph::byte_size(dtype); at += kLineBytes) {
      const auto place = temporary();
      line("  $s = getelementptr i8, ptr $s, i64 $d", {place, later, at});
      line("  call void @llvm.prefetch.p0(ptr $s, i32 0, i32 3, i32 1)", {place});
    }
  }

  void emit_elements(int pass, const std::vector<bool>& needed) {
    if (pass == pass_ahead_) emit_fetches_ahead();
    for (size_t i = 0; i < nest_.code.size(); ++i) {
      if (!is_element(i) || !needed[i]) continue;
      if (is_loaded_in(i, pass)) {
        emit_kept_load(i);
      } else {
        emit_instruction(static_cast<int>(i), true);
        if (is_kept(i) && first_pass_[i] == pass) emit_kept_store(i);
      }
    }
    if (!kept_.empty()) {
      const auto vector = temporary(), next = temporary();
      line("  $s = load i64, ptr %kept.vector", {vector});
      line("  $s = add nuw i64 $s, 1", {next, vector});
      line("  store i64 $s, ptr %kept.vector", {next});
    }
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (is_reduction(i, pass)) emit_accumulation(i);
    for (size_t i = 0; i < nest_.results.size(); ++i)
      if (is_stored_in(i, pass)) emit_store(i, true);
  }

  /// Instructions of a level that reductions of passes before `stage` suffice for.
  void emit_level(Level level, int stage) {
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (levels_[i] == level && stages_[i] == stage && nest_.code[i].opcode != Opcode::reduce)
        emit_instruction(static_cast<int>(i), level == Level::vector);
  }

  // --- reductions --------------------------------------------------------------------------------

  /// Sums of f32 are added up in f64: more exact than by halves, and no slower.
  static DType accumulated(const Instruction& one) {
    return one.combine == Combine::sum && one.dtype == DType::f32 ? DType::f64 : one.dtype;
  }
  /// Lanes of an accumulator: of vectors side by side along a row, those of one, since their
  /// elements are added first. That is a rounding or two for each element, fewer than in eager, and
  /// a fourth of the conversions.
  int accumulator_lanes(const Instruction& one) const {
    const bool narrows = order_.lanes_reduced && accumulated(one) != one.dtype;
    return narrows ? lanes_ / order_.registers : lanes_;
  }
  std::string accumulator_type(const Instruction& one) const {
    const DType dtype = accumulated(one);
    return cat("<", accumulator_lanes(one), " x ", dtype == DType::b1 ? "i1" : element_type(dtype),
               ">");
  }

  std::string identity(const Instruction& one) const { return identity(one, accumulated(one)); }
  std::string identity(const Instruction& one, DType dtype) const {
    if (one.dtype == DType::b1) {
      const bool starts_true = one.combine == Combine::all || one.combine == Combine::product ||
                               one.combine == Combine::minimum;
      return starts_true ? "splat (i1 true)" : "splat (i1 false)";
    }
    Instruction constant{.opcode = Opcode::constant, .dtype = dtype};
    if (graph::is_floating(one.dtype))
      constant.bits = std::bit_cast<uint64_t>(floating_identity(one.combine));
    else
      constant.bits = std::bit_cast<uint64_t>(integer_identity(one.combine, one.dtype));
    return constant_literal(constant);
  }

  static double floating_identity(Combine combine) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    switch (combine) {
      case Combine::product:
        return 1;
      case Combine::maximum:
        return -infinity;
      case Combine::minimum:
        return infinity;
      default:
        return 0;
    }
  }

  static int64_t integer_identity(Combine combine, DType dtype) {
    const auto bits = 8 * graph::byte_size(dtype) - (is_unsigned(dtype) ? 0 : 1);
    const int64_t highest = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
    switch (combine) {
      case Combine::product:
        return 1;
      case Combine::maximum:
        return is_unsigned(dtype) ? 0 : -highest - 1;
      case Combine::minimum:
        return highest;
      default:
        return 0;
    }
  }

  /// Extrema of floats take no notice of NaN on their way, which is noted beside them: the
  /// processor has one instruction for that, and more would be waited for from point to point.
  static bool notes_nan(const Instruction& one) {
    return graph::is_floating(one.dtype) &&
           (one.combine == Combine::maximum || one.combine == Combine::minimum);
  }

  void emit_memory_of_accumulator(size_t i) {
    const Instruction& one = nest_.code[i];
    line("  %acc$d = alloca $s", {index(i), accumulator_type(one)});
    if (notes_nan(one)) line("  %nan$d = alloca <# x i1>", {index(i)});
  }

  void emit_accumulator(size_t i) {
    const Instruction& one = nest_.code[i];
    if (notes_nan(one)) line("  store <# x i1> zeroinitializer, ptr %nan$d", {index(i)});
    line("  store $s $s, ptr %acc$d", {accumulator_type(one), identity(one), index(i)});
  }

  void emit_accumulation(size_t i) {
    const Instruction& one = nest_.code[i];
    const std::string type = accumulator_type(one);
    std::string value = value_name(one.operands[0]);
    if (order_.lanes_reduced && mode_ == Mode::masked) {
      const auto kept = temporary();
      line("  $s = select <# x i1> %mask, $T $s, $T $s",
           {kept, one.dtype, value, one.dtype, identity(one, one.dtype)});
      value = kept;
    }
    if (accumulated(one) != one.dtype) value = emit_widened_sum(one, value);
    const auto before = temporary();
    line("  $s = load $s, ptr %acc$d", {before, type, index(i)});
    const std::string after =
        notes_nan(one) ? emit_extremum(one, before, value) : emit_combine(one, before, value);
    line("  store $s $s, ptr %acc$d", {type, after, index(i)});
    if (notes_nan(one)) emit_note_of_nan(i, value);
  }

  std::string emit_widened_sum(const Instruction& one, std::string value) {
    const std::string element(element_type(one.dtype));
    for (int lanes = lanes_; lanes > accumulator_lanes(one); lanes /= 2) {
      const std::string type = cat("<", lanes, " x ", element, ">");
      const auto lower = temporary(), upper = temporary(), sum = temporary();
      for (const auto& [half, first] : {std::pair(lower, 0), std::pair(upper, lanes / 2)})
        line("  $s = shufflevector $s $s, $s poison, $s",
             {half, type, value, type, consecutive_lanes(first, lanes / 2)});
      line("  $s = fadd <$d x $s> $s, $s", {sum, int64_t{lanes / 2}, element, lower, upper});
      value = sum;
    }
    const auto wide = temporary();
    line("  $s = fpext <$d x $s> $s to $s",
         {wide, int64_t{accumulator_lanes(one)}, element, value, accumulator_type(one)});
    return wide;
  }

  /// Of `a`, which is not NaN, and `b`; `a` if `b` is NaN.
  std::string emit_extremum(const Instruction& one, const std::string& a, const std::string& b) {
    const auto wins = temporary(), result = temporary();
    const std::string compare = one.combine == Combine::maximum ? "ogt" : "olt";
    line("  $s = fcmp $s $T $s, $s", {wins, compare, one.dtype, b, a});
    line("  $s = select <# x i1> $s, $T $s, $T $s", {result, wins, one.dtype, b, one.dtype, a});
    return result;
  }

  void emit_note_of_nan(size_t i, const std::string& value) {
    const auto is_nan = temporary(), before = temporary(), after = temporary();
    line("  $s = fcmp uno $T $s, zeroinitializer", {is_nan, nest_.code[i].dtype, value});
    line("  $s = load <# x i1>, ptr %nan$d", {before, index(i)});
    line("  $s = or <# x i1> $s, $s", {after, before, is_nan});
    line("  store <# x i1> $s, ptr %nan$d", {after, index(i)});
  }

  std::string with_nan(size_t i, const std::string& value) {
    const auto noted = temporary(), result = temporary();
    const DType dtype = nest_.code[i].dtype;
    line("  $s = load <# x i1>, ptr %nan$d", {noted, index(i)});
    line("  $s = select <# x i1> $s, $T splat ($E 0x7FF8000000000000), $T $s",
         {result, noted, dtype, dtype, dtype, value});
    return result;
  }

  /// `a` combined with `b`, both of the accumulator's type. The extremum of a NaN is NaN.
  std::string emit_combine(const Instruction& one, const std::string& a, const std::string& b) {
    const DType dtype = accumulated(one);
    const std::string type = accumulator_type(one);
    const bool floating = graph::is_floating(dtype);
    const auto result = temporary();
    const auto binary = [&](const char* name) {
      line("  $s = $s $s $s, $s", {result, std::string(name), type, a, b});
      return result;
    };
    switch (one.combine) {
      case Combine::sum:
        return binary(floating ? "fadd" : "add");
      case Combine::product:
        return binary(floating ? "fmul" : dtype == DType::b1 ? "and" : "mul");
      case Combine::any:
        return binary("or");
      case Combine::all:
        return binary("and");
      default:
        break;
    }
    const bool maximum = one.combine == Combine::maximum;
    const auto wins = temporary();
    const std::string sign = floating ? "o" : is_unsigned(dtype) ? "u" : "s";
    line("  $s = $s $s$s $s $s, $s", {wins, std::string(floating ? "fcmp" : "icmp"), sign,
                                      std::string(maximum ? "gt" : "lt"), type, b, a});
    std::string taken = wins;
    if (floating) {
      const auto nan = temporary(), either = temporary();
      line("  $s = fcmp uno $s $s, $s", {nan, type, b, b});
      line("  $s = or <# x i1> $s, $s", {either, wins, nan});
      taken = either;
    }
    line("  $s = select <# x i1> $s, $s $s, $s $s", {result, taken, type, b, type, a});
    return result;
  }

  /// The reduction's value, for what comes after the pass.
  void emit_combined(size_t i) {
    const Instruction& one = nest_.code[i];
    const int id = static_cast<int>(i);
    const std::string type = accumulator_type(one);
    std::string all = temporary();
    line("  $s = load $s, ptr %acc$d", {all, type, index(i)});
    if (notes_nan(one)) all = with_nan(i, all);
    if (order_.lanes_reduced) all = emit_lanes_combined(one, all);
    name_value(id);
    if (accumulated(one) == one.dtype)
      names_[i] = all;
    else if (order_.lanes_reduced)
      emit_splat_of_sum(id, one, all);
    else
      line("  $v = fptrunc $s $s to $T", {id, type, all, one.dtype});
  }

  void emit_splat_of_sum(int id, const Instruction& one, const std::string& sum) {
    const auto wide = temporary(), scalar = temporary();
    const DType dtype = accumulated(one);
    line("  $s = extractelement $s $s, i64 0", {wide, accumulator_type(one), sum});
    line("  $s = fptrunc $E $s to $E", {scalar, dtype, wide, one.dtype});
    emit_splat(id, one.dtype, scalar);
  }

  /// All lanes combined by halves: in lane 0, and in every lane if there are as many as of others.
  std::string emit_lanes_combined(const Instruction& one, std::string all) {
    const std::string type = accumulator_type(one);
    const int count = accumulator_lanes(one);
    for (int half = count / 2; half > 0; half /= 2) {
      const auto upper = temporary();
      std::string lanes = "<";
      for (int lane = 0; lane < count; ++lane)
        lanes += cat(lane == 0 ? "" : ", ", "i32 ", lane < half ? cat(lane + half) : "poison");
      line("  $s = shufflevector $s $s, $s poison, <$d x i32> $s",
           {upper, type, all, type, int64_t{count}, lanes + ">"});
      all = emit_combine(one, all, upper);
    }
    if (count != lanes_) return all;
    const auto every = temporary();
    line("  $s = shufflevector $s $s, $s poison, <# x i32> zeroinitializer",
         {every, type, all, type});
    return every;
  }

  const Order& order_;
  const std::vector<size_t> unused_look_ups_;
  std::vector<Level> levels_;  // of each instruction
  std::vector<int> stages_;
  std::vector<size_t> kept_;
  std::vector<int> first_pass_;  ///< that computes an instruction, where something may be kept
  int passes_ = 0;
  int pass_ahead_ = 0;  ///< in which memory is asked for what comes later
  int loops_ = 0;
};

}  // namespace

std::string emit(const LoopNest& nest, const Order& order, const Target& target) {
  TORCHJANUS_CHECK(order.walks.size() == nest.tensor_count(), "emit: ", order.walks.size(),
                   " walks for ", nest.tensor_count(), " tensors");
  return Emitter(nest, order, target).emit();
}

bool can_widen(const LoopNest& nest, const Target& target, bool along_rows) {
  std::vector<bool> at_points;  // of each instruction: it differs from point to point of a row
  return std::ranges::all_of(nest.code, [&](const Instruction& one) {
    const bool reads = one.opcode == Opcode::load || one.opcode == Opcode::position;
    const size_t tensor =
        one.opcode == Opcode::position ? nest.tensor_of_position(one.index) : one.index;
    bool differs = reads && nest.runs_along_reduced(tensor);
    for (const int operand : one.operands)
      if (operand >= 0) differs = differs || at_points[static_cast<size_t>(operand)];
    at_points.push_back(differs && one.opcode != Opcode::reduce && one.opcode != Opcode::pick);
    return one.opcode != Opcode::call || !one.function->intrinsic.empty() ||
           (along_rows && !differs) ||
           (one.dtype == DType::f32 && has_vector_math(one.function->name, target));
  });
}

}  // namespace janus::kernels
