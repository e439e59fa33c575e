# cpack in a build folder makes Debian packages of what 'cmake --install' installs: './run package'.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME onetap)
set(CPACK_PACKAGE_VENDOR onetap)
# The field Maintainer, which every package must have: whoever publishes packages sets it.
set(ONETAP_MAINTAINER "The onetap authors <authors@onetap.invalid>" CACHE STRING "Maintainer of the Debian packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT "${ONETAP_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
# Else CPack puts the description of the project before that of every package.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib/onetap)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(onetap_same_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# onetap_package(COMPONENT NAME SECTION SUMMARY TEXT [DEPENDS packages])
function(onetap_package component name section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  # The first line is the summary.
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  string(REPLACE ";" ", " depends "${ARGN}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  # What every package of Debian carries.
  install(FILES ${PROJECT_BINARY_DIR}/packages/copyright ${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz
          ${PROJECT_SOURCE_DIR}/THIRD-PARTY.txt
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(onetap_library libonetap${PROJECT_VERSION_MAJOR})
onetap_package(runtime ${onetap_library} libs "runs convolutional networks frozen to .tap files"
  "A shared library with a C API. It loads a .tap file and computes its outputs\nfor images, on a CPU.")
# Programs that link it need this package, and the linker's cache is made anew.
file(WRITE ${PROJECT_BINARY_DIR}/packages/shlibs
  "libonetap ${PROJECT_VERSION_MAJOR} ${onetap_library} (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/packages/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packages/shlibs ${PROJECT_BINARY_DIR}/packages/triggers)
# What the static libraries link, and onetapConfig.cmake looks for: as found when they were built.
set(onetap_development_depends)
if(PNG_FOUND)
  list(APPEND onetap_development_depends libpng-dev)
endif()
if(TurboJPEG_FOUND)
  list(APPEND onetap_development_depends libturbojpeg0-dev)
endif()
if(WebP_FOUND)
  list(APPEND onetap_development_depends libwebp-dev)
endif()
if(ONETAP_HAVE_PROTOBUF)
  list(APPEND onetap_development_depends libprotobuf-dev)
endif()
onetap_package(development libonetap-dev libdevel "headers and libraries of the onetap runtime"
  "The C header, C++ headers, static libraries, CMake package and pkg-config file\nof the half of onetap without LibTorch."
  "${onetap_library} ${onetap_same_version}" ${onetap_development_depends})
if(TARGET onetap_tool)
  list(APPEND CPACK_COMPONENTS_ALL command)
  onetap_package(command onetap science "trains, prunes, counts and runs shift networks"
    "The onetap command with recipes, man pages and shell completion. The verbs that\ntrain need the package onetap-training.")
  set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS onetap-training)
endif()
if(TARGET onetap_training)
  list(APPEND CPACK_COMPONENTS_ALL training training_development)
  onetap_package(training onetap-training science "training for the onetap command"
    "The verbs of onetap that need LibTorch: train, freeze, prune, sensitivity, and\neval of runs."
    "onetap ${onetap_same_version}")
  onetap_package(training_development libonetap-training-dev libdevel "headers and libraries of onetap's training half"
    "C++ headers and static libraries of Shift Attention Layers and of training on\nLibTorch."
    "libonetap-dev ${onetap_same_version}" libtorch-dev libgloo-dev)
endif()

file(WRITE ${PROJECT_BINARY_DIR}/packages/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: onetap

Files: *
Copyright: 2026 the onetap authors
License: Apache-2.0
 On Debian systems the full text of the licence is in /usr/share/common-licenses/Apache-2.0.
Comment:
 Headers of other projects are compiled in: THIRD-PARTY.txt in this folder has their names and licences.
")
# The entry of this version; CHANGELOG.md has the changes, and the date: "## 0.2.0 (2026-11-19)". Before the release it has
# none, and the date is that of SOURCE_DATE_EPOCH, or now.
string(TIMESTAMP onetap_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
if(EXISTS ${PROJECT_SOURCE_DIR}/CHANGELOG.md)
  file(STRINGS ${PROJECT_SOURCE_DIR}/CHANGELOG.md onetap_released REGEX "^## ${PROJECT_VERSION} [(][0-9]+-[0-9]+-[0-9]+[)]")
  if(onetap_released MATCHES "([0-9]+-[0-9]+-[0-9]+)[)]")
    execute_process(COMMAND date -u -R -d ${CMAKE_MATCH_1} OUTPUT_VARIABLE onetap_date OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
file(WRITE ${PROJECT_BINARY_DIR}/packages/changelog.Debian
"onetap (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Release ${PROJECT_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${onetap_date}
")
execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/packages/changelog.Debian)
include(CPack)
