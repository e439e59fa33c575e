# Run by onetap_embed: writes INPUTS as functions of NAMESPACE to OUTPUT.
set(code "// Made by the build from text files; do not edit.\n#include <string_view>\n\nnamespace ${NAMESPACE} {\n")
foreach(input ${INPUTS})
  get_filename_component(name ${input} NAME)
  string(MAKE_C_IDENTIFIER ${name} function)
  file(READ ${input} text)
  string(FIND "${text}" ")embedded\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "expected no raw-string end in ${input}")
  endif()
  string(APPEND code "\nstd::string_view ${function}();\nstd::string_view ${function}() {\n"
         "  static constexpr char text[] = R\"embedded(${text})embedded\";\n  return {text, sizeof(text) - 1};\n}\n")
endforeach()
file(WRITE ${OUTPUT} "${code}\n}  // namespace ${NAMESPACE}\n")
