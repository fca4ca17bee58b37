// A Python interpreter inside of a C++ test, for the rooms that know Python but not torch.
#pragma once

#include <string>

#include "python/object.h"

namespace janus::embedded {

/// What the expression gives, in a fresh module.
python::Object evaluate(const std::string& expression);

/// What `name` is after the statements have run in a fresh module. Their source is where linecache
/// finds it, as that of an imported file is.
python::Object run(const std::string& statements, const std::string& name);

/// The Module that `ast.parse` makes of the text.
python::Object parse(const std::string& text);

/// `ast.dump` of a node, without places.
std::string dump(PyObject* node);

}  // namespace janus::embedded
