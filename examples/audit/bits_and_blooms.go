// The filter of bits-and-blooms (Debian: golang-github-willf-bloom-dev), for an audit: bits_and_blooms CAPACITY RATE
package main

import ("bufio"; "fmt"; "os"; "strconv"; "github.com/bits-and-blooms/bloom")

func main() {
	capacity, _ := strconv.ParseUint(os.Args[1], 10, 64)
	rate, _ := strconv.ParseFloat(os.Args[2], 64)
	filter := bloom.NewWithEstimates(uint(capacity), rate)
	digits := map[bool]string{false: "0", true: "1"}
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		if line := in.Text(); line[:3] == "has" {
			fmt.Fprintln(out, digits[filter.TestString(line[4:])])
		} else {
			fmt.Fprintln(out, digits[!filter.TestAndAddString(line[4:])])
		}
	}
}
