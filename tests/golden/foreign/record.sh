#!/usr/bin/env bash
# Records filter files of other systems and their answers, with the systems themselves:
#
#   tests/golden/foreign/record.sh
#
# Debian: libguava-java default-jdk-headless golang-go golang-github-willf-bloom-dev golang-github-dcso-bloom-cli
#
# NAME.filter is the file of a filter of the 303 keys below, with a capacity of 300 keys at 1%. NAME.positives lists the
# keys other-0 .. other-19999, all absent, that the system reports as present. Recorded with Guava 31.1,
# bits-and-blooms/bloom 3.3.1 and DCSO bloom 0.2.4.
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

bloom create -n 300 -p 0.01 dcso.filter
bloom insert dcso.filter < "$work/keys"
bloom set-data dcso.filter <<< 'a note of the user' > "$work/log"
bloom check dcso.filter < "$work/others" > dcso.positives
