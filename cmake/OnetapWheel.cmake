# What the Python wheel carries (pyproject.toml): libonetap.so inside the package, for ctypes, and the command. Both hold
# all but the C library, so that one wheel serves every distribution with a glibc that is not older.
if(NOT DEFINED SKBUILD_SCRIPTS_DIR)
  message(FATAL_ERROR "onetap: expected ONETAP_WHEEL=ON from pip alone (pip install .)")
endif()

foreach(target onetap_c onetap_tool)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -s)
endforeach()
# By file: a wheel has no symbolic links, and nobody links this copy by its version.
install(FILES $<TARGET_FILE:onetap_c> DESTINATION onetap RENAME libonetap.so COMPONENT python)
install(PROGRAMS $<TARGET_FILE:onetap_tool> DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
