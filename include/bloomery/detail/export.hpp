// BLOOMERY_EXPORT: symbol visibility of the shared libraries.
//
// The libraries are compiled with hidden symbols. Declarations within `namespace BLOOMERY_EXPORT bloomery {` are
// exported. Public headers have no declarations elsewhere.
#pragma once

#define BLOOMERY_EXPORT [[gnu::visibility("default")]]
