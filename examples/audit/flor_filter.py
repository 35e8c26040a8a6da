"""BloomFilter of DCSO's flor (Debian: python3-flor), for an audit: python3 flor_filter.py CAPACITY RATE"""

import sys

from flor import BloomFilter

bloom = BloomFilter(n=int(sys.argv[1]), p=float(sys.argv[2]))
for line in sys.stdin.buffer:
    verb, key = line.rstrip(b"\n").split(b" ", 1)
    present = bloom.check(key)
    if verb == b"add":
        try:
            bloom.add(key)
        except BloomFilter.CapacityError:  # the key is inserted, and the filter is full
            pass
        present = not present
    print(int(present))
