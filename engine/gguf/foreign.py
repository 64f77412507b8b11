"""Names a file that is not GGUF for what it is, by its first bytes, and says what to do with it."""

from __future__ import annotations

import re

_PEEK_BYTES = 1024
_TAR_MAGIC_OFFSET = 257
_SAFETENSORS_MAX_HEADER_BYTES = 100_000_000

_CONVERT = "Convert the model to GGUF, or choose a GGUF file of it."
_UNPACK = "Unpack it and choose the GGUF file inside."
_DOWNLOAD = "Download the model again and check that the address leads to the file itself."

# First bytes -> (what it is, what to do). GGML's old magics are numbers, so their letters stand backwards.
_MAGICS: tuple[tuple[bytes, str, str], ...] = (
    (b"lmgg", "an old GGML model (ggml, before GGUF)", _CONVERT),
    (b"fmgg", "an old GGML model (ggmf, before GGUF)", _CONVERT),
    (b"tjgg", "an old GGML model (ggjt, before GGUF)", _CONVERT),
    (b"algg", "an old GGML adapter (ggla, before GGUF)", _CONVERT),
    (b"nsgg", "an old GGML session (ggsn)", "It holds a saved chat, not a model: choose the model's file."),
    (b"FUGG", "a GGUF file for big-endian machines", "Choose the little-endian file of this model."),
    (b"\x1f\x8b", "a gzip archive", _UNPACK),
    (b"BZh", "a bzip2 archive", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!", "a RAR archive", _UNPACK),
    (b"\x89HDF\r\n", "an HDF5 file", _CONVERT),
    (b"\x93NUMPY", "a NumPy array", _CONVERT),
    (b"%PDF", "a PDF document", _DOWNLOAD),
    (b"\x7fELF", "a program (ELF)", "Choose a model's file."),
    (b"SQLite format 3\x00", "an SQLite database", "Choose a model's file."),
)


def name_foreign_file(head: bytes, file_bytes: int) -> tuple[str, str]:
    """What a file is whose first bytes (1,024 or all of them) are `head`, and what to do: two sentences' worth of text.

    Never fails: what is not recognised is described by its first bytes.
    """
    head = head[:_PEEK_BYTES]
    if not file_bytes:
        return "an empty file", "Its download did not begin or was lost: download the model again."
    for magic, what, advice in _MAGICS:
        if head.startswith(magic):
            return what, advice
    if not head.strip(b"\0"):
        return "a file that begins with zeros", "Its download did not finish: download the model again."
    return (
        _name_archive_or_checkpoint(head, file_bytes)
        or _name_text(head)
        or (f"an unknown file that begins with the bytes {head[:16].hex(' ')}", "Choose a GGUF file.")
    )


def _name_archive_or_checkpoint(head: bytes, file_bytes: int) -> tuple[str, str] | None:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        if b"data.pkl" in head:
            return "a PyTorch checkpoint (zip)", _CONVERT
        return "a ZIP archive", _UNPACK
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a Python pickle, perhaps an old PyTorch checkpoint", _CONVERT
    if head[_TAR_MAGIC_OFFSET : _TAR_MAGIC_OFFSET + 5] == b"ustar":
        return "a tar archive", _UNPACK
    header_bytes = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and 2 <= header_bytes <= min(_SAFETENSORS_MAX_HEADER_BYTES, max(file_bytes - 8, 0)):
        return "a safetensors checkpoint", _CONVERT
    return None


def _name_text(head: bytes) -> tuple[str, str] | None:
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        size = re.search(rb"\nsize (\d{1,20})\n", head)
        holds = f" of {int(size[1]):,} bytes" if size else ""
        return (
            f"a Git LFS pointer, which stands for a file{holds} and does not hold it",
            "Run `git lfs pull` in its folder, or download the file itself.",
        )
    head = head.removeprefix(b"\xef\xbb\xbf")
    text = head.lstrip()
    lower = text[:64].lower()
    if lower.startswith((b"<!doctype html", b"<html", b"<head", b"<!--")):
        return "an HTML page, perhaps the error page of a download", _DOWNLOAD
    if lower.startswith(b"<?xml"):
        return "an XML document, perhaps the error message of a download", _DOWNLOAD
    if text[:1] in (b"{", b"[") and _is_text(head):
        return "a JSON document", "Choose the model's GGUF file, which may be in the same folder."
    if _is_text(head):
        start = head.decode(errors="replace").split("\n", 1)[0][:60]
        return f"a text file that begins with {start!r}", "Choose a GGUF file."
    return None


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if len(head) - error.start >= 4:
            return False
        text = head[: error.start].decode()  # a character cut by the end of what was read
    return all(character.isprintable() or character in "\t\r\n" for character in text)
