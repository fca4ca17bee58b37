// A run of statements that may run as a graph: what `torchjanus run` puts into the scripts that it
// rewrites (torchjanus/script.py).
#pragma once

#include <memory>
#include <vector>

#include "python/object.h"
#include "speculate/dispatch.h"
#include "syntax/tree.h"

namespace janus::bind {

class CoExecutionScope;

/// The type object `torchjanus.Region`. Throws python::ErrorSet.
PyObject* region_type();

/// The dispatcher of a Region; null if the object is none.
speculate::Dispatcher* dispatcher_of_region(PyObject* object);

/// Whether this line of its statements is part of a graph, or may still become part of one: they
/// have run again and again, and are not given up.
bool may_run_as_graph_at(PyObject* region, int line);

/// What a Region is made of.
struct RegionParts {
  PyObject* module;  ///< the ast.Module; also the key of the region's facts
  const syntax::Tree* tree;
};
RegionParts parts_of_region(PyObject* object);

/// stats_of() or snapshot_of() of a region, parts included. Throws python::ErrorSet.
python::Object region_told(PyObject* region, speculate::Dispatcher::Describe describe);
/// Marks the region as part of a function, whose report includes it.
void make_part(PyObject* region);
/// Puts the regions into a scope: an iteration begins with the first one. False, and nothing is
/// changed, if one is no Region, or there is none. They are kept for good.
bool put_into_scope(const std::vector<PyObject*>& regions,
                    const std::shared_ptr<CoExecutionScope>& scope);
/// Somebody asked for the conversion of the region and its parts: no account pays for them.
void ask_for(PyObject* region);

}  // namespace janus::bind
