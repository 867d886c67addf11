# The page of `selkie studio`, embedded into the command: the files of web/ as arrays of a generated C file.
if(SELKIE_HAVE_WEBSOCKETS AND SELKIE_HAVE_JSON)
  find_package(Threads REQUIRED)
  file(GLOB studio_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/*.html ${CMAKE_SOURCE_DIR}/web/*.css
    ${CMAKE_SOURCE_DIR}/web/*.js ${CMAKE_SOURCE_DIR}/web/*.svg)
  set(studio_source ${CMAKE_BINARY_DIR}/generated/studio_files.c)
  add_custom_command(OUTPUT ${studio_source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${studio_files}" -DOUTPUT=${studio_source}
      -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${studio_files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(selkie PRIVATE ${studio_source})
  target_include_directories(selkie PRIVATE ${CMAKE_SOURCE_DIR}/tools/selkie)
  target_link_libraries(selkie PRIVATE Threads::Threads)
  if(NOT SELKIE_LATE_WEBSOCKETS)
    target_link_libraries(selkie PRIVATE ${SELKIE_HAVE_WEBSOCKETS_TARGET})
  endif()
endif()
