#include "bind/generated_record.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/printable.h"
#include "speculate/generated_text.h"

namespace nb = nanobind;

namespace janus::bind {
namespace {

using speculate::Generated;
using speculate::Reason;

speculate::Generator recorded_generator = nullptr;

/// Records since they were taken last; guarded by the GIL.
nb::list& the_record() {
  static auto* record = new nb::list();  // never freed: Python may be gone at the end
  return *record;
}

nb::dict place_dict(const graph::SourceSpan& span) {
  nb::dict dict;
  dict["file"] = span.known() ? printable(*span.file) : std::string();
  dict["line"] = span.line;
  return dict;
}

nb::dict to_dict(const Generated& generated) {
  nb::dict dict;
  dict["graph"] = speculate::describe_graph(generated);
  dict["connections"] = speculate::describe_connections(generated);
  dict["assumptions"] = speculate::describe_assumptions(generated);
  nb::list notes;
  for (const speculate::LineMark& mark : generated.lines) {
    if (mark.note.empty()) continue;
    nb::dict note = place_dict(mark.span);
    note["note"] = mark.note;
    notes.append(note);
  }
  dict["notes"] = notes;
  return dict;
}

nb::dict to_dict(const Reason& reason) {
  nb::dict dict = place_dict(reason.span);
  dict["code"] = reason.code_name();
  dict["sentence"] = reason.sentence();
  return dict;
}

std::variant<Generated, Reason> generate_and_record(const speculate::Call& call,
                                                    speculate::ProfileStore& profiles) {
  auto made = recorded_generator(call, profiles);
  the_record().append(std::visit([](const auto& each) { return to_dict(each); }, made));
  return made;
}

/// From now on everything that the generator returns is recorded.
void record_generated() {
  if (recorded_generator != nullptr) return;
  recorded_generator = speculate::generator();
  speculate::set_generator(generate_and_record);
}

nb::list take_generated() { return std::exchange(the_record(), nb::list()); }

}  // namespace

void bind_generated_record(nb::module_& testing) {
  testing.def("record_generated", record_generated);
  testing.def("take_generated", take_generated);
}

}  // namespace janus::bind
