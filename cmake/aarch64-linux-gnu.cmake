# Toolchain for Linux on AArch64: the cross compiler that Debian and other distributions package, and QEMU's user mode
# for running programs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

find_program(BLOOMERY_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(BLOOMERY_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${BLOOMERY_QEMU}")
endif()

# Static linking, so that the emulator does not need the libraries of the target system.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
