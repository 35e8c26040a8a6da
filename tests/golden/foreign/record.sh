#!/usr/bin/env bash
# Records filter files of other systems and their answers, with the systems themselves:
#
#   tests/golden/foreign/record.sh
#
# Debian: libguava-java default-jdk-headless golang-go golang-github-willf-bloom-dev golang-github-dcso-bloom-cli
#         g++ libleveldb-dev librocksdb-dev libbloom-filter-perl
# npm installs bloom-filters and bloomfilter into a temporary folder.
#
# NAME.filter is the file of a filter of the 303 keys below, with a capacity of 300 keys at 1%. NAME.positives lists the
# keys other-0 .. other-19999, all absent, that the system reports as present. Recorded with Guava 31.1,
# bits-and-blooms/bloom 3.3.1, DCSO bloom 0.2.4, bloom-filters 3.0.4, bloomfilter 1.1.0, LevelDB 1.23, RocksDB 7.8.3
# and Bloom::Filter 1.2 with Storable 3.26 of Perl 5.36.
#
# perl.filter has a capacity of 400 keys, because Bloom::Filter refuses more keys than its capacity. The same object is
# in perl_store.filter, perl_freeze.filter and perl_nfreeze.filter, as other functions of Storable write it.
#
# leveldb_none.ldb and leveldb_snappy.ldb are tables of these keys and of other-20000, other-20037 .. other-59996. In
# the second one, the index is compressed. Their answers are those of the filters that LevelDB reads for a key.
# leveldb_bytewise and leveldb_reverse are databases of the 303 keys, the second one with a comparator of its program.
# rocksdb_5.sst and rocksdb_4.sst are tables of the 303 keys, by their format_version, and their answers those of a
# database with this table alone. The other tables rocksdb_*.sst have an option of tests/peers/rocksdb.cpp.
# rocksdb.hashes has hashes of keys by their length.
#
# With BLOOMERY_DATASKETCHES, a checkout of github.com/apache/datasketches-cpp, the files of DataSketches too. Recorded
# with commit c22888581964fc490feee835766cc8c3adb722e0. datasketches.sizes lists N, P, numbers of bits and of hashes.
set -euo pipefail
cd "$(dirname "$0")"
peers=../../peers
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

{
  seq -f 'key-%g' 0 299
  printf '%s\n' 'Zürich' '布隆过滤器' 'a key with spaces, which is longer than two blocks of sixteen bytes'
} > "$work/keys"
seq -f 'other-%g' 0 19999 > "$work/others"

# select_positive NAME: keeps the lines of others whose answer on standard input is 1
select_positive() { paste - "$work/others" | sed -n 's/^1\t//p' > "$1.positives"; }

guava() { java -cp /usr/share/java/guava.jar:/usr/share/java/failureaccess.jar "$peers/GuavaFile.java" "$@"; }
guava write guava.filter 300 0.01 MURMUR128_MITZ_64 < "$work/keys"
guava check guava.filter < "$work/others" | select_positive guava
guava write guava32.filter 300 0.01 MURMUR128_MITZ_32 < "$work/keys"
guava check guava32.filter < "$work/others" | select_positive guava32

GO111MODULE=off GOPATH=/usr/share/gocode go build -o "$work/go" "$peers/bits_and_blooms.go"
"$work/go" write bits_and_blooms.filter 300 0.01 < "$work/keys"
"$work/go" check bits_and_blooms.filter < "$work/others" | select_positive bits_and_blooms

# The same bits as JSON.
"$work/go" write "$work/filter.json" 300 0.01 < "$work/keys"
mv "$work/filter.json" bits_and_blooms_json.filter

npm install --silent --no-audit --no-fund --prefix "$work" bloom-filters@3.0.4 bloomfilter@1.1.0
npm_filters() { NODE_PATH=$work/node_modules node "$peers/npm_filters.cjs" "$@"; }
npm_filters write bloom-filters bloom_filters.filter 300 0.01 < "$work/keys"
npm_filters check bloom_filters.filter < "$work/others" | select_positive bloom_filters
npm_filters write bloomfilter bloomfilter_js.filter 300 0.01 < "$work/keys"
npm_filters check bloomfilter_js.filter < "$work/others" | select_positive bloomfilter_js

bloom create -n 300 -p 0.01 dcso.filter
bloom insert dcso.filter < "$work/keys"
bloom set-data dcso.filter <<< 'a note of the user' > "$work/log"
bloom check dcso.filter < "$work/others" > dcso.positives

perl "$peers/storable.pl" write "$work/perl" 400 0.01 < "$work/keys"
cp "$work/perl" perl.filter
for form in store freeze nfreeze; do cp "$work/perl.$form" perl_$form.filter; done
perl "$peers/storable.pl" check perl.filter < "$work/others" | select_positive perl

g++ -std=c++20 -o "$work/leveldb" "$peers/leveldb.cpp" -lleveldb
"$work/leveldb" filter leveldb.filter 10 < "$work/keys"
"$work/leveldb" match leveldb.filter < "$work/others" | select_positive leveldb
{ cat "$work/keys"; seq -f 'other-%g' 20000 37 60000; } > "$work/table_keys"
for method in none snappy; do
  "$work/leveldb" table leveldb_$method.ldb 10 $method < "$work/table_keys"
  "$work/leveldb" get leveldb_$method.ldb < "$work/others" | select_positive leveldb_$method
done
for order in bytewise reverse; do
  "$work/leveldb" database "$work/$order" $order < "$work/keys"
  mkdir -p leveldb_$order
  cp "$work/$order"/{CURRENT,MANIFEST-*,*.ldb} leveldb_$order/
done

g++ -std=c++20 -o "$work/rocksdb" "$peers/rocksdb.cpp" -lrocksdb
for version in 5 4; do
  "$work/rocksdb" table rocksdb_$version.sst 10 $version < "$work/keys"
  "$work/rocksdb" get rocksdb_$version.sst < "$work/others" | select_positive rocksdb_$version
done
for option in ribbon partitioned prefixes no_checksum crc32c xxh32 xxh64 xxh3; do
  "$work/rocksdb" table rocksdb_$option.sst 10 5 $option < "$work/keys"
done
"$work/rocksdb" hashes > rocksdb.hashes

if [ -n "${BLOOMERY_DATASKETCHES:-}" ]; then
  g++ -std=c++17 -I "$BLOOMERY_DATASKETCHES/common/include" -I "$BLOOMERY_DATASKETCHES/filters/include" \
    "$peers/datasketches.cpp" -o "$work/datasketches"
  "$work/datasketches" write datasketches.filter 300 0.01 9001 < "$work/keys"
  "$work/datasketches" check datasketches.filter < "$work/others" | select_positive datasketches
  "$work/datasketches" count datasketches.filter datasketches.counted
  "$work/datasketches" write datasketches.empty 300 0.01 9001 < /dev/null
  seq 0 299 | "$work/datasketches" write datasketches.u64 300 0.01 18446744073709551615 u64
  for n in 1 2 3 7 10 31 64 100 300 1000 12345 1000000; do
    for p in 0.9 0.5 0.3 0.25 0.1 0.05 0.03125 0.01 0.001 1e-4 1.862645149230957e-09 1e-12; do echo "$n $p"; done
  done | "$work/datasketches" size > datasketches.sizes
fi
