# LLVM 19, static, through its C API only (llvm-c): the parts that parse text, optimise, and run it by ORC.
find_program(LLVM_CONFIG NAMES llvm-config-19 llvm-config REQUIRED)
execute_process(COMMAND ${LLVM_CONFIG} --includedir OUTPUT_VARIABLE llvm_include OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${LLVM_CONFIG} --libdir OUTPUT_VARIABLE llvm_libdir OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${LLVM_CONFIG} --host-target OUTPUT_VARIABLE llvm_target OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${LLVM_CONFIG} --link-static --libs orcjit nativecodegen asmparser passes irreader native
                OUTPUT_VARIABLE llvm_libs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(llvm_libs)
set(ZLIB_USE_STATIC_LIBS ON)  # a wheel brings along what it needs
find_package(ZLIB REQUIRED)
find_library(ZSTD_LIBRARY NAMES libzstd.a zstd REQUIRED)
add_library(janus_llvm INTERFACE)
target_include_directories(janus_llvm SYSTEM INTERFACE ${llvm_include})
target_link_directories(janus_llvm INTERFACE ${llvm_libdir})
target_link_libraries(janus_llvm INTERFACE ${llvm_libs} ZLIB::ZLIB ${ZSTD_LIBRARY} rt dl m)
