#include "frontend/core/graph_writer.h"

#include <cctype>

#include "base/check.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

std::string graph_name(const Source* source) {
  std::string name;
  for (char c : source->describe()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.')
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

GraphWriter::GraphWriter(const speculate::Call& call)
    : output_(graph::Graph(call.tree->name)), builder_(output_.graph) {
  output_.sources = std::make_shared<speculate::SourceTable>();
}

graph::Builder GraphWriter::root_builder() {
  graph::Builder builder(output_.graph);
  builder.set_span(builder_.span());
  return builder;
}

void GraphWriter::enter_block(graph::Block& block) {
  graph::SourceSpan span = builder_.span();
  builder_ = graph::Builder(output_.graph, block);
  builder_.set_span(std::move(span));
}

// --- what the graph takes -----------------------------------------------------------------------

graph::Value* GraphWriter::add_input(const Type& type, const Source* source) {
  return add_input(type, source, graph_name(source));
}

graph::Value* GraphWriter::add_input(const Type& type, const Source* source, std::string name) {
  graph::Value* input = builder_.input(type, std::move(name));
  output_.inputs.push_back({source});
  return input;
}

graph::Value* GraphWriter::list_input(const Source* source, const Type& element,
                                      speculate::ElementPart part) {
  graph::Value* input = builder_.input(Type::list(element), graph_name(source));
  output_.inputs.push_back({source, std::move(part)});
  return input;
}

graph::Value* GraphWriter::object_input(const Known& known) {
  TORCHJANUS_CHECK(known.source != nullptr, "object_input: an object without a source");
  graph::Value*& input = object_inputs_[known.source];
  if (input == nullptr)
    input = add_input(Type::object(python::type_name(known.object.get())), known.source);
  return input;
}

graph::Value* GraphWriter::run_time_input(const Source* source) {
  return add_input(Type::object("object"), source);
}

std::string GraphWriter::add_cell(speculate::CellBinding::Kind kind, const Source* source,
                                  Object key) {
  std::string name = source->describe();
  if (kind == speculate::CellBinding::Kind::grad) name += ".grad";
  if (kind == speculate::CellBinding::Kind::data) name += ".data";
  auto taken = [&](const std::string& candidate) {
    for (const speculate::CellBinding& cell : output_.cells)
      if (cell.name == candidate) return true;
    return false;
  };
  std::string unique = name;
  for (int i = 2; taken(unique); ++i) unique = cat(name, "#", i);
  output_.cells.push_back({unique, kind, source, std::move(key), 0});
  return unique;
}

// --- what is said of lines ----------------------------------------------------------------------

void GraphWriter::note_line(speculate::LineMark::Kind kind, std::string note,
                            const graph::SourceSpan& span) {
  if (!span.known()) return;
  if (!output_.lines.empty()) {
    const speculate::LineMark& last = output_.lines.back();
    if (last.span.line == span.line && last.kind == kind && last.note == note) return;
  }
  output_.lines.push_back({span, kind, std::move(note)});
}

}  // namespace janus::frontend
