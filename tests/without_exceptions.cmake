# Without exceptions, errors are values, and other errors end the program with their message: cmake -DPROGRAM=... -P
execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE status ERROR_VARIABLE messages)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "expected exit status 0, found ${status}:\n${messages}")
endif()
execute_process(COMMAND "${PROGRAM}" fail RESULT_VARIABLE status ERROR_VARIABLE messages)
if(status MATCHES "^[0-9]+$" OR NOT messages MATCHES "capacity")
  message(FATAL_ERROR "expected that an error ends the program with its message, found ${status}:\n${messages}")
endif()
