# The package: headers, libraries, the program, and what find_package(gaugeblock) needs.
include(CMakePackageConfigHelpers)
get_property(stages GLOBAL PROPERTY GAUGEBLOCK_STAGES)
set(libraries gaugeblock_reference ${stages} gaugeblock_verify gaugeblock_gpu gaugeblock_gpu_simt gaugeblock_gpu_runtime)
if(TARGET gaugeblock_gpu_cuda)
  list(APPEND libraries gaugeblock_gpu_cuda)
endif()
install(TARGETS ${libraries} EXPORT gaugeblock INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS gaugeblock)
if(TARGET gaugeblock_kernels)
  install(TARGETS gaugeblock_kernels)  # its header is gaugeblock/gpu/c_api/gaugeblock_kernels.h
endif()
install(DIRECTORY reference verify gpu DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gaugeblock
        FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE)
if(TARGET gaugeblock_gpu_cuda)
  set(GAUGEBLOCK_PACKAGE_NEEDS_CUDA TRUE)
else()
  set(GAUGEBLOCK_PACKAGE_NEEDS_CUDA FALSE)
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gaugeblock)
install(EXPORT gaugeblock NAMESPACE gaugeblock:: DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gaugeblock-config.cmake.in
                              ${PROJECT_BINARY_DIR}/gaugeblock-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gaugeblock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gaugeblock-config.cmake ${PROJECT_BINARY_DIR}/gaugeblock-config-version.cmake
        DESTINATION ${package})
