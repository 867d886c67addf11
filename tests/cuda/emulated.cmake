# test_cuda*_emulated: the GPU backend compiled for the CPU (emulate.h) against the plain one. They need a C++ compiler and
# no device. The objects come first in the link, so that none of the real ones is taken from the library. Checked
# jumps (_FORTIFY_SOURCE) refuse the switches between fibers.
if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW) # paths of the files with dependencies are as they are given
endif()
find_program(SELKIE_CXX NAMES g++ c++)
if(SELKIE_HAVE_CUDA AND SELKIE_CXX)
  set(emulated_objects "")
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda/emulated)
  file(GLOB emulated_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cuda/*.cu)
  foreach(source ${emulated_sources})
    get_filename_component(name ${source} NAME_WE)
    foreach(dimension 2 3)
      set(object cuda/emulated/${name}_${dimension}d.o)
      if(dimension EQUAL 3 OR name MATCHES "_dim$")
        add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/${object}
          COMMAND ${SELKIE_CXX} -x c++ -std=c++20 -O1 -w -U_FORTIFY_SOURCE -ffp-contract=off -fno-exceptions -DSELKIE_DIM=${dimension}
            "-DSK_CUDA_EMULATED=\"cuda/emulate.h\"" -I${CMAKE_CURRENT_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/include
            -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_BINARY_DIR}/generated -MD -MF ${CMAKE_BINARY_DIR}/${object}.d -MT ${CMAKE_BINARY_DIR}/${object}
            -c ${source} -o ${CMAKE_BINARY_DIR}/${object}
          DEPENDS ${source} DEPFILE ${CMAKE_BINARY_DIR}/${object}.d
          COMMENT "Building emulated CUDA object ${name} in ${dimension}D" VERBATIM)
        set_source_files_properties(${CMAKE_BINARY_DIR}/${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
        list(APPEND emulated_objects ${CMAKE_BINARY_DIR}/${object})
      endif()
    endforeach()
  endforeach()
  foreach(name test_cuda test_cuda_frames test_cuda_mesh test_cuda_probes test_cuda_solids test_cuda_points test_cuda_sph
      test_cuda_unilateral test_cuda_roles test_cuda_tension test_cuda_viscosity test_cuda_heat
      test_cuda_bodies test_cuda_frozen test_cuda_immersed test_cuda_soft test_cuda_splashes test_cuda_changes)
    selkie_test_program(${name}_emulated ${CMAKE_CURRENT_SOURCE_DIR}/unit/${name}.c)
    target_sources(${name}_emulated PRIVATE ${emulated_objects})
    target_link_libraries(${name}_emulated PRIVATE stdc++)
    selkie_test(${name}_emulated slow 400)
  endforeach()
endif()
