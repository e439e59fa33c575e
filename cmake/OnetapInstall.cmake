# find_package(onetap COMPONENTS runtime onnx train): runtime is the half without LibTorch, train the half with it, onnx
# what reads and writes ONNX models, which needs protobuf.
# Components of the install, each a Debian package (OnetapPackages.cmake): runtime, development, command, training,
# training_development.
include(CMakePackageConfigHelpers)

set(onetap_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onetap)
set(onetap_runtime_targets onetap_base onetap_graph onetap_count onetap_data onetap_tap onetap_plan onetap_quant onetap_emit onetap_kernels onetap_runtime
  onetap_c)
set(onetap_runtime_folders base graph count data tap plan quant emit kernels runtime)
set(onetap_train_targets onetap_recipe onetap_journal onetap_nn onetap_ranks onetap_batches onetap_fused
  onetap_train onetap_prune onetap_freeze onetap_report)
set(onetap_train_folders recipe journal nn ranks batches fused train prune freeze report)

install(TARGETS ${onetap_runtime_targets} EXPORT onetap_runtime
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT onetap_runtime FILE onetapRuntimeTargets.cmake NAMESPACE onetap:: DESTINATION ${onetap_config_dir}
        COMPONENT development)

# onetap_install_headers(COMPONENT FOLDERS...)
function(onetap_install_headers component)
  foreach(folder ${ARGN})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/onetap/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/onetap
            COMPONENT ${component}
            FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN fail.h EXCLUDE PATTERN base/json.h EXCLUDE
            PATTERN onnx/schema.h EXCLUDE PATTERN runtime/onetap.h EXCLUDE)
  endforeach()
endfunction()
onetap_install_headers(development ${onetap_runtime_folders})

if(ONETAP_HAVE_PROTOBUF)
  install(TARGETS onetap_onnx EXPORT onetap_onnx
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT onetap_onnx FILE onetapOnnxTargets.cmake NAMESPACE onetap:: DESTINATION ${onetap_config_dir}
          COMPONENT development)
  onetap_install_headers(development onnx)
endif()
if(ONETAP_TRAINING)
  install(TARGETS ${onetap_train_targets} EXPORT onetap_train
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT training NAMELINK_COMPONENT training_development
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT training_development)
  install(EXPORT onetap_train FILE onetapTrainTargets.cmake NAMESPACE onetap:: DESTINATION ${onetap_config_dir}
          COMPONENT training_development)
  onetap_install_headers(training_development ${onetap_train_folders})
endif()
# The C API stands above the modules: <onetap/onetap.h>.
install(FILES ${PROJECT_SOURCE_DIR}/onetap/runtime/onetap.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/onetap
        COMPONENT development)

# For those without CMake. Its paths are relative to itself: an installed onetap may be moved.
set(onetap_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH onetap_pkgconfig_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" onetap_pkgconfig_up "${onetap_pkgconfig_up}")
set(onetap_pkgconfig_libs -lonetap)
if(ONETAP_STATIC)
  string(APPEND onetap_pkgconfig_libs " -lstdc++ -lm -pthread")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/onetap.pc.in ${PROJECT_BINARY_DIR}/onetap.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/onetap.pc DESTINATION ${onetap_pkgconfig_dir} COMPONENT development)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onetapConfig.cmake.in
  ${PROJECT_BINARY_DIR}/onetapConfig.cmake INSTALL_DESTINATION ${onetap_config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/onetapConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/onetapConfig.cmake ${PROJECT_BINARY_DIR}/onetapConfigVersion.cmake
        DESTINATION ${onetap_config_dir} COMPONENT development)

# Recipes, man pages and completions; the command itself writes the latter two, when it is installed.
if(TARGET onetap_tool)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/onetap COMPONENT command)
  if(CMAKE_CROSSCOMPILING)
    message(STATUS "onetap: no man pages and completions, the command does not run here")
  else()
    set(onetap_pages ${PROJECT_BINARY_DIR}/share)
    install(CODE "set(COMMAND \"$<TARGET_FILE:onetap_tool>\")
set(OUT \"${onetap_pages}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/write_pages.cmake\")" COMPONENT command)
    install(DIRECTORY ${onetap_pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
    install(FILES ${onetap_pages}/completions/onetap COMPONENT command
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${onetap_pages}/completions/_onetap COMPONENT command
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${onetap_pages}/completions/onetap.fish COMPONENT command
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()
