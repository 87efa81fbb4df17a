"""The vocabulary everything shares: steps, limits, results, keys.

Pure, frozen, typed data with a canonical JSON form. Imports nothing of the
other packages, so that the log, the engines and the use cases can all speak it.
"""

from .canonical import canonical_json, digest_bytes, digest_json
from .keys import child_key, content_nonce, fresh_nonce, root_key
from .limits import Limits
from .result import FileChange, Result, Status
from .step import Kind, Language, Step

__all__ = [
    "FileChange",
    "Kind",
    "Language",
    "Limits",
    "Result",
    "Status",
    "Step",
    "canonical_json",
    "child_key",
    "content_nonce",
    "digest_bytes",
    "digest_json",
    "fresh_nonce",
    "root_key",
]
