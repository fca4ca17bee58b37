# One room = one folder under src/ = one static library, with warnings as errors. KNOWS lists the rooms
# whose headers it may include; what those know is known too. tools/check_includes.py reads the same lines.
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
  if(TORCHJANUS_PYTHON)
    # It would ask for type information that torch's libraries keep to themselves.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

# A room may be a folder within a folder (`execute/plan`, target janus_execute_plan). The folder around it must
# be stated later, and owns only the files that no room within it has. A room FOR_EACH_TORCH is compiled once for each
# (Torch.cmake): its targets are janus_lazy-2.13, ….
function(janus_room name)
  cmake_parse_arguments(ROOM "FOR_EACH_TORCH" "" "KNOWS" ${ARGN})
  janus_room_sources(sources ${name})
  if(ROOM_FOR_EACH_TORCH)
    foreach(torch IN LISTS janus_torches)
      add_library(janus_${name}-${torch} OBJECT ${sources})
      target_link_libraries(janus_${name}-${torch} PRIVATE janus_flags janus_torch_headers-${torch})
    endforeach()
    return()
  endif()
  if(NOT sources)  # a room that is still empty
    string(REPLACE / _ file ${name})
    file(WRITE ${CMAKE_BINARY_DIR}/${file}_empty.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/${file}_empty.cpp)
  endif()
  janus_room_target(target ${name})
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PUBLIC janus_flags)
  foreach(other IN LISTS ROOM_KNOWS)
    janus_room_target(known ${other})
    target_link_libraries(${target} PUBLIC ${known})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY JANUS_ROOMS ${name})
endfunction()

# janus_rooms(execute program plan memory KNOWS kernels): one room for each subfolder of src/execute. Each knows
# those before it and what the folder KNOWS. The folder itself is a room too, for files that lie directly in
# it: it knows all of its subfolders, and who knows it knows them as well. Without such files the target
# janus_execute only stands for the others.
function(janus_rooms name)
  cmake_parse_arguments(ROOM "" "" "KNOWS" ${ARGN})
  set(known ${ROOM_KNOWS})
  foreach(subfolder IN LISTS ROOM_UNPARSED_ARGUMENTS)
    janus_room(${name}/${subfolder} KNOWS ${known})
    list(APPEND known ${name}/${subfolder})
  endforeach()
  janus_room_sources(sources ${name})
  if(sources)
    janus_room(${name} KNOWS ${known})
    return()
  endif()
  janus_room_target(target ${name})
  add_library(${target} INTERFACE)
  foreach(other IN LISTS known)
    janus_room_target(part ${other})
    target_link_libraries(${target} INTERFACE ${part})
  endforeach()
endfunction()

function(janus_room_target result name)
  string(REPLACE / _ target janus_${name})
  set(${result} ${target} PARENT_SCOPE)
endfunction()

# The source files below a room's folder, but for those of rooms within it.
function(janus_room_sources result name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  get_property(rooms GLOBAL PROPERTY JANUS_ROOMS)
  foreach(room IN LISTS rooms)
    string(FIND ${room} ${name}/ start)
    if(start EQUAL 0)
      list(FILTER sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/src/${room}/")
    endif()
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# janus_precompile(ROOMS graph ops HEADERS <set> <graph/graph.h>): what most files of these rooms include is parsed
# once for all of them, with the templates that it instantiates; that was more than half of a build's time. A file
# still includes what it uses: builds by g++ do without. `frontend` stands for all rooms within it too.
function(janus_precompile)
  cmake_parse_arguments(SHARED "" "" "ROOMS;HEADERS" ${ARGN})
  get_property(rooms GLOBAL PROPERTY JANUS_ROOMS)
  set(targets "")
  foreach(name IN LISTS SHARED_ROOMS)
    foreach(room IN LISTS rooms)
      if(room MATCHES "^${name}(/|$)")
        janus_room_target(target ${room})
        list(APPEND targets ${target})
      endif()
    endforeach()
  endforeach()
  janus_precompile_targets(TARGETS ${targets} HEADERS ${SHARED_HEADERS})
endfunction()

# ccache makes the path of a precompiled header relative if it follows this option, and not if it follows -Xclang.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
endif()

# The same for targets that are compiled with the same options.
function(janus_precompile_targets)
  cmake_parse_arguments(SHARED "" "" "TARGETS;HEADERS" ${ARGN})
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    return()
  endif()
  set(first "")
  foreach(target IN LISTS SHARED_TARGETS)
    if(first)
      target_precompile_headers(${target} REUSE_FROM ${first})
    else()
      target_precompile_headers(${target} PRIVATE ${SHARED_HEADERS})
      set(first ${target})
    endif()
    # The compiler cache goes by what a header says, and a fresh checkout writes it anew.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endforeach()
endfunction()
