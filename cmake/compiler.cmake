# The compiler, where nobody chose one. On arm64 the vectors of eight and sixteen floats are wider than a register; GCC 12
# keeps their parts in memory, clang keeps them in registers, and a step takes less than half the time. Elsewhere both
# are about as fast and the system's own compiler is taken. CC, -DCMAKE_C_COMPILER and a toolchain file go before this.
if(NOT DEFINED CMAKE_C_COMPILER AND NOT DEFINED CMAKE_TOOLCHAIN_FILE AND "$ENV{CC}" STREQUAL ""
   AND CMAKE_HOST_SYSTEM_NAME STREQUAL "Linux")
  execute_process(COMMAND uname -m OUTPUT_VARIABLE selkie_processor OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(selkie_processor STREQUAL "aarch64")
    find_program(SELKIE_CLANG clang)
    mark_as_advanced(SELKIE_CLANG)
  endif()
  if(SELKIE_CLANG)
    # A clang without its OpenMP library cannot build the core.
    set(selkie_probe ${CMAKE_BINARY_DIR}/CMakeFiles/selkie_openmp_probe)
    file(WRITE ${selkie_probe}.c "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
    execute_process(COMMAND ${SELKIE_CLANG} -fopenmp ${selkie_probe}.c -o ${selkie_probe}
      RESULT_VARIABLE selkie_probe_failed OUTPUT_QUIET ERROR_QUIET)
    if(selkie_probe_failed)
      message(STATUS "selkie: clang has no OpenMP here (Debian: libomp-dev), so the system's compiler builds a slower program")
    else()
      set(CMAKE_C_COMPILER ${SELKIE_CLANG} CACHE FILEPATH "C compiler")
    endif()
  endif()
endif()
