// Numbers that existed before the call: constants that are assumed, or inputs of the graph where
// they vary.
#pragma once

#include "frontend/core/assumptions.h"
#include "frontend/core/dimension_table.h"
#include "frontend/core/dimensions.h"
#include "frontend/core/entry_facts.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/value_maker.h"

namespace janus::frontend {

class EntryNumbers {
 public:
  EntryNumbers(GraphWriter& writer, Assumptions& assumptions, const EntryFacts& facts,
               DimensionTable& table, Dimensions& dimensions, ValueMaker& maker)
      : writer_(writer),
        assumptions_(assumptions),
        facts_(facts),
        table_(table),
        dimensions_(dimensions),
        maker_(maker) {}
  EntryNumbers(const EntryNumbers&) = delete;
  EntryNumbers& operator=(const EntryNumbers&) = delete;

  /// The int or float at the source.
  Value wrap_number(PyObject* object, const Source* source);
  /// The bool at the source as an input: an element of a list of flags, each of which would
  /// otherwise double the number of graphs.
  Value flag_input(PyObject* object, const Source* source);

 private:
  Value number_input(PyObject* object, const Source* source);

  GraphWriter& writer_;
  Assumptions& assumptions_;
  const EntryFacts& facts_;
  DimensionTable& table_;
  Dimensions& dimensions_;
  ValueMaker& maker_;
};

}  // namespace janus::frontend
