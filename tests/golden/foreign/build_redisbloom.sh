#!/usr/bin/env bash
# Builds the module RedisBloom for a Redis server of version 7.0, to record its filters and to test against it:
#
#   tests/golden/foreign/build_redisbloom.sh redisbloom.so
#   tests/golden/foreign/record_redisbloom.py redisbloom.so
#   BLOOMERY_TEST_REDISBLOOM=$PWD/redisbloom.so ctest --preset dev -R command.test_redisbloom_module
#
# Needs git, gcc and access to GitHub, or clones in the folder $CLONES: RedisBloom, RedisModulesSDK, t-digest-c. The
# module has another license than bloomery: neither its source nor the module is a part of bloomery.
set -euo pipefail
output=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# source FOLDER REPOSITORY COMMIT
source_of() {
  local clone=${CLONES:-$work/clones}/$(basename "$2")
  [ -e "$clone" ] || git clone --quiet "https://github.com/$2" "$clone"
  mkdir -p "$work/$1"
  git -C "$clone" archive "$3" | tar -x -C "$work/$1"
}
source_of . RedisBloom/RedisBloom b28c29451ad4f6931fb42fe5b3d1e03a3270175f
source_of deps/RedisModulesSDK RedisLabsModules/RedisModulesSDK 81482a5e8b898fbb2a40a5430413989b22067471
source_of deps/t-digest-c RedisBloom/t-digest-c daf1f4a53d44a4efbee2c94edabed302010c23db

cd "$work"
mkdir -p deps/readies/cetara/diag # breakpoints for a debugger
: > deps/readies/cetara/diag/gdb.h
# Redis 7.0 has neither the categories of access nor the form of settings that the module registers.
gcc -std=gnu99 -O2 -w -fPIC -shared -o "$output" \
  -D_GNU_SOURCE -DREDIS_MODULE_TARGET \
  -D'RedisModule_AddACLCategory(...)=0' -D'RedisModule_SetCommandACLCategories(...)=0' \
  -D'RedisModule_RegisterStringConfig(...)=0' -D'RedisModule_RegisterNumericConfig(...)=0' \
  -I. -Isrc -Ideps -Ideps/RedisModulesSDK -Ideps/murmur2 -Ideps/t-digest-c/src \
  deps/bloom/bloom.c deps/murmur2/MurmurHash2.c deps/rmutil/util.c deps/t-digest-c/src/tdigest.c \
  src/cmd_info/*_info.c src/{rebloom,sb,cf,rm_topk,rm_tdigest,topk,rm_cms,cms,config}.c -lm
