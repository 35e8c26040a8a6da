// Files of the real bits-and-blooms:
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run bits_and_blooms.go write FILE N P < keys    writes a filter
//	GO111MODULE=off GOPATH=/usr/share/gocode go run bits_and_blooms.go check FILE < keys        prints 1 or 0 per key
//
// Keys are lines. A file whose name ends in .json has the form of MarshalJSON, any other that of WriteTo.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/bits-and-blooms/bloom"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func main() {
	keys := bufio.NewScanner(os.Stdin)
	if os.Args[1] == "write" {
		n, err := strconv.ParseUint(os.Args[3], 10, 64)
		must(err)
		p, err := strconv.ParseFloat(os.Args[4], 64)
		must(err)
		filter := bloom.NewWithEstimates(uint(n), p)
		for keys.Scan() {
			filter.Add(keys.Bytes())
		}
		if strings.HasSuffix(os.Args[2], ".json") {
			text, err := json.Marshal(filter)
			must(err)
			must(os.WriteFile(os.Args[2], text, 0o644))
			return
		}
		file, err := os.Create(os.Args[2])
		must(err)
		_, err = filter.WriteTo(file)
		must(err)
		must(file.Close())
		return
	}
	filter := &bloom.BloomFilter{}
	if strings.HasSuffix(os.Args[2], ".json") {
		text, err := os.ReadFile(os.Args[2])
		must(err)
		must(json.Unmarshal(text, filter))
	} else {
		file, err := os.Open(os.Args[2])
		must(err)
		_, err = filter.ReadFrom(file)
		must(err)
	}
	out := bufio.NewWriter(os.Stdout)
	for keys.Scan() {
		if filter.Test(keys.Bytes()) {
			fmt.Fprintln(out, 1)
		} else {
			fmt.Fprintln(out, 0)
		}
	}
	must(out.Flush())
}
