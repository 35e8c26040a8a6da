/* bloomery.h as C99, and what compiled programs rely on: numbers, sizes and places never change. */
#include <bloomery.h>
#include <stddef.h>

#define SAME(name, number) typedef char name[(number) ? 1 : -1]

SAME(codes_are_fixed, BLOOMERY_OK == 0 && BLOOMERY_INVALID_ARGUMENT == 1 && BLOOMERY_TOO_LARGE == 2 &&
                          BLOOMERY_NOT_FOUND == 3 && BLOOMERY_NOT_PERMITTED == 4 && BLOOMERY_NOT_A_FILTER == 5 &&
                          BLOOMERY_WRONG_VERSION == 6 && BLOOMERY_DAMAGED == 7 && BLOOMERY_INCOMPATIBLE == 8 &&
                          BLOOMERY_ALREADY_EXISTS == 9 && BLOOMERY_LOCKED == 10 && BLOOMERY_IO == 11 &&
                          BLOOMERY_UNAVAILABLE == 12 && BLOOMERY_OUT_OF_MEMORY == 13 && BLOOMERY_INTERNAL == 14 && BLOOMERY_FULL == 15);
SAME(forms_are_fixed, BLOOMERY_VIEWS == 0 && BLOOMERY_INTEGERS == 1 && BLOOMERY_OFFSETS32 == 2 &&
                          BLOOMERY_OFFSETS64 == 3 && BLOOMERY_BYTES == 0 && BLOOMERY_U64 == 1);
SAME(flags_are_fixed, BLOOMERY_REPLACE == 1 && BLOOMERY_GROWS == 2 && BLOOMERY_WRITE == 1 && BLOOMERY_CAN_INSERT == 1 &&
                          BLOOMERY_CAN_REMOVE == 2 && BLOOMERY_CAN_MERGE == 4 && BLOOMERY_CAN_CLEAR == 8 &&
                          BLOOMERY_HAS_WINDOW == 16 && BLOOMERY_FILTER_GROWS == 32 && BLOOMERY_IS_REMOTE == 64 &&
                          BLOOMERY_LOOKUPS_IN_PARALLEL == 128);

#define AT(type, field) offsetof(type, field)
SAME(params_are_fixed, AT(bloomery_params, size) == 0 && AT(bloomery_params, capacity) == 8 &&
                           AT(bloomery_params, target_fpr) == 16 && AT(bloomery_params, keys) == 24 &&
                           AT(bloomery_params, prefer_memory) == 28 && AT(bloomery_params, layout) == 32 &&
                           AT(bloomery_params, scheme) == 40 && AT(bloomery_params, hash) == 48 &&
                           AT(bloomery_params, secret) == 56 && AT(bloomery_params, seed) == 64 &&
                           AT(bloomery_params, window_keys) == 72 && AT(bloomery_params, window_ms) == 80 &&
                           sizeof(bloomery_params) >= 88);
SAME(keys_are_fixed, AT(bloomery_keys, form) == 0 && AT(bloomery_keys, count) == 8 && AT(bloomery_keys, data) == 16 &&
                         AT(bloomery_keys, offsets) == 24 && AT(bloomery_keys, data_size) == 32 &&
                         sizeof(bloomery_keys) == 40 && sizeof(bloomery_bytes) == 16);
SAME(changes_are_fixed, AT(bloomery_change, keys) == 0 && AT(bloomery_change, changed) == 8 &&
                            AT(bloomery_change, undecided) == 16 && sizeof(bloomery_change) == 24);
SAME(info_is_fixed,
     AT(bloomery_info, size) == 0 && AT(bloomery_info, capacity) == 8 && AT(bloomery_info, target_fpr) == 16 &&
         AT(bloomery_info, insert_count) == 24 && AT(bloomery_info, distinct_keys) == 32 &&
         AT(bloomery_info, expected_fpr) == 40 && AT(bloomery_info, current_fpr) == 48 &&
         AT(bloomery_info, fill_ratio) == 56 && AT(bloomery_info, estimated_keys) == 64 &&
         AT(bloomery_info, estimated_sigma) == 72 && AT(bloomery_info, bits) == 80 && AT(bloomery_info, bytes) == 88 &&
         AT(bloomery_info, probes) == 96 && AT(bloomery_info, keys) == 100 && AT(bloomery_info, capabilities) == 104 &&
         AT(bloomery_info, count_is_estimate) == 108 && AT(bloomery_info, layout) == 112 &&
         AT(bloomery_info, scheme) == 144 && AT(bloomery_info, hash) == 176 && sizeof(bloomery_info) >= 208);

/* The initializers and the functions in the header compile as C. */
bloomery_params params_of_a_test(void) {
  bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
  return params;
}
bloomery_info info_of_a_test(void) {
  bloomery_info info = BLOOMERY_INFO;
  return info;
}
bloomery_keys keys_of_a_test(const char* data, const int32_t* offsets) {
  return bloomery_keys_of_offsets32(data, 6, offsets, 1);
}
