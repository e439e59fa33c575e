# 64-bit ARM on Debian's cross compiler (g++-aarch64-linux-gnu); tests run under qemu-aarch64 (qemu-user).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(onetap_sysroot /usr/aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${onetap_sysroot})

# Libraries of the target alone: those of this machine would be found, and not link.
set(CMAKE_FIND_ROOT_PATH ${onetap_sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${onetap_sysroot}/lib/pkgconfig)

# Libraries that are headers alone are the same for every machine, but lie beside the headers of this one's C library,
# which a cross compiler must not see: each gets a link in a folder of its own.
get_property(onetap_in_try_compile GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT onetap_in_try_compile)
  set(onetap_headers ${CMAKE_BINARY_DIR}/header-libraries)
  file(MAKE_DIRECTORY ${onetap_headers}/include)
  foreach(name fmt nlohmann toml++ hwy CLI)
    foreach(folder /usr/local/include /usr/include)
      if(EXISTS ${folder}/${name} AND NOT EXISTS ${onetap_headers}/include/${name})
        file(CREATE_LINK ${folder}/${name} ${onetap_headers}/include/${name} SYMBOLIC)
      endif()
    endforeach()
  endforeach()
  list(APPEND CMAKE_FIND_ROOT_PATH ${onetap_headers})
endif()
