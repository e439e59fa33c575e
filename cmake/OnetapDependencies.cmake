# Needed always, and headers alone: found by file, so that a folder of headers on CMAKE_PREFIX_PATH will do, and an
# installed onetap needs none of them.
function(onetap_header_library name header)
  find_path(ONETAP_${name}_INCLUDE ${header} REQUIRED DOC "folder of ${header}")
  add_library(onetap_${name} INTERFACE)
  if(NOT ONETAP_${name}_INCLUDE STREQUAL "/usr/include")
    target_include_directories(onetap_${name} SYSTEM INTERFACE ${ONETAP_${name}_INCLUDE})
  endif()
  target_compile_definitions(onetap_${name} INTERFACE ${ARGN})
endfunction()
onetap_header_library(fmt fmt/format.h FMT_HEADER_ONLY=1)
onetap_header_library(json nlohmann/json.hpp)
onetap_header_library(toml toml++/toml.h TOML_HEADER_ONLY=1)
find_package(Threads REQUIRED)

# Optional: the feature that needs one says so when it is missing.
find_package(PNG)
find_package(PkgConfig)
if(PkgConfig_FOUND)
  pkg_check_modules(TurboJPEG IMPORTED_TARGET libturbojpeg)
endif()
find_package(CURL)
find_package(LibArchive)
if(CURL_FOUND AND LibArchive_FOUND)
  set(ONETAP_HAVE_FETCH ON)
else()
  set(ONETAP_HAVE_FETCH OFF)
endif()

if(ONETAP_BUILD_TOOLS)
  onetap_header_library(cli CLI/CLI.hpp)
endif()
if(ONETAP_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

if(ONETAP_TRAINING)
  find_package(Torch REQUIRED)
  # Its headers are not ours to warn about; its flags (the C++ ABI of old wheels) are ours to keep.
  add_library(onetap_torch INTERFACE)
  # By target, not by TORCH_LIBRARIES: that holds a libc10 found by name, which where two LibTorch are installed may be
  # the other one's. libstdc++ stands first because LibTorch's wheels export an old std::filesystem of their own, and a
  # program that takes it from there crashes.
  target_link_libraries(onetap_torch INTERFACE stdc++ torch torch_library)
  target_include_directories(onetap_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  separate_arguments(onetap_torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(onetap_torch INTERFACE ${onetap_torch_flags})
endif()
