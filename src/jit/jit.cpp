// Text → module → optimised module → object file → linked code.
//
// LLJIT only links. The object file is made here, so that several threads can compile at once, each
// with a context and a target machine of its own. Each text's function is renamed before it is
// linked, since all share one symbol table.
#include "jit/jit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/fault.h"
#include "base/free_memory.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/processor.h"
#include "base/thread_time.h"
#include "jit/object_cache.h"

namespace janus::jit {
namespace {

/// Owns a C object, which `Dispose` frees.
template <auto Dispose>
struct Disposer {
  template <class Pointer>
  void operator()(Pointer* object) const {
    Dispose(object);
  }
};
using Message = std::unique_ptr<char, Disposer<LLVMDisposeMessage>>;
using Context = std::unique_ptr<LLVMOpaqueContext, Disposer<LLVMContextDispose>>;
using Module = std::unique_ptr<LLVMOpaqueModule, Disposer<LLVMDisposeModule>>;
using Buffer = std::unique_ptr<LLVMOpaqueMemoryBuffer, Disposer<LLVMDisposeMemoryBuffer>>;
using Machine = std::unique_ptr<LLVMOpaqueTargetMachine, Disposer<LLVMDisposeTargetMachine>>;
using PassOptions =
    std::unique_ptr<LLVMOpaquePassBuilderOptions, Disposer<LLVMDisposePassBuilderOptions>>;

[[noreturn]] void fail(std::string_view step, std::string_view diagnostic,
                       std::string_view text = {}) {
  throw InternalError(cat("jit: ", step, ": ", diagnostic, text.empty() ? "" : "\n", text));
}

void check(LLVMErrorRef error, std::string_view step) {
  if (error == LLVMErrorSuccess) return;
  char* message = LLVMGetErrorMessage(error);  // frees the error
  const std::string text(message);
  LLVMDisposeErrorMessage(message);
  fail(step, text);
}

// --- the host ------------------------------------------------------------------------------------

struct Host {
  std::string triple, cpu, features;
  LLVMTargetRef target = nullptr;

  Host() {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    triple = Message(LLVMGetDefaultTargetTriple()).get();
    if (is_instruction_set_narrowed()) {
      cpu = instruction_set() == InstructionSet::avx2 ? "x86-64-v3" : "x86-64-v2";
    } else {
      cpu = Message(LLVMGetHostCPUName()).get();
      features = Message(LLVMGetHostCPUFeatures()).get();
    }
    char* message = nullptr;
    if (LLVMGetTargetFromTriple(triple.c_str(), &target, &message))
      fail("host", Message(message).get());
  }

  Machine machine() const {
    return Machine(LLVMCreateTargetMachine(target, triple.c_str(), cpu.c_str(), features.c_str(),
                                           LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                           LLVMCodeModelSmall));
  }
};

const Host& host() {
  static const Host* const instance = new Host;
  return *instance;
}

/// Borrows a target machine from a pool: they are costly to make and not thread-safe.
class MachineLease {
 public:
  MachineLease() {
    const std::lock_guard lock(mutex());
    if (!idle().empty()) {
      machine_ = std::move(idle().back());
      idle().pop_back();
    } else {
      machine_ = host().machine();
    }
  }
  ~MachineLease() {
    const std::lock_guard lock(mutex());
    idle().push_back(std::move(machine_));
  }
  LLVMTargetMachineRef get() const { return machine_.get(); }

 private:
  static std::mutex& mutex() {
    static auto* const instance = new std::mutex;
    return *instance;
  }
  static std::vector<Machine>& idle() {
    static auto* const instance = new std::vector<Machine>;
    return *instance;
  }
  Machine machine_;
};

// --- text to object file -------------------------------------------------------------------------

struct Diagnostics {
  std::string errors;

  static void collect(LLVMDiagnosticInfoRef info, void* self) {
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
    const Message message(LLVMGetDiagInfoDescription(info));
    static_cast<Diagnostics*>(self)->errors += cat(message.get(), "\n");
  }
};

Module parse(LLVMContextRef context, const std::string& text) {
  // The reader takes the buffer over. It wants a terminating zero, which the string has.
  LLVMMemoryBufferRef buffer =
      LLVMCreateMemoryBufferWithMemoryRange(text.data(), text.size(), "kernel.ll", 1);
  LLVMModuleRef module = nullptr;
  char* message = nullptr;
  if (LLVMParseIRInContext(context, buffer, &module, &message))
    fail("parse", Message(message).get(), text);
  return Module(module);
}

void verify(LLVMModuleRef module, const std::string& text) {
  char* message = nullptr;
  const bool broken = LLVMVerifyModule(module, LLVMReturnStatusAction, &message);
  const Message owned(message);
  if (broken) fail("verify", owned.get(), text);
}

void set_attribute(LLVMValueRef function, std::string_view key, std::string_view value) {
  LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
  const LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(context, key.data(), static_cast<unsigned>(key.size()),
                                value.data(), static_cast<unsigned>(value.size()));
  LLVMAddAttributeAtIndex(function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                          attribute);
}

/// Sets the target of the module and of its functions.
void set_target(LLVMModuleRef module, LLVMTargetMachineRef machine) {
  LLVMSetTarget(module, host().triple.c_str());
  const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  for (LLVMValueRef function = LLVMGetFirstFunction(module); function != nullptr;
       function = LLVMGetNextFunction(function)) {
    if (LLVMIsDeclaration(function)) continue;
    set_attribute(function, "target-cpu", host().cpu);
    set_attribute(function, "target-features", host().features);
    // LLVM prefers half of the width on some processors; kernels state the width themselves.
    set_attribute(function, "prefer-vector-width", std::to_string(8 * vector_bytes()));
    set_attribute(function, "min-legal-vector-width", std::to_string(8 * vector_bytes()));
  }
}

/// Kernels are emitted with the vectors and loops that they need, so these few passes suffice and
/// take a fraction of a millisecond. "default<O3>" took 3 to 7 ms a kernel, unrolled loops that are
/// bound by memory, and made no kernel faster. "no-verify-fixpoint": LLVM would end the process
/// where one iteration of instcombine does not reach a fixpoint.
constexpr const char* kPasses =
    "always-inline,function(mem2reg,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
    "simplifycfg)";

void optimise(LLVMModuleRef module, LLVMTargetMachineRef machine) {
  const PassOptions options(LLVMCreatePassBuilderOptions());
  check(LLVMRunPasses(module, kPasses, machine, options.get()), "optimise");
}

/// An undefined name must fail here, where it can be named: ORC only says that one is missing.
void check_external_functions(LLVMModuleRef module) {
  for (LLVMValueRef function = LLVMGetFirstFunction(module); function != nullptr;
       function = LLVMGetNextFunction(function)) {
    if (!LLVMIsDeclaration(function) || LLVMGetIntrinsicID(function) != 0) continue;
    size_t length = 0;
    const char* name = LLVMGetValueName2(function, &length);
    if (external_function({name, length}) == nullptr)
      fail("compile", cat("unknown function ", std::string_view(name, length)));
  }
}

Module optimised_module(LLVMContextRef context, LLVMTargetMachineRef machine,
                        const std::string& text) {
  Module module = parse(context, text);
  set_target(module.get(), machine);
  verify(module.get(), text);
  check_external_functions(module.get());
  optimise(module.get(), machine);
  return module;
}

Buffer emit(LLVMModuleRef module, LLVMTargetMachineRef machine, LLVMCodeGenFileType type) {
  LLVMMemoryBufferRef buffer = nullptr;
  char* message = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer))
    fail("code generation", Message(message).get());
  return Buffer(buffer);
}

/// Object file (or assembly) of `text`, with its function `symbol` renamed to `new_name`.
Buffer translate(const std::string& text, LLVMCodeGenFileType type, const std::string& symbol = {},
                 const std::string& new_name = {}) {
  const Context context(LLVMContextCreate());
  Diagnostics diagnostics;
  LLVMContextSetDiagnosticHandler(context.get(), &Diagnostics::collect, &diagnostics);
  const MachineLease machine;
  const Module module = optimised_module(context.get(), machine.get(), text);
  if (!symbol.empty()) {
    LLVMValueRef function = LLVMGetNamedFunction(module.get(), symbol.c_str());
    if (function == nullptr || LLVMIsDeclaration(function))
      fail("compile", cat("the text does not define @", symbol), text);
    LLVMSetValueName2(function, new_name.data(), new_name.size());
  }
  Buffer result = emit(module.get(), machine.get(), type);
  if (!diagnostics.errors.empty()) fail("compile", diagnostics.errors, text);
  return result;
}

// --- linking -------------------------------------------------------------------------------------

/// ORC's callback for names that no text defines. They are external_function()'s.
LLVMErrorRef define_external(LLVMOrcDefinitionGeneratorRef, void*, LLVMOrcLookupStateRef*,
                             LLVMOrcLookupKind, LLVMOrcJITDylibRef library,
                             LLVMOrcJITDylibLookupFlags, LLVMOrcCLookupSet wanted, size_t count) {
  std::vector<LLVMOrcCSymbolMapPair> found;
  for (size_t i = 0; i < count; ++i) {
    void* address = external_function(LLVMOrcSymbolStringPoolEntryStr(wanted[i].Name));
    if (address == nullptr) continue;  // ORC reports the missing name
    LLVMOrcRetainSymbolStringPoolEntry(wanted[i].Name);
    const auto flags =
        static_cast<uint8_t>(LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable);
    found.push_back({wanted[i].Name,
                     {.Address = reinterpret_cast<LLVMOrcExecutorAddress>(address),
                      .Flags = {.GenericFlags = flags, .TargetFlags = 0}}});
  }
  if (found.empty()) return LLVMErrorSuccess;
  return LLVMOrcJITDylibDefine(library, LLVMOrcAbsoluteSymbols(found.data(), found.size()));
}

/// The linker. It is never destroyed, since its code may run until the process ends.
LLVMOrcLLJITRef linker() {
  static LLVMOrcLLJITRef const instance = [] {
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(host().machine().release()));
    LLVMOrcLLJITRef result = nullptr;
    check(LLVMOrcCreateLLJIT(&result, builder), "start");
    LLVMOrcJITDylibAddGenerator(
        LLVMOrcLLJITGetMainJITDylib(result),
        LLVMOrcCreateCustomCAPIDefinitionGenerator(&define_external, nullptr, nullptr));
    LLVMOrcExecutionSessionSetErrorReporter(
        LLVMOrcLLJITGetExecutionSession(result),
        [](void*, LLVMErrorRef error) { LLVMConsumeError(error); },  // lookups report it again
        nullptr);
    return result;
  }();
  return instance;
}

// --- compiled functions -------------------------------------------------------------------------

/// What an object depends on beside its text: part of its key.
const std::string& maker() {
  static const std::string* const instance = [] {
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    return new std::string(cat("kernels 1\nllvm ", major, ".", minor, ".", patch, "\n",
                               host().triple, "\n", host().cpu, "\n", host().features, "\n",
                               vector_bytes(), "\n", kPasses, "\n"));
  }();
  return *instance;
}

/// The linked functions, and the cache of objects.
struct Linked {
  std::mutex mutex;
  std::unordered_map<std::string, void*> functions;  ///< by symbol
  std::vector<double> compilation_seconds;
  ObjectCache files{ObjectCache::default_folder("kernels")};

  static Linked& instance() {
    static auto* const linked = new Linked;
    return *linked;
  }
};

/// Throws std::bad_alloc unless there is far more memory than LLVM takes: LLVM and the system's
/// libraries end the process where memory runs out.
void require_memory(size_t text_bytes) {
  if (fault_due(Fault::memory) ||
      !has_free_memory(policy::kCompilerBytes +
                       policy::kCompilerBytesForByte * static_cast<int64_t>(text_bytes)))
    throw std::bad_alloc();
}

void* link(std::string_view object, const std::string& symbol) {
  require_memory(0);
  LLVMMemoryBufferRef buffer =
      LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), symbol.c_str());
  LLVMOrcLLJITRef jit = linker();
  check(LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), buffer), "link");
  LLVMOrcExecutorAddress address = 0;
  check(LLVMOrcLLJITLookup(jit, &address, symbol.c_str()), "link");
  return reinterpret_cast<void*>(address);
}

/// How a text is identified.
struct Name {
  std::string key;   ///< the whole of it
  std::string name;  ///< the linked function's
};

Name name_of(const std::string& llvm_text, const std::string& symbol) {
  std::string key = cat(maker(), symbol, "\n", llvm_text);
  std::string name = cat(symbol, ".", digest(key));
  return {std::move(key), std::move(name)};
}

bool keeps_objects() { return !options().is_disabled("kernel_cache"); }

/// Null if the text is neither linked nor cached. The lock must be held.
void* find_locked(Linked& linked, const Name& name) {
  if (const auto found = linked.functions.find(name.name); found != linked.functions.end())
    return found->second;
  if (!keeps_objects()) return nullptr;
  const std::optional<std::string> object = linked.files.find(name.key);
  if (!object) return nullptr;
  return linked.functions.emplace(name.name, link(*object, name.name)).first->second;
}

}  // namespace

void* find(const std::string& llvm_text, const std::string& symbol) {
  Linked& linked = Linked::instance();
  const std::lock_guard lock(linked.mutex);
  return find_locked(linked, name_of(llvm_text, symbol));
}

void* compile(const std::string& llvm_text, const std::string& symbol) {
  const Name name = name_of(llvm_text, symbol);
  Linked& linked = Linked::instance();
  {
    const std::lock_guard lock(linked.mutex);
    if (void* found = find_locked(linked, name)) return found;
  }
  require_memory(llvm_text.size());
  const double start = thread_seconds();
  const Buffer made = translate(llvm_text, LLVMObjectFile, symbol, name.name);
  const std::string_view object(LLVMGetBufferStart(made.get()), LLVMGetBufferSize(made.get()));
  const double seconds = thread_seconds() - start;
  const std::lock_guard lock(linked.mutex);
  linked.compilation_seconds.push_back(seconds);
  // Another thread may have linked it first.
  if (const auto found = linked.functions.find(name.name); found != linked.functions.end())
    return found->second;
  void* address = link(object, name.name);
  linked.functions.emplace(name.name, address);
  if (keeps_objects()) linked.files.keep(name.key, object);
  return address;
}

std::vector<double> compilation_seconds() {
  Linked& linked = Linked::instance();
  const std::lock_guard lock(linked.mutex);
  return linked.compilation_seconds;
}

std::string assembly(const std::string& llvm_text) {
  const Buffer text = translate(llvm_text, LLVMAssemblyFile);
  return std::string(LLVMGetBufferStart(text.get()), LLVMGetBufferSize(text.get()));
}

std::string processor() { return cat(host().cpu, ' ', host().features); }

int vector_bytes() {
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return 64;
    case InstructionSet::avx2:
      return 32;
    case InstructionSet::baseline:
      break;
  }
  return 16;
}

}  // namespace janus::jit
