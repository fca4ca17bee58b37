// A HeapWrite made ready to be done again and again.
#pragma once

#include <span>
#include <string>

#include "speculate/generated.h"
#include "speculate/recipe.h"

namespace janus::speculate {

class HeapWriter {
 public:
  HeapWriter(const HeapWrite& write, const Recipe::Capture& capture);

  /// The value to be written; null for a deletion. Throws python::ErrorSet where a call raises.
  python::Object value(std::span<const python::Object> captured, std::span<execute::Slot> results,
                       Recipe::Made& made) const;
  /// Writes it. Throws python::ErrorSet if memory runs out.
  void write(std::span<const python::Object> captured, PyObject* value) const {
    write_to(captured[owner_].get(), value);
  }
  /// The write as a planted mutation has it.
  void write_wrongly(std::span<const python::Object> captured, PyObject* value) const;

  /// Whether it replaces or removes an object, as it is before the run, whose end the program sees.
  bool ends_something_seen(std::span<const python::Object> captured) const;
  /// What is changed, for a reason.
  std::string describe() const;

  /// Whether both make keys of one container.
  bool makes_keys_of(const HeapWriter& other) const {
    return kind_ == other.kind_ && owner_ == other.owner_ && !deletes_ && !other.deletes_ &&
           (kind_ == HeapWrite::Kind::attribute || kind_ == HeapWrite::Kind::item);
  }

 private:
  void write_to(PyObject* owner, PyObject* value) const;
  bool is_at_end() const;
  python::Object value_before(PyObject* owner) const;
  bool ends_an_element(PyObject* owner, std::span<const python::Object> captured) const;

  HeapWrite::Kind kind_;
  size_t owner_;
  python::Object key_;
  size_t index_;
  bool deletes_;
  Recipe value_;
};

}  // namespace janus::speculate
