# SELKIE_SIMD chooses the instruction set of the build. The sources have forms for AVX-512, AVX2 and for vectors that the
# compiler breaks down to what there is (SSE2, NEON); the compiler's own macros select among them.
#
#   native   every instruction of the machine that builds (the default)
#   none     what every processor of the architecture has: SSE2 on x86-64, NEON on arm64
#   avx2     x86-64-v3: AVX2, FMA, F16C (2013 and later)
#   avx512   x86-64-v4: AVX-512 F, BW, CD, DQ, VL
#   neon     armv8-a
#
# Sets SELKIE_SIMD_FLAGS. SELKIE_NATIVE=OFF, an older name, means `none`.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckCSourceRuns)

set(SELKIE_SIMD native CACHE STRING "Instruction set: native, none, avx2, avx512 or neon")
set_property(CACHE SELKIE_SIMD PROPERTY STRINGS native none avx2 avx512 neon)
if(DEFINED SELKIE_NATIVE AND NOT SELKIE_NATIVE AND SELKIE_SIMD STREQUAL "native")
  set(SELKIE_SIMD none)
endif()

# clang 14 for arm64 knows the machine by -mcpu alone.
check_c_compiler_flag(-march=native SELKIE_COMPILER_HAS_MARCH_NATIVE)
if(SELKIE_COMPILER_HAS_MARCH_NATIVE)
  set(simd_flag_native -march=native)
else()
  set(simd_flag_native -mcpu=native)
endif()

# On arm64 a compiler may take the instructions from the name of the processor, though a virtual machine hides some of
# them: clang then writes SVE, and every program ends with an illegal instruction. So the system is asked.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)" AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_CROSSCOMPILING)
  set(simd_probe "
    #include <sys/auxv.h>
    #include <asm/hwcap.h>
    int main(void) {
      unsigned long has = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2), lacks = 0;
      (void)has, (void)more;
    #ifdef __ARM_FEATURE_SVE
      lacks |= !(has & HWCAP_SVE);
    #endif
    #if defined __ARM_FEATURE_SVE2 && defined HWCAP2_SVE2
      lacks |= !(more & HWCAP2_SVE2);
    #endif
    #ifdef __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
      lacks |= !(has & HWCAP_ASIMDHP);
    #endif
    #ifdef __ARM_FEATURE_DOTPROD
      lacks |= !(has & HWCAP_ASIMDDP);
    #endif
    #ifdef __ARM_FEATURE_ATOMICS
      lacks |= !(has & HWCAP_ATOMICS);
    #endif
    #if defined __ARM_FEATURE_MATMUL_INT8 && defined HWCAP2_I8MM
      lacks |= !(more & HWCAP2_I8MM);
    #endif
    #if defined __ARM_FEATURE_BF16 && defined HWCAP2_BF16
      lacks |= !(more & HWCAP2_BF16);
    #endif
      return lacks != 0;
    }")
  function(check_flag_runs flag name)
    set(CMAKE_REQUIRED_FLAGS ${flag})
    check_c_source_runs("${simd_probe}" ${name})
  endfunction()
  check_flag_runs(${simd_flag_native} SELKIE_NATIVE_RUNS)
  if(NOT SELKIE_NATIVE_RUNS)
    check_flag_runs(-mcpu=native+nosve SELKIE_NATIVE_WITHOUT_SVE_RUNS)
    if(SELKIE_NATIVE_WITHOUT_SVE_RUNS)
      set(simd_flag_native -mcpu=native+nosve)
    else()
      set(simd_flag_native -march=armv8-a)
    endif()
    message(STATUS "selkie: this system hides instructions that the compiler expects of its processor: ${simd_flag_native}")
  endif()
endif()
set(simd_flag_none "")
set(simd_flag_avx2 -march=x86-64-v3)
set(simd_flag_avx512 -march=x86-64-v4)
set(simd_flag_neon -march=armv8-a)
if(NOT DEFINED simd_flag_${SELKIE_SIMD})
  message(FATAL_ERROR "SELKIE_SIMD=${SELKIE_SIMD} is not known: native, none, avx2, avx512 or neon")
endif()
set(SELKIE_SIMD_FLAGS ${simd_flag_${SELKIE_SIMD}})
if(SELKIE_SIMD_FLAGS)
  check_c_compiler_flag(${SELKIE_SIMD_FLAGS} SELKIE_COMPILER_HAS_${SELKIE_SIMD})
  if(NOT SELKIE_COMPILER_HAS_${SELKIE_SIMD})
    message(FATAL_ERROR "SELKIE_SIMD=${SELKIE_SIMD}: ${CMAKE_C_COMPILER} for ${CMAKE_SYSTEM_PROCESSOR} does not take "
      "${SELKIE_SIMD_FLAGS}; -DSELKIE_SIMD=none builds for any processor of this kind")
  endif()
endif()
message(STATUS "selkie: instruction set ${SELKIE_SIMD}")

check_c_source_compiles("typedef float v __attribute__((vector_size(16)));
  int main(int n, char **a) { (void)a; v x = {(float)n}; x = __builtin_shufflevector(x, x, 1, 0, 3, 2); return (int)x[0]; }"
  SELKIE_COMPILER_HAS_SHUFFLES)
if(NOT SELKIE_COMPILER_HAS_SHUFFLES)
  message(FATAL_ERROR "${CMAKE_C_COMPILER} (${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}) does not know "
    "__builtin_shufflevector: GCC 12 or clang 14, or later, is needed (-DCMAKE_C_COMPILER=...)")
endif()
