"""Our identity at an API server: read at the start, and again when it has expired or is refused (401).

The ``kubernetes`` library reads kubeconfigs, plug-ins and service accounts. Here a failed plug-in is an error, not an
anonymous user; failed reads do not matter while the old credentials are taken; and one thread at a time reads, not for
each request, since to the library a token expires five minutes early.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.base.errors import ClusterError, PlacerError, UsageError
from placer.base.extras import how_to_install

if TYPE_CHECKING:
    import urllib3

__all__ = ["Account", "Credentials", "context_name", "context_namespace", "find_account"]

#: Connections that are kept; as many requests may be under way at once without opening new ones.
_CONNECTIONS = 32
#: Seconds for which what was read stays as it is, unless the server refuses it; and those from one refusal that had
#: everything read to the next one that may.
_FRESH, _AGAIN = 5.0, 1.0
#: Module of the library that logs what a plug-in did wrong, and logs nothing else.
_LOGS = "kube_config"


class Account(NamedTuple):
    """An identity, as it was read."""

    url: str
    pool: urllib3.PoolManager
    headers: Mapping[str, str]
    #: Gives the headers, or new ones where they have expired; None: they never do.
    look_again: Callable[[], Mapping[str, str]] | None = None


class Credentials:
    """Our identity, for any number of threads.

    Parameters
    ----------
    read
        Reads all of it; called at once, and after a refusal.

    Raises
    ------
    PlacerError
        It cannot be read.
    """

    def __init__(self, read: Callable[[], Account]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._account = read()
        self._asked = time.monotonic()
        self._tried: float | None = None
        self._trouble: ClusterError | None = None

    @property
    def url(self) -> str:
        """URL of the server."""
        return self._account.url.rstrip("/")

    def caller(self) -> Account:
        """The current identity; the same as before where it cannot be read again."""
        with self._lock:
            look_again = self._account.look_again
            if look_again is not None and time.monotonic() - self._asked >= _FRESH:
                with suppress(ClusterError):  # the server says whether that matters
                    headers = look_again()
                    if headers != self._account.headers:
                        self._account = self._account._replace(headers=headers)
                self._asked = time.monotonic()
            return self._account

    def renewed(self, refused: Account) -> Account | None:
        """Another identity after the server refused one with 401; None where there is no other.

        Raises
        ------
        ClusterError
            It cannot be read.
        """
        with self._lock:
            if self._account is not refused:  # another thread was refused before
                return self._account
            if self._tried is not None and time.monotonic() - self._tried < _AGAIN:
                if self._trouble is not None:
                    raise self._trouble
                return None
            self._trouble = None
            try:
                return self._read_anew(refused)
            except ClusterError as error:
                self._trouble = error
                raise
            finally:
                self._tried = self._asked = time.monotonic()

    def _read_anew(self, refused: Account) -> Account | None:
        try:
            account = self._read()
        except PlacerError as error:
            raise ClusterError(str(error)) from error
        if account.url.rstrip("/") != self.url:
            raise ClusterError(f"the kubeconfig names the server {account.url} now, not {self.url} as in the beginning")
        if account.headers == refused.headers and account.pool.connection_pool_kw.get("cert_file") is None:
            return None
        self._account = account
        return account


def find_account(kubeconfig: str | None, context: str | None) -> Callable[[], Account]:
    """Find our identity; the returned function reads it, each time of the same context.

    Parameters
    ----------
    kubeconfig
        A file; None: ``KUBECONFIG``, else ``~/.kube/config``, else the service account of the pod we are in.
    context
        One of the file's; None: its current one.

    Raises
    ------
    UsageError
        The file or the context is not there, or the library that reads them is not installed.
    """
    file = _kubeconfig(kubeconfig, context)
    name = context_name(kubeconfig, context)
    return _read_service_account if file is None or name is None else partial(_read_kubeconfig, file, name)


def context_name(kubeconfig: str | None, context: str | None) -> str | None:
    """The name of the context that :func:`find_account` finds; None in a pod.

    Raises
    ------
    UsageError
        The file is not there, or the library that reads it is not installed.
    """
    file = _kubeconfig(kubeconfig, context)
    if file is None or context is not None:
        return context
    with _told_as(UsageError, f"kubeconfig {file}"):
        return str(_library().config.list_kube_config_contexts(config_file=file)[1]["name"])


def _kubeconfig(stated: str | None, context: str | None) -> str | None:
    file = stated or os.environ.get("KUBECONFIG") or None
    default = os.path.expanduser("~/.kube/config")
    return default if file is None and (context is not None or os.path.exists(default)) else file


def context_namespace(kubeconfig: str | None, context: str | None) -> str | None:
    """The namespace of the context that :func:`find_account` finds; None where it states none.

    Raises
    ------
    UsageError
        The file is not there, or the library that reads it is not installed.
    """
    file = _kubeconfig(kubeconfig, context)
    if file is None:
        return None
    with _told_as(UsageError, f"kubeconfig {file}"):
        contexts, current = _library().config.list_kube_config_contexts(config_file=file)
    chosen = current if context is None else next((each for each in contexts if each["name"] == context), None)
    return (chosen or {}).get("context", {}).get("namespace") or None


def _library() -> Any:
    try:
        import kubernetes
    except ImportError as error:
        raise UsageError(f"a cluster needs the library kubernetes: {how_to_install('cluster')}") from error
    return kubernetes


def _read_kubeconfig(file: str, context: str) -> Account:
    library = _library()
    configuration = library.client.Configuration()
    with _told_as(UsageError, f"kubeconfig {file}"), _heard_of_plugin(f"kubeconfig {file}, context {context}"):
        library.config.load_kube_config(config_file=file, context=context, client_configuration=configuration)
    return _account(library, configuration, f"kubeconfig {file}, context {context}")


def _read_service_account() -> Account:
    library = _library()
    configuration = library.client.Configuration()
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        message = "no kubeconfig (--kubeconfig, KUBECONFIG, ~/.kube/config), and this is no pod of a cluster"
        raise UsageError(message)
    where = "the service account of this pod"
    with _told_as(UsageError, where):
        library.config.load_incluster_config(client_configuration=configuration)
    return _account(library, configuration, where)


def _account(library: Any, configuration: Any, where: str) -> Account:
    configuration.connection_pool_maxsize = _CONNECTIONS

    def headers() -> dict[str, str]:
        with _told_as(ClusterError, where), _heard_of_plugin(where):
            settings = configuration.auth_settings().values()
        found = {each["key"]: each["value"].strip() for each in settings if each["in"] == "header" and each["value"]}
        for name, value in found.items():
            if not (value.isascii() and value.isprintable()):
                raise ClusterError(f"{where}: found a token with characters that a header cannot have ({name})")
        return found

    hook, configuration.refresh_api_key_hook = configuration.refresh_api_key_hook, None
    first = headers()  # which were read right now, and are not to be fetched once more
    configuration.refresh_api_key_hook = hook
    pool: urllib3.PoolManager = library.client.ApiClient(configuration).rest_client.pool_manager
    return Account(configuration.host, pool, first, headers)


@contextmanager
def _told_as(kind: type[PlacerError], what: str) -> Iterator[None]:
    import yaml

    broken = (
        _library().config.ConfigException,
        yaml.YAMLError,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
    )
    try:
        yield
    except broken as error:
        raise kind(f"{what}: {error}") from error


class _Listening(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.module == _LOGS and record.thread == self._thread:
            self.said.append(record.getMessage())


@contextmanager
def _heard_of_plugin(where: str) -> Iterator[None]:
    listening = _Listening()
    root = logging.getLogger()
    root.addHandler(listening)
    try:
        yield
    finally:
        root.removeHandler(listening)
    if listening.said:
        said = "; ".join(listening.said)
        raise ClusterError(f"{where}: the plug-in of its user gave no credentials that can be used: {said}")
