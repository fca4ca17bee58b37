// Descriptions are plain Python data:
//   source       ("argument", 0), ("item", source, key), ("index", source, 2), ("type", source),
//   ... assumption   {"kind": "tensor", "source": ..., "dtype": "f32", "dims": ["B", 784], ...}
//   generated    {"graph": text, "inputs": [source...], "assumptions": [...], "result": template,
//                 "cells": [{"name", "kind", "source", "key"}], "tests": [(key, fact, outcome)],
//                 "effects": [template...]}
//   template     ("result", 0), ("constant", object), ("source", source), ("tuple", [...]),
//                ("call", callable, [...])
// A generator is a callable that gets the function and the positional arguments and returns such
// a description, or a pair (reason code, details).
#include "bind/testing.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>

#include "base/background.h"
#include "base/check.h"
#include "base/conversion_account.h"
#include "base/fault.h"
#include "base/mutation.h"
#include "base/time_budget.h"
#include "bind/generated_record.h"
#include "frontend/tensors/autocast.h"
#include "graph/text.h"
#include "jit/jit.h"
#include "ops/list.h"
#include "speculate/ab_measurement.h"
#include "speculate/entry.h"
#include "speculate/facts.h"
#include "speculate/guards.h"
#include "speculate/reason_record.h"
#include "torch/gradient_graph.h"
#include "torch/ways.h"

namespace nb = nanobind;

namespace janus::bind {
namespace {

using speculate::Assumption;
using speculate::Call;
using speculate::CellBinding;
using speculate::Generated;
using speculate::Reason;
using speculate::ReasonCode;
using speculate::Source;
using speculate::SourceTable;
using speculate::Template;

python::Object borrowed(nb::handle handle) { return python::Object::borrow(handle.ptr()); }

template <class Kind>
Kind named(const std::map<std::string, Kind>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) throw nb::value_error(name.c_str());
  return found->second;
}

const std::map<std::string, Source::Kind>& source_kinds() {
  using Kind = Source::Kind;
  static const std::map<std::string, Kind> kinds = {{"argument", Kind::argument},
                                                    {"keyword", Kind::keyword},
                                                    {"variable", Kind::variable},
                                                    {"function", Kind::function},
                                                    {"constant", Kind::constant},
                                                    {"attribute", Kind::attribute},
                                                    {"instance_value", Kind::instance_value},
                                                    {"type", Kind::type},
                                                    {"type_attribute", Kind::type_attribute},
                                                    {"item", Kind::item},
                                                    {"index", Kind::index},
                                                    {"global", Kind::global},
                                                    {"closure", Kind::closure},
                                                    {"default_value", Kind::default_value},
                                                    {"keyword_default", Kind::keyword_default},
                                                    {"bound_function", Kind::bound_function},
                                                    {"bound_self", Kind::bound_self},
                                                    {"code", Kind::code},
                                                    {"grad", Kind::grad}};
  return kinds;
}

bool is_indexed(Source::Kind kind) {
  return kind == Source::Kind::argument || kind == Source::Kind::index ||
         kind == Source::Kind::closure || kind == Source::Kind::default_value;
}

const Source* source_from(SourceTable& table, nb::tuple form) {
  const Source::Kind kind = named(source_kinds(), nb::cast<std::string>(form[0]));
  const bool root = kind <= Source::Kind::constant;
  const Source* base = root ? nullptr : source_from(table, nb::cast<nb::tuple>(form[1]));
  const size_t place = root ? 1 : 2;
  python::Object key;
  Py_ssize_t index = 0;
  if (place < nb::len(form)) {
    if (is_indexed(kind))
      index = nb::cast<Py_ssize_t>(form[place]);
    else
      key = borrowed(form[place]);
  }
  return root ? table.root(kind, std::move(key), index)
              : table.step(kind, base, std::move(key), index);
}

const std::map<std::string, Assumption::Kind>& assumption_kinds() {
  using Kind = Assumption::Kind;
  static const std::map<std::string, Kind> kinds = {{"identity", Kind::identity},
                                                    {"exact_type", Kind::exact_type},
                                                    {"equals", Kind::equals},
                                                    {"length", Kind::length},
                                                    {"keys", Kind::keys},
                                                    {"has_key", Assumption::Kind::has_key},
                                                    {"missing_key", Kind::missing_key},
                                                    {"missing_attribute", Kind::missing_attribute},
                                                    {"truth", Kind::truth},
                                                    {"tensor", Kind::tensor},
                                                    {"integer", Kind::integer},
                                                    {"floating", Kind::floating},
                                                    {"boolean", Kind::boolean},
                                                    {"no_grad_value", Kind::no_grad_value},
                                                    {"same_object", Kind::same_object},
                                                    {"not_same_object", Kind::not_same_object},
                                                    {"separate_memory", Kind::separate_memory}};
  return kinds;
}

graph::Dim dim_from(nb::handle form) {
  if (nb::isinstance<nb::str>(form)) return graph::Dim::symbol(nb::cast<std::string>(form));
  return graph::Dim(nb::cast<int64_t>(form));
}

bool flag(nb::dict form, const char* name, bool otherwise) {
  return form.contains(name) ? nb::cast<bool>(form[name]) : otherwise;
}

speculate::TensorPattern pattern_from(nb::dict form) {
  speculate::TensorPattern pattern;
  pattern.dtype = graph::dtype_named(nb::cast<std::string>(form["dtype"])).value();
  for (nb::handle dim : form["dims"]) pattern.dims.push_back(dim_from(dim));
  pattern.requires_grad = flag(form, "requires_grad", false);
  pattern.is_leaf = flag(form, "is_leaf", true);
  pattern.is_parameter = flag(form, "is_parameter", false);
  return pattern;
}

Assumption assumption_from(SourceTable& table, nb::dict form) {
  Assumption assumption;
  assumption.kind = named(assumption_kinds(), nb::cast<std::string>(form["kind"]));
  assumption.source = source_from(table, nb::cast<nb::tuple>(form["source"]));
  if (form.contains("other"))
    assumption.other = source_from(table, nb::cast<nb::tuple>(form["other"]));
  if (form.contains("object")) assumption.object = borrowed(form["object"]);
  if (form.contains("number")) assumption.number = nb::cast<int64_t>(form["number"]);
  if (form.contains("symbol")) assumption.symbol = nb::cast<std::string>(form["symbol"]);
  if (assumption.kind == Assumption::Kind::tensor) assumption.tensor = pattern_from(form);
  return assumption;
}

Template template_from(SourceTable& table, nb::tuple form) {
  using Kind = Template::Kind;
  Template made;
  const auto kind = nb::cast<std::string>(form[0]);
  const auto children = [&](nb::handle list) {
    for (nb::handle each : list)
      made.children.push_back(template_from(table, nb::cast<nb::tuple>(each)));
  };
  if (kind == "result") {
    made.kind = Kind::result;
    made.index = nb::cast<size_t>(form[1]);
  } else if (kind == "shared") {
    made.kind = Kind::shared;
    made.index = nb::cast<size_t>(form[1]);
  } else if (kind == "source") {
    made.kind = Kind::source;
    made.source = source_from(table, nb::cast<nb::tuple>(form[1]));
  } else if (kind == "call") {
    made.kind = Kind::call;
    made.object = borrowed(form[1]);
    children(form[2]);
  } else if (kind == "constant") {
    made.object = borrowed(form[1]);
  } else if (kind == "place") {
    made = template_from(table, nb::cast<nb::tuple>(form[2]));
    made.place = nb::cast<size_t>(form[1]);
  } else {
    made.kind = named<Kind>(
        {{"tuple", Kind::tuple}, {"list", Kind::list}, {"dict", Kind::dict}, {"set", Kind::set}},
        kind);
    children(form[1]);
  }
  return made;
}

CellBinding cell_from(SourceTable& table, nb::dict form) {
  using Kind = CellBinding::Kind;
  CellBinding cell;
  cell.name = nb::cast<std::string>(form["name"]);
  cell.kind = named<Kind>({{"tensor", Kind::tensor},
                           {"grad", Kind::grad},
                           {"data", Kind::data},
                           {"attribute", Kind::attribute},
                           {"item", Kind::item},
                           {"global", Kind::global}},
                          nb::cast<std::string>(form["kind"]));
  cell.source = source_from(table, nb::cast<nb::tuple>(form["source"]));
  if (form.contains("key")) cell.key = borrowed(form["key"]);
  return cell;
}

Generated generated_from(nb::dict form) {
  Generated made(graph::parse(nb::cast<std::string>(form["graph"]), ops::table()));
  made.sources = std::make_shared<SourceTable>();
  SourceTable& table = *made.sources;
  made.environment = speculate::tensor_access().environment();
  for (nb::handle each : form["assumptions"])
    made.assumptions.push_back(assumption_from(table, nb::cast<nb::dict>(each)));
  for (nb::handle each : form["inputs"])
    made.inputs.push_back({source_from(table, nb::cast<nb::tuple>(each))});
  if (form.contains("cells"))
    for (nb::handle each : form["cells"])
      made.cells.push_back(cell_from(table, nb::cast<nb::dict>(each)));
  made.result = template_from(table, nb::cast<nb::tuple>(form["result"]));
  if (form.contains("effects"))
    for (nb::handle each : form["effects"])
      made.effects.push_back({template_from(table, nb::cast<nb::tuple>(each)), {}});
  if (form.contains("tests"))
    for (nb::handle each : form["tests"]) {
      const auto test = nb::cast<nb::tuple>(each);
      made.tests.push_back(
          {borrowed(test[0]), nb::cast<int>(test[1]), nb::cast<bool>(test[2]), {}});
    }
  return made;
}

// --- a generator written in Python ---------------------------------------------------------------

nb::object& python_generator() {
  static auto* generator = new nb::object();
  return *generator;
}

/// The facts and outcomes that the generator gets: {"paths": {path: text}, "chosen": [...]}.
nb::dict knowledge(const Call& call, speculate::ProfileStore& profiles) {
  nb::dict known, paths;
  if (const speculate::Facts* facts = profiles.find(call.facts_key))
    for (const auto& [path, fact] : facts->paths) paths[path.c_str()] = fact.describe();
  nb::list chosen;
  if (call.chosen != nullptr)
    for (const auto& each : *call.chosen) chosen.append(nb::make_tuple(each.fact, each.outcome));
  known["paths"] = paths;
  known["chosen"] = chosen;
  return known;
}

ReasonCode code_named(const std::string& name) {
  const auto codes = speculate::reason_codes();
  for (size_t i = 0; i < codes.size(); ++i)
    if (codes[i] == name) return static_cast<ReasonCode>(i);
  throw InternalError(cat("testing: no reason code ", name));
}

std::variant<Generated, Reason> generate(const Call& call, speculate::ProfileStore& profiles) {
  nb::list arguments;
  for (Py_ssize_t i = 0; i < call.argument_count; ++i)
    arguments.append(nb::handle(call.arguments[i]));
  nb::object form;
  try {
    form = python_generator()(nb::handle(call.function == nullptr ? Py_None : call.function),
                              nb::tuple(arguments), knowledge(call, profiles));
    if (nb::isinstance<nb::dict>(form)) return generated_from(nb::cast<nb::dict>(form));
    const auto pair = nb::cast<nb::tuple>(form);
    return Reason{code_named(nb::cast<std::string>(pair[0])), nb::cast<std::string>(pair[1]), {}};
  } catch (nb::python_error& error) {
    error.restore();
    throw python::ErrorSet();
  }
}

/// Sets the generator; None restores the real one.
void set_generator(nb::object callable) {
  static const speculate::Generator real = speculate::generator();
  python_generator() = callable;
  speculate::set_generator(callable.is_none() ? real : generate);
}

// --- guards alone --------------------------------------------------------------------------------

/// A call of a Python function with these arguments.
struct Arguments {
  Arguments(nb::handle function, nb::args positional, nb::kwargs keywords) {
    for (nb::handle each : positional) values.push_back(each.ptr());
    call.function = function.ptr();
    call.argument_count = static_cast<Py_ssize_t>(values.size());
    for (auto [name, value] : keywords) {
      names.push_back(borrowed(name));
      values.push_back(value.ptr());
    }
    if (!names.empty()) name_tuple = python::tuple(names);
    call.keyword_names = name_tuple.get();
    call.arguments = values.data();
  }
  Call call;
  std::vector<PyObject*> values;
  std::vector<python::Object> names;
  python::Object name_tuple;
};

/// Guards of a function for calls like the given one. With `recall` they have an inline cache, as
/// the guards of graphs do.
class TestGuards {
 public:
  TestGuards(nb::object function, nb::list assumptions, nb::args positional, bool recall,
             nb::kwargs keywords)
      : function_(std::move(function)) {
    Generated generated{graph::Graph("test")};
    generated.sources = std::make_shared<SourceTable>();
    generated.environment = speculate::tensor_access().environment();
    for (nb::handle each : assumptions)
      generated.assumptions.push_back(
          assumption_from(*generated.sources, nb::cast<nb::dict>(each)));
    const Arguments arguments(function_, positional, keywords);
    const nb::object on_death =
        nb::cpp_function([this](nb::handle /*weak reference*/) { guards_->forget(); });
    guards_ = std::make_unique<speculate::Guards>(generated, arguments.call,
                                                  std::span<const Source* const>(),
                                                  recall ? on_death.ptr() : nullptr);
  }

  /// None if they hold, else (path, sentence, dead).
  std::optional<std::tuple<std::string, std::string, bool>> check(nb::args positional,
                                                                  nb::kwargs keywords) const {
    const Arguments arguments(function_, positional, keywords);
    std::vector<python::Object> captured;
    const auto found =
        guards_->check(arguments.call, speculate::tensor_access().environment(), captured);
    if (!found) return std::nullopt;
    return std::tuple(found->path, found->reason.sentence(), found->dead);
  }

  /// Nanoseconds of one whole check, the mean of `count`.
  double nanoseconds(size_t count, nb::args positional, nb::kwargs keywords) const {
    const Arguments arguments(function_, positional, keywords);
    const auto environment = speculate::tensor_access().environment();
    std::vector<python::Object> captured;
    const double start = speculate::now();
    for (size_t i = 0; i < count; ++i)
      TORCHJANUS_CHECK(!guards_->check(arguments.call, environment, captured),
                       "testing: guards do not hold");
    return (speculate::now() - start) * 1e6 / static_cast<double>(count);
  }

  std::vector<std::string> describe() const { return guards_->describe(); }
  uint64_t recalled() const { return guards_->recalled(); }

 private:
  nb::object function_;
  std::unique_ptr<speculate::Guards> guards_;
};

}  // namespace

void bind_testing(nb::module_& module) {
  nb::module_ testing = module.def_submodule("testing", "Guards and dispatch without a generator.");
  testing.def("set_generator", set_generator, nb::arg("generator").none());
  nb::class_<TestGuards>(testing, "Guards")
      .def(nb::init<nb::object, nb::list, nb::args, bool, nb::kwargs>(), nb::arg("function"),
           nb::arg("assumptions"), nb::arg("positional"), nb::kw_only(), nb::arg("recall") = true,
           nb::arg("keywords"))
      .def("check", &TestGuards::check)
      .def("nanoseconds", &TestGuards::nanoseconds)
      .def("describe", &TestGuards::describe)
      .def_prop_ro("recalled", &TestGuards::recalled);
  testing.def(
      "inject_fault",
      [](const std::string& fault, int64_t passed) {
        static const std::map<std::string, Fault> faults = {{"none", Fault::none},
                                                            {"assumption", Fault::assumption},
                                                            {"guard", Fault::guard},
                                                            {"operation", Fault::operation},
                                                            {"memory", Fault::memory}};
        inject_fault(named(faults, fault), passed);
      },
      nb::arg("fault"), nb::arg("passed") = 0);
  testing.def("fault_happened", fault_happened);
  testing.def(
      "plant",
      [](const std::string& state, const std::string& mutation) {
        static const std::map<std::string, State> states = {{"none", State::none},
                                                            {"attribute", State::attribute},
                                                            {"slot", State::slot},
                                                            {"item", State::item},
                                                            {"set", State::set},
                                                            {"list", State::list},
                                                            {"variable", State::variable},
                                                            {"met", State::met},
                                                            {"grad", State::grad},
                                                            {"data", State::data},
                                                            {"contents", State::contents},
                                                            {"hook", State::hook},
                                                            {"finalizer", State::finalizer},
                                                            {"effect", State::effect},
                                                            {"key_order", State::key_order}};
        static const std::map<std::string, Mutation> mutations = {
            {"not_written", Mutation::not_written},
            {"both_sides", Mutation::both_sides},
            {"twice", Mutation::twice}};
        plant(named(states, state), named(mutations, mutation));
      },
      nb::arg("state"), nb::arg("mutation") = "not_written");
  testing.def("planted_changes", planted_changes);
  bind_generated_record(testing);
  testing.def("record_reasons", speculate::record_reasons);
  testing.def("take_recorded_reasons", speculate::take_recorded_reasons);
  testing.def("cast_operators", [] {
    std::vector<std::string> names;
    for (const std::string_view name : frontend::cast_operators()) names.emplace_back(name);
    return names;
  });
  testing.def(
      "let_times_decide", [](bool decide) { speculate::times_decide = decide; }, nb::arg("decide"));
  testing.def(
      "simulate_time",
      [](double with_graphs, double without) {
        speculate::simulated_time = {.with_graphs = with_graphs, .without = without};
      },
      nb::arg("with_graphs"), nb::arg("without"));
  testing.def(
      "pass_time", [](double milliseconds) { speculate::simulated_time->now += milliseconds; },
      nb::arg("milliseconds"));
  testing.def("end_simulated_time", [] { speculate::simulated_time.reset(); });
  testing.def(
      "simulate_processor_time",
      [](double milliseconds, double of_run) { simulated_processor = {milliseconds, of_run}; },
      nb::arg("milliseconds"), nb::arg("of_run"));
  testing.def("end_simulated_processor_time", [] { simulated_processor.reset(); });
  testing.def("close_conversion_account", close_conversion_account);
  testing.def("simulate_work", simulate_work, nb::arg("seconds").none());
  testing.def("work_done", TimeBudget::work_done);
  testing.def("hold_background", &BackgroundWork::hold, nb::arg("is_held"));
  testing.def("compilation_seconds", jit::compilation_seconds);
  testing.def(
      "force_backward_parts", [](int64_t bytes) { torch::forced_part_bytes = bytes; },
      nb::arg("bytes"));
  testing.def("force_way", [](int way) { torch::forced_way = way; }, nb::arg("way"));
}

}  // namespace janus::bind
