# One room = one folder under src/ = one static library, with warnings as errors. KNOWS lists the rooms
# whose headers it may include; what those know is known too.
option(TORCHJANUS_WARNINGS_AS_ERRORS "Stop at the first warning" ON)
add_library(janus_flags INTERFACE)
target_include_directories(janus_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(janus_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       -Wno-unused-parameter)
if(TORCHJANUS_WARNINGS_AS_ERRORS)
  target_compile_options(janus_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 warns wrongly inside its own standard library at -O2.
  target_compile_options(janus_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized
                         -Wno-dangling-pointer -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(TORCHJANUS_SANITIZE)
  add_compile_options(-fsanitize=${TORCHJANUS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TORCHJANUS_SANITIZE})
endif()

function(janus_room name)
  cmake_parse_arguments(ROOM "" "" "KNOWS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)  # a room that is still empty
    file(WRITE ${CMAKE_BINARY_DIR}/${name}_empty.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/${name}_empty.cpp)
  endif()
  add_library(janus_${name} STATIC ${sources})
  set_target_properties(janus_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(janus_${name} PUBLIC janus_flags)
  foreach(other IN LISTS ROOM_KNOWS)
    target_link_libraries(janus_${name} PUBLIC janus_${other})
  endforeach()
endfunction()
