// The version of onetap; CMake reads it from here.
#pragma once

#define ONETAP_VERSION "0.2.0"
