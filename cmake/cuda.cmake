# The GPU backend (src/cuda). nvcc compiles its files with commands of their own, so that the project stays in C. A file
# named *_dim.cu is compiled twice, for 2D and for 3D.
#
# Sets SELKIE_HAVE_CUDA, SELKIE_CUDA_OBJECTS and SELKIE_CUDA_LINK. Sanitized builds and builds of the core alone leave it
# out.
set(SELKIE_HAVE_CUDA 0)
set(SELKIE_CUDA_OBJECTS "")
set(SELKIE_CUDA_LINK "")
set(SELKIE_CUDA_ARCHITECTURE sm_90 CACHE STRING "The GPU that nvcc compiles for; others translate its code at the start")
option(SELKIE_CUDA_GRAPHS "Launch phases as CUDA graphs; OFF for tools that cannot follow them" ON)
find_program(SELKIE_NVCC nvcc HINTS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin)
if(SELKIE_NVCC)
  get_filename_component(selkie_cuda_home ${SELKIE_NVCC} REALPATH)
  get_filename_component(selkie_cuda_home ${selkie_cuda_home} DIRECTORY)
  find_library(SELKIE_CUDART cudart_static HINTS ${selkie_cuda_home}/../lib64 ${selkie_cuda_home}/../lib)
endif()
if(SELKIE_CUDA AND SELKIE_NVCC AND SELKIE_CUDART AND NOT SELKIE_CORE_ONLY AND NOT SELKIE_SANITIZE AND NOT SELKIE_FUZZ)
  set(SELKIE_HAVE_CUDA 1)
  message(STATUS "selkie: nvcc: GPU backend for ${SELKIE_CUDA_ARCHITECTURE}")
elseif(SELKIE_NVCC)
  message(STATUS "selkie: no GPU backend in this build")
else()
  message(STATUS "selkie: nvcc not found: no GPU backend")
endif()

# Same bits as the plain backend: no fused multiply-add, and divisions and roots as IEEE has them.
set(selkie_cuda_flags -std=c++20 -O3 -arch=${SELKIE_CUDA_ARCHITECTURE} -fmad=false -prec-div=true -prec-sqrt=true
  -ftz=false -diag-suppress=177 -Xcompiler=-fPIC,-fno-threadsafe-statics,-fno-exceptions,-fvisibility=hidden,-Wno-psabi,-Wno-deprecated-enum-float-conversion,-Wno-deprecated-enum-enum-conversion -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_BINARY_DIR}/generated)
if(NOT SELKIE_CUDA_GRAPHS)
  list(APPEND selkie_cuda_flags -DSK_CUDA_SINGLE_LAUNCHES)
endif()
function(selkie_cuda_object source dimension)
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_BINARY_DIR}/cuda/${name}_${dimension}d.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${SELKIE_NVCC} ${selkie_cuda_flags} -DSELKIE_DIM=${dimension} -MD -MF ${object}.d -MT cuda/${name}_${dimension}d.o
      -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building CUDA object ${name} in ${dimension}D" VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(SELKIE_CUDA_OBJECTS ${SELKIE_CUDA_OBJECTS} ${object} PARENT_SCOPE)
endfunction()
if(SELKIE_HAVE_CUDA)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda)
  file(GLOB selkie_cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cuda/*.cu)
  foreach(source ${selkie_cuda_sources})
    selkie_cuda_object(${source} 3)
    if(source MATCHES "_dim\\.cu$")
      selkie_cuda_object(${source} 2)
    endif()
  endforeach()
  set(SELKIE_CUDA_LINK ${SELKIE_CUDART} dl rt pthread)
endif()
