// Methods of types.MappingProxyType (the parameters of a signature, say): those of the mapping that
// it shows, which stays the same one.
#include <array>
#include <string_view>
#include <utility>

#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr std::array kMethods = {"types.MappingProxyType.keys", "types.MappingProxyType.values",
                                 "types.MappingProxyType.items", "types.MappingProxyType.get"};

/// Found through the garbage collector: the proxy has no name for it.
Object mapping_of(PyObject* proxy) {
  PyObject* found = nullptr;
  const visitproc note = [](PyObject* each, void* place) {
    *static_cast<PyObject**>(place) = each;
    return 0;
  };
  Py_TYPE(proxy)->tp_traverse(proxy, note, &found);
  return Object::borrow(found);
}

template <size_t index>
Value call_method(Interpreter& interpreter, const CallArguments& arguments) {
  const Known* const proxy =
      arguments.positional.empty() ? nullptr : as<Known>(arguments.positional[0]);
  if (proxy == nullptr || !Py_IS_TYPE(proxy->object.get(), &PyDictProxy_Type)) return nullptr;
  const Object mapping = mapping_of(proxy->object.get());
  if (!mapping || !PyDict_Check(mapping.get())) return nullptr;  // a class' own: another proxy
  interpreter.assume_identity(*proxy);
  const Value shown =
      interpreter.wrap(mapping.get(), interpreter.sources().root(Source::Kind::constant, mapping));
  constexpr std::string_view path = kMethods[index];
  CallArguments others = arguments;
  others.positional.erase(others.positional.begin());
  return call(interpreter,
              attribute(interpreter, shown, std::string(path.substr(path.rfind('.') + 1))), others);
}

template <size_t... index>
constexpr std::array<SpecialCallable, sizeof...(index)> rows(
    std::index_sequence<index...> /*methods*/) {
  return {{{kMethods[index], call_method<index>}...}};
}

}  // namespace

std::span<const SpecialCallable> mapping_proxy_callables() {
  static constexpr auto table = rows(std::make_index_sequence<kMethods.size()>());
  return table;
}

}  // namespace janus::frontend
