// Conversion both ways by visitors over fields.h: Reader fills a new mirror node from the
// attributes of an `ast` object, Writer collects keyword arguments for the `ast` class. Classes of
// the `ast` module are identified in a table that is made at first use.
#include "syntax/convert.h"

#include <unordered_map>

#include "python/version.h"
#include "syntax/fields.h"

namespace janus::syntax {
namespace {

using python::Object;

constexpr int kMaxDepth = 3000;  // nested nodes; the C++ stack is the limit

// clang-format off
constexpr const char* kOperators[] = {"Add", "Sub", "Mult", "MatMult", "Div", "Mod", "Pow", "LShift", "RShift",
                                      "BitOr", "BitXor", "BitAnd", "FloorDiv"};
constexpr const char* kUnaryOperators[] = {"Invert", "Not", "UAdd", "USub"};
constexpr const char* kCompareOperators[] = {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn"};
constexpr const char* kBoolOperators[] = {"And", "Or"};
constexpr const char* kContexts[] = {"Load", "Store", "Del"};
// clang-format on

template <class T>
constexpr bool kTakesTypeParameters =
    std::is_same_v<T, FunctionDef> || std::is_same_v<T, AsyncFunctionDef> ||
    std::is_same_v<T, ClassDef> || std::is_same_v<T, TypeAlias>;

/// The classes of the `ast` module, as indices within our enumerations.
class AstModule {
 public:
  /// Made once and never freed, like the module itself.
  static AstModule& instance() {
    static auto* const module = new AstModule();
    return *module;
  }

  /// The class `ast.<name>`; null if this version of Python has none.
  PyObject* class_named(const char* name) {
    const auto [place, is_new] = by_name_.try_emplace(name, nullptr);
    if (is_new) place->second = python::try_attribute(module_.get(), name).release();
    return place->second;
  }
  /// The interned str of a field's name.
  PyObject* field_name(const char* name) {
    const auto [place, is_new] = names_.try_emplace(name, nullptr);
    if (is_new) place->second = python::interned(name);
    return place->second;
  }
  /// The index of an object's class within its enumeration.
  int index_of(PyObject* node) const {
    const auto found = indices_.find(Py_TYPE(node));
    if (found == indices_.end()) throw UnsupportedSyntax(python::type_name(node));
    return found->second;
  }
  /// The one instance of an operator or context class.
  Object singleton(const char* name) {
    const auto [place, is_new] = singletons_.try_emplace(name, nullptr);
    if (is_new) place->second = python::call(class_named(name)).release();
    return Object::borrow(place->second);
  }

 private:
  AstModule() : module_(python::import_module("ast")) {
#define X(NAME) add(#NAME, static_cast<int>(ExpressionKind::NAME));
    TORCHJANUS_EXPRESSIONS(X)
#undef X
#define X(NAME) add(#NAME, static_cast<int>(StatementKind::NAME));
    TORCHJANUS_STATEMENTS(X)
#undef X
#define X(NAME) add(#NAME, static_cast<int>(PatternKind::NAME));
    TORCHJANUS_PATTERNS(X)
#undef X
    add_all(kOperators);
    add_all(kUnaryOperators);
    add_all(kCompareOperators);
    add_all(kBoolOperators);
    add_all(kContexts);
  }

  template <size_t count>
  void add_all(const char* const (&names)[count]) {
    for (size_t i = 0; i < count; ++i) add(names[i], static_cast<int>(i));
  }
  void add(const char* name, int index) {
    if (PyObject* type = class_named(name); type != nullptr)
      indices_.emplace(reinterpret_cast<PyTypeObject*>(type), index);
  }

  Object module_;
  // Keys are string literals, compared by address; equal texts at two addresses do no harm.
  std::unordered_map<const char*, PyObject*> by_name_, names_, singletons_;
  std::unordered_map<PyTypeObject*, int> indices_;
};

// --- from Python ---------------------------------------------------------------------------------

class Converter {
 public:
  Converter(Tree& tree, PyObject* root, std::shared_ptr<const std::string> file)
      : tree_(tree), root_(root), file_(std::move(file)) {}

  Expression* expression(PyObject* ast) {
    const Depth depth(*this);
    switch (static_cast<ExpressionKind>(module_.index_of(ast))) {
#define X(NAME)              \
  case ExpressionKind::NAME: \
    return counted<NAME>(ast);
      TORCHJANUS_EXPRESSIONS(X)
#undef X
    }
    throw UnsupportedSyntax(python::type_name(ast));
  }

  Statement* statement(PyObject* ast) {
    const Depth depth(*this);
    switch (static_cast<StatementKind>(module_.index_of(ast))) {
#define X(NAME)             \
  case StatementKind::NAME: \
    return counted<NAME>(ast);
      TORCHJANUS_STATEMENTS(X)
#undef X
    }
    throw UnsupportedSyntax(python::type_name(ast));
  }

  Pattern* pattern(PyObject* ast) {
    const Depth depth(*this);
    switch (static_cast<PatternKind>(module_.index_of(ast))) {
#define X(NAME)           \
  case PatternKind::NAME: \
    return located<NAME>(ast);
      TORCHJANUS_PATTERNS(X)
#undef X
    }
    throw UnsupportedSyntax(python::type_name(ast));
  }

  /// The attribute, or null where it is missing or None. What a node was given is in its __dict__,
  /// which is read at a third of the price; the rest are defaults of its class.
  Object field(PyObject* ast, const char* name) {
    PyObject* key = module_.field_name(name);
    const Object given = python::check(PyObject_GenericGetDict(ast, nullptr));
    Object value = python::dict_item(given.get(), key);
    if (!value) value = python::try_attribute(ast, key);
    return value.is(Py_None) ? Object() : value;
  }

  template <class T>
  T* located(PyObject* ast);

  template <class T>
  void fill(T& node, PyObject* ast);

  AstModule& module() { return module_; }

 private:
  struct Depth {
    explicit Depth(Converter& converter) : converter(converter) {
      if (++converter.depth_ > kMaxDepth) throw UnsupportedSyntax("code nested too deeply");
    }
    ~Depth() { --converter.depth_; }
    Converter& converter;
  };

  template <class T>
  T* counted(PyObject* ast) {
    // A node is numbered before its parts, so that numbers follow the text.
    const int fact = tree_.fact_count++;
    T* node = located<T>(ast);
    node->fact = fact;
    return node;
  }

  int number(PyObject* ast, const char* name) {
    const Object value = field(ast, name);
    return value ? static_cast<int>(python::to_integer(value.get())) : 0;
  }

  Tree& tree_;
  PyObject* root_;
  std::shared_ptr<const std::string> file_;
  AstModule& module_ = AstModule::instance();
  int depth_ = 0;
};

/// Reads one field from a Python object, by the field's C++ type.
class Reader {
 public:
  Reader(Converter& converter, PyObject* ast) : converter_(converter), ast_(ast) {}

  template <class T>
  void operator()(const char* name, T& out) {
    if (const Object value = converter_.field(ast_, name)) read(value.get(), out);
  }
  void operator()(const char* name, Object& out) {  // the value of a Constant may be None
    out = python::attribute(ast_, converter_.module().field_name(name));
  }

 private:
  void read(PyObject* value, Expression*& out) { out = converter_.expression(value); }
  void read(PyObject* value, Statement*& out) { out = converter_.statement(value); }
  void read(PyObject* value, Pattern*& out) { out = converter_.pattern(value); }
  void read(PyObject* value, Identifier& out) { out = python::to_string(value); }
  void read(PyObject* value, int& out) { out = static_cast<int>(python::to_integer(value)); }
  void read(PyObject* value, bool& out) { out = python::to_integer(value) != 0; }
  template <class T>
    requires std::is_enum_v<T>
  void read(PyObject* value, T& out) {
    out = static_cast<T>(converter_.module().index_of(value));
  }
  template <class T>
    requires std::is_base_of_v<Node, T>
  void read(PyObject* value, T*& out) {  // Argument, Keyword, Alias, ExceptHandler
    out = converter_.located<T>(value);
  }
  template <class T>
    requires(std::is_same_v<T, Arguments> || std::is_same_v<T, Comprehension> ||
             std::is_same_v<T, WithItem> || std::is_same_v<T, MatchCase>)
  void read(PyObject* value, T& out) {
    converter_.fill(out, value);
  }
  template <class T>
  void read(PyObject* value, std::vector<T>& out) {
    for (const Object& element : python::elements(value)) {
      out.emplace_back();
      if (!element.is(Py_None)) read(element.get(), out.back());
    }
  }

  Converter& converter_;
  PyObject* ast_;
};

template <class T>
T* Converter::located(PyObject* ast) {
  T* node = tree_.make<T>();
  node->span = {file_, number(ast, "lineno"), number(ast, "col_offset"), number(ast, "end_lineno"),
                number(ast, "end_col_offset")};
  fill(*node, ast);
  return node;
}

template <class T>
void Converter::fill(T& node, PyObject* ast) {
  if constexpr (kTakesTypeParameters<T>) {
    // Those of the root belong to a scope around it: its body sees them as free variables.
    const Object parameters = ast == root_ ? Object() : field(ast, "type_params");
    if (parameters && PyObject_Size(parameters.get()) > 0)
      throw UnsupportedSyntax("type parameters");
  }
  each_field(node, Reader(*this, ast));
}

/// Points the tree at its root node.
template <class T>
void set_root(Tree& tree, T* function) {
  tree.function = function;
  tree.body = function->body;
  tree.arguments = &function->args;
}

// --- back to Python ------------------------------------------------------------------------------

/// Collects the keyword arguments that make the `ast` object of a node.
class Writer {
 public:
  explicit Writer(AstBuilder& builder) : builder_(builder) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    fields.push_back({name, write(value)});
  }

  std::vector<AstBuilder::Field> fields;

 private:
  Object write(Expression* const& node) { return builder_.expression(node); }
  Object write(Pattern* const& node) { return builder_.pattern(node); }
  Object write(const Body& statements) { return builder_.body(statements); }
  Object write(const Identifier& name) {
    return name.empty() ? python::none() : python::string(name);
  }
  Object write(const Object& value) { return value; }
  Object write(int value) { return python::integer(value); }
  Object write(bool value) { return python::integer(value ? 1 : 0); }
  Object write(Operator op) { return singleton(kOperators[static_cast<int>(op)]); }
  Object write(UnaryOperator op) { return singleton(kUnaryOperators[static_cast<int>(op)]); }
  Object write(CompareOperator op) { return singleton(kCompareOperators[static_cast<int>(op)]); }
  Object write(BoolOperator op) { return singleton(kBoolOperators[static_cast<int>(op)]); }
  Object write(Context context) { return singleton(kContexts[static_cast<int>(context)]); }
  Object write(const Arguments& part) { return write_part("arguments", part, nullptr); }
  Object write(const Comprehension& part) { return write_part("comprehension", part, nullptr); }
  Object write(const WithItem& part) { return write_part("withitem", part, nullptr); }
  Object write(const MatchCase& part) { return write_part("match_case", part, nullptr); }
  Object write(Argument* const& part) { return write_node("arg", part); }
  Object write(Keyword* const& part) { return write_node("keyword", part); }
  Object write(Alias* const& part) { return write_node("alias", part); }
  Object write(ExceptHandler* const& part) { return write_node("ExceptHandler", part); }
  template <class T>
  Object write(const std::vector<T>& parts) {
    Object result = python::check(PyList_New(0));
    for (const T& part : parts)
      python::check_status(PyList_Append(result.get(), write(part).get()));
    return result;
  }

  template <class T>
  Object write_node(const char* type, const T* part) {
    return part == nullptr ? python::none() : write_part(type, *part, &part->span);
  }
  template <class T>
  Object write_part(const char* type, const T& part, const SourceSpan* span) {
    Writer writer(builder_);
    each_field(part, writer);
    return AstBuilder::make(type, writer.fields, span);
  }
  static Object singleton(const char* name) { return AstModule::instance().singleton(name); }

  AstBuilder& builder_;
};

template <class T>
Object copy_struct(AstBuilder& builder, const T& node) {
  Writer writer(builder);
  each_field(node, writer);
  if constexpr (python::kHasTypeParameters && kTakesTypeParameters<T>)
    writer.fields.push_back({"type_params", python::list({})});
  return AstBuilder::make(name(T::kKind), writer.fields, &node.span);
}

}  // namespace

std::shared_ptr<Tree> convert(PyObject* node, std::shared_ptr<const std::string> file) {
  AstModule& module = AstModule::instance();
  auto tree = std::make_shared<Tree>();
  tree->file = file;
  Converter converter(*tree, node, std::move(file));
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(node));
  if (type == module.class_named("Lambda")) {
    Lambda* lambda = static_cast<Lambda*>(converter.expression(node));
    tree->lambda = lambda;
    tree->arguments = &lambda->args;
  } else if (type == module.class_named("FunctionDef")) {
    set_root(*tree, static_cast<FunctionDef*>(converter.statement(node)));
  } else if (type == module.class_named("AsyncFunctionDef")) {
    set_root(*tree, static_cast<AsyncFunctionDef*>(converter.statement(node)));
  } else {
    for (const Object& statement : python::elements(python::attribute(node, "body").get()))
      tree->body.push_back(converter.statement(statement.get()));
  }
  return tree;
}

Object AstBuilder::expression(const Expression* node) {
  return node == nullptr ? python::none() : copy(*node);
}

Object AstBuilder::pattern(const Pattern* node) {
  if (node == nullptr) return python::none();
  return with_struct(*node, [this](const auto& full) { return copy_struct(*this, full); });
}

void AstBuilder::statement(const Statement* node, PyObject* list) {
  python::check_status(PyList_Append(list, copy(*node).get()));
}

Object AstBuilder::body(const Body& statements) {
  Object result = python::check(PyList_New(0));
  for (const Statement* node : statements) statement(node, result.get());
  return result;
}

Object AstBuilder::copy(const Expression& node) {
  return with_struct(node, [this](const auto& full) { return copy_struct(*this, full); });
}

Object AstBuilder::copy(const Statement& node) {
  return with_struct(node, [this](const auto& full) { return copy_struct(*this, full); });
}

Object AstBuilder::make(const char* type, const std::vector<Field>& fields,
                        const SourceSpan* span) {
  AstModule& module = AstModule::instance();
  const Object keywords = python::check(PyDict_New());
  const auto set = [&](const char* name, PyObject* value) {
    python::check_status(PyDict_SetItem(keywords.get(), module.field_name(name), value));
  };
  for (const Field& field : fields) set(field.name, field.value.get());
  if (span != nullptr) {
    set("lineno", python::integer(span->line).get());
    set("col_offset", python::integer(span->column).get());
    set("end_lineno", python::integer(span->end_line).get());
    set("end_col_offset", python::integer(span->end_column).get());
  }
  auto* cls = reinterpret_cast<PyTypeObject*>(module.class_named(type));
  TORCHJANUS_CHECK(cls != nullptr, "syntax: the ast module has no class ", type);
  // The constructor would look up each name among the fields of the class and set it by itself.
  Object node = python::check(PyType_GenericNew(cls, nullptr, nullptr));
  python::check_status(PyObject_GenericSetDict(node.get(), keywords.get(), nullptr));
  return node;
}

}  // namespace janus::syntax
