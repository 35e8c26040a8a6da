// BLOOMERY_EXPORT: symbol visibility of the shared libraries.
//
// The libraries are compiled with hidden symbols. Declarations within `namespace BLOOMERY_EXPORT bloomery {` are
// exported. Public headers have no declarations elsewhere.
//
// The first include of each header leads here, so compilers of older standards report the standard first.
#pragma once

#if __cplusplus <= 201703L
#error "bloomery needs C++20: compile with -std=c++20 or later"
#endif

#define BLOOMERY_EXPORT [[gnu::visibility("default")]]
