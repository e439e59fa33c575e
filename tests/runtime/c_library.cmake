# cmake -DNM=nm -DSTRIP=strip -DLIBRARY=libonetap.so -DWORK=folder -P c_library.cmake
# The library shows the C API, whole, and nothing else; what a device ships of it is below 2 MB.
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\n$" "" listing "${listing}")
string(REPLACE "\n" ";" lines "${listing}")
set(names)
foreach(line ${lines})
  string(REGEX MATCH "[^ ]+$" name "${line}")
  list(APPEND names ${name})
endforeach()
list(SORT names)
set(expected onetap_class_name onetap_close onetap_input_shape onetap_last_error onetap_number_type onetap_open
  onetap_output_count onetap_output_shape onetap_pixel_scale onetap_run onetap_run_u8 onetap_version)
if(NOT names STREQUAL expected)
  message(FATAL_ERROR "expected the symbols ${expected}, got ${names} (${LIBRARY})")
endif()

set(stripped ${WORK}/libonetap-stripped.so)
execute_process(COMMAND ${STRIP} -o ${stripped} ${LIBRARY} COMMAND_ERROR_IS_FATAL ANY)
file(SIZE ${stripped} bytes)
message("${bytes} bytes stripped")
if(NOT bytes LESS 2000000)
  message(FATAL_ERROR "expected less than 2,000,000 bytes, got ${bytes} (${LIBRARY})")
endif()
