# Needed always. Header-only in use: fmt is compiled into our own objects, so that a consumer of the installed
# libraries links nothing but them.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
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
  find_package(CLI11 REQUIRED)
endif()
if(ONETAP_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

if(ONETAP_TRAINING)
  find_package(Torch REQUIRED)
  # Its headers are not ours to warn about; its flags (the C++ ABI of old wheels) are ours to keep.
  add_library(onetap_torch INTERFACE)
  target_link_libraries(onetap_torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(onetap_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  separate_arguments(onetap_torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(onetap_torch INTERFACE ${onetap_torch_flags})
endif()
