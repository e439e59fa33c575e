"""The runtime half of onetap, for Conan 2: conan create . --build=missing"""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps


class OnetapConan(ConanFile):
    name = "onetap"
    description = "Runs convolutional networks with one tap per kernel slice, frozen to .tap files"
    license = "Apache-2.0"
    topics = ("neural-networks", "inference", "pruning")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"images": [True, False], "simd": [True, False]}
    default_options = {"images": True, "simd": True}
    options_description = {"images": "decode PNG and JPEG files", "simd": "kernels in vectors of every CPU, by Highway"}
    exports_sources = "CMakeLists.txt", "LICENSE", "THIRD-PARTY.txt", "cmake/*", "onetap/*", "recipes/*"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "onetap", "base", "version.h"))
        self.version = re.search(r'ONETAP_VERSION "([^"]+)"', header).group(1)

    def requirements(self):
        # Headers alone, and none of them is seen by users of onetap.
        for header_library in ("fmt/9.1.0", "nlohmann_json/3.11.2", "tomlplusplus/3.3.0"):
            self.requires(header_library, visible=False)
        if self.options.simd:
            self.requires("highway/1.0.3", visible=False)
        if self.options.images:
            self.requires("libpng/[>=1.6 <2]")
            self.requires("libjpeg-turbo/[>=2.1 <4]")

    def validate(self):
        check_min_cppstd(self, 17)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()  # libturbojpeg is found by its .pc
        toolchain = CMakeToolchain(self)
        for name in ("TRAINING", "BUILD_TOOLS", "BUILD_TESTS", "BUILD_EXAMPLES"):
            toolchain.cache_variables[f"ONETAP_{name}"] = False
        toolchain.cache_variables["ONETAP_UNITY"] = True
        toolchain.cache_variables["ONETAP_SIMD"] = bool(self.options.simd)
        for feature in ("PNG", "PkgConfig"):
            toolchain.cache_variables[f"CMAKE_DISABLE_FIND_PACKAGE_{feature}"] = not self.options.images
        # What this recipe does not require must not come from the machine that it is built on.
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_Protobuf"] = True
        toolchain.cache_variables["ONETAP_WEBP"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        for name in ("LICENSE", "THIRD-PARTY.txt"):
            copy(self, name, self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The package's own onetapConfig.cmake says what links what.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "onetap")]
        self.cpp_info.libs = ["onetap"]
