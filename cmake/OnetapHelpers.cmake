# Flags of our own sources: not exported, so that nothing leaks to a consumer.
# fmt comes with them, header-only: an installed onetap does not need it.
add_library(onetap_flags INTERFACE)
target_link_libraries(onetap_flags INTERFACE onetap_fmt)
target_compile_features(onetap_flags INTERFACE cxx_std_17)
target_compile_options(onetap_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Werror=switch  # a new op does not compile before every switch without a default has it
  $<$<BOOL:${ONETAP_WERROR}>:-Werror>)
if(ONETAP_SANITIZE)
  target_compile_options(onetap_flags INTERFACE
    -fsanitize=${ONETAP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # instrumentation makes GCC see paths that are not there
  # Compilers have macros of their own for this, each another one.
  foreach(sanitizer address thread)
    if(ONETAP_SANITIZE MATCHES ${sanitizer})
      string(TOUPPER ${sanitizer} upper)
      target_compile_definitions(onetap_flags INTERFACE ONETAP_${upper}_SANITIZER)
    endif()
  endforeach()
  target_link_options(onetap_flags INTERFACE -fsanitize=${ONETAP_SANITIZE})
endif()

if(ONETAP_STATIC)
  target_compile_options(onetap_flags INTERFACE -ffunction-sections -fdata-sections)
endif()

if(ONETAP_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
endif()

# Paths relative to the build folder let presets and checkouts that compile a source alike share the result. A
# precompiled header holds absolute paths, so what uses one shares nothing with other folders; and ccache needs to be
# told that it is what it looks like.
find_program(ONETAP_CCACHE ccache)
if(ONETAP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ONETAP_CCACHE})
  set(ONETAP_PCH_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${ONETAP_CCACHE})
endif()

# For targets with the precompiled header.
function(onetap_pch_launcher target)
  if(ONETAP_PCH_LAUNCHER)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${ONETAP_PCH_LAUNCHER}")
  endif()
endfunction()

# onetap_module(NAME SOURCES ... [LINK targets...] [PRIVATE_LINK targets...])
# One folder, one target: onetap::NAME. A module sees only the modules it links.
function(onetap_module name)
  cmake_parse_arguments(module "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(onetap_${name} ${module_SOURCES})
  add_library(onetap::${name} ALIAS onetap_${name})
  set_property(GLOBAL APPEND PROPERTY ONETAP_MODULES onetap_${name})
  set_target_properties(onetap_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(onetap_${name} PUBLIC cxx_std_17)
  target_include_directories(onetap_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(onetap_${name}
    PUBLIC ${module_LINK}
    PRIVATE ${module_PRIVATE_LINK} $<BUILD_INTERFACE:onetap_flags>)
endfunction()

# Every target that includes LibTorch shares one precompiled header, made by onetap_nn.
function(onetap_use_torch target)
  target_precompile_headers(${target} REUSE_FROM onetap_nn)
  onetap_pch_launcher(${target})
  # The header was made with -fPIC; an executable's -fPIE would make it useless.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()

# onetap_cuda_kernels(ROOM SOURCES...)
# The CUDA sources of a module, apart from it because the flags of our C++ are not nvcc's; ONETAP_CUDA in its C++ sources.
function(onetap_cuda_kernels module)
  add_library(onetap_${module}_kernels OBJECT ${ARGN})
  set_target_properties(onetap_${module}_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_STANDARD 17)
  target_include_directories(onetap_${module}_kernels PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(onetap_${module}_kernels PRIVATE --expt-relaxed-constexpr)
  target_sources(onetap_${module} PRIVATE $<TARGET_OBJECTS:onetap_${module}_kernels>)
  target_compile_definitions(onetap_${module} PRIVATE ONETAP_CUDA)
  target_include_directories(onetap_${module} SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
endfunction()

# onetap_test(ROOM SOURCES ... LINK ... [TORCH [PROCESSES N]])
# Without ONETAP_UNIT_TESTS the program is there to build by name, and CTest does not know it.
function(onetap_test name)
  cmake_parse_arguments(test "TORCH" "PROCESSES" "SOURCES;LINK" ${ARGN})
  add_executable(${name}_test ${test_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${test_LINK} GTest::gtest_main onetap_flags)
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  if(test_TORCH)
    onetap_use_torch(${name}_test)
  endif()
  if(NOT ONETAP_UNIT_TESTS)
    set_target_properties(${name}_test PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(test_TORCH)
    # One process for all of them, or the few of PROCESSES: loading LibTorch takes longer than most tests.
    if(NOT test_PROCESSES)
      set(test_PROCESSES 1)
    endif()
    math(EXPR last "${test_PROCESSES} - 1")
    foreach(index RANGE ${last})
      set(entry ${name})
      if(last GREATER 0)
        set(entry ${name}.part${index})
      endif()
      add_test(NAME ${entry} COMMAND ${name}_test)
      # Threads of OpenMP that wait take no turns from the test beside this one; busy ones made trainings ten times
      # slower. The longest begin first, so that none is left to run alone.
      set_tests_properties(${entry} PROPERTIES LABELS ${name} TIMEOUT 1200 COST ${test_PROCESSES}
        ENVIRONMENT "OMP_WAIT_POLICY=passive;GTEST_TOTAL_SHARDS=${test_PROCESSES};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 120
      PROPERTIES LABELS ${name} TIMEOUT 600)
  endif()
endfunction()

# onetap_protobuf_schema(TARGET FILE.proto)
# Compiles what protoc makes of the schema into the target; its sources include <FILE.pb.h>.
function(onetap_protobuf_schema target schema)
  get_filename_component(name ${schema} NAME_WE)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR}/${schema} DIRECTORY)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${target}_schema)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(OUTPUT ${generated}/${name}.pb.cc ${generated}/${name}.pb.h
    COMMAND ${Protobuf_PROTOC_EXECUTABLE} --cpp_out=${generated} -I${folder} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema} VERBATIM)
  target_sources(${target} PRIVATE ${generated}/${name}.pb.cc ${generated}/${name}.pb.h)
  # Not ours to warn about.
  set_source_files_properties(${generated}/${name}.pb.cc PROPERTIES COMPILE_OPTIONS -w SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(${target} SYSTEM PRIVATE ${generated})
endfunction()

# onetap_embed(TARGET NAMESPACE FILES...)
# Compiles text files into the target: page.html becomes std::string_view onetap::NAMESPACE::page_html(). The functions
# are declared in a header of the sources' own. The target onetap_embedded makes all such sources, and compiles none.
add_custom_target(onetap_embedded)
function(onetap_embed target namespace)
  set(inputs ${ARGN})
  list(TRANSFORM inputs PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${namespace}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DINPUTS=${inputs}" -DOUTPUT=${output} -DNAMESPACE=onetap::${namespace} -P ${script}
    DEPENDS ${inputs} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${output})
  add_custom_target(${target}_embedded DEPENDS ${output})
  add_dependencies(onetap_embedded ${target}_embedded)
endfunction()
