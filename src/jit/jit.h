// The just-in-time compiler: from LLVM text to the address of a function in this process.
//
// Only this room knows LLVM, and only its C interface. Code is made for this processor and lives as
// long as the process. All functions are thread-safe; compilations run side by side.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace janus::jit {

/// Parses, optimises and links `llvm_text`; returns the address of its function `symbol`. The text
/// names no target. The functions that it declares are found by external_function(). Several texts
/// may define the same symbol. Throws InternalError with LLVM's diagnostic, or std::bad_alloc where
/// memory is too short for LLVM.
void* compile(const std::string& llvm_text, const std::string& symbol);

/// The same if the text was compiled before, in this process or in one whose objects were cached;
/// else null.
void* find(const std::string& llvm_text, const std::string& symbol);

/// Seconds of processor time of compile(), for each text that LLVM had to translate since the
/// process began.
std::vector<double> compilation_seconds();

/// The assembly that compile() would link, to read.
std::string assembly(const std::string& llvm_text);

/// Address of a C function that kernels may call: of the maths library, or exported by a loaded
/// library (torch exports Sleef's vector functions); null if there is none.
void* external_function(std::string_view name);

/// The processor that code is made for, with all its features, as LLVM names them.
std::string processor();

/// Bytes of the widest vectors of the processor: 64, 32 or 16.
int vector_bytes();

}  // namespace janus::jit
