// A filter of cities in Go:  go run cities.go
package main

// #cgo pkg-config: bloomery-c
// #include <bloomery.h>
// #include <stdlib.h>
import "C"
import "fmt"
import "unsafe"

func check(code C.bloomery_code) {
	if code != C.BLOOMERY_OK {
		panic(C.GoString(C.bloomery_error_text()))
	}
}

func main() {
	var params C.bloomery_params
	params.size, params.capacity, params.target_fpr = C.sizeof_bloomery_params, 1000, 0.01
	var cities *C.bloomery_filter
	check(C.bloomery_make(&params, &cities))
	isNew := 0
	for _, city := range []string{"Madrid", "Barcelona", "Madrid"} {
		var answer C.int
		check(C.bloomery_insert(cities, unsafe.Pointer(&[]byte(city)[0]), C.size_t(len(city)), &answer))
		isNew += int(answer)
	}
	fmt.Printf("3 keys, %d new\n", isNew)
	path := C.CString("cities.bloom")
	defer C.free(unsafe.Pointer(path))
	check(C.bloomery_save(cities, path))
	check(C.bloomery_close(cities))
	check(C.bloomery_open(path, 0, nil, &cities)) // mapped: opening reads one page
	for _, city := range []string{"Madrid", "Berlin"} {
		var found C.int
		check(C.bloomery_contains(cities, unsafe.Pointer(&[]byte(city)[0]), C.size_t(len(city)), &found))
		fmt.Printf("%s: %s\n", city, []string{"certainly absent", "maybe present"}[found])
	}
	check(C.bloomery_close(cities))
}
