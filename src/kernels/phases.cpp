#include "kernels/phases.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/policy.h"
#include "base/thread_pool.h"
#include "jit/jit.h"
#include "kernels/compiled_nest.h"
#include "kernels/sharing.h"

namespace janus::kernels {
namespace {

/// Room for a value of any type.
constexpr int64_t kSlotBytes = 8;

/// Where a part's tensor lies: an operand of the whole, scratch memory with an element for each
/// row, or the sums of groups.
struct Source {
  enum class Kind : uint8_t { operand, row, group } kind;
  size_t index;
};

/// A nest of instructions of another, and what its tensors are.
struct Part {
  explicit Part(LoopNest nest, std::vector<Source> sources)
      : code(std::move(nest)), tensors(std::move(sources)) {}
  CompiledNest code;
  std::vector<Source> tensors;
};

/// What a group adds up in.
DType accumulated(DType dtype) { return dtype == DType::f32 ? DType::f64 : dtype; }

/// Which rows there are: dimensions that are not reduced, each row's values densely.
ops::Axes kept_axes(const LoopNest& nest) {
  ops::Axes axes;
  for (int d = 0; d < nest.rank; ++d)
    if ((nest.reduced >> d & 1) == 0) axes.push_back(d);
  return axes;
}

int first_reduced(const LoopNest& nest) { return std::countr_zero(nest.reduced); }

/// Builds a part.
class Extraction {
 public:
  /// `rows`: where values of earlier parts are.
  Extraction(const LoopNest& whole, bool reduces, const std::map<int, size_t>& rows)
      : whole_(whole), rows_(rows) {
    nest_.has_rank = reduces;
    nest_.rank = whole.rank;
    nest_.reduced = reduces ? whole.reduced : 0;
    nest_.numbers = whole.numbers;
    nest_.tensor_numbers = whole.tensor_numbers;
  }

  /// The instruction here that gives what instruction `i` gives there.
  int value(int i) {
    if (const auto found = made_.find(i); found != made_.end()) return found->second;
    const Instruction& one = whole_.code[static_cast<size_t>(i)];
    int made = -1;
    if (const auto row = rows_.find(i); row != rows_.end()) {
      made = load({Source::Kind::row, row->second}, one.dtype, kept_axes(whole_));
    } else if (one.opcode == Opcode::load) {
      made = load_operand(one);
    } else {
      made = copy(one);
    }
    return made_[i] = made;
  }

  void define(int i, int made) { made_[i] = made; }

  int load(Source source, DType dtype, const ops::Axes& axes) {
    return append(
        {.opcode = Opcode::load, .dtype = dtype, .index = input(source, dtype, axes, nullptr)});
  }

  void store(int made, Source source, const ops::Axes& axes) {
    outputs_.push_back(source);
    output_axes_.push_back(axes);
    nest_.outputs.push_back(nest_.code[static_cast<size_t>(made)].dtype);
    nest_.results.push_back(made);
  }

  int append(const Instruction& instruction) { return nest_.append(instruction); }
  int append(Opcode opcode, DType dtype, int a, int b = -1) {
    return append({.opcode = opcode, .dtype = dtype, .operands = {a, b, -1}});
  }
  int converted(int made, DType dtype) {
    if (nest_.code[static_cast<size_t>(made)].dtype == dtype) return made;
    return append(Opcode::convert, dtype, made);
  }

  bool stores() const { return !outputs_.empty(); }

  /// Null if kernels do not take so many tensors.
  std::unique_ptr<Part> finish() {
    if (nest_.tensor_count() > kMaxTensors) return nullptr;
    nest_.axes = std::move(input_axes_);
    nest_.axes.insert(nest_.axes.end(), output_axes_.begin(), output_axes_.end());
    for (const uint32_t along : nest_.positions)
      nest_.axes.push_back({nest_.rank - static_cast<int>(along)});
    inputs_.insert(inputs_.end(), outputs_.begin(), outputs_.end());
    return std::make_unique<Part>(std::move(nest_), std::move(inputs_));
  }

 private:
  uint32_t input(Source source, DType dtype, const ops::Axes& axes, const ops::IndexMap* map) {
    for (size_t t = 0; t < inputs_.size(); ++t)
      if (inputs_[t].kind == source.kind && inputs_[t].index == source.index)
        return static_cast<uint32_t>(t);
    inputs_.push_back(source);
    input_axes_.push_back(axes);
    nest_.inputs.push_back(dtype);
    if (!whole_.maps.empty()) nest_.maps.push_back(map != nullptr ? *map : ops::IndexMap{});
    return static_cast<uint32_t>(inputs_.size() - 1);
  }

  /// An operand of the whole, on the same condition and as far on.
  int load_operand(Instruction one) {
    const Source source{Source::Kind::operand, one.index};
    for (int& operand : one.operands)
      if (operand >= 0) operand = value(operand);
    one.index = input(source, one.dtype, whole_.axes[one.index], whole_.map(one.index));
    return append(one);
  }

  int copy(Instruction one) {
    for (int& operand : one.operands)
      if (operand >= 0) operand = value(operand);
    if (one.opcode == Opcode::position &&
        std::ranges::find(nest_.positions, one.index) == nest_.positions.end())
      nest_.positions.push_back(one.index);
    return append(one);
  }

  const LoopNest& whole_;
  const std::map<int, size_t>& rows_;
  LoopNest nest_;
  std::vector<Source> inputs_, outputs_;
  std::vector<ops::Axes> input_axes_, output_axes_;
  std::map<int, int> made_;
};

}  // namespace

// ---- What the parts are -------------------------------------------------------------------------

class Phases::Plan {
 public:
  explicit Plan(const LoopNest& nest) : nest_(nest), kept_(kept_axes(nest)) {
    place();
    choose_rows();
    stores_with_sums_ = stages() == 1 && stores_only_before_sums();
    for (int stage = 1; stage <= stages(); ++stage) {
      add_sums(stage);
      add_rows(stage);
    }
    add_points();
  }

  /// Whether kernels take as many tensors as the parts have.
  bool is_possible() const { return possible_; }
  /// Whether each point is come to once.
  bool is_one_pass() const { return stages() == 1 && points_ == nullptr; }
  /// Runs the parts one after the other, or only makes their code; whether all of that is there.
  bool run(const Arguments& arguments, std::optional<Making> preparing) const;

 private:
  class Run;

  struct Stage {
    std::unique_ptr<Part> sums;  ///< adds up groups
    std::unique_ptr<Part> rows;  ///< adds the groups up, computes what rows have
    size_t sum_count = 0;
  };

  std::unique_ptr<Part> finished(Extraction& part) {
    auto made = part.finish();
    possible_ = possible_ && made != nullptr;
    return made;
  }

  bool is_reduce(size_t i) const { return nest_.code[i].opcode == Opcode::reduce; }
  bool is_stored_at_points(size_t output) const {
    return nest_.runs_along_reduced(nest_.inputs.size() + output);
  }
  int stages() const { return *std::ranges::max_element(stage_); }
  /// Whether what is stored at points needs no sum.
  bool stores_only_before_sums() const {
    for (size_t i = 0; i < nest_.results.size(); ++i)
      if (is_stored_at_points(i) && stage_[static_cast<size_t>(nest_.results[i])] > 0) return false;
    return true;
  }

  /// Which instructions differ from point to point of a row, which from row to row; and how many
  /// sums must be done before.
  void place() {
    for (const Instruction& one : nest_.code) {
      bool at_points = false, varies = one.opcode == Opcode::reduce;
      int stage = 0;
      if (one.opcode == Opcode::load || one.opcode == Opcode::position) {
        const size_t tensor =
            one.opcode == Opcode::load ? one.index : nest_.tensor_of_position(one.index);
        at_points = nest_.runs_along_reduced(tensor);
        varies = true;
      }
      for (const int operand : one.operands) {
        if (operand < 0) continue;
        const auto i = static_cast<size_t>(operand);
        at_points |= at_points_[i] && one.opcode != Opcode::reduce;
        varies |= varies_[i];
        stage = std::max(stage, stage_[i]);
      }
      at_points_.push_back(at_points);
      varies_.push_back(varies);
      stage_.push_back(one.opcode == Opcode::reduce ? stage + 1 : stage);
    }
  }

  /// What rows have that later parts or the results need.
  void choose_rows() {
    for (size_t i = 0; i < nest_.code.size(); ++i) {
      if (is_reduce(i)) keep(static_cast<int>(i));
      const Instruction& one = nest_.code[i];
      for (const int operand : one.operands)
        if (operand >= 0 && at_points_[i] && is_computed_for_rows(operand)) keep(operand);
      if (is_reduce(i) && is_computed_for_rows(one.operands[0])) keep(one.operands[0]);
    }
    for (size_t i = 0; i < nest_.results.size(); ++i) {
      const int result = nest_.results[i];
      if (!is_stored_at_points(i) || is_computed_for_rows(result)) keep(result);
    }
  }

  bool is_computed_for_rows(int i) const {
    const auto at = static_cast<size_t>(i);
    return varies_[at] && !at_points_[at] && nest_.code[at].opcode != Opcode::load &&
           nest_.code[at].opcode != Opcode::position;
  }

  void keep(int i) { row_of_.emplace(i, row_of_.size()); }

  /// The stage whose second part computes it.
  int computed_in(int i) const { return std::max(stage_[static_cast<size_t>(i)], 1); }

  std::map<int, size_t> rows_before(int stage) const {
    std::map<int, size_t> known;
    for (const auto& [i, row] : row_of_)
      if (computed_in(i) < stage) known.emplace(i, row);
    return known;
  }

  std::vector<size_t> sums_of(int stage) const {
    std::vector<size_t> sums;
    for (size_t i = 0; i < nest_.code.size(); ++i)
      if (is_reduce(i) && stage_[i] == stage) sums.push_back(i);
    return sums;
  }

  void add_sums(int stage) {
    const auto known = rows_before(stage);
    Extraction part(nest_, true, known);
    const std::vector<size_t> sums = sums_of(stage);
    for (size_t k = 0; k < sums.size(); ++k) {
      const Instruction& one = nest_.code[sums[k]];
      const DType dtype = accumulated(one.dtype);
      const Source group{Source::Kind::group, k};
      const int before = part.load(group, dtype, kept_);
      const int sum =
          part.append(Opcode::reduce, dtype, part.converted(part.value(one.operands[0]), dtype));
      part.store(part.append(Opcode::add, dtype, before, sum), group, kept_);
    }
    if (stores_with_sums_) store_points(part);
    stages_.push_back({.sums = finished(part), .rows = nullptr, .sum_count = sums.size()});
  }

  void add_rows(int stage) {
    const auto known = rows_before(stage);
    Extraction part(nest_, true, known);
    ops::Axes groups = kept_;
    groups.insert(groups.begin(), first_reduced(nest_));
    const std::vector<size_t> sums = sums_of(stage);
    for (size_t k = 0; k < sums.size(); ++k) {
      const Instruction& one = nest_.code[sums[k]];
      const DType dtype = accumulated(one.dtype);
      const int sum =
          part.append(Opcode::reduce, dtype, part.load({Source::Kind::group, k}, dtype, groups));
      part.define(static_cast<int>(sums[k]), part.converted(sum, one.dtype));
    }
    for (const auto& [i, row] : row_of_)
      if (computed_in(i) == stage) part.store(part.value(i), {Source::Kind::row, row}, kept_);
    stages_.back().rows = finished(part);
  }

  void add_points() {
    if (stores_with_sums_) return;
    Extraction part(nest_, false, row_of_);
    store_points(part);
    if (part.stores()) points_ = finished(part);
  }

  void store_points(Extraction& part) const {
    for (size_t i = 0; i < nest_.results.size(); ++i) {
      const size_t tensor = nest_.inputs.size() + i;
      if (is_stored_at_points(i))
        part.store(part.value(nest_.results[i]), {Source::Kind::operand, tensor},
                   nest_.axes[tensor]);
    }
  }

  const LoopNest& nest_;
  const ops::Axes kept_;
  std::vector<bool> at_points_, varies_;  // of each instruction
  std::vector<int> stage_;
  std::map<int, size_t> row_of_;  ///< instructions whose values for rows are in scratch memory
  std::vector<Stage> stages_;
  bool stores_with_sums_ = false;
  std::unique_ptr<Part> points_;  ///< null if nothing is stored at each point when sums are there
  bool possible_ = true;
};

// ---- Running them -------------------------------------------------------------------------------

class Phases::Plan::Run {
 public:
  Run(const Plan& plan, const Arguments& arguments, std::optional<Making> preparing)
      : plan_(plan), arguments_(arguments), preparing_(preparing) {
    for (size_t d = arguments.sizes.size(); d-- > 0;) {
      const bool reduced = (plan.nest_.reduced >> d & 1) != 0;
      row_strides_[d] = reduced ? 0 : rows_;
      (reduced ? length_ : rows_) *= arguments.sizes[d];
    }
    groups_ = std::min(rows_ * length_ / policy::kGroupPoints, length_ / policy::kGroupLength);
    groups_ = std::clamp<int64_t>(groups_, 1, policy::kMostGroups);
    if (!preparing) reserve();
  }

  bool run() {
    for (const Stage& stage : plan_.stages_) {
      add_up(*stage.sums, stage.sum_count);
      finish_rows(*stage.rows);
    }
    if (plan_.points_ != nullptr) compute_points(*plan_.points_);
    if (!preparing_) store_rows();
    return is_ready_;
  }

 private:
  void reserve() {
    size_t sums = 0;
    for (const Stage& stage : plan_.stages_) sums = std::max(sums, stage.sum_count);
    const size_t slots =
        (plan_.row_of_.size() + sums * static_cast<size_t>(groups_)) * static_cast<size_t>(rows_);
    static thread_local std::vector<int64_t> scratch;
    if (scratch.size() < slots) scratch.resize(slots);
    scratch_ = scratch.data();
  }

  /// The values of a row are at the beginning of the scratch memory, the groups' sums behind them.
  char* row_place(size_t row) const { return slot(static_cast<int64_t>(row) * rows_); }
  char* group_place(size_t sum) const {
    const auto rows = static_cast<int64_t>(plan_.row_of_.size());
    return slot((rows + static_cast<int64_t>(sum) * groups_) * rows_);
  }
  /// While code is prepared there is no scratch memory, but places are told apart: so these are
  /// computed as numbers.
  char* slot(int64_t index) const {
    return reinterpret_cast<char*>(reinterpret_cast<intptr_t>(scratch_) + index * kSlotBytes);
  }

  /// A part's tensors in a space, and where each begins.
  struct Bound {
    Space space;
    void* starts[kMaxTensors] = {};
    bool empty = false;
  };

  Bound bind(const Part& part, std::span<const int64_t> sizes, const int64_t* group_strides) const {
    Bound bound;
    TensorOperand tensors[kMaxTensors];
    for (size_t t = 0; t < part.tensors.size(); ++t) {
      const Source& source = part.tensors[t];
      if (source.kind == Source::Kind::operand)
        tensors[t] = arguments_.tensors[source.index];
      else if (source.kind == Source::Kind::row)
        tensors[t] = {row_place(source.index), row_strides_};
      else
        tensors[t] = {group_place(source.index), group_strides};
      bound.starts[t] = tensors[t].data;
    }
    const LoopNest& nest = part.code.nest();
    const std::span<const TensorOperand> operands(tensors, part.tensors.size());
    bound.empty = !bound.space.read({sizes, operands, {}, arguments_.has_other_sizes}, nest);
    if (!bound.empty) bound.space.simplify(static_cast<int>(nest.inputs.size()));
    return bound;
  }

  Call call(void* const* starts) const {
    return {starts, arguments_.numbers.data(), arguments_.sizes.data()};
  }

  /// Each group has a stretch of one reduced dimension. Where lanes are columns, pieces of these
  /// are gone over apart.
  void add_up(const Part& part, size_t sum_count) {
    const Bound bound = bind(part, arguments_.sizes, row_strides_);
    if (bound.empty) return;
    if (preparing_) return prepare(part, bound.space);
    const int64_t columns = bound.space.sizes[0];
    const int64_t piece = bound.space.lanes_reduced() ? columns : policy::kPieceColumns;
    const int64_t pieces = (columns + piece - 1) / piece;
    for (size_t sum = 0; sum < sum_count; ++sum)
      std::memset(group_place(sum), 0, static_cast<size_t>(groups_ * rows_ * kSlotBytes));
    const int64_t work = bound.space.element_count() * part.code.nest().cost();
    parallel_for(
        groups_ * pieces, least_pieces(work, groups_ * pieces), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i % pieces * piece;
            add_group(part, columns_of(part, bound, first, std::min(piece, columns - first)),
                      i / pieces);
          }
        });
  }

  void add_group(const Part& part, Bound bound, int64_t group) const {
    for (size_t t = 0; t < part.tensors.size(); ++t)
      if (part.tensors[t].kind == Source::Kind::group)
        bound.starts[t] = static_cast<char*>(bound.starts[t]) + group * rows_ * kSlotBytes;
    const Space& space = bound.space;
    const int dim = longest_reduced(space);
    const int64_t unit = dim == 0 ? policy::kInnerGrain : 1;
    const int64_t units = (space.sizes[dim] + unit - 1) / unit;
    const int64_t length = (units + groups_ - 1) / groups_ * unit;
    const int64_t block = space.lanes_reduced() ? length : block_length(part, space, dim);
    const int64_t end = std::min((group + 1) * length, space.sizes[dim]);
    for (int64_t i = group * length; i < end; i += block)
      part.code.run_slice(space, call(bound.starts), dim, i, std::min(i + block, end));
  }

  /// Dimension 0 from `first` on.
  static Bound columns_of(const Part& part, Bound bound, int64_t first, int64_t count) {
    bound.space.sizes[0] = count;
    const LoopNest& nest = part.code.nest();
    for (size_t t = 0; t < nest.tensor_count(); ++t)
      bound.starts[t] = static_cast<char*>(bound.starts[t]) +
                        first * bound.space.strides[0][t] * graph::byte_size(nest.tensor_dtype(t));
    return bound;
  }

  static int longest_reduced(const Space& space) {
    int longest = -1;
    for (int dim = 0; dim < space.rank; ++dim)
      if (space.reduced[dim] && (longest < 0 || space.sizes[dim] > space.sizes[longest]))
        longest = dim;
    return longest;
  }

  /// So many indices of the dimension as are in the cache together, of what is read.
  static int64_t block_length(const Part& part, const Space& space, int dim) {
    int64_t bytes_of_point = 0;
    for (size_t t = 0; t < part.tensors.size(); ++t)
      if (part.tensors[t].kind == Source::Kind::operand && part.code.nest().runs_along_reduced(t))
        bytes_of_point += graph::byte_size(part.code.nest().tensor_dtype(t));
    const int64_t others = space.element_count() / space.sizes[dim];
    return std::max<int64_t>(policy::kBlockBytes / std::max<int64_t>(others * bytes_of_point, 1),
                             policy::kLeastBlock);
  }

  void finish_rows(const Part& part) {
    int64_t sizes[kMaxRank], strides[kMaxRank];
    const size_t rank = arguments_.sizes.size();
    for (size_t d = 0; d < rank; ++d) {
      sizes[d] = (plan_.nest_.reduced >> d & 1) != 0 ? 1 : arguments_.sizes[d];
      strides[d] = row_strides_[d];
    }
    const int groups = first_reduced(plan_.nest_);
    sizes[groups] = groups_;
    strides[groups] = rows_;
    run_all(part, bind(part, std::span(sizes, rank), strides));
  }

  void compute_points(const Part& part) {
    run_all(part, bind(part, arguments_.sizes, row_strides_));
  }

  void run_all(const Part& part, const Bound& bound) {
    if (bound.empty) return;
    if (preparing_) return prepare(part, bound.space);
    part.code.run(bound.space, call(bound.starts));
  }

  void prepare(const Part& part, const Space& space) {
    is_ready_ = part.code.prepare(space, *preparing_) && is_ready_;
  }

  /// Results with an element for each row are copied from the scratch memory.
  void store_rows() const {
    const LoopNest& nest = plan_.nest_;
    for (size_t i = 0; i < nest.results.size(); ++i) {
      if (plan_.is_stored_at_points(i)) continue;
      const TensorOperand& to = arguments_.tensors[nest.inputs.size() + i];
      const char* from = row_place(plan_.row_of_.at(nest.results[i]));
      copy_rows(from, to, static_cast<size_t>(graph::byte_size(nest.outputs[i])));
    }
  }

  void copy_rows(const char* from, const TensorOperand& to, size_t bytes) const {
    int64_t index[kMaxRank] = {};
    auto* place = static_cast<char*>(to.data);
    for (int64_t row = 0; row < rows_; ++row) {
      std::memcpy(place, from + row * static_cast<int64_t>(bytes), bytes);
      for (auto axis = plan_.kept_.rbegin(); axis != plan_.kept_.rend(); ++axis) {
        const auto d = static_cast<size_t>(*axis);
        const auto step = to.strides[d] * static_cast<int64_t>(bytes);
        place += step;
        if (++index[d] < arguments_.sizes[d]) break;
        place -= step * arguments_.sizes[d];
        index[d] = 0;
      }
    }
  }

  const Plan& plan_;
  const Arguments& arguments_;
  const std::optional<Making> preparing_;
  bool is_ready_ = true;
  int64_t rows_ = 1, length_ = 1, groups_ = 1;
  int64_t row_strides_[kMaxRank];  ///< of what has an element for each row
  int64_t* scratch_ = nullptr;
};

bool Phases::Plan::run(const Arguments& arguments, std::optional<Making> preparing) const {
  return Run(*this, arguments, preparing).run();
}

Phases::Phases(const LoopNest& nest) : nest_(nest) {
  const auto is_sum = [](const Instruction& one) {
    return one.opcode != Opcode::pick &&
           (one.opcode != Opcode::reduce || one.combine == Combine::sum);
  };
  const auto is_reduce = [](const Instruction& one) { return one.opcode == Opcode::reduce; };
  possible_ = nest.has_rank && nest.reduced != 0 && std::ranges::all_of(nest.code, is_sum) &&
              std::ranges::any_of(nest.code, is_reduce) && nest.unused_look_ups().empty();
}

Phases::~Phases() = default;

bool Phases::suit(const Space& space) const {
  if (!possible_ || space.element_count() < policy::kManyPoints) return false;
  const int64_t length = space.row_length(), rows = space.element_count() / length;
  if (length < 2) return false;
  if (space.lanes_reduced()) return rows < policy::kFewSharedRows && plan().is_possible();
  const int64_t column_bytes = length * 4 * jit::vector_bytes();
  if (column_bytes > policy::kCachedColumnBytes ||
      rows < policy::kFewSharedPieces * policy::kInnerGrain)
    return plan().is_possible();
  return space.element_count() > policy::kCachedPoints && length > policy::kLongColumn &&
         plan().is_possible() && plan().is_one_pass();
}

const Phases::Plan& Phases::plan() const {
  std::call_once(planned_, [&] { plan_ = std::make_unique<const Plan>(nest_); });
  return *plan_;
}

void Phases::run(const Arguments& arguments) const { plan().run(arguments, {}); }
bool Phases::prepare(const Arguments& arguments, Making making) const {
  return plan().run(arguments, making);
}

}  // namespace janus::kernels
