#include "frontend/gradient_evidence.h"

#include <algorithm>

#include "frontend/met_writes.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "passes/list_pushes.h"

namespace janus::frontend {

using graph::Block;
using graph::Node;

namespace {

/// What was shown is guarded as a test is that the source does not show.
void expect(Interpreter& interpreter, graph::Value* flag) {
  interpreter.follow(flag, python::Object::borrow(Py_True), /*fact_number=*/-1);
}

graph::Value* is_not_zero(Interpreter& interpreter, graph::Value* gradient) {
  graph::Builder& builder = interpreter.builder();
  const ops::Expression sizes =
      ops::sum_all(ops::apply(op::abs, ops::Expression(builder, gradient)));
  return op::scalar_gt(builder, {op::item(builder, {sizes}), builder.constant(0.0)});
}

}  // namespace

void expect_gradients(Interpreter& interpreter, std::span<graph::Value* const> gradients) {
  graph::Value* all = nullptr;
  for (graph::Value* gradient : gradients) {
    graph::Value* flag = is_not_zero(interpreter, gradient);
    all = all == nullptr ? flag : op::scalar_and(interpreter.builder(), {all, flag});
  }
  if (all != nullptr) expect(interpreter, all);
}

// --- what backward() has freed ------------------------------------------------------------------

namespace {

/// Counts the elements of lists that a gradient comes to: what is pushed goes through a node that
/// adds one to the gradient of a count.
class FreedCount {
 public:
  explicit FreedCount(Interpreter& interpreter)
      : interpreter_(interpreter), graph_(interpreter.output().graph) {
    Block& body = graph_.body();
    const size_t before = body.nodes.size();
    graph::Builder root(graph_, body);
    count_ = ops::zeros(root, graph::Type::tensor(graph::DType::f64, {}));
    // Functions use it: it stands in front of them.
    std::rotate(body.nodes.begin(), body.nodes.begin() + static_cast<std::ptrdiff_t>(before),
                body.nodes.end());
  }

  void watch(const Node& push) {
    graph::Value* pushed = push.inputs[1];
    Block& block = *push.parent;
    const Block* home = pushed->definition != nullptr ? pushed->definition->parent : pushed->owner;
    // Where it is pushed as often as it is computed, all that uses it counts.
    const Node* behind = home == &block ? pushed->definition : before(push);
    insert(block, behind, pushed);
  }

  /// The sum of what all backward() calls have counted.
  graph::Value* counted() {
    graph::Value* sum = nullptr;
    for (Node* gradient : interpreter_.met_writes().freeing()) {
      if (gradient->parent != &graph_.body()) refuse();
      gradient->inputs.push_back(count_);
      gradient->attributes.set("targets", static_cast<int64_t>(gradient->outputs.size() + 1));
      graph::Value* found = graph_.new_output(*gradient, count_->type, "freed");
      sum = sum == nullptr ? found : op::add(interpreter_.builder(), {sum, found});
    }
    if (sum == nullptr) refuse();
    return sum;
  }

 private:
  [[noreturn]] void refuse() const {
    interpreter_.refuse(
        ReasonCode::autograd,
        "attributes with gradients of objects met in the run, which a backward() in a "
        "branch or loop may have freed");
  }

  static const Node* before(const Node& node) {
    const auto& nodes = node.parent->nodes;
    const auto place = std::ranges::find(nodes, &node);
    return place == nodes.begin() ? nullptr : *std::prev(place);
  }

  /// Behind that node (null: at the begin of the block) for all that comes later.
  void insert(Block& block, const Node* behind, graph::Value* pushed) {
    auto& nodes = block.nodes;
    const size_t before = nodes.size();
    graph::Builder builder(graph_, block);
    graph::Value* frame =
        builder.append(op::frame_pack, {pushed, count_}, {{"counts", true}})->output();
    graph::Value* noted =
        builder
            .append_unchecked(op::frame_unpack, std::span<graph::Value* const>(&frame, 1), {},
                              {pushed->type, count_->type})
            ->output();
    noted->name = pushed->name;
    const auto at = [&](size_t index) {
      return nodes.begin() + static_cast<std::ptrdiff_t>(index);
    };
    const size_t place =
        behind == nullptr
            ? 0
            : static_cast<size_t>(std::ranges::find(nodes, behind) - nodes.begin()) + 1;
    std::rotate(at(place), at(before), nodes.end());
    for (size_t i = place + 2; i < nodes.size(); ++i) substitute(*nodes[i], pushed, noted);
    std::ranges::replace(block.results, pushed, noted);
  }

  void substitute(Node& node, graph::Value* from, graph::Value* to) {
    std::ranges::replace(node.inputs, from, to);
    for (const auto& nested : node.blocks) {
      for (Node* inner : nested->nodes) substitute(*inner, from, to);
      std::ranges::replace(nested->results, from, to);
    }
  }

  Interpreter& interpreter_;
  graph::Graph& graph_;
  graph::Value* count_;
};

}  // namespace

void expect_freed(Interpreter& interpreter, std::span<graph::Value* const> lists) {
  if (lists.empty()) return;
  FreedCount count(interpreter);
  graph::Builder& builder = interpreter.builder();
  graph::Value* length = builder.constant(int64_t{0});
  for (graph::Value* list : lists) {
    const passes::Pushes pushes = passes::pushes_of(list, &interpreter.output().graph.body());
    TORCHJANUS_CHECK(pushes.is_all, "a list of attributes that something else is in");
    for (const Node* push : pushes.nodes) count.watch(*push);
    length = op::scalar_add(builder, {length, op::list_size(builder, {list})});
  }
  graph::Value* counted = op::item(builder, {count.counted()});
  expect(interpreter, op::scalar_eq(builder, {counted, op::scalar_float(builder, {length})}));
}

}  // namespace janus::frontend
