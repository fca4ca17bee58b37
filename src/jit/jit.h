// From LLVM text to the address of a function, in this process.
//
// Only this room knows LLVM, and only its C interface. Code is made for the processor at hand and
// lives as long as the process. All functions are thread-safe; compilations run side by side.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace janus::jit {

/// Parses, optimises and links `llvm_text`, and gives the address of its function `symbol`. The
/// text names no target; functions that it declares are found by external_function(). Several texts
/// may define the same symbol. Throws InternalError with LLVM's diagnostic, std::bad_alloc where
/// memory is too short for LLVM.
void* compile(const std::string& llvm_text, const std::string& symbol);

/// The same where that text was compiled before, in this process or in one whose objects were kept;
/// else null.
void* find(const std::string& llvm_text, const std::string& symbol);

/// The processor's seconds that compile() took for each text that LLVM had to translate, since the
/// process began.
std::vector<double> compilation_seconds();

/// The assembly that compile() would link, for people.
std::string assembly(const std::string& llvm_text);

/// Address of a C function that kernels may call: of the maths library, or exported by a library
/// that is loaded (torch exports Sleef's vector functions); null if there is none.
void* external_function(std::string_view name);

/// The processor that code is made for, with all its features.
std::string processor();

/// Bytes of the widest vectors that the processor computes with: 64, 32 or 16.
int vector_bytes();

}  // namespace janus::jit
