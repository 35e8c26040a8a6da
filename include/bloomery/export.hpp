// BLOOMERY_EXPORT: what a shared library of bloomery shows to its users.
//
// The libraries are compiled with hidden symbols. `namespace BLOOMERY_EXPORT bloomery {` opens a part of the namespace
// whose declarations are visible; public headers have no other.
#pragma once

#define BLOOMERY_EXPORT [[gnu::visibility("default")]]
