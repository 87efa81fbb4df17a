"""Types of the standard library which cannot live on, and why: the words users read."""

from __future__ import annotations

from ..dispatch import UNSAVEABLE

UNSAVEABLE.update(
    {
        "builtins.coroutine": "a coroutine is bound to its running frame; await it in the cell that makes it",
        "builtins.async_generator": "an async generator is bound to its running frame",
        "builtins.frame": "a frame belongs to a process that has ended",
        "_asyncio.Task": "a task ends with its event loop; await it in the cell that makes it",
        "_asyncio.Future": "a future belongs to an event loop that has ended",
        "asyncio.events.AbstractEventLoop": "an event loop ends with its process",
        "asyncio.events.Handle": "an event loop ends with its process",
        "_contextvars.Token": "a token can only be used in the context that made it",
        "socket.socket": "a network connection ends with its process",
        "_socket.socket": "a network connection ends with its process",
        "ssl.SSLSocket": "a network connection ends with its process",
        "select.epoll": "it watches files of a process that has ended",
        "select.poll": "it watches files of a process that has ended",
        "selectors.BaseSelector": "it watches files of a process that has ended",
        "_hashlib.HASH": "its inner state cannot be read; keep the data, or finish it in one cell",
        "_hashlib.HMAC": "its inner state cannot be read; keep the data, or finish it in one cell",
        "_blake2.blake2b": "its inner state cannot be read; keep the data, or finish it in one cell",
        "_blake2.blake2s": "its inner state cannot be read; keep the data, or finish it in one cell",
        "zlib.Compress": "a half-done compression cannot be saved; finish it in one cell",
        "zlib.Decompress": "a half-done decompression cannot be saved; finish it in one cell",
        "_bz2.BZ2Compressor": "a half-done compression cannot be saved; finish it in one cell",
        "_lzma.LZMACompressor": "a half-done compression cannot be saved; finish it in one cell",
        "_csv.reader": "its position cannot be read; make a list of its rows",
        "_csv.writer": "it belongs to an open file; make it again",
        "_cffi_backend.FFI": "foreign memory cannot be saved",
        "posix.ScandirIterator": "its position cannot be read; make a list of it",
        "os.DirEntry": "it belongs to a directory listing; use a path",
        "posix.DirEntry": "it belongs to a directory listing; use a path",
        "weakref.finalize": "what it watches is another object in the next cell; make it again",
        "_ctypes.CFuncPtr": "a C function pointer is valid in one process only",
        "multiprocessing.pool.Pool": "its worker processes end with the cell",
        "multiprocessing.process.BaseProcess": "a child process ends with the cell",
        "multiprocessing.connection._ConnectionBase": "a pipe ends with its process",
        "multiprocessing.synchronize.SemLock": "a lock between processes ends with them",
        "multiprocessing.queues.Queue": "a queue between processes ends with them",
        "multiprocessing.queues.SimpleQueue": "a queue between processes ends with them",
        "multiprocessing.managers.BaseManager": "its server process ends with the cell",
        "http.client.HTTPConnection": "a network connection ends with its process",
        "http.client.HTTPResponse": "a network connection ends with its process",
        "smtplib.SMTP": "a network connection ends with its process",
        "ftplib.FTP": "a network connection ends with its process",
        "socketserver.BaseServer": "a server ends with its cell",
        "_ssl._SSLContext": "an SSL context cannot be read back; make it again",
    }
)
