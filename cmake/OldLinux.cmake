# Libraries for older Linux than the one that builds them. They are linked with the C and C++ libraries of a folder that
# tools/wheels.py fetches, so they ask for nothing newer. What these lack comes from the static C++ library of the
# compiler, or from old_linux.c, and is hidden. For lld only, which takes archives in any order.
set(TORCHJANUS_OLD_LINUX "" CACHE PATH "A folder with the C and C++ libraries of the oldest Linux to run on")
if(TORCHJANUS_OLD_LINUX)
  if(NOT CMAKE_LINKER_TYPE STREQUAL LLD OR CMAKE_VERSION VERSION_LESS 3.29)
    message(FATAL_ERROR "TORCHJANUS_OLD_LINUX needs -DCMAKE_LINKER_TYPE=LLD, and CMake 3.29 that knows it")
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a
                  OUTPUT_VARIABLE static_cxx_library OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  get_filename_component(compiler_libraries ${static_cxx_library} DIRECTORY)
  add_library(janus_old_linux OBJECT cmake/old_linux.c)
endif()

function(janus_link_for_old_linux target)
  if(TORCHJANUS_OLD_LINUX)
    set(libraries ${TORCHJANUS_OLD_LINUX}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:janus_old_linux>)
    target_link_options(${target} BEFORE PRIVATE
      --sysroot=${TORCHJANUS_OLD_LINUX} --gcc-install-dir=${compiler_libraries}
      -L${libraries} -L${TORCHJANUS_OLD_LINUX}/lib/${CMAKE_LIBRARY_ARCHITECTURE}
      -nostdlib++ ${libraries}/libstdc++.so.6 ${static_cxx_library} -lpthread -ldl)
  endif()
endfunction()
