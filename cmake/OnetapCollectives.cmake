# What ranks talk by, through LibTorch's c10d; all of it is in LibTorch but for headers. Optional: without it a training is
# one process.
add_library(onetap_collectives INTERFACE)
set(ONETAP_COLLECTIVE_LIBRARIES "")

# Gloo, for CPUs. Debian's LibTorch links Debian's libgloo; PyPI's holds a Gloo of its own, whose headers it does not
# ship: others will do if they compile, for c10d deals in pointers to Gloo's classes.
find_path(ONETAP_GLOO_INCLUDE gloo/rendezvous/store.h DOC "folder of gloo/rendezvous/store.h (Debian: libgloo-dev)")
set(ONETAP_HAVE_GLOO OFF)
if(ONETAP_GLOO_INCLUDE)
  get_target_property(onetap_torch_cpu torch_cpu LOCATION)
  execute_process(COMMAND ${CMAKE_READELF} -d ${onetap_torch_cpu} OUTPUT_VARIABLE onetap_torch_needs ERROR_QUIET)
  if(onetap_torch_needs MATCHES "libgloo")
    find_library(ONETAP_GLOO_LIBRARY gloo)
    if(ONETAP_GLOO_LIBRARY)
      set(ONETAP_HAVE_GLOO ON)
      list(APPEND ONETAP_COLLECTIVE_LIBRARIES ${ONETAP_GLOO_LIBRARY})
    endif()
  else()
    if(NOT DEFINED ONETAP_GLOO_FITS)
      message(STATUS "onetap: trying whether Gloo's headers fit LibTorch's Gloo")
      file(WRITE ${PROJECT_BINARY_DIR}/gloo_fits.cpp
        "#define USE_C10D_GLOO\n#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>\n")
      set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # without linking
      try_compile(ONETAP_GLOO_FITS ${PROJECT_BINARY_DIR}/gloo_fits ${PROJECT_BINARY_DIR}/gloo_fits.cpp
        CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${TORCH_INCLUDE_DIRS};${ONETAP_GLOO_INCLUDE}" CXX_STANDARD 17)
      unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
    endif()
    set(ONETAP_HAVE_GLOO ${ONETAP_GLOO_FITS})
  endif()
endif()
if(ONETAP_HAVE_GLOO)
  target_compile_definitions(onetap_collectives INTERFACE ONETAP_HAVE_GLOO)
  if(NOT ONETAP_GLOO_INCLUDE STREQUAL "/usr/include")
    target_include_directories(onetap_collectives SYSTEM INTERFACE ${ONETAP_GLOO_INCLUDE})
  endif()
else()
  message(STATUS "onetap: no Gloo that fits LibTorch (Debian: libgloo-dev), no ranks on CPUs")
endif()

# NCCL, for GPUs; PyPI puts its header beside LibTorch.
if(ONETAP_CUDA)
  find_path(ONETAP_NCCL_INCLUDE nccl.h DOC "folder of nccl.h"
    HINTS ${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  if(ONETAP_NCCL_INCLUDE)
    set(ONETAP_HAVE_NCCL ON)
    target_compile_definitions(onetap_collectives INTERFACE ONETAP_HAVE_NCCL)
    target_include_directories(onetap_collectives SYSTEM INTERFACE ${ONETAP_NCCL_INCLUDE}
      ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  else()
    message(STATUS "onetap: no nccl.h, no ranks on GPUs")
  endif()
endif()
