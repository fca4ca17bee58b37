// The abstract interpreter's state, put together from its parts. The language itself lives in the
// later rooms as free functions: one that needs a single part takes that, the others take the
// Interpreter, which is each of its parts.
//
//   InterpreterState    what sides of branches and iterations of loops do anew: saved and restored
//   AutogradState       what autograd knows of tensors
//   GraphWriter         the graph: blocks, inputs, cells, results
//   AttachedStates      recursion and writes to objects met at run time
//   Scopes              open branches and loops, tests that are followed, outcomes of flags
//   Frames              what is interpreted, and giving up
//   Assumptions         what the graph takes for granted
//   Guards              tests that the graph makes
//   EntryFacts          what earlier calls have shown
//   DimensionTable      names of dimensions and what they are now
//   Dimensions          sizes in the graph
//   ValueMaker          constants and numbers
//   EntryNumbers, EntryTensors, Lifting    real objects as abstract values
//   HeapPlaces          places of real objects that are read and written over
//   Names               variables, globals, closure cells
//
// A part knows those before it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "frontend/core/assumptions.h"
#include "frontend/core/attached_states.h"
#include "frontend/core/autograd_state.h"
#include "frontend/core/dimension_table.h"
#include "frontend/core/dimensions.h"
#include "frontend/core/entry_facts.h"
#include "frontend/core/entry_numbers.h"
#include "frontend/core/entry_tensors.h"
#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/guards.h"
#include "frontend/core/heap_places.h"
#include "frontend/core/identity.h"
#include "frontend/core/interpreter_state.h"
#include "frontend/core/journal_state.h"
#include "frontend/core/lifting.h"
#include "frontend/core/names.h"
#include "frontend/core/scopes.h"
#include "frontend/core/value_maker.h"
#include "frontend/values/snapshot.h"

namespace janus::frontend {

class Interpreter : private ObjectScope,  // first: ends behind all that hold objects
                    public InterpreterState,
                    public AutogradState,
                    public GraphWriter,
                    public AttachedStates,
                    public Scopes,
                    public Frames,
                    public Assumptions,
                    public Guards,
                    public EntryFacts,
                    public DimensionTable,
                    public Dimensions,
                    public ValueMaker,
                    public EntryNumbers,
                    public EntryTensors,
                    public Lifting,
                    public HeapPlaces,
                    public Names {
 public:
  /// `followed`: tests that are followed even if the profile saw both outcomes. `varying`: paths of
  /// numbers that the run itself is known to change.
  Interpreter(const speculate::Call& call, speculate::ProfileStore& profiles,
              const std::vector<CannotMerge>& followed, const std::set<std::string>& varying)
      : GraphWriter(call),
        Scopes(*this, followed),
        Frames(call, profiles, *this, *this),
        Assumptions(*this, *this),
        Guards(*this, *this, *this, *this),
        EntryFacts(call, varying),
        Dimensions(call, *this, *this, *this, *this, *this),
        ValueMaker(*this, *this, *this, *this),
        EntryNumbers(*this, *this, *this, *this, *this, *this),
        EntryTensors(*this, *this, *this, *this, *this, *this, *this, *this),
        Lifting(*this, *this, *this, *this, *this, *this, *this, *this),
        HeapPlaces(*this, *this, *this, *this, *this, *this),
        Names(call, *this, *this, *this, *this, *this, *this) {}

  /// Which objects of the entry are one.
  Identities identities;
  /// What iterations of loops in the graph show.
  JournalState journal;
  /// How many effects there were so far.
  size_t effect_count() const { return effects.size() + journal.count; }
};

}  // namespace janus::frontend
