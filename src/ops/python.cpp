// Calls of Python's standard library during a run: functions that only compute numbers, and
// functions that return numbers from outside (generators, clocks).
//
// `python_draw %a, %b {function="random.uniform", arguments="_,_"} : f64`. `arguments` lists the
// arguments: `_` is the next operand, `range(5)` that range, `list(5)` a list of it that the
// function changes, whose elements are then the results; `k=_` is a keyword argument. If a call
// returns a list, its elements are the results. The node is made with its result types. A call that
// returns anything else, or raises, fails the run.
#include "ops/python.h"

#include <charconv>

#include "graph/op.h"
#include "ops/list.h"

namespace janus {

using namespace graph;

namespace {

std::optional<ops::PythonArgument> parse_argument(std::string_view text) {
  ops::PythonArgument argument;
  if (const size_t equals = text.find('='); equals != std::string_view::npos) {
    argument.keyword = text.substr(0, equals);
    if (argument.keyword.empty()) return std::nullopt;
    text.remove_prefix(equals + 1);
  }
  if (text == "_") return argument;
  const size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const std::string_view kind = text.substr(0, open);
  if (kind != "range" && kind != "list") return std::nullopt;
  argument.kind =
      kind == "list" ? ops::PythonArgument::Kind::list : ops::PythonArgument::Kind::range;
  const char* end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data() + open + 1, end, argument.length);
  if (parsed.ec != std::errc() || parsed.ptr != end || argument.length < 0) return std::nullopt;
  return argument;
}

const std::string& text_of(const Infer& infer, std::string_view name) {
  const AttributeValue* value = infer.attributes.find(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (text == nullptr) infer.fail(cat("expected a string in attribute ", name));
  return *text;
}

void check_call(const Infer& infer) {
  if (text_of(infer, "function").empty()) infer.fail("expected the path of a function");
  const auto arguments = ops::parse_python_arguments(text_of(infer, "arguments"));
  if (!arguments) infer.fail("attribute arguments is malformed");
  size_t operands = 0;
  for (const ops::PythonArgument& argument : *arguments)
    operands += argument.kind == ops::PythonArgument::Kind::operand ? 1 : 0;
  if (operands != infer.inputs.size())
    infer.fail(cat("expected ", operands, " operands, got ", infer.inputs.size()));
  for (size_t i = 0; i < operands; ++i)
    if (infer.type(i).is_tensor()) infer.fail(cat("operand ", i, " is ", infer.type(i)));
  if (!infer.blocks.empty()) infer.fail("it has no blocks");
}

}  // namespace

constinit const OpDef op::python_call{
    .name = "python_call",
    .doc = "A function of Python's library that only computes numbers from numbers.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient | Trait::may_fail,
    .computed_by = ComputedBy::python,
    .raises = Raises::outside_domain,
    .check = check_call,
};

constinit const OpDef op::python_draw{
    .name = "python_draw",
    .doc =
        "Numbers from one of Python's random generators, whose state is restored if the run "
        "bails out, or from a clock.",
    .schema = "",
    .traits = Trait::random | Trait::no_gradient | Trait::may_fail,
    .computed_by = ComputedBy::python,
    .raises = Raises::not_for_contents,
    .draws = Draws::elements,
    .check = check_call,
};

namespace ops {

std::optional<std::vector<PythonArgument>> parse_python_arguments(std::string_view text) {
  std::vector<PythonArgument> arguments;
  while (!text.empty()) {
    const size_t end = text.find(',');
    const auto argument = parse_argument(text.substr(0, end));
    if (!argument) return std::nullopt;
    arguments.push_back(*argument);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return arguments;
}

bool reads_clock(const graph::Node& node) {
  return node.op == &op::python_draw &&
         node.attributes.get<std::string>("function").starts_with("time.");
}

}  // namespace ops
}  // namespace janus
