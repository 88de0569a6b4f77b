"""Members of a zip archive with a checksum over the whole file, read by a parser that trusts none of its numbers."""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, NamedTuple

_SEAL = b"crowdrank, sha256 of all before: "
_DIGEST_DIGITS = 64
_CHUNK_BYTES = 1 << 20
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)

_END, _ENTRY, _LOCAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZES_LATER, _UNICODE = 1, 8, 0x800

_MAX_DIRECTORY_BYTES = 1 << 24
"""Bytes of the list of members, which is enough for 200,000 of them."""

_MAX_COMPRESSED_BYTES, _MAX_COMPRESSED_RATIO = 1 << 23, 10
"""Parts may be so large, plus so many times the file, where they are compressed; numbers compress less."""


class NoArchive(ValueError):
    """The file is no archive at all."""


class Member(NamedTuple):
    """Where a member is and how large."""

    method: int
    crc: int
    packed: int
    size: int
    offset: int


def seal(members: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an archive that ends in the checksum of all that is before; nothing in it is compressed."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _FIXED_DATE), data)
        archive.comment = _SEAL + b"0" * _DIGEST_DIGITS
    body = memory.getvalue()[:-_DIGEST_DIGITS]
    return body + hashlib.sha256(body).hexdigest().encode()


def unseal(handle: IO[bytes]) -> tuple[dict[str, bytes], bool]:
    """Return the members of an archive and whether it had a checksum, or raise ValueError where anything is wrong.

    The checksum is compared before anything else is looked at.
    """
    size = handle.seek(0, io.SEEK_END)
    start, tail = _at(handle, 0, min(4, size)), _at(handle, max(0, size - _DIGEST_DIGITS - len(_SEAL)), None)
    if start != b"PK\3\4":
        raise NoArchive("it is empty" if not size else "it does not begin as one")
    has_seal = tail.startswith(_SEAL)
    if has_seal and _digest(handle, size - _DIGEST_DIGITS) != tail[-_DIGEST_DIGITS:]:
        raise ValueError("its checksum does not fit")
    end = size - _END.size - (_DIGEST_DIGITS + len(_SEAL) if has_seal else 0)
    entries = _entries(handle, end, size, has_seal)
    return {name: _member(handle, name, entry, end) for name, entry in entries.items()}, has_seal


def _digest(handle: IO[bytes], length: int) -> bytes:
    """Checksum of the first bytes."""
    digest = hashlib.sha256()
    handle.seek(0)
    while length > 0 and (part := handle.read(min(_CHUNK_BYTES, length))):
        digest.update(part)
        length -= len(part)
    return digest.hexdigest().encode()


def _at(handle: IO[bytes], offset: int, length: int | None) -> bytes:
    """Bytes from some place on, all of those asked for."""
    handle.seek(offset)
    found = handle.read() if length is None else handle.read(length)
    if length is not None and len(found) != length:
        raise ValueError("its end is missing")
    return found


def _entries(handle: IO[bytes], end: int, size: int, has_seal: bool) -> dict[str, Member]:
    """The members by name, from the list at the archive's end; their sizes together are bounded by the file's."""
    if end < 0:
        raise ValueError("its end is missing")
    mark, disk, first_disk, here, count, length, offset, comment = _END.unpack(_at(handle, end, _END.size))
    if mark != b"PK\5\6" or comment != (_DIGEST_DIGITS + len(_SEAL) if has_seal else 0):
        raise ValueError("its end is missing")
    if disk or first_disk or here != count or length > _MAX_DIRECTORY_BYTES or offset + length != end:
        raise ValueError("its list of parts does not fit")
    directory, found, place = _at(handle, offset, length), {}, 0
    while place < length:
        name, member, place = _entry(directory, place)
        if name in found:
            raise ValueError(f"it has two parts {name!r}")
        found[name] = member
    if len(found) & 0xFFFF != count:
        raise ValueError("its list of parts does not fit")
    if has_seal and any(member.method != _STORED for member in found.values()):
        raise ValueError("a part is compressed")
    most = size if has_seal else _MAX_COMPRESSED_BYTES + _MAX_COMPRESSED_RATIO * size
    if sum(member.size for member in found.values()) > most:
        raise ValueError(f"its parts are larger than {most / 1e6:,.1f} MB, the most for a file of its size")
    return found


def _entry(directory: bytes, place: int) -> tuple[str, Member, int]:
    """Name of the member that is listed at a place, the member, and where the next one is listed."""
    if place + _ENTRY.size > len(directory):
        raise ValueError("its list of parts ends early")
    found = _ENTRY.unpack_from(directory, place)
    mark, _, _, flags, method, _, _, crc, packed, size, n_name, n_extra, n_comment, disk, _, _, offset = found
    name = directory[place + _ENTRY.size : place + _ENTRY.size + n_name]
    if flags & _ENCRYPTED:
        raise ValueError("it is encrypted")
    known = method in (_STORED, _DEFLATED) and not flags & ~(_SIZES_LATER | _UNICODE)
    if mark != b"PK\1\2" or disk or not known or not re.fullmatch(rb"[\w/.-]{1,200}", name):
        raise ValueError("its list of parts does not fit")
    return name.decode(), Member(method, crc, packed, size, offset), place + _ENTRY.size + n_name + n_extra + n_comment


def _member(handle: IO[bytes], name: str, member: Member, end: int) -> bytes:
    """What a member holds."""
    mark, _, flags, method, _, _, _, _, _, n_name, n_extra = _LOCAL.unpack(_at(handle, member.offset, _LOCAL.size))
    begin = member.offset + _LOCAL.size + n_name + n_extra
    same = method == member.method and _at(handle, member.offset + _LOCAL.size, n_name) == name.encode()
    if mark != b"PK\3\4" or flags & _ENCRYPTED or not same or begin + member.packed > end:
        raise ValueError(f"its part {name} is not where it should be")
    data = _at(handle, begin, member.packed)
    if member.method == _DEFLATED:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        data = unpacker.decompress(data, member.size + 1)
        if not unpacker.eof:
            raise ValueError(f"its part {name} is longer than it says")
    if len(data) != member.size or zlib.crc32(data) != member.crc:
        raise ValueError(f"the checksum of its part {name} does not fit")
    return data
