#!/usr/bin/env python3
"""Writes the golden filter files of this folder, without bloomery: an independent reading of docs/format.md.

    tests/golden/make_golden.py           write them
    tests/golden/make_golden.py --check   compare them with what would be written; exit status 1 if one differs

tests/file/golden_file_test.cpp makes the same filters with bloomery and compares them byte for byte. These files must never change
within a version of the format: a change requires a new version.

Everything is spelled out here in plain Python, also XXH3, MurmurHash3 and SipHash, after their specifications.
"""
import hashlib
import pathlib
import struct
import sys

M64 = 2**64 - 1
M32 = 2**32 - 1


def u64(data, at=0):
    return int.from_bytes(data[at:at + 8], 'little')


def u32(data, at=0):
    return int.from_bytes(data[at:at + 4], 'little')


def rotl(x, r, width):
    return (x << r | x >> (width - r)) & (2**width - 1)


# ---- XXH3 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md) ----------------------------------------------------------

SECRET = bytes.fromhex('''
    b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221
    b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8
    a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb
    170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e''')
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xxh64_avalanche(h):
    h = (h ^ h >> 33) * P64_2 & M64
    h = (h ^ h >> 29) * P64_3 & M64
    return h ^ h >> 32


def avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & M64
    return h ^ h >> 32


def folded(x, y):
    product = x * y
    return product & M64 ^ product >> 64


def mix16(data, at, secret, seed):
    return folded(u64(data, at) ^ u64(SECRET, secret) + seed & M64, u64(data, at + 8) ^ u64(SECRET, secret + 8) - seed & M64)


def xxh3_64(data, seed=0):
    n = len(data)
    if n == 0:
        return xxh64_avalanche(seed ^ u64(SECRET, 56) ^ u64(SECRET, 64))
    if n <= 3:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return xxh64_avalanche(combined ^ (u32(SECRET, 0) ^ u32(SECRET, 4)) + seed & M64)
    if n <= 8:
        seed ^= int.from_bytes((seed & M32).to_bytes(4, 'little'), 'big') << 32
        h = (u32(data, n - 4) + (u32(data) << 32)) ^ (u64(SECRET, 8) ^ u64(SECRET, 16)) - seed & M64
        h = (h ^ rotl(h, 49, 64) ^ rotl(h, 24, 64)) * 0x9FB21C651E98DF25 & M64
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & M64
        return h ^ h >> 28
    if n <= 16:
        first = u64(data) ^ (u64(SECRET, 24) ^ u64(SECRET, 32)) + seed & M64
        last = u64(data, n - 8) ^ (u64(SECRET, 40) ^ u64(SECRET, 48)) - seed & M64
        swapped = int.from_bytes(first.to_bytes(8, 'little'), 'big')
        return avalanche(n + swapped + last + folded(first, last) & M64)
    if n <= 128:
        acc = n * P64_1
        for i in reversed(range((n - 1) // 32 + 1)):
            acc += mix16(data, 16 * i, 32 * i, seed) + mix16(data, n - 16 * (i + 1), 32 * i + 16, seed)
        return avalanche(acc & M64)
    assert n > 240 and seed == 0, 'no golden file needs the other lengths'
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]

    def stripe(at, secret):
        for i in range(8):
            value = u64(data, at + 8 * i)
            key = value ^ u64(SECRET, secret + 8 * i)
            acc[i ^ 1] = acc[i ^ 1] + value & M64
            acc[i] = acc[i] + (key & M32) * (key >> 32) & M64

    for number in range((n - 1) // 64):
        stripe(64 * number, 8 * (number % 16))
        if number % 16 == 15:
            for i in range(8):
                acc[i] = (acc[i] ^ acc[i] >> 47 ^ u64(SECRET, 128 + 8 * i)) * P32_1 & M64
    stripe(n - 64, 121)
    result = n * P64_1
    for i in range(4):
        result += folded(acc[2 * i] ^ u64(SECRET, 11 + 16 * i), acc[2 * i + 1] ^ u64(SECRET, 19 + 16 * i))
    return avalanche(result & M64)


def xxh3_128(data, seed):
    """The low and the high half."""
    n = len(data)
    if n == 0:
        return (xxh64_avalanche(seed ^ u64(SECRET, 64) ^ u64(SECRET, 72)),
                xxh64_avalanche(seed ^ u64(SECRET, 80) ^ u64(SECRET, 88)))
    if n <= 3:
        low = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        high = rotl(int.from_bytes(low.to_bytes(4, 'little'), 'big'), 13, 32)
        return (xxh64_avalanche(low ^ (u32(SECRET, 0) ^ u32(SECRET, 4)) + seed & M64),
                xxh64_avalanche(high ^ (u32(SECRET, 8) ^ u32(SECRET, 12)) - seed & M64))
    if n <= 8:
        seed ^= int.from_bytes((seed & M32).to_bytes(4, 'little'), 'big') << 32
        keyed = (u32(data) | u32(data, n - 4) << 32) ^ (u64(SECRET, 16) ^ u64(SECRET, 24)) + seed & M64
        product = keyed * (P64_1 + 4 * n)
        low, high = product & M64, product >> 64
        high = high + (low << 1) & M64
        low ^= high >> 3
        low = (low ^ low >> 35) * 0x9FB21C651E98DF25 & M64
        return low ^ low >> 28, avalanche(high)
    if n <= 16:
        first, last = u64(data), u64(data, n - 8)
        product = (first ^ last ^ (u64(SECRET, 32) ^ u64(SECRET, 40)) - seed & M64) * P64_1
        low, high = product & M64, product >> 64
        low = low + (n - 1 << 54) & M64
        last ^= (u64(SECRET, 48) ^ u64(SECRET, 56)) + seed & M64
        high = high + last + (last & M32) * (P32_2 - 1) & M64
        low ^= int.from_bytes(high.to_bytes(8, 'little'), 'big')
        product = low * P64_2
        return avalanche(product & M64), avalanche((product >> 64) + high * P64_2 & M64)
    assert n <= 128, 'no golden file has longer keys'
    low, high = n * P64_1 & M64, 0
    for i in reversed(range((n - 1) // 32 + 1)):
        front, back = 16 * i, n - 16 * (i + 1)
        low = low + mix16(data, front, 32 * i, seed) & M64 ^ u64(data, back) + u64(data, back + 8) & M64
        high = high + mix16(data, back, 32 * i + 16, seed) & M64 ^ u64(data, front) + u64(data, front + 8) & M64
    mixed = low * P64_1 + high * P64_4 + (n - seed) * P64_2 & M64
    return avalanche(low + high & M64), -avalanche(mixed) & M64


# ---- the other hashes -----------------------------------------------------------------------------------------------

def murmur3_128(data, seed):
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def finish(h):
        h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & M64
        h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & M64
        return h ^ h >> 33

    def k1_mixed(k):
        return rotl(k * c1 & M64, 31, 64) * c2 & M64

    def k2_mixed(k):
        return rotl(k * c2 & M64, 33, 64) * c1 & M64

    h1 = h2 = seed
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        h1 = (rotl(h1 ^ k1_mixed(u64(data, at)), 27, 64) + h2) * 5 + 0x52DCE729 & M64
        h2 = (rotl(h2 ^ k2_mixed(u64(data, at + 8)), 31, 64) + h1) * 5 + 0x38495AB5 & M64
    h2 ^= k2_mixed(u64(data[whole + 8:]))
    h1 ^= k1_mixed(u64(data[whole:whole + 8]))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = h1 + h2 & M64
    h2 = h2 + h1 & M64
    h1, h2 = finish(h1), finish(h2)
    h1 = h1 + h2 & M64
    return h1, h2 + h1 & M64


def murmur3_32(data, seed):
    def mixed(k):
        return rotl(k * 0xCC9E2D51 & M32, 15, 32) * 0x1B873593 & M32

    h = seed
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        h = rotl(h ^ mixed(u32(data, at)), 13, 32) * 5 + 0xE6546B64 & M32
    h ^= mixed(u32(data[whole:])) ^ len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & M32
    h = (h ^ h >> 13) * 0xC2B2AE35 & M32
    return h ^ h >> 16


def mix64(x):
    x = (x ^ x >> 27) * 0x3C79AC492BA7B653 & M64
    x = (x ^ x >> 33) * 0x1C69B3F74AC4AE35 & M64
    return x ^ x >> 27


def mix(data, seed):
    low = mix64(u64(data) ^ mix64(seed))
    return low, mix64(low + 0x9E3779B97F4A7C15 & M64)


def xxh3_64_and_mix(data, seed):
    low = xxh3_64(data, seed)
    return low, mix64(low + 0x9E3779B97F4A7C15 & M64)


def siphash_128(data, key, c, d):
    def rounds(v, count):
        for _ in range(count):
            v[0] = v[0] + v[1] & M64
            v[2] = v[2] + v[3] & M64
            v[1] = rotl(v[1], 13, 64) ^ v[0]
            v[3] = rotl(v[3], 16, 64) ^ v[2]
            v[0] = rotl(v[0], 32, 64)
            v[2] = v[2] + v[1] & M64
            v[0] = v[0] + v[3] & M64
            v[1] = rotl(v[1], 17, 64) ^ v[2]
            v[3] = rotl(v[3], 21, 64) ^ v[0]
            v[2] = rotl(v[2], 32, 64)

    k0, k1 = u64(key), u64(key, 8)
    v = [k0 ^ u64(b'uespemos'), k1 ^ u64(b'modnarod') ^ 0xEE, k0 ^ u64(b'arenegyl'), k1 ^ u64(b'setybdet')]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for at in range(0, len(padded), 8):
        v[3] ^= u64(padded, at)
        rounds(v, c)
        v[0] ^= u64(padded, at)
    v[2] ^= 0xEE
    rounds(v, d)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(v, d)
    return low, v[0] ^ v[1] ^ v[2] ^ v[3]


HASHES = {'xxh3_64': xxh3_64_and_mix, 'xxh3': xxh3_128, 'murmur3': murmur3_128, 'mix': mix,
          'siphash': lambda data, key: siphash_128(data, key, 1, 3)}

# ---- from a key to bits; bit x is byte x >> 3, mask 1 << (x & 7) -----------------------------------------------------


def split_block(low, high, bits, probes):
    salts = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
    block = (low >> 32) * (bits // 256) >> 32
    return [256 * block + 32 * j + ((low & M32) * salt & M32) // 2**27 for j, salt in enumerate(salts)]


def classic(low, high, bits, probes):
    cells = []
    for _ in range(probes):
        cells.append(low * bits >> 64)
        low = low * 0xD1342543DE82EF95 + high & M64
    return cells


def split_block512(low, high, bits, probes):
    choice = low * 0x9E3779B97F4A7C15 & M64
    first = 512 * (low * (bits // 512) >> 64)
    return [first + 64 * j + (choice >> 16 + 6 * j) % 64 for j in range(8)]


def anywhere_in_a_block(low, bits, probes, block_bits):
    first = block_bits * (low * (bits // block_bits) >> 64)
    x = (2 * low + 1) * 0x9E3779B97F4A7C15 & M64
    cells = []
    for _ in range(probes):
        cells.append(first + x * block_bits // 2**64)  # the upper bits of x: 9 in a line, 15 in a page
        x = x * 0xD1342543DE82EF95 & M64
    return cells


def blocked(low, high, bits, probes):
    return anywhere_in_a_block(low, bits, probes, 512)


def blocked_page(low, high, bits, probes):
    return anywhere_in_a_block(low, bits, probes, 8 * 4096)


def counting(low, high, bits, probes):
    cells, x = set(), (2 * low + 1) * 0x9E3779B97F4A7C15 & M64
    for _ in range(probes):
        cells.add(128 * (low * (bits // 512) // 2**64) + x // 2**57)
        x = x * 0xD1342543DE82EF95 & M64
    return cells


LAYOUTS = {'split_block': split_block, 'split_block512': split_block512, 'blocked': blocked, 'blocked_page': blocked_page, 'classic': classic, 'counting': counting}


def quotient_payload(lows, width, blocks):
    """A list of remainders for each bucket of each block, written as marks and slots."""
    slots, buckets = 432 // (width + 1), 80
    tags = buckets * 2**(width - 1)
    lists = [[[] for _ in range(buckets)] for _ in range(blocks)]
    for low in lows:
        first, tag = divmod(low * blocks * tags >> 64, tags)
        bucket, remainder = divmod(tag, 2**(width - 1))
        second = ((mix64(tag + 1) * blocks >> 64) - first) % blocks
        values = (first, remainder), (second, remainder + 2**(width - 1))
        copies = sum(lists[block][bucket].count(value) for block, value in values)
        used = [sum(map(len, lists[block])) for block in (first, second)]
        if copies < 15:
            block, value = values[used[1] < used[0]]
            lists[block][bucket].append(value)
    payload = b''
    for of_block in lists:
        marks = ''.join('0' * len(of_bucket) + '1' for of_bucket in of_block).ljust(slots + buckets, '0')
        block = int(marks[::-1], 2) ^ 2**buckets - 1
        for slot, value in enumerate(v for of_bucket in of_block for v in of_bucket):
            block |= value << slots + buckets + slot * width
        payload += block.to_bytes(64, 'little')
    return payload


def guava(key, bits, probes):
    h1, h2 = murmur3_128(key, 0)
    return [(h1 + i * h2 & 2**63 - 1) % bits for i in range(probes)]


def pharo(key, bits, probes):
    h = murmur3_32(key, 0)
    return [((h & 0xFFFF) + i * (h >> 16)) % bits ^ 7 for i in range(1, probes + 1)]


def python(key, bits, probes):
    signed = [struct.unpack('<i', struct.pack('<I', murmur3_32(key, i)))[0] for i in range(probes)]
    return [h % bits ^ 7 for h in signed]


def perl(key, bits, probes, salts=()):
    cells = []
    for salt in salts or [b'%d' % i for i in range(probes)]:
        a, b, c, d, e = struct.unpack('>5I', hashlib.sha1(key + salt).digest())
        cells.append((a ^ b ^ c ^ d ^ e) % bits)
    return cells


SCHEMES = {'guava': guava, 'pharo': pharo, 'python': python, 'perl': perl}

# ---- keys, the same as in golden_file_test.cpp -----------------------------------------------------------------------


def text_keys():
    keys = [b'', b'\0', 'Bücher'.encode()]
    keys += [b'x' * length for length in (1, 2, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 96, 97, 128)]
    return keys + [b'key-%d' % i for i in range(100)]


def integer_keys():
    numbers = list(range(10)) + [M64] + [i * 0x9E3779B97F4A7C15 & M64 for i in range(10, 100)]
    return [number.to_bytes(8, 'little') for number in numbers]


# ---- the file -------------------------------------------------------------------------------------------------------

PAGE = 4096
CAPACITY = 150
TARGET_RATE = 0.01


def filter_file(layout='', scheme='', hash='', integers=False, seed=0, secret=None, bits=0, probes=0, metadata=b'', salts=()):
    payload = bytearray((bits + 7) // 8)
    inserted = 0
    lows = []
    for key in integer_keys() if integers else text_keys():
        if scheme:
            cells = SCHEMES[scheme](key, bits, probes, *([salts] if salts else []))
        else:
            low, high = HASHES[hash](key, secret or seed)
            if layout.startswith('quotient'):
                lows.append(low)
                continue
            cells = LAYOUTS[layout](low, high, bits, probes)
        if layout == 'counting':
            inserted += 1
            for x in cells:
                count = payload[x >> 1] >> 4 * (x & 1) & 15
                payload[x >> 1] += (count < 15) << 4 * (x & 1)
            continue
        inserted += any(payload[x >> 3] >> (x & 7) & 1 == 0 for x in cells)
        for x in cells:
            payload[x >> 3] |= 1 << (x & 7)

    if lows:
        payload, inserted = bytearray(quotient_payload(lows, int(layout.removeprefix('quotient')), bits // 512)), len(lows)
    payload += bytes(-len(payload) % PAGE)
    zeros = xxh3_64(bytes(PAGE))
    pages = [bytes(payload[at:at + PAGE]) for at in range(0, len(payload), PAGE)]
    checksums = b''.join(struct.pack('<Q', xxh3_64(page) ^ zeros) for page in pages)

    header = bytearray(PAGE)
    header[0:8] = b'\x89BLMR\r\n\x1a'
    struct.pack_into('<II', header, 8, 2 if salts else 1, PAGE)
    struct.pack_into('<32s32s32s', header, 16, layout.encode(), scheme.encode(), hash.encode())
    struct.pack_into('<II', header, 112, 1 if integers else 0, 4 if layout == 'counting' else 512 if lows else 1)
    struct.pack_into('<QQI', header, 120, seed, bits, probes)
    struct.pack_into('<Qd', header, 144, CAPACITY, TARGET_RATE)
    struct.pack_into('<QQ', header, 160, len(metadata), xxh3_64(metadata))
    struct.pack_into('<Q', header, 176, PAGE + len(payload) + len(checksums) + len(metadata))
    if secret:
        struct.pack_into('<Q', header, 184, siphash_128(b'bloomery key check', secret, 2, 4)[0] or 1)
    if salts:
        of_salts = b''.join(bytes([len(salt)]) + salt for salt in salts)
        header[1088:1088 + len(of_salts)] = of_salts
        struct.pack_into('<QQ', header, 216, len(of_salts), xxh3_64(of_salts))
    struct.pack_into('<Q', header, 504, xxh3_64(bytes(header[:504])))
    slot = struct.pack('<QQI36x', 1, inserted, 1)
    slot += struct.pack('<Q', xxh3_64(slot))
    header[512:576] = slot
    header[1024:1088] = slot
    return bytes(header + payload + checksums + metadata)


def layers_file(layout, hash, integers, seed, capacity, is_shared, layers, maximum=0, metadata=b'', window=None):
    """layers: per shard the layers, oldest first, as (bits, probes, capacity). A key goes to the first with room.

    window: (milliseconds, time of the copy). A layer is then (bits, probes, capacity, number of its slice), and the keys go
    to the slices of their shard in turn.
    """
    table, payload = b'', b''
    keys = integer_keys() if integers else text_keys()
    shards = len(layers)
    for shard, of_shard in enumerate(layers):
        hashes = [HASHES[hash](key, seed) for key in keys]
        hashes = [h for h in hashes if h[0] * shards >> 64 == shard]
        bitmaps, counts = [bytearray(bits // 8) for bits, *_ in of_shard], [0] * len(of_shard)
        for key_number, (low, high) in enumerate(hashes):
            cells = [[x - shard * bits for x in LAYOUTS[layout](low, high, shards * bits, probes)] for bits, probes, *_ in of_shard]
            if window:
                for x in cells[key_number % len(of_shard)]:
                    bitmaps[key_number % len(of_shard)][x >> 3] |= 1 << (x & 7)
                continue
            if any(all(bitmap[x >> 3] >> (x & 7) & 1 for x in own) for bitmap, own in zip(bitmaps, cells)):
                continue
            newest = next(i for i, count in enumerate(counts) if count < of_shard[i][2] or i + 1 == len(counts))
            counts[newest] += 1
            for x in cells[newest]:
                bitmaps[newest][x >> 3] |= 1 << (x & 7)
        for (bits, probes, room, *slice_number), bitmap, count in zip(of_shard, bitmaps, counts):
            start_or_count = slice_number[0] * -(-window[0] // 7) if window else count
            table += struct.pack('<QQIIQQQ', shard, bits, probes, 0, room, start_or_count, xxh3_64(bytes(bitmap)))
            payload += bytes(bitmap)

    header = bytearray(PAGE)
    header[0:8] = b'\x89BLMG\r\n\x1a'
    struct.pack_into('<II32s32s', header, 8, 2 if window else 1, PAGE, layout.encode(), hash.encode())
    struct.pack_into('<IIQQ', header, 80, 1 if integers else 0, 1 if is_shared else 0, seed, 0)
    struct.pack_into('<QdQQQ', header, 104, capacity, TARGET_RATE, maximum, shards, len(table) // 48)
    struct.pack_into('<QQQ', header, 144, xxh3_64(table), len(metadata), xxh3_64(metadata))
    padded = table + bytes(-len(table) % PAGE)
    struct.pack_into('<Q', header, 168, PAGE + len(padded) + len(payload) + len(metadata))
    if window:
        struct.pack_into('<QQQ', header, 176, window[0], -(-window[0] // 7), window[1])
    struct.pack_into('<Q', header, 4088, xxh3_64(bytes(header[:4088])))
    return bytes(header) + padded + payload + metadata


FILES = {
    'split_block-bytes-xxh3_64': dict(layout='split_block', hash='xxh3_64', bits=2048, probes=8),
    'split_block512-bytes-xxh3_64': dict(layout='split_block512', hash='xxh3_64', bits=2048, probes=8, seed=2**64 - 1),
    'blocked-u64-xxh3_64': dict(layout='blocked', hash='xxh3_64', integers=True, bits=1536, probes=9, seed=7),
    'counting-bytes-xxh3_64': dict(layout='counting', hash='xxh3_64', bits=8192, probes=6),
    'classic-bytes-xxh3_64': dict(layout='classic', hash='xxh3_64', bits=1447, probes=7),
    'split_block-bytes-xxh3': dict(layout='split_block', hash='xxh3', bits=2048, probes=8),
    'split_block-bytes-murmur3': dict(layout='split_block', hash='murmur3', bits=2048, probes=8, seed=7),
    'split_block-u64-mix': dict(layout='split_block', hash='mix', integers=True, bits=2048, probes=8, seed=42),
    'split_block-u64-xxh3': dict(layout='split_block', hash='xxh3', integers=True, bits=2048, probes=8),
    'split_block-u64-murmur3': dict(layout='split_block', hash='murmur3', integers=True, bits=2048, probes=8),
    'split_block512-bytes-xxh3': dict(layout='split_block512', hash='xxh3', bits=2048, probes=8),
    'split_block512-bytes-murmur3': dict(layout='split_block512', hash='murmur3', bits=2048, probes=8, seed=7),
    'split_block512-u64-mix': dict(layout='split_block512', hash='mix', integers=True, bits=2048, probes=8, seed=42),
    'blocked-bytes-xxh3': dict(layout='blocked', hash='xxh3', bits=2560, probes=6),
    'blocked-u64-mix': dict(layout='blocked', hash='mix', integers=True, bits=1536, probes=9, seed=2**64 - 1),
    'blocked-u64-murmur3': dict(layout='blocked', hash='murmur3', integers=True, bits=1536, probes=1),
    'blocked_page-bytes-xxh3': dict(layout='blocked_page', hash='xxh3', bits=3 * 32_768, probes=7, seed=11),
    'blocked_page-u64-mix': dict(layout='blocked_page', hash='mix', integers=True, bits=2 * 32_768, probes=17),
    'blocked_page-u64-xxh3': dict(layout='blocked_page', hash='xxh3', integers=True, bits=32_768, probes=40),
    'classic-bytes-xxh3': dict(layout='classic', hash='xxh3', bits=40_003, probes=7, seed=2**64 - 1,
                               metadata=b'{"source": "tests/golden/make_golden.py"}'),
    'classic-bytes-murmur3': dict(layout='classic', hash='murmur3', bits=1447, probes=7),
    'classic-u64-mix': dict(layout='classic', hash='mix', integers=True, bits=1447, probes=7),
    'classic-u64-xxh3': dict(layout='classic', hash='xxh3', integers=True, bits=1447, probes=20, seed=3),
    'classic-u64-murmur3': dict(layout='classic', hash='murmur3', integers=True, bits=1447, probes=1),
    'split_block-bytes-siphash': dict(layout='split_block', hash='siphash', secret=bytes(range(16)), bits=2048, probes=8),
    'classic-u64-siphash': dict(layout='classic', hash='siphash', integers=True, secret=bytes(range(16)), bits=1447, probes=7),
    'counting-bytes-xxh3': dict(layout='counting', hash='xxh3', bits=8192, probes=6),
    'quotient7-bytes-xxh3_64': dict(layout='quotient7', hash='xxh3_64', bits=512 * 3, probes=2),
    'quotient13-u64-mix': dict(layout='quotient13', hash='mix', integers=True, bits=512 * 6, probes=2, seed=42),
    'counting-u64-mix': dict(layout='counting', hash='mix', integers=True, bits=2560, probes=9, seed=42),
    'guava': dict(scheme='guava', bits=1472, probes=7),
    'pharo': dict(scheme='pharo', bits=1438, probes=7),
    'python': dict(scheme='python', bits=1447, probes=7),
    'perl': dict(scheme='perl', bits=1440, probes=7),
    'perl-salts': dict(scheme='perl', bits=1440, probes=7,
                       salts=[b'0.482176318740254', b'0.0913', b'', b'9.87e-05', b'7', b'\0\xff', b'x' * 20]),
}

LAYERS_FILES = {
    'scalable-bytes-xxh3': dict(layout='split_block512', hash='xxh3', integers=False, seed=7, capacity=30, is_shared=False,
                                layers=[[(1024, 8, 30), (2048, 8, 90)]],
                                metadata=b'two layers of one shard'),
    'shared-u64-mix': dict(layout='blocked', hash='mix', integers=True, seed=42, capacity=80, is_shared=True, maximum=200,
                           layers=[[(512, 7, 20)], [(512, 7, 20), (1024, 6, 40)], [(512, 7, 20)], [(512, 7, 20), (1024, 6, 40)]]),
    # An hour in slices of 514,286 ms. The oldest slice expires 2 ms after the copy.
    'window-bytes-xxh3_64': dict(layout='split_block512', hash='xxh3_64', integers=False, seed=0, capacity=100, is_shared=True,
                                 layers=[[(2048, 8, 100, 3_400_000), (2048, 8, 100, 3_400_006), (2048, 8, 100, 3_400_007)],
                                         [(2048, 8, 100, 3_400_007)],
                                         [(2048, 8, 100, 3_400_001), (2048, 8, 100, 3_400_003)]],
                                 metadata=b'six slices of three shards', window=(3_600_000, 3_400_008 * 514_286 + 4_998)),
}


def main():
    folder = pathlib.Path(__file__).parent
    differ = []
    files = {f'{name}.bloom': filter_file(**description) for name, description in FILES.items()}
    files |= {f'{name}.layers': layers_file(**description) for name, description in LAYERS_FILES.items()}
    for name, content in files.items():
        path = folder / name
        if '--check' not in sys.argv[1:]:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            differ.append(path.name)
    if differ:
        sys.exit('these files differ: ' + ', '.join(differ))


if __name__ == '__main__':
    main()
