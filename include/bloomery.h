/* bloomery.h: the C interface of bloomery, for C and for every language that can call C.
 *
 *   cc program.c $(pkg-config --cflags --libs bloomery-c)
 *
 * A bloomery_filter is any filter: in memory, in a file, or on a server of Redis or Valkey. An inserted key is always
 * found again. A key that was never inserted is found with the false-positive rate (FPR) of the filter.
 *
 * Errors. A function that can fail returns a bloomery_code: BLOOMERY_OK, or the class of the error. Results come through
 * pointers, and a failed call leaves them unchanged unless its comment says otherwise. bloomery_error_text() describes
 * the last error of the calling thread. No function ends the program, prints, or throws. A null pointer for a filter or
 * a result that may not be null is BLOOMERY_INVALID_ARGUMENT.
 *
 * Threads. Different filters may be used in different threads. For one filter, any number of threads may call the
 * functions whose parameter is `const bloomery_filter*` while no thread calls another function with it. Exception: if
 * its capabilities lack BLOOMERY_LOOKUPS_IN_PARALLEL, which is so on servers, one thread at a time.
 *
 * Compatibility. Functions, fields and numbers are only added. Structs that the library reads or fills begin with their
 * size, which the caller sets: a program keeps working with later versions of libbloomery_c.so.0.
 *
 * Example:
 *
 *     bloomery_params params = BLOOMERY_PARAMS(1000000, 0.01);
 *     bloomery_filter* cities = NULL;
 *     if (bloomery_make(&params, &cities) != BLOOMERY_OK) return fprintf(stderr, "%s\n", bloomery_error_text()), 1;
 *     bloomery_insert(cities, "Madrid", 6, NULL);
 *     int found = 0;
 *     bloomery_contains(cities, "Madrid", 6, &found);  // found: 1
 *     bloomery_save(cities, "cities.bloom");
 *     bloomery_close(cities);
 */
#ifndef BLOOMERY_H
#define BLOOMERY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BLOOMERY_C_API __attribute__((visibility("default")))
#else
#define BLOOMERY_C_API
#endif

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/** The class of an error. */
typedef enum bloomery_code {
  BLOOMERY_OK = 0,
  BLOOMERY_INVALID_ARGUMENT = 1, /**< a number outside its range, an unknown name, or a null pointer */
  BLOOMERY_TOO_LARGE = 2,        /**< a size beyond 64 bits, this machine's memory or a layout's limit */
  BLOOMERY_NOT_FOUND = 3,        /**< no such file, or no filter of this name on the server */
  BLOOMERY_NOT_PERMITTED = 4,    /**< the system denies it, or the filter is static or open for reading */
  BLOOMERY_NOT_A_FILTER = 5,     /**< the bytes are not a filter file */
  BLOOMERY_WRONG_VERSION = 6,    /**< a filter file of a format that this version does not know */
  BLOOMERY_DAMAGED = 7,          /**< a filter file whose bytes contradict each other */
  BLOOMERY_INCOMPATIBLE = 8,     /**< keys of the other kind, filters that differ, or an operation that it lacks */
  BLOOMERY_ALREADY_EXISTS = 9,   /**< a file that should be created exists */
  BLOOMERY_LOCKED = 10,          /**< another process is writing */
  BLOOMERY_IO = 11,              /**< reading or writing failed */
  BLOOMERY_UNAVAILABLE = 12,     /**< a server could not be reached; the operation may or may not have been executed */
  BLOOMERY_OUT_OF_MEMORY = 13,   /**< an allocation failed; nothing was changed */
  BLOOMERY_INTERNAL = 14,        /**< a defect of this library */
  BLOOMERY_FULL = 15             /**< a quotient filter has no room for a key; the keys before it are in */
} bloomery_code;

/** The last error of the calling thread: what failed, where, what was expected and found, and what to do about it, in
 * one English sentence. Empty before the first error. Valid until the next error in this thread. */
BLOOMERY_C_API const char* bloomery_error_text(void);

/** The name of a code: "invalid_argument"; "unknown" for other numbers. Never null. */
BLOOMERY_C_API const char* bloomery_code_name(bloomery_code code);

/** The version of the library, for example "0.2.0". */
BLOOMERY_C_API const char* bloomery_version(void);

/* ---- making and opening ------------------------------------------------------------------------------------------ */

typedef struct bloomery_filter bloomery_filter;

/** The kind of keys of a filter. A filter refuses keys of the other kind. */
typedef enum bloomery_key_kind {
  BLOOMERY_BYTES = 0, /**< any bytes, for example text */
  BLOOMERY_U64 = 1    /**< 64-bit integers; negative numbers are sign-extended, modulo 2^64 */
} bloomery_key_kind;

/** The parameters of a new filter. Initialize it with BLOOMERY_PARAMS(capacity, target_fpr), then change fields. Filters
 * with equal parameters and keys have the same bytes, in every language and on every machine. */
typedef struct bloomery_params {
  size_t size;            /**< sizeof(bloomery_params) */
  uint64_t capacity;      /**< number of distinct keys up to which the filter keeps its FPR */
  double target_fpr;      /**< FPR at capacity, between 0 and 1 */
  uint32_t keys;          /**< a bloomery_key_kind */
  uint32_t prefer_memory; /**< 0: the fastest layout within 25% of the least memory; 1: within 3% */
  const char* layout;     /**< "split_block", "blocked", "classic", "quotient", "counting", "sliding" ...; null: chosen.
                       * "quotient_growing" starts small and doubles when it is full, up to `capacity` */
  const char* scheme;     /**< rule of another system, such as "guava" (bloomery info --build); null: none */
  const char* hash;       /**< "xxh3_64", "xxh3", "mix", "murmur3", "siphash", "xxh64"; null: chosen */
  const uint8_t* secret;  /**< 16 bytes, of a filter that resists chosen keys; null: none */
  uint64_t seed;          /**< of the hash; not a secret */
  uint64_t window_keys;   /**< layouts sliding, sliding64: the last so many insertions; 0: none */
  uint64_t window_ms;     /**< layouts sliding, sliding64: milliseconds; 0: none */
} bloomery_params;

#define BLOOMERY_PARAMS(capacity, target_fpr) \
  { sizeof(bloomery_params), (capacity), (target_fpr), BLOOMERY_BYTES, 0, NULL, NULL, NULL, NULL, 0, 0, 0 }

/** Makes an empty filter in memory. */
BLOOMERY_C_API bloomery_code bloomery_make(const bloomery_params* params, bloomery_filter** filter);

/** Makes an empty filter in memory that grows by layers and keeps its FPR at any number of keys. Uses `target_fpr`,
 * `capacity` (the keys of the first layer; 0: chosen), `keys`, `hash`, `secret` and `seed`. */
BLOOMERY_C_API bloomery_code bloomery_make_scalable(const bloomery_params* params, bloomery_filter** filter);

/** Creates a filter file, which must not exist, and opens it for writing.
 * @param flags  0, or BLOOMERY_REPLACE: replace an existing file; BLOOMERY_GROWS: the filter grows with its keys and
 *               keeps a log of 8 bytes per key in the file PATH.log */
BLOOMERY_C_API bloomery_code bloomery_create(const char* path, const bloomery_params* params, uint32_t flags,
                                             bloomery_filter** filter);
#define BLOOMERY_REPLACE 1u
#define BLOOMERY_GROWS 2u

/** Opens an existing filter.
 * @param name    the path of a file; or an address, redis://HOST/NAME, if the library was built with Redis
 * @param flags   0: for lookups; BLOOMERY_WRITE: also for changes
 * @param secret  the 16 bytes of a keyed filter's secret; null for all other filters */
BLOOMERY_C_API bloomery_code bloomery_open(const char* name, uint32_t flags, const uint8_t* secret,
                                           bloomery_filter** filter);
#define BLOOMERY_WRITE 1u

/** A filter in memory from the bytes of a filter file. The bytes may come from an untrusted source: they are checked, and
 * take no more memory than `length`. */
BLOOMERY_C_API bloomery_code bloomery_from_bytes(const void* bytes, size_t length, const uint8_t* secret,
                                                 bloomery_filter** filter);

/** Commits all changes, closes the filter and frees it, also if this fails. Null: does nothing. After an error, inserted
 * keys may be lost. */
BLOOMERY_C_API bloomery_code bloomery_close(bloomery_filter* filter);

/** Frees the filter without waiting for its data to be safe, and ignores errors. Changes of a quotient or counting filter
 * in a file are lost; changes of other files may or may not be. Null: does nothing. */
BLOOMERY_C_API void bloomery_discard(bloomery_filter* filter);

/* ---- single keys ------------------------------------------------------------------------------------------------- */

/** Inserts a key. *is_new is set to 1 if the key is certainly new, otherwise to 0. `is_new` may be null. */
BLOOMERY_C_API bloomery_code bloomery_insert(bloomery_filter* filter, const void* key, size_t length, int* is_new);
BLOOMERY_C_API bloomery_code bloomery_insert_u64(bloomery_filter* filter, uint64_t key, int* is_new);

/** Looks up a key. *found is set to 0 if the key was certainly never inserted, otherwise to 1. */
BLOOMERY_C_API bloomery_code bloomery_contains(const bloomery_filter* filter, const void* key, size_t length,
                                               int* found);
BLOOMERY_C_API bloomery_code bloomery_contains_u64(const bloomery_filter* filter, uint64_t key, int* found);

/** Removes one copy of an inserted key from a quotient or counting filter. *removed, which may be null, is set to 0 if
 * the key was certainly absent. Removing a key that was never inserted may remove other keys. */
BLOOMERY_C_API bloomery_code bloomery_remove(bloomery_filter* filter, const void* key, size_t length, int* removed);
BLOOMERY_C_API bloomery_code bloomery_remove_u64(bloomery_filter* filter, uint64_t key, int* removed);

/* ---- many keys --------------------------------------------------------------------------------------------------- */

/** A view of bytes. */
typedef struct bloomery_bytes {
  const void* data; /**< may be null if length is 0 */
  size_t length;
} bloomery_bytes;

/** The form of many keys in memory. */
typedef enum bloomery_form {
  BLOOMERY_VIEWS = 0,     /**< data: const bloomery_bytes[count] */
  BLOOMERY_INTEGERS = 1,  /**< data: const uint64_t[count] */
  BLOOMERY_OFFSETS32 = 2, /**< key i is bytes offsets[i] to offsets[i + 1] of data, as in Arrow's type utf8 */
  BLOOMERY_OFFSETS64 = 3  /**< the same with 64-bit offsets, as in Arrow's type large_utf8 */
} bloomery_form;

/** Many keys, in order. The functions below make one. It owns nothing. */
typedef struct bloomery_keys {
  uint32_t form;     /**< a bloomery_form */
  uint32_t reserved; /**< 0 */
  size_t count;
  const void* data;
  const void* offsets; /**< with offsets: int32_t[count + 1] or int64_t[count + 1], not decreasing, from 0 on */
  size_t data_size;    /**< with offsets: bytes in data; larger offsets are refused */
} bloomery_keys;

static inline bloomery_keys bloomery_keys_of_views(const bloomery_bytes* keys, size_t count) {
  bloomery_keys result = {BLOOMERY_VIEWS, 0, count, keys, NULL, 0};
  return result;
}
static inline bloomery_keys bloomery_keys_of_u64(const uint64_t* keys, size_t count) {
  bloomery_keys result = {BLOOMERY_INTEGERS, 0, count, keys, NULL, 0};
  return result;
}
static inline bloomery_keys bloomery_keys_of_offsets32(const void* data, size_t data_size, const int32_t* offsets,
                                                       size_t count) {
  bloomery_keys result = {BLOOMERY_OFFSETS32, 0, count, data, offsets, data_size};
  return result;
}
static inline bloomery_keys bloomery_keys_of_offsets64(const void* data, size_t data_size, const int64_t* offsets,
                                                       size_t count) {
  bloomery_keys result = {BLOOMERY_OFFSETS64, 0, count, data, offsets, data_size};
  return result;
}

/** The result of a change of many keys. */
typedef struct bloomery_change {
  uint64_t keys;      /**< keys processed, counted from the first */
  uint64_t changed;   /**< of these, keys that were certainly new, or were removed */
  uint64_t undecided; /**< after an error: keys after the processed ones that may or may not be processed */
} bloomery_change;

/** Inserts keys in order.
 * @param is_new  null, or count bytes: 1 if the key is certainly new, 2 if a lost connection to a server left that open,
 *                otherwise 0. After an error, the entries of keys that were not processed are unspecified.
 * @param done    null, or receives the numbers, also after an error */
BLOOMERY_C_API bloomery_code bloomery_insert_many(bloomery_filter* filter, const bloomery_keys* keys, uint8_t* is_new,
                                                  bloomery_change* done);

/** Inserts keys in the fastest order, with up to `threads` threads (0: one per processor). For filters in memory or in a
 * file that do not grow; other filters insert in order. *changed, which may be null: keys that were certainly new. */
BLOOMERY_C_API bloomery_code bloomery_insert_all(bloomery_filter* filter, const bloomery_keys* keys, unsigned threads,
                                                 uint64_t* changed);

/** Looks up keys.
 * @param found  null, or count bytes: 0 if the key was certainly never inserted, otherwise 1. Unspecified after an error
 * @param count  null, or receives the number of ones */
BLOOMERY_C_API bloomery_code bloomery_contains_many(const bloomery_filter* filter, const bloomery_keys* keys,
                                                    uint8_t* found, uint64_t* count);

/** The same with one bit per key: bit i % 64 of bitmap[i / 64] for key i, as in Arrow's type bool. Unused bits of the
 * last word are 0. @param words  at least (count + 63) / 64; further words are unchanged */
BLOOMERY_C_API bloomery_code bloomery_contains_bitmap(const bloomery_filter* filter, const bloomery_keys* keys,
                                                      uint64_t* bitmap, size_t words);

/** Removes one copy of each key. @param removed  null, or count bytes: 1 if removed, 0 if certainly absent */
BLOOMERY_C_API bloomery_code bloomery_remove_many(bloomery_filter* filter, const bloomery_keys* keys, uint8_t* removed,
                                                  bloomery_change* done);

/** The structure of a static filter. */
typedef enum bloomery_structure {
  BLOOMERY_FUSE = 0,  /**< 1.13 w bits per key, faster lookups; w = 8, 16 and 32 are the fastest */
  BLOOMERY_RIBBON = 1 /**< 1.01 w bits per key */
} bloomery_structure;

/** Builds a static filter in memory from all its keys, which may be repeated.
 * @param params     uses `keys`, `hash`, `secret` and `seed`; null: the defaults, with the kind of the given keys
 * @param structure  a bloomery_structure
 * @param width      w, bits of a fingerprint, 1 to 32: FPR 2^-w */
BLOOMERY_C_API bloomery_code bloomery_build_static(const bloomery_params* params, uint32_t structure, unsigned width,
                                                   const bloomery_keys* keys, bloomery_filter** filter);

/* ---- the whole filter -------------------------------------------------------------------------------------------- */

/** Merges the keys of another filter with equal parameters into `filter`. */
BLOOMERY_C_API bloomery_code bloomery_merge(bloomery_filter* filter, const bloomery_filter* other);

/** Removes all keys. */
BLOOMERY_C_API bloomery_code bloomery_clear(bloomery_filter* filter);

/** A copy in memory. */
BLOOMERY_C_API bloomery_code bloomery_copy(const bloomery_filter* filter, bloomery_filter** copy);

/** Sets the time of a sliding-window filter, in milliseconds since 1970. Other filters ignore it. */
BLOOMERY_C_API bloomery_code bloomery_tick(bloomery_filter* filter, uint64_t now_ms);

/** Writes a copy of the filter as a file, whole or not at all. An existing file is replaced. A filter on a server is read
 * first. */
BLOOMERY_C_API bloomery_code bloomery_save(const bloomery_filter* filter, const char* path);

/** The bytes of the file that bloomery_save() writes. Free them with bloomery_free_bytes(). */
BLOOMERY_C_API bloomery_code bloomery_to_bytes(const bloomery_filter* filter, uint8_t** bytes, size_t* length);
BLOOMERY_C_API void bloomery_free_bytes(uint8_t* bytes);

/** What a filter supports: bits of bloomery_info.capabilities. */
#define BLOOMERY_CAN_INSERT 1u
#define BLOOMERY_CAN_REMOVE 2u
#define BLOOMERY_CAN_MERGE 4u
#define BLOOMERY_CAN_CLEAR 8u
#define BLOOMERY_HAS_WINDOW 16u
#define BLOOMERY_FILTER_GROWS 32u
#define BLOOMERY_IS_REMOTE 64u
#define BLOOMERY_LOOKUPS_IN_PARALLEL 128u

/** What a filter reports about itself. Unknown rates and numbers of keys are NaN, and unknown counts are UINT64_MAX. */
typedef struct bloomery_info {
  size_t size;                /**< sizeof(bloomery_info), set by the caller; fields beyond it are not written */
  uint64_t capacity;          /**< keys; 0: it grows without a limit */
  double target_fpr;          /**< FPR at capacity */
  uint64_t insert_count;      /**< keys that were certainly new; with removal: copies */
  uint64_t distinct_keys;     /**< the best figure for distinct keys */
  double expected_fpr;        /**< mean FPR of filters with so many distinct keys */
  double current_fpr;         /**< exact FPR of the present bits; NaN unless the bits were read */
  double fill_ratio;          /**< fraction of bits that are set, 0 to 1; NaN unless the bits were read */
  double estimated_keys;      /**< distinct keys, estimated from the bits; NaN unless the bits were read */
  double estimated_sigma;     /**< standard deviation of estimated_keys */
  uint64_t bits;              /**< size of the bitmap, of all layers */
  uint64_t bytes;             /**< memory, or bytes on the server */
  uint32_t probes;            /**< bits that a key sets; quotient filters: blocks that a lookup reads */
  uint32_t keys;              /**< a bloomery_key_kind */
  uint32_t capabilities;      /**< sum of BLOOMERY_CAN_INSERT and so on */
  uint32_t count_is_estimate; /**< 1: insert_count was estimated from the bits */
  char layout[32];            /**< empty if it has a scheme */
  char scheme[32];            /**< empty if it has a layout */
  char hash[32];              /**< empty if it has a scheme */
} bloomery_info;

#define BLOOMERY_INFO \
  { sizeof(bloomery_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "", "" }

/** Describes the filter. @param read_bits  0: from its counters; 1: also counts all bits, at memory speed */
BLOOMERY_C_API bloomery_code bloomery_get_info(const bloomery_filter* filter, int read_bits, bloomery_info* info);

/** Describes the filter that bloomery_make() would make, without taking its memory: its size, layout and FPR at
 * capacity. */
BLOOMERY_C_API bloomery_code bloomery_plan(const bloomery_params* params, bloomery_info* info);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* BLOOMERY_H */
