# find_package(onetap COMPONENTS runtime train): runtime is the half without LibTorch, train the half with it.
include(CMakePackageConfigHelpers)

set(onetap_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onetap)
set(onetap_runtime_targets onetap_base onetap_graph onetap_count onetap_data onetap_tap onetap_plan onetap_emit onetap_kernels onetap_runtime
  onetap_c)
set(onetap_runtime_folders base graph count data tap plan emit kernels runtime)
set(onetap_train_targets onetap_recipe onetap_journal onetap_nn onetap_ranks onetap_batches onetap_fused
  onetap_train onetap_prune onetap_freeze onetap_report)
set(onetap_train_folders recipe journal nn ranks batches fused train prune freeze report)

install(TARGETS ${onetap_runtime_targets} EXPORT onetap_runtime
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT onetap_runtime FILE onetapRuntimeTargets.cmake NAMESPACE onetap:: DESTINATION ${onetap_config_dir})
set(onetap_folders ${onetap_runtime_folders})

if(ONETAP_TRAINING)
  install(TARGETS ${onetap_train_targets} EXPORT onetap_train
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT onetap_train FILE onetapTrainTargets.cmake NAMESPACE onetap:: DESTINATION ${onetap_config_dir})
  list(APPEND onetap_folders ${onetap_train_folders})
endif()

foreach(folder ${onetap_folders})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/onetap/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/onetap
          FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN fail.h EXCLUDE PATTERN base/json.h EXCLUDE
          PATTERN runtime/onetap.h EXCLUDE)
endforeach()
# The C API stands above the rooms: <onetap/onetap.h>.
install(FILES ${PROJECT_SOURCE_DIR}/onetap/runtime/onetap.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/onetap)

# For those without CMake. Its paths are relative to itself: an installed onetap may be moved.
set(onetap_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH onetap_pkgconfig_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" onetap_pkgconfig_up "${onetap_pkgconfig_up}")
set(onetap_pkgconfig_libs -lonetap)
if(ONETAP_STATIC)
  string(APPEND onetap_pkgconfig_libs " -lstdc++ -lm -pthread")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/onetap.pc.in ${PROJECT_BINARY_DIR}/onetap.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/onetap.pc DESTINATION ${onetap_pkgconfig_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onetapConfig.cmake.in
  ${PROJECT_BINARY_DIR}/onetapConfig.cmake INSTALL_DESTINATION ${onetap_config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/onetapConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/onetapConfig.cmake ${PROJECT_BINARY_DIR}/onetapConfigVersion.cmake
        DESTINATION ${onetap_config_dir})
