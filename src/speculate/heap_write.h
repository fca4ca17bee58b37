// A HeapWrite in a form that can be performed at every call.
#pragma once

#include <span>
#include <string>

#include "speculate/generated.h"
#include "speculate/recipe.h"

namespace janus::speculate {

class HeapWriter {
 public:
  HeapWriter(const HeapWrite& write, const Recipe::Capture& capture);

  /// The value to write; null for a deletion. Throws python::ErrorSet where a call raises.
  python::Object value(std::span<const python::Object> captured, std::span<execute::Slot> results,
                       Recipe::Made& made) const;
  /// Performs the write. Throws python::ErrorSet if memory runs out.
  void write(std::span<const python::Object> captured, PyObject* value) const {
    write_to(captured[owner_].get(), value);
  }
  /// Performs it wrongly, as a planted mutation demands.
  void write_wrongly(std::span<const python::Object> captured, PyObject* value) const;

  /// Whether it replaces or removes an object that has a visible finalizer, as things are before
  /// the run.
  bool runs_finalizer(std::span<const python::Object> captured) const;
  /// The written place, for a reason.
  std::string describe() const;

  /// Whether both may add keys to the same container.
  bool makes_keys_of(const HeapWriter& other) const {
    return kind_ == other.kind_ && owner_ == other.owner_ && !deletes_ && !other.deletes_ &&
           (kind_ == HeapWrite::Kind::attribute || kind_ == HeapWrite::Kind::item);
  }

 private:
  void write_to(PyObject* owner, PyObject* value) const;
  bool is_at_end() const;
  python::Object value_before(PyObject* owner) const;
  bool frees_an_element(PyObject* owner, std::span<const python::Object> captured) const;

  HeapWrite::Kind kind_;
  size_t owner_;
  python::Object key_;
  size_t index_;
  bool deletes_;
  Recipe value_;
};

}  // namespace janus::speculate
