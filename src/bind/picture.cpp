#include "bind/picture.h"

#include <nanobind/nanobind.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bind/snapshot.h"
#include "execute/program/picture.h"
#include "graph/annotated_text.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/traffic.h"

namespace nb = nanobind;

namespace janus::bind {
namespace {

using speculate::Dispatcher;

/// Lines of the optimised text, by the node that begins there.
using Lines = std::map<const graph::Node*, size_t>;

nb::object line_of(const Lines& lines, const graph::Node* node) {
  const auto found = lines.find(node);
  return found == lines.end() ? nb::none() : nb::object(nb::int_(found->second));
}

/// File names, of which each is one Python object.
class Files {
 public:
  nb::object operator[](const graph::SourceSpan& span) {
    return span.known() ? (*this)[*span.file] : nb::none();
  }
  nb::object operator[](const std::string& file) {
    nb::object& name = names_[file];
    if (!name.is_valid()) name = text(file);
    return name;
  }

 private:
  std::map<std::string, nb::object> names_;
};

nb::list operator_list(const graph::AnnotatedText& printed, Files& files) {
  nb::list operators;
  for (size_t line = 0; line < printed.nodes.size(); ++line) {
    const graph::Node* node = printed.nodes[line];
    if (node == nullptr) continue;
    operators.append(nb::make_tuple(line, files[node->span], node->span.line, graph::traffic(*node),
                                    graph::traffic_apart(*node)));
  }
  return operators;
}

nb::list place_list(const std::vector<graph::SourceSpan>& spans, Files& files) {
  nb::list places;
  for (size_t line = 0; line < spans.size(); ++line)
    if (spans[line].known())
      places.append(nb::make_tuple(line, files[spans[line]], spans[line].line));
  return places;
}

void add_program(nb::dict& dict, const execute::ProgramPicture& picture, const Lines& lines) {
  nb::list kernels, order, memory;
  for (const auto& each : picture.kernels)
    kernels.append(
        nb::make_tuple(line_of(lines, each.node), nb::str(each.llvm.data(), each.llvm.size())));
  for (const graph::Node* node : picture.plan.order) order.append(line_of(lines, node));
  for (const execute::PieceOfMemory& each : picture.plan.memory)
    memory.append(nb::make_tuple(line_of(lines, each.maker), each.output, each.offset, each.bytes,
                                 each.first, each.last));
  dict["kernels"] = kernels;
  dict["order"] = order;
  dict["memory"] = memory;
  dict["arena_bytes"] = picture.arena_bytes;
}

using Seconds = std::map<std::pair<std::string, int>, double>;

/// Divided among the operators that run with it; constants run in none.
void add_seconds(Seconds& seconds, const graph::Node& node, double taken) {
  std::vector<const graph::SourceSpan*> spans;
  graph::for_each_run(node, [&](const graph::Node& each) {
    const bool runs = each.blocks.empty() && each.op->role != graph::Role::constant;
    if (runs && each.span.known()) spans.push_back(&each.span);
  });
  if (spans.empty() && node.span.known()) spans.push_back(&node.span);
  for (const graph::SourceSpan* span : spans)
    seconds[{*span->file, span->line}] += taken / static_cast<double>(spans.size());
}

nb::list seconds_list(const std::vector<execute::TimedNode>& nodes, Files& files) {
  Seconds seconds;
  for (const auto& [node, taken] : nodes) add_seconds(seconds, *node, taken);
  nb::list listed;
  for (const auto& [place, taken] : seconds)
    listed.append(nb::make_tuple(files[place.first], place.second, taken));
  return listed;
}

nb::object picture_dict(const speculate::Entry& entry) {
  if (entry.program() == nullptr) return nb::none();
  Files files;
  const graph::AnnotatedText printed = graph::print_annotated(entry.program()->graph());
  Lines lines;
  for (size_t line = 0; line < printed.nodes.size(); ++line)
    if (printed.nodes[line] != nullptr) lines[printed.nodes[line]] = line;
  nb::dict dict;
  dict["operators"] = operator_list(printed, files);
  dict["places"] = place_list(entry.generated_places(), files);
  const execute::ProgramPicture picture = execute::picture_of(*entry.program());
  add_program(dict, picture, lines);
  dict["seconds"] = seconds_list(picture.seconds, files);
  return dict;
}

nb::dict progress_dict(double time, const Dispatcher::Progress& progress) {
  nb::dict dict;
  dict["time"] = time;
  add_counters(dict, progress.counters);
  dict["profiling_ms"] = progress.durations.profiling;
  dict["running_ms"] = progress.durations.running;
  dict["timed"] = progress.in_python.runs;
  dict["timed_ms"] = progress.in_python.milliseconds;
  return dict;
}

/// The samples of its calls, and how things stand now.
nb::list history_list(const Dispatcher& dispatcher) {
  nb::list history;
  for (const auto& sample : dispatcher.history().samples())
    history.append(progress_dict(sample.time, sample.counts));
  history.append(progress_dict(speculate::now(), dispatcher.progress()));
  return history;
}

}  // namespace

PyObject* details_of(const Dispatcher& dispatcher) {
  PyObject* made = snapshot_of(dispatcher);
  if (made == nullptr) return nullptr;
  nb::dict dict = nb::steal<nb::dict>(made);
  try {
    const nb::list cache = nb::borrow<nb::list>(dict["cache"]);
    for (size_t i = 0; i < cache.size(); ++i)
      nb::borrow<nb::dict>(cache[i])["picture"] = picture_dict(*dispatcher.entries()[i]);
    dict["history"] = history_list(dispatcher);
    return dict.release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

}  // namespace janus::bind
