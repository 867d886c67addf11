# json-c and ODE for WebAssembly. Their own builds try a hundred headers and functions, which emscripten has.
# Their objects go into both programs: one with shared memory takes none without atomic instructions.
set(json ${SELKIE_WEB_SOURCES}/json-c)
file(GLOB json_sources ${json}/*.c)
set(json_has "")
foreach(header ENDIAN_H FCNTL_H INTTYPES_H LIMITS_H LOCALE_H STDARG_H STDINT_H STDLIB_H STRINGS_H STRING_H SYS_STAT_H
    SYS_TYPES_H UNISTD_H OPEN SETLOCALE SNPRINTF STRCASECMP STRDUP STRERROR STRNCASECMP USELOCALE VASPRINTF VPRINTF
    VSNPRINTF STRTOLL STRTOULL DECL_INFINITY DECL_ISINF DECL_ISNAN DECL_NAN)
  string(APPEND json_has "#define HAVE_${header} 1\n")
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/generated/json-c/config.h
  "${json_has}#define STDC_HEADERS 1\n#define JSON_C_HAVE_INTTYPES_H 1\n#define SIZEOF_INT 4\n#define SIZEOF_INT64_T 8\n#define SIZEOF_LONG 4\n"
  "#define SIZEOF_LONG_LONG 8\n#define SIZEOF_SIZE_T 4\n#define SIZEOF_SSIZE_T 4\n#define PACKAGE_VERSION \"0.16\"\n")
file(WRITE ${CMAKE_BINARY_DIR}/generated/json-c/json_config.h "#define JSON_C_HAVE_INTTYPES_H 1\n")
file(GLOB json_headers ${json}/*.h)
file(COPY ${json_headers} DESTINATION ${CMAKE_BINARY_DIR}/generated/json-c)
configure_file(${json}/json.h.cmakein ${CMAKE_BINARY_DIR}/generated/json-c/json.h @ONLY)
add_library(json STATIC ${json_sources})
target_include_directories(json PRIVATE ${CMAKE_BINARY_DIR}/generated/json-c ${json})
target_compile_options(json PRIVATE -Os -w -matomics -mbulk-memory)

# Double precision as in Debian's package; no threads, and no meshes: 2D bodies have outlines.
set(ode ${SELKIE_WEB_SOURCES}/ode)
file(GLOB ode_sources ${ode}/ode/src/*.cpp ${ode}/ode/src/joints/*.cpp ${ode}/ou/src/ou/*.cpp)
list(FILTER ode_sources EXCLUDE REGEX
  "/(collision_(libccd|trimesh|cylinder_trimesh|convex_trimesh)|gimpact|odetls|threadlocalstorage|atomic|threading_pool)[a-z_]*\\.cpp$")
list(APPEND ode_sources ${ode}/ode/src/collision_trimesh_disabled.cpp)
set(ODE_PRECISION dDOUBLE)
set(ODE_VERSION 0.16.2)
configure_file(${ode}/include/ode/precision.h.in ${CMAKE_BINARY_DIR}/generated/ode/precision.h @ONLY)
configure_file(${ode}/include/ode/version.h.in ${CMAKE_BINARY_DIR}/generated/ode/version.h @ONLY)
foreach(has ALLOCA_H GETTIMEOFDAY INTTYPES_H ISNAN MALLOC_H STDINT_H SYS_TIME_H SYS_TYPES_H UNISTD_H)
  set(HAVE_${has} 1)
endforeach()
configure_file(${ode}/config.h.cmake.in ${CMAKE_BINARY_DIR}/generated/ode_config/config.h @ONLY)
add_library(ode STATIC ${ode_sources})
target_include_directories(ode PRIVATE ${CMAKE_BINARY_DIR}/generated/ode_config ${CMAKE_BINARY_DIR}/generated
  ${ode}/include ${ode}/ode/src ${ode}/ou/include)
target_compile_definitions(ode PRIVATE __linux__ dNODEBUG dTHREADING_INTF_DISABLED dOU_ENABLED
  _OU_NAMESPACE=odeou _OU_FEATURE_SET=_OU_FEATURE_SET_BASICS _OU_TARGET_OS=_OU_TARGET_OS_GENUNIX)
target_compile_options(ode PRIVATE -Os -w -fno-exceptions -fno-rtti -matomics -mbulk-memory)
