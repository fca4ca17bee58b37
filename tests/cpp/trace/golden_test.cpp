// Small programs: the text of their TraceGraph and of the graph that is generated of it, in
// tests/ir/trace.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "graph/text.h"
#include "trace/to_graph.h"
#include "trace_maker.h"

namespace janus::trace {
namespace {

using Program = std::function<void(TraceMaker&)>;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_golden(const std::string& name, const std::vector<Program>& iterations) {
  Names names;
  TraceGraph traces(names);
  for (const Program& iteration : iterations) {
    TraceMaker maker(names);
    iteration(maker);
    EXPECT_TRUE(traces.merge(maker.trace()).any());
  }
  auto generated = to_graph(traces);
  std::string text = traces.print() + "----\n";
  if (const auto* refusal = std::get_if<Refusal>(&generated)) {
    text += refusal->reason + '\n';
  } else {
    const graph::Graph& graph = std::get<GeneratedGraph>(generated).graph;
    graph::verify(graph);
    text += graph::print(graph, {.operator_names = true});
  }
  const std::string path = cat(TORCHJANUS_SOURCE_DIR "/tests/ir/trace/", name, ".txt");
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, read_file(path)) << "UPDATE_GOLDEN=1 writes " << path << " anew";
}

TEST(TraceGolden, branch_whose_sides_join) {
  const auto iteration = [](bool positive, int64_t rows) {
    return [=](TraceMaker& make) {
      const auto type = f32({rows, 4});
      Operand x = make.call(1, "aten::mul.Tensor", {make.feed(type), make.cell(0, f32({4}))}, type);
      x = positive ? make.call(3, "aten::relu", {x}, type) : make.call(5, "aten::neg", {x}, type);
      make.look(make.call(6, "aten::add.Tensor", {x, make.cell(1, f32({4}))}, type));
    };
  };
  expect_golden("branch", {iteration(true, 8), iteration(false, 8), iteration(false, 5)});
}

TEST(TraceGolden, loop_with_a_carried_value) {
  const auto iteration = [](int trips) {
    return [=](TraceMaker& make) {
      const auto type = f32({4});
      Operand h = make.cell(0, type);
      for (int i = 0; i < trips; ++i) {
        h = make.call(2, "aten::add.Tensor", {h, make.feed(type)}, type);
        h = make.call(3, "aten::tanh", {h}, type);
      }
      make.look(make.call(4, "aten::mul.Tensor", {h, TraceMaker::number()}, type));
    };
  };
  expect_golden("loop", {iteration(2), iteration(3)});
}

TEST(TraceGolden, layers_with_weights_of_their_own) {
  expect_golden("layers", {[](TraceMaker& make) {
                  const auto type = f32({4});
                  Operand x = make.feed(type);
                  for (CellId layer = 0; layer < 3; ++layer) {
                    x = make.call(2, "aten::mul.Tensor", {x, make.cell(layer, type)}, type);
                    x = make.call(3, "aten::relu", {x}, type);
                  }
                  make.look(x);
                }});
}

TEST(TraceGolden, updates_and_values_that_are_not_always_there) {
  const auto iteration = [](bool clips) {
    return [=](TraceMaker& make) {
      const auto type = f32({4});
      Operand g = make.call(1, "aten::mul.Tensor", {make.cell(0, type), make.feed(type)}, type);
      if (clips) {
        g = make.call(3, "aten::mul.Tensor", {g, TraceMaker::number()}, type);
        make.look(g);
      }
      const Operand w = make.call(4, "aten::sub.Tensor", {make.cell(0, type), g}, type);
      make.write(4, 0, w);
      if (clips) make.write(5, 1, g);
    };
  };
  expect_golden("updates", {iteration(false), iteration(true)});
}

TEST(TraceGolden, exits_that_are_not_nested) {
  // a; if not p: { b; if not q: c }; and once c without b: the sides of both conditions join at c.
  const auto iteration = [](const std::string& way) {
    return [=](TraceMaker& make) {
      const auto type = f32({2});
      Operand x = make.feed(type);
      for (const char letter : way)
        x = make.call(static_cast<Location>(letter - 'a' + 1), "aten::neg", {x}, type);
      make.look(x);
    };
  };
  expect_golden("exits", {iteration("abcd"), iteration("ad"), iteration("acd"), iteration("abd")});
}

TEST(TraceGolden, nested_loops_of_fixed_and_varying_length) {
  const auto iteration = [](int trips) {
    return [=](TraceMaker& make) {
      const auto type = f32({2});
      Operand x = make.feed(type);
      for (int i = 0; i < trips; ++i) {
        x = make.call(2, "aten::relu", {x}, type);
        for (int k = 0; k < 2; ++k) x = make.call(4, "aten::neg", {x}, type);
      }
      make.look(x);
    };
  };
  expect_golden("nested_loops", {iteration(1), iteration(3)});
}

}  // namespace
}  // namespace janus::trace
