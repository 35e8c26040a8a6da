// Compares quotient filters with the cuckoo filters that Debian packages for Go [github.com/seiflotfy/cuckoofilter], in
// one process:
//
//	cmake --build --preset bench --target bloomery_c
//	export GO111MODULE=off GOPATH=/usr/share/gocode CGO_CFLAGS=-I$PWD/include CGO_LDFLAGS=-L$PWD/build/bench/c
//	LD_LIBRARY_PATH=build/bench/c go run bench/cuckoo_filters.go [KEYS] [ROUNDS]
//
// The cuckoo filter has fingerprints of 8 bits and a power of 2 of slots, and its interface takes one key per call. The
// quotient filter is made for the FPR that the cuckoo filter has, and gets the same keys of 8 bytes in batches through
// the C interface. Prints the CPU time of the thread in nanoseconds per key: median, minimum and maximum of the rounds.
package main

/*
#cgo LDFLAGS: -lbloomery_c
#include <bloomery.h>
#include <stdlib.h>

static bloomery_code insert_some(bloomery_filter* filter, const uint64_t* keys, size_t count) {
  const bloomery_keys some = bloomery_keys_of_u64(keys, count);
  return bloomery_insert_many(filter, &some, NULL, NULL);
}

static bloomery_code look_up_some(bloomery_filter* filter, const uint64_t* keys, size_t count, uint8_t* found) {
  const bloomery_keys some = bloomery_keys_of_u64(keys, count);
  return bloomery_contains_many(filter, &some, found, NULL);
}

static bloomery_code remove_some(bloomery_filter* filter, const uint64_t* keys, size_t count, uint8_t* removed) {
  const bloomery_keys some = bloomery_keys_of_u64(keys, count);
  return bloomery_remove_many(filter, &some, removed, NULL);
}
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"unsafe"

	cuckoo "github.com/seiflotfy/cuckoofilter"
)

const batch = 4096

// A set of keys of 8 bytes each.
type keys []byte

func (k keys) count() int      { return len(k) / 8 }
func (k keys) at(i int) []byte { return k[8*i : 8*i+8] }

// Random keys; those of two seeds are different, except for 1 in 2^64.
func randomKeys(seed uint64, count int) keys {
	all := make(keys, 8*count)
	for i := 0; i < count; i++ {
		x := seed + uint64(i+1)*0x9E3779B97F4A7C15
		x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
		x = (x ^ x>>27) * 0x94D049BB133111EB
		binary.LittleEndian.PutUint64(all[8*i:], x^x>>31)
	}
	return all
}

func ok(code C.bloomery_code) {
	if code != C.BLOOMERY_OK {
		fmt.Fprintln(os.Stderr, C.GoString(C.bloomery_error_text()))
		os.Exit(1)
	}
}

func cpuNanoseconds() float64 {
	var used syscall.Rusage
	const ofThread = 1
	if err := syscall.Getrusage(ofThread, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano() + used.Stime.Nano())
}

// The operations of a filter on all keys; look() and remove() count the keys that were found.
type contestant struct {
	name         string
	clear        func()
	insert       func(keys)
	look, remove func(keys) int
	bytes        int
	times        map[string][]float64
}

func ofCuckoo(n int) *contestant {
	var filter *cuckoo.Filter
	count := func(all keys, work func([]byte) bool) int {
		found := 0
		for i := 0; i < all.count(); i++ {
			if work(all.at(i)) {
				found++
			}
		}
		return found
	}
	made := &contestant{name: "cuckoo"}
	made.clear = func() { filter = cuckoo.NewFilter(uint(n)) }
	made.insert = func(all keys) {
		if inserted := count(all, filter.Insert); inserted != all.count() {
			fmt.Fprintf(os.Stderr, "the cuckoo filter refused %d of %d keys\n", all.count()-inserted, all.count())
			os.Exit(1)
		}
	}
	made.look = func(all keys) int { return count(all, filter.Lookup) }
	made.remove = func(all keys) int { return count(all, filter.Delete) }
	made.clear()
	made.bytes = len(filter.Encode())
	return made
}

func ofQuotient(n int, fpr float64) *contestant {
	layout := C.CString("quotient")
	defer C.free(unsafe.Pointer(layout))
	params := C.bloomery_params{capacity: C.uint64_t(n), target_fpr: C.double(fpr), keys: C.BLOOMERY_U64, layout: layout}
	params.size = C.size_t(unsafe.Sizeof(params))
	var filter *C.bloomery_filter
	ok(C.bloomery_make(&params, &filter))
	var info C.bloomery_info
	info.size = C.size_t(unsafe.Sizeof(info))
	ok(C.bloomery_get_info(filter, 0, &info))
	results := make([]C.uint8_t, batch)
	count := func(all keys, work func(some *C.uint64_t, count C.size_t) C.bloomery_code) int {
		found := 0
		for i := 0; i < all.count(); i += batch {
			some := all.count() - i
			if some > batch {
				some = batch
			}
			ok(work((*C.uint64_t)(unsafe.Pointer(&all[8*i])), C.size_t(some)))
			for _, one := range results[:some] {
				found += int(one)
			}
		}
		return found
	}
	made := &contestant{name: "quotient", bytes: int(info.bytes)}
	made.clear = func() { ok(C.bloomery_clear(filter)) }
	made.insert = func(all keys) {
		count(all, func(some *C.uint64_t, n C.size_t) C.bloomery_code { return C.insert_some(filter, some, n) })
	}
	made.look = func(all keys) int {
		return count(all, func(some *C.uint64_t, n C.size_t) C.bloomery_code {
			return C.look_up_some(filter, some, n, &results[0])
		})
	}
	made.remove = func(all keys) int {
		return count(all, func(some *C.uint64_t, n C.size_t) C.bloomery_code {
			return C.remove_some(filter, some, n, &results[0])
		})
	}
	return made
}

func number(at int, otherwise int) int {
	if len(os.Args) <= at {
		return otherwise
	}
	value, err := strconv.Atoi(os.Args[at])
	if err != nil || value < 1 {
		fmt.Fprintf(os.Stderr, "%s is not a number of keys or rounds\n", os.Args[at])
		os.Exit(2)
	}
	return value
}

func main() {
	runtime.LockOSThread()
	n, rounds := number(1, 15_000_000), number(2, 5)
	present, absent := randomKeys(1, n), randomKeys(1<<63, n)
	theirs := ofCuckoo(n)
	theirs.insert(present)
	fpr := float64(theirs.look(absent)) / float64(n)
	ours := ofQuotient(n, fpr)
	both := []*contestant{ours, theirs}
	operations := []string{"insert", "present", "absent", "remove"}
	wrong := map[string]int{}
	for _, one := range both {
		one.times = map[string][]float64{}
	}
	for round := 0; round < rounds; round++ {
		for _, one := range both {
			one.clear()
			timed := func(operation string, work func()) {
				start := cpuNanoseconds()
				work()
				one.times[operation] = append(one.times[operation], (cpuNanoseconds()-start)/float64(n))
			}
			timed("insert", func() { one.insert(present) })
			timed("present", func() {
				if found := one.look(present); found != n {
					fmt.Fprintf(os.Stderr, "%s: %d false negatives\n", one.name, n-found)
					os.Exit(1)
				}
			})
			timed("absent", func() { wrong[one.name] = one.look(absent) })
			timed("remove", func() { one.remove(present) })
		}
	}
	fmt.Printf("%d keys, %d rounds, one thread\n", n, rounds)
	for _, one := range both {
		fmt.Printf("%-8s  %5.2f bits per key, FPR %.3f%%\n", one.name, 8*float64(one.bytes)/float64(n),
			100*float64(wrong[one.name])/float64(n))
	}
	for _, operation := range operations {
		median := map[string]float64{}
		fmt.Printf("%-8s", operation)
		for _, one := range both {
			times := one.times[operation]
			sort.Float64s(times)
			median[one.name] = times[len(times)/2]
			fmt.Printf("  %s %6.1f ns (%.1f to %.1f)", one.name, median[one.name], times[0], times[len(times)-1])
		}
		fmt.Printf("  ratio %.1f\n", median["cuckoo"]/median["quotient"])
	}
}
