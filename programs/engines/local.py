"""A model in a GGUF file as an LM, without a server of yours and without a key: llama.cpp in this process.

`xllamacpp` brings llama.cpp with its own HTTP server, which listens on this machine alone, behind a key made for this
process. So the LM is an ordinary `dspy.LM`: a JSON schema, a seed, several samples, log-probabilities, a deadline and
several requests at once are those of the OpenAI format.
"""

import hashlib
import os
import secrets
from pathlib import Path
from threading import Lock
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.redaction import remember

TIMEOUT = 600.0  # seconds of a call; a small model on two cores reads about 50 tokens a second
MOST_TOKENS = 512  # of a reply: a weak model may not find the end of a text
_MAGIC = b"GGUF"
_SERVERS = dict[tuple[Any, ...], tuple[Any, str]]()
"""The servers of this process with their keys, by file and settings: a model is loaded once."""
_LOCK = Lock()


class LocalLM(dspy.LM):
    """A `dspy.LM` on a server of this process; `file` identifies what it runs, wherever the server listens."""

    structured = "on"
    file = ""


def local(
    path: str | os.PathLike[str],
    *,
    context: int = 8192,
    parallel: int = 4,
    threads: int | None = None,
    timeout: float = TIMEOUT,
    **options: Any,
) -> LocalLM:
    """Return an LM that runs a GGUF file in this process; needs the extra `local`.

    The model is loaded on the first call with a file and its settings, and stays until the process ends.

    Args:
        path: The file.
        context: Tokens that prompt and reply of one request may have together. A prompt that does not fit is an error
            of the call.
        parallel: Requests that run at once; further ones wait. Each takes memory for its context.
        threads: Threads that calculate, or None for one for each core that this process may use. They wait by spinning:
            beside other work on all cores two threads are slower than one.
        timeout: Seconds that a call may take.
        options: Further options of `dspy.LM`, such as `temperature`, `max_tokens` (512 by default), `seed`, `cache`.

    Raises:
        ArgumentError: There is no such file, it is not GGUF, it is larger than the free memory, llama.cpp cannot load
            it, `xllamacpp` is not installed, or a number is not a whole number from 1.
    """
    file = Path(path).expanduser().resolve()
    for name, value in (("context", context), ("parallel", parallel), ("threads", threads or 1)):
        if type(value) is not int or value < 1:
            raise ArgumentError(f"{name} must be a whole number of at least 1; got {value!r:.80}.")
    identity = _identity_of_model(file)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with _LOCK:
        key = (file, identity, context, parallel, threads)
        if key not in _SERVERS:
            _SERVERS[key] = _start(file, context * parallel, parallel, threads or cores)
        server, secret = _SERVERS[key]
    address = f"{server.listening_address}/v1"
    # The server ignores `user`; DSPy's cache, which knows no address, tells models of one file name apart by it.
    options = {"max_tokens": MOST_TOKENS, "timeout": timeout, "user": identity, **options}
    lm = LocalLM(f"openai/{file.stem}", api_base=address, api_key=secret, **options)
    lm.file = identity
    return lm


def _identity_of_model(file: Path) -> str:
    """Return 16 hexadecimal digits of a hash of the first MiB, which has the model's description, and the size."""
    try:
        with file.open("rb") as stream:
            start = stream.read(2**20)
    except OSError as error:
        raise ArgumentError(f"{file} cannot be read ({error.strerror}). Name a GGUF file.") from error
    if not start.startswith(_MAGIC):
        begins = start[: len(_MAGIC)]
        raise ArgumentError(
            f"{file} must be a GGUF file; it begins with {begins!r}. Convert the model, or name another."
        )
    size, free = file.stat().st_size, _free_memory()
    if free is not None and size > free:
        raise ArgumentError(
            f"{file} takes {size / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} GiB are free. Use a smaller model, "
            "or one of fewer bits."
        )
    return hashlib.sha256(start + str(size).encode()).hexdigest()[:16]


def _free_memory() -> int | None:
    """Return the bytes that Linux can give to a process; None elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _start(file: Path, context: int, parallel: int, threads: int) -> tuple[Any, str]:
    try:
        import xllamacpp as engine
    except ImportError as error:
        raise ArgumentError(
            f"{file} needs xllamacpp, which is not installed. Run `pip install 'eldgr_dspy[local]'`."
        ) from error
    secret = secrets.token_urlsafe(32)
    remember(secret)
    llama: Any = engine  # its compiled module has no types
    params = llama.CommonParams()
    params.model.path, params.model_alias = str(file), {file.stem}
    params.offline, params.use_jinja = True, True
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [secret]
    params.n_ctx, params.n_parallel, params.verbosity = context, parallel, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        return llama.Server(params), secret
    except RuntimeError as error:
        raise ArgumentError(
            f"llama.cpp cannot load {file}: {error} The file may be damaged, of an unknown architecture, or too large "
            "for the memory with its context; a smaller context takes less."
        ) from error
