// Access paths: how an object was reached from the entry of a call. Guards walk them at each call.
//
// Sources form a tree: a root (an argument, a variable, ...) and steps. They are interned, so two
// reads of `self.fc.weight` are the same Source, and guards walk a common prefix once.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>

#include "base/check.h"
#include "python/object.h"

namespace janus::speculate {

struct Source {
  enum class Kind {
    // roots
    argument,  ///< positional argument `index` of the call (a bound method's self is argument 0)
    keyword,   ///< keyword argument `key` (a str)
    variable,  ///< variable `key` of the frame that a run of statements stands in; with `index`
               ///< 0, where there is none, a global or builtin
    function,  ///< the converted function object itself
    constant,  ///< `key` itself: immortal objects (modules of torch, builtins, None)
    // steps
    attribute,        ///< getattr(base, key), with descriptors and all
    instance_value,   ///< base.__dict__[key], no descriptors
    type,             ///< type(base)
    type_attribute,   ///< what type lookup (MRO) finds for key on the type `base`: not bound
    item,             ///< base[key] of a dict
    index,            ///< base[index] of a list, tuple or deque; of a list also from its end
    length,           ///< len(base) of a list, dict or set
    global,           ///< base.__globals__[key], else builtins (base: a function)
    closure,          ///< base.__closure__[index].cell_contents (base: a function)
    default_value,    ///< base.__defaults__[index]
    keyword_default,  ///< base.__kwdefaults__[key]
    bound_function,   ///< base.__func__
    bound_self,       ///< base.__self__
    code,             ///< base.__code__
    grad,             ///< base.grad of a tensor
    context_value,    ///< base.get() of a context variable
    array_contents,   ///< torch.tensor(base) of a NumPy array
    link_result,      ///< the result in a link of an lru_cache, at byte `index`; `key`: the link's
                      ///< class
    tensor_item,      ///< the value of a one-element tensor is not a path: never used in guards
  };
  Kind kind;
  const Source* base = nullptr;
  python::Object key;
  Py_ssize_t index = 0;

  /// As the user would write it: "self.fc.weight", "batch[0]", "F.relu".
  std::string describe() const;
};

/// Source::describe() of a step with these parts on a base whose description is `of`.
std::string describe_step(Source::Kind kind, PyObject* key, Py_ssize_t index, const std::string& of,
                          bool of_function);

/// The texts for the length of the list or tuple at a path, and for any element of it.
inline std::string length_text(const std::string& path) { return cat("len(", path, ")"); }
inline std::string element_text(const std::string& path) { return cat(path, "[*]"); }

class SourceTable {
 public:
  const Source* root(Source::Kind kind, python::Object key = {}, Py_ssize_t index = 0);
  const Source* step(Source::Kind kind, const Source* base, python::Object key = {},
                     Py_ssize_t index = 0);
  const std::deque<Source>& all() const { return sources_; }

 private:
  const Source* intern(Source source);
  std::deque<Source> sources_;
  std::unordered_multimap<size_t, const Source*> by_hash_;
};

}  // namespace janus::speculate
