# Builds for Linux on AArch64 with the cross compiler of Debian and others, and runs what was built in QEMU's user mode.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

find_program(BLOOMERY_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(BLOOMERY_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${BLOOMERY_QEMU}")
endif()

# Link statically: the emulator then needs no path to the libraries of the target.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
