#include "speculate/generated_text.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "graph/text.h"
#include "speculate/describe.h"

namespace janus::speculate {
namespace {

constexpr graph::PrintOptions kNaming = {.operator_names = true};

std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ") {
  std::string text;
  for (const std::string& part : parts) text += cat(text.empty() ? "" : separator, part);
  return text;
}

/// The text of a callee: a function, method or class.
std::string callee_text(PyObject* callee) {
  const python::Object name = python::Object::steal(PyObject_GetAttrString(callee, "__qualname__"));
  PyErr_Clear();
  return name && PyUnicode_Check(name.get()) ? text_of(name.get()) : describe_object(callee);
}

/// The free variable that the write sets.
std::string variable_text(const HeapWrite& write) {
  if (write.key && PyUnicode_Check(write.key.get())) return text_of(write.key.get());
  return cat("variable ", write.index, " of ", write.owner->describe());
}

/// Collects the places of templates that `shared` templates refer to.
void add_shared(const Template& form, std::set<size_t>& places) {
  if (form.kind == Template::Kind::shared) places.insert(form.index);
  for (const Template& child : form.children) add_shared(child, places);
}

std::set<size_t> shared_places(const Generated& generated) {
  std::set<size_t> places;
  add_shared(generated.result, places);
  for (const HeapWrite& write : generated.writes) add_shared(write.value, places);
  for (const Effect& effect : generated.effects) add_shared(effect.call, places);
  return places;
}

/// Templates as Python expressions, with the names of the graph's values.
class TemplateText {
 public:
  explicit TemplateText(const Generated& generated)
      : results_(graph::value_names(generated.graph, kNaming).results),
        shared_(shared_places(generated)) {}

  const std::string& result(size_t index) const { return results_.at(index); }

  std::string operator()(const Template& form) const {
    const std::string text = expression(form);
    return shared_.contains(form.place) ? cat("#", form.place, "=", text) : text;
  }

 private:
  std::string expression(const Template& form) const {
    using Kind = Template::Kind;
    switch (form.kind) {
      case Kind::constant:
        return describe_object(form.object.get());
      case Kind::source:
        return form.source->describe();
      case Kind::result:
        return result(form.index);
      case Kind::tuple:
        return cat("(", list(form), form.children.size() == 1 ? ",)" : ")");
      case Kind::list:
        return cat("[", list(form), "]");
      case Kind::dict:
        return cat("{", pairs(form, 0), "}");
      case Kind::set:
        return form.children.empty() ? "set()" : cat("{", list(form), "}");
      case Kind::slice:
        return cat("slice(", list(form), ")");
      case Kind::call:
        return cat(callee_text(form.object.get()), "(", arguments(form), ")");
      case Kind::each:
        return cat("[", elements(form), "]");
      case Kind::item:
        return cat("item", form.index);
      case Kind::replay:
        return cat("in order (", list(form), ")");
      case Kind::instance:
        return cat(callee_text(form.object.get()), "(", pairs(form, form.index), ")");
      case Kind::unbound:
        return "unbound";
      case Kind::shared:
        return cat("#", form.index);
    }
    return "?";
  }

  std::string list(const Template& form) const {
    std::vector<std::string> parts;
    for (const Template& child : form.children) parts.push_back((*this)(child));
    return joined(parts);
  }

  /// Pairs of an instance: the first `attributes` children are attributes, the others keys and
  /// items, or a list.
  std::string pairs(const Template& form, size_t attributes) const {
    std::vector<std::string> parts;
    for (size_t i = 0; i + 1 < form.children.size(); i += 2) {
      const Template &name = form.children[i], &value = form.children[i + 1];
      parts.push_back(i < attributes ? cat(text_of(name.object.get()), "=", (*this)(value))
                                     : cat((*this)(name), ": ", (*this)(value)));
    }
    if (form.children.size() % 2 != 0) parts.push_back((*this)(form.children.back()));
    return joined(parts);
  }

  std::string arguments(const Template& form) const {
    const size_t positional = form.children.size() - form.keyword_names.size();
    std::vector<std::string> parts;
    for (size_t i = 0; i < form.children.size(); ++i)
      parts.push_back(cat(i < positional ? "" : form.keyword_names[i - positional] + "=",
                          (*this)(form.children[i])));
    return joined(parts);
  }

  std::string elements(const Template& form) const {
    std::vector<std::string> parts;
    for (size_t i = 1; i < form.children.size(); ++i)
      parts.push_back(cat("item", i - 1, " of ", (*this)(form.children[i])));
    return cat((*this)(form.children.front()), " for each ", joined(parts));
  }

  std::vector<std::string> results_;
  std::set<size_t> shared_;
};

/// The text of an input; an input that is a list has one part of each element.
std::string input_text(const InputBinding& input) {
  if (input.part.empty()) return input.source->describe();
  std::string text = element_text(input.source->describe());
  for (const size_t index : input.part) text += cat("[", index, "]");
  return text;
}

std::string cell_text(const CellBinding& cell) {
  using Kind = CellBinding::Kind;
  const std::string owner = cell.source->describe();
  switch (cell.kind) {
    case Kind::tensor:
      return owner;
    case Kind::grad:
      return cat(owner, ".grad");
    case Kind::data:
      return cat("the memory of ", owner);
    case Kind::attribute:
      return cat(owner, ".", text_of(cell.key.get()));
    case Kind::item:
      return cat(owner, "[", describe_object(cell.key.get()), "]");
    case Kind::global:
      return cat("the global ", text_of(cell.key.get()));
  }
  return "?";
}

/// The target of an assignment or deletion.
std::string target_text(const HeapWrite& write) {
  using Kind = HeapWrite::Kind;
  switch (write.kind) {
    case Kind::attribute:
      return cat(write.owner->describe(), ".", text_of(write.key.get()));
    case Kind::item:
      return cat(write.owner->describe(), "[", describe_object(write.key.get()), "]");
    case Kind::tail:
      return cat(write.owner->describe(), "[", write.index, ":]");
    case Kind::global:
      return cat("the global ", text_of(write.key.get()));
    case Kind::cell:
      return variable_text(write);
    default:
      return cat("the attributes ", describe_object(write.key.get()), " of objects of the run");
  }
}

std::string write_text(const HeapWrite& write, const TemplateText& text) {
  using Kind = HeapWrite::Kind;
  const auto owner = [&] { return write.owner->describe(); };
  switch (write.kind) {
    case Kind::clear:
      return cat("calls ", owner(), ".clear()");
    case Kind::member:
      return cat("calls ", owner(), write.deletes ? ".discard(" : ".add(",
                 describe_object(write.key.get()), ")");
    case Kind::context_variable:
      return cat("calls ", owner(), ".set(", text(write.value), ")");
    case Kind::extend:
      return cat("calls ", owner(), ".popleft() ", write.index, " times and ", owner(), ".extend(",
                 text(write.value), ")");
    case Kind::tail:
      if (write.index == HeapWrite::kEnd)
        return cat("calls ", owner(), ".extend(", text(write.value), ")");
      break;
    default:
      break;
  }
  if (write.deletes) return cat("deletes ", target_text(write));
  return cat("sets ", target_text(write), " = ", text(write.value));
}

std::string grad_fn_text(const Generated::DifferentiableResult& result, const TemplateText& text) {
  const std::string name =
      result.names.empty() ? result.grad_fn_name : cat("one of ", joined(result.names));
  return cat("gives ", text.result(result.result), " the grad_fn ", name,
             result.consumed ? ", which is freed" : "");
}

}  // namespace

std::string describe_graph(const Generated& generated) {
  return graph::print(generated.graph, kNaming);
}

std::vector<std::string> describe_connections(const Generated& generated) {
  const std::vector<std::string> inputs = graph::value_names(generated.graph, kNaming).inputs;
  const TemplateText text(generated);
  std::vector<std::string> lines;
  for (size_t i = 0; i < generated.inputs.size(); ++i)
    if (const std::string place = input_text(generated.inputs[i]); inputs.at(i) != "%" + place)
      lines.push_back(cat("input ", inputs[i], " is ", place));
  for (const CellBinding& cell : generated.cells)
    if (const std::string place = cell_text(cell); cell.name != place)
      lines.push_back(cat("cell \"", cell.name, "\" is ", place));
  lines.push_back(cat("returns ", text(generated.result)));
  for (const HeapWrite& write : generated.writes) lines.push_back(write_text(write, text));
  for (const Effect& effect : generated.effects) lines.push_back(cat("calls ", text(effect.call)));
  for (const auto& result : generated.differentiable_results)
    lines.push_back(grad_fn_text(result, text));
  return lines;
}

std::vector<std::string> describe_assumptions(const Generated& generated) {
  std::vector<std::string> lines;
  std::map<int64_t, std::vector<std::string>> distinct;  // by the number of their group
  for (const Assumption& each : generated.assumptions) {
    if (each.kind == Assumption::Kind::not_same_object && each.other == nullptr)
      distinct[each.number].push_back(each.source->describe());
    else
      lines.push_back(describe(each));
  }
  for (const auto& [number, group] : distinct)
    lines.push_back(cat("no two are one object: ", joined(group)));
  for (const DimAssumption& each : generated.dim_assumptions)
    lines.push_back(cat(graph::to_string(each.left), " == ", graph::to_string(each.right)));
  return lines;
}

}  // namespace janus::speculate
