"""Arrow arrays by the C data interface, made by hand with ctypes: no package of Debian 12 exports them."""

import ctypes
import struct


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
    ("release", ReleaseSchema), ("private_data", ctypes.c_void_p),
]  # fmt: skip
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p), ("release", ReleaseArray), ("private_data", ctypes.c_void_p),
]  # fmt: skip
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ReleaseStream), ("private_data", ctypes.c_void_p),
]  # fmt: skip

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def capsule(struct_: ctypes.Structure, name: bytes) -> object:
    return new_capsule(ctypes.addressof(struct_), name, None)


class Exported:
    """An array with these buffers; None is a null pointer."""

    def __init__(self, format: bytes, buffers: list, length: int, nulls: int = 0, offset: int = 0, **fields) -> None:
        self.kept = [None if data is None else ctypes.create_string_buffer(bytes(data), max(len(data), 1)) for data in buffers]
        self.pointers = (ctypes.c_void_p * max(len(buffers), 1))(*[None if data is None else ctypes.addressof(data) for data in self.kept])
        self.released: list[str] = []
        self.exports: list[tuple[Schema, Array]] = []
        self.schema = Schema(format=format, release=ReleaseSchema(self.release_schema))
        self.array = Array(length=length, null_count=nulls, offset=offset, n_buffers=len(buffers), buffers=self.pointers)
        self.array.release = ReleaseArray(self.release_array)
        for name, value in fields.items():
            setattr(self.array, name, value)

    def release_schema(self, schema) -> None:
        self.released.append("schema")
        schema.contents.release = ReleaseSchema()

    def release_array(self, array) -> None:
        self.released.append("array")
        array.contents.release = ReleaseArray()

    def __arrow_c_array__(self, requested_schema=None):
        """Capsules of copies: a consumer moves the structs out of its capsules."""
        schema, array = Schema.from_buffer_copy(self.schema), Array.from_buffer_copy(self.array)
        self.exports.append((schema, array))
        return capsule(schema, b"arrow_schema"), capsule(array, b"arrow_array")


class Chunks:
    """A stream of the arrays of one type."""

    def __init__(self, chunks: list[Exported], fails: bool = False) -> None:
        self.chunks, self.next, self.fails = chunks, iter(chunks), fails
        functions = dict(Stream._fields_)
        self.stream = Stream(get_schema=functions["get_schema"](self.get_schema), get_next=functions["get_next"](self.get_next),
                             get_last_error=functions["get_last_error"](lambda stream: b"the disk is gone"), release=ReleaseStream(lambda stream: None))  # fmt: skip

    def get_schema(self, stream, out) -> int:
        ctypes.memmove(out, ctypes.addressof(self.chunks[0].schema), ctypes.sizeof(Schema))
        return 0

    def get_next(self, stream, out) -> int:
        chunk = next(self.next, None)
        if chunk is None and self.fails:
            return 5
        if chunk is None:
            ctypes.memset(out, 0, ctypes.sizeof(Array))
        else:
            ctypes.memmove(out, ctypes.addressof(chunk.array), ctypes.sizeof(Array))
        return 0

    def __arrow_c_stream__(self, requested_schema=None):
        return capsule(self.stream, b"arrow_array_stream")


def texts(keys: list[bytes], format: bytes = b"u", offset: int = 0, **options) -> Exported:
    ends = [0]
    for key in keys:
        ends.append(ends[-1] + len(key))
    offsets = struct.pack(f"<{len(ends)}{'i' if format in (b'u', b'z') else 'q'}", *ends)
    return Exported(format, [None, offsets, b"".join(keys)], len(keys) - offset, offset=offset, **options)
