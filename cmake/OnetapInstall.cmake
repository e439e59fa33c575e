# find_package(onetap COMPONENTS runtime train): runtime is the half without LibTorch, train the half with it.
include(CMakePackageConfigHelpers)

set(onetap_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onetap)
set(onetap_runtime_targets onetap_base onetap_graph onetap_count onetap_data onetap_tap onetap_emit onetap_kernels onetap_runtime)
set(onetap_runtime_folders base graph count data tap emit kernels runtime)
set(onetap_train_targets onetap_recipe onetap_journal onetap_nn onetap_train onetap_freeze onetap_report)
set(onetap_train_folders recipe journal nn train freeze report)

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
          FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN fail.h EXCLUDE PATTERN base/json.h EXCLUDE)
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onetapConfig.cmake.in
  ${PROJECT_BINARY_DIR}/onetapConfig.cmake INSTALL_DESTINATION ${onetap_config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/onetapConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/onetapConfig.cmake ${PROJECT_BINARY_DIR}/onetapConfigVersion.cmake
        DESTINATION ${onetap_config_dir})
