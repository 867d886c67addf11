# What `make install` puts where: headers, both libraries, the command, the pkg-config file, the CMake package, scenes,
# schema, manual page, completion scripts and licence. Both package files find everything relative to themselves, so an installed tree can be moved.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/selkie DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/generated/selkie/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/selkie)
install(TARGETS selkie_static selkie_shared
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET selkie)
  install(TARGETS selkie RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/scenes)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/scenes DESTINATION ${CMAKE_INSTALL_DATADIR}/selkie)
endif()
file(GLOB selkie_schemas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.schema.json ${CMAKE_SOURCE_DIR}/docs/*/*.schema.json
  ${CMAKE_SOURCE_DIR}/src/scene/*.schema.json)
if(selkie_schemas)
  install(FILES ${selkie_schemas} DESTINATION ${CMAKE_INSTALL_DATADIR}/selkie/schema)
endif()
file(GLOB selkie_manuals CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/manual/*.1)
if(selkie_manuals)
  install(FILES ${selkie_manuals} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# Completion scripts, which the command prints after it was linked.
if(TARGET selkie AND NOT CMAKE_CROSSCOMPILING)
  set(completion_folder ${CMAKE_BINARY_DIR}/completion)
  add_custom_command(TARGET selkie POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completion_folder}
    COMMAND selkie completion bash > ${completion_folder}/selkie
    COMMAND selkie completion zsh > ${completion_folder}/_selkie
    COMMAND selkie completion fish > ${completion_folder}/selkie.fish VERBATIM)
  install(FILES ${completion_folder}/selkie DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completion_folder}/_selkie DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completion_folder}/selkie.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# --- pkg-config: a static link needs the libraries behind ours; those with a .pc file are named by it; a
# library that is loaded at its first use is none of them -----------------------------------------------------------------
set(SELKIE_PC_REQUIRES zlib)
set(SELKIE_PC_LIBS -lm)
set(SELKIE_STATIC_LINK -lz -lm)
foreach(pair JSON:json-c ASSIMP:assimp PNG:libpng CAIRO:cairo ODE:ode ZSTD:libzstd ARPACK:arpack LAPACK:lapack)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 feature)
  list(GET pair 1 package)
  if(SELKIE_HAVE_${feature} AND NOT SELKIE_LATE_${feature})
    list(APPEND SELKIE_PC_REQUIRES ${package})
    pkg_check_modules(static_${feature} QUIET ${package})
    list(APPEND SELKIE_STATIC_LINK ${static_${feature}_LDFLAGS})
  endif()
endforeach()
if(SELKIE_HAVE_EMBREE AND NOT SELKIE_LATE_EMBREE) # Debian's embree has no .pc file
  list(APPEND SELKIE_PC_LIBS -lembree${SELKIE_EMBREE_MAJOR})
  list(APPEND SELKIE_STATIC_LINK -lembree${SELKIE_EMBREE_MAJOR})
endif()
foreach(library ${SELKIE_CUDA_LINK} ${CMAKE_DL_LIBS}) # the runtime of CUDA is a file, the others are names
  if(NOT IS_ABSOLUTE ${library})
    set(library -l${library})
  endif()
  list(APPEND SELKIE_PC_LIBS ${library})
  list(APPEND SELKIE_STATIC_LINK ${library})
endforeach()
# Every compiler finds the libraries of GCC. The OpenMP of clang lies in a folder of its own.
foreach(library ${OpenMP_C_LIB_NAMES})
  if(library STREQUAL "omp" AND OpenMP_omp_LIBRARY)
    set(link ${OpenMP_omp_LIBRARY})
  else()
    set(link -l${library})
  endif()
  list(APPEND SELKIE_PC_LIBS ${link})
  list(APPEND SELKIE_STATIC_LINK ${link})
endforeach()
list(JOIN SELKIE_PC_REQUIRES ", " SELKIE_PC_REQUIRES)
list(JOIN SELKIE_PC_LIBS " " SELKIE_PC_LIBS)
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH SELKIE_PC_PREFIX /${pkgconfig_folder} /)
string(REGEX REPLACE "/$" "" SELKIE_PC_PREFIX ${SELKIE_PC_PREFIX})
# Two forms, chosen when the prefix is final: below /usr and /usr/local the loader finds the library by itself; elsewhere
# programs get an rpath.
set(SELKIE_PC_RPATH "")
configure_file(cmake/selkie.pc.in ${CMAKE_BINARY_DIR}/generated/system/selkie.pc @ONLY)
set(SELKIE_PC_RPATH " -Wl,-rpath,\${libdir}")
configure_file(cmake/selkie.pc.in ${CMAKE_BINARY_DIR}/generated/elsewhere/selkie.pc @ONLY)
configure_file(cmake/install_where.cmake.in ${CMAKE_BINARY_DIR}/generated/install_where.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/generated/install_where.cmake)

# --- CMake package. Written by hand: an exported one would drag the names of our own build targets into the user's -------
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/selkie)
set(SELKIE_SONAME_FILE ${CMAKE_SHARED_LIBRARY_PREFIX}selkie${CMAKE_SHARED_LIBRARY_SUFFIX})
configure_package_config_file(cmake/selkieConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/selkieConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/selkieConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/selkieConfig.cmake ${CMAKE_BINARY_DIR}/generated/selkieConfigVersion.cmake
  DESTINATION ${package_folder})
