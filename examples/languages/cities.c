/* A filter of cities in C:  cc cities.c $(pkg-config --cflags --libs bloomery-c) */
#include <bloomery.h>
#include <stdio.h>
#include <stdlib.h>

static void check(bloomery_code code) {
  if (code == BLOOMERY_OK) return;
  fprintf(stderr, "%s: %s\n", bloomery_code_name(code), bloomery_error_text());
  exit(2);
}

int main(void) {
  bloomery_params params = BLOOMERY_PARAMS(1000, 0.01); /* capacity and false-positive rate */
  bloomery_filter* cities = NULL;
  check(bloomery_make(&params, &cities));

  const bloomery_bytes names[] = {{"Madrid", 6}, {"Barcelona", 9}, {"Madrid", 6}};
  const bloomery_keys keys = bloomery_keys_of_views(names, 3);
  bloomery_change done;
  check(bloomery_insert_many(cities, &keys, NULL, &done));
  printf("%d keys, %d new\n", (int)done.keys, (int)done.changed);
  check(bloomery_save(cities, "cities.bloom"));
  check(bloomery_close(cities));

  check(bloomery_open("cities.bloom", 0, NULL, &cities)); /* mapped: opening reads one page */
  const char* asked[] = {"Madrid", "Berlin"};
  const size_t lengths[] = {6, 6};
  for (int i = 0; i < 2; ++i) {
    int found = 0;
    check(bloomery_contains(cities, asked[i], lengths[i], &found));
    printf("%s: %s\n", asked[i], found ? "maybe present" : "certainly absent");
  }
  check(bloomery_close(cities));
  return 0;
}
