"""HTTP to an API server: requests, repeated where that may help, and lists in pages.

A request answered with 401 had no effect; it is sent once more with new credentials
(:mod:`placer.passes.cluster.reading.credentials`). The typed calls of the ``kubernetes`` library are far slower than
reading the text.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, Unpack
from urllib.parse import urlencode

from placer.base.errors import ClusterError
from placer.base.version import __version__
from placer.passes.cluster.reading.credentials import Account, Credentials, find_account

if TYPE_CHECKING:
    import urllib3

    from placer.passes.cluster.reading.views import Page

__all__ = [
    "APPLY",
    "JSON",
    "MERGE",
    "STRATEGIC_MERGE",
    "Busy",
    "Client",
    "Follower",
    "Forbidden",
    "Heard",
    "Response",
    "SendOptions",
    "Server",
    "ServerClock",
    "Unanswered",
    "Unlisted",
    "Writer",
    "listed",
    "own_namespace",
    "server_time",
    "whole_list",
]

Item = TypeVar("Item")
AnyPage = TypeVar("AnyPage", bound="Page[Any]")

#: Hears of a request: method, URL, status (0: no answer came), and seconds until the answer began.
Heard = Callable[[str, str, int, float], None]

#: As what we show in the logs of a server.
_AGENT = f"placer/{__version__}"
#: Content types: of objects, and of patches: server-side apply, any object, and Kubernetes' own, whose lists are merged
#: by key.
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"

#: Seconds to connect, and to wait for the next part of an answer.
_CONNECT, _READ = 10.0, 60.0
#: How often something is asked in all before we give up, and the seconds before the second time; they double.
_TRIES, _FIRST_WAIT = 5, 0.2
#: Most seconds to wait where the server says how long and there is no limit, or what is left of it is shorter.
_LONGEST_WAIT = 10.0
#: Seconds to wait for the answer to something that is written.
_WRITTEN = 10.0
#: Answers after which the same question may have another answer.
_AGAIN = frozenset((429, 500, 502, 503, 504))
#: Most objects a page of a list, and of its first one, when it is not known yet how large they are: small pages are
#: read faster, and a server keeps no long answers for us. None has more than so many times what the one before had.
_PAGE, _FIRST_PAGE, _GROWTH = 500, 5, 10
#: Most bytes that are read of a page: of one that has more, nothing is kept, and fewer objects are asked for. Of a page
#: of one object all is read; a server keeps 1.5 MiB. Pages aim at half of it, so that objects somewhat larger than
#: those before cost no second question, and a first page never does.
_PAGE_BYTES = 8 * 2**20
#: Seconds by which the server's clock may be another one at once, and answers in a row that must agree on more.
_JUMP, _AGREEING = 5.0, 3
#: How often a list is begun anew that took so long that the server forgot where we were.
_STARTS = 3
#: Where a kubelet writes the namespace of a pod with a service account.
_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


class Unanswered(ClusterError):
    """No answer came: the request may have had its effect, unless it was not ``sent``.

    ``why`` is the cause in words that tenants may read, without the request and its address.
    """

    def __init__(self, message: str, *, sent: bool = True, why: str = "") -> None:
        super().__init__(message)
        self.sent, self.why = sent, why or message


class Forbidden(ClusterError):
    """The server knows us, and forbids this."""


class Busy(ClusterError):
    """The server has no time for us now; ``again_after`` is the wait in seconds that it asks for."""

    def __init__(self, message: str, again_after: float) -> None:
        super().__init__(message)
        self.again_after = again_after


class TooLong(ClusterError):
    """A page has more bytes than the limit of one page."""


class Response:
    """An answer: status, text, and the wait in seconds that the server asks for, if any."""

    __slots__ = ("again_after", "status", "text")

    def __init__(self, status: int, text: bytes, again_after: float | None = None) -> None:
        self.status, self.text, self.again_after = status, text, again_after

    @property
    def message(self) -> str:
        """The message of a Status, or the beginning of the text."""
        return _message(self.text)

    @property
    def too_large(self) -> bool:
        """Whether the object is longer than the store takes, however often it is sent (409 or 500)."""
        return self.status in (409, 500) and "request is too large" in self.message


class Unlisted(ClusterError):
    """A page of a list was answered with another status than 200."""

    def __init__(self, path: str, selector: str, answer: Response) -> None:
        super().__init__(f"{path}: {answer.status}{selector and f' for {selector}'}")
        self.answer = answer


def _pages(
    ask: Callable[[str, Mapping[str, str]], Response],
    path: str,
    decode: Callable[[bytes], AnyPage],
    selector: str,
) -> Iterator[AnyPage]:
    import msgspec

    asked = {"fieldSelector": selector} if selector else {}
    token, limit = "", _FIRST_PAGE
    while True:
        try:
            answer = ask(path, {"limit": str(limit)} | asked | ({"continue": token} if token else {}))
        except TooLong:
            limit = max(1, limit // _GROWTH)
            continue
        if answer.status != 200:
            raise Unlisted(path, selector, answer)
        try:
            page = decode(answer.text)
        except msgspec.DecodeError as error:
            raise ClusterError(f"{path}: found no list: {error}") from error
        yield page
        token = page.metadata.continue_
        if not token:
            return
        each = len(answer.text) // max(1, len(page.items or ())) + 1
        limit = max(1, min(_PAGE, _PAGE_BYTES // (2 * each), _GROWTH * limit))


def whole_list(
    ask: Callable[[str, Mapping[str, str]], Response],
    path: str,
    decode: Callable[[bytes], AnyPage],
    selector: str = "",
    watch: Callable[[int], None] = lambda _: None,
) -> list[AnyPage]:
    """All pages of a list, from the start again where the server has forgotten its place in it.

    Parameters
    ----------
    selector
        Of fields; empty: all objects.

    Raises
    ------
    Unlisted
        A page has another status than 200 and 410.
    ClusterError
        The answer is no page of a list, or the server forgot the list three times.
    """
    for _ in range(_STARTS):
        found: list[AnyPage] = []
        count = 0
        try:
            for page in _pages(ask, path, decode, selector):
                found.append(page)
                count += len(page.items or ())
                watch(count)
            return found
        except Unlisted as error:
            if error.answer.status != 410:
                raise
    raise ClusterError(f"{path}: the list took too long {_STARTS} times, the server forgot its pages (410)")


def listed(
    ask: Callable[[str, Mapping[str, str]], Response], path: str, shape: type[Item], selector: str = ""
) -> Iterator[Item]:
    """Objects of a list in a shape of msgspec; one with another shape is skipped, so that it hides no others."""
    import msgspec

    from placer.passes.cluster.reading.views import Page

    whole = msgspec.json.Decoder(Page[shape])  # type: ignore[valid-type]
    single = msgspec.json.Decoder(shape)

    def decode(text: bytes) -> Page[Item]:
        try:
            return whole.decode(text)
        except msgspec.ValidationError:
            page = msgspec.json.decode(text, type=Page[msgspec.Raw])
        items = []
        for each in page.items or ():
            with suppress(msgspec.ValidationError):
                items.append(single.decode(each))
        return Page(page.metadata, items)

    for page in whole_list(ask, path, decode, selector):
        yield from page.items or ()


def server_time(server: object) -> datetime:
    """The time by a server's own clock where it has :meth:`Client.now`, else by ours."""
    clock: Callable[[], datetime] | None = getattr(server, "now", None)
    return datetime.now(UTC) if clock is None else clock()


class Server(Protocol):
    """Answers questions: a :class:`Client`, or a double of it in tests."""

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        """Ask for something."""


class SendOptions(TypedDict, total=False):
    """Options of :meth:`Client.send`, which has the defaults."""

    parameters: Mapping[str, str] | None
    kind: str
    timeout: float


class Writer(Server, Protocol):
    """Takes changes: a :class:`Client`, or a double of it in tests."""

    def send(self, method: str, path: str, body: object = None, **options: Unpack[SendOptions]) -> Response:
        """Write something, once."""


class Follower(Server, Protocol):
    """Reports events as they happen: a :class:`Client`, or a double of it in tests."""

    def follow(
        self, path: str, parameters: Mapping[str, str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[bytes]:
        """Lines of an endless answer."""


class ServerClock:
    """A server's clock, from the ``Date`` of its answers; ours until the first one.

    A ``Date`` has whole seconds, from between question and answer. So each answer bounds the server's lead over our
    monotonic clock from below and above. The greatest lower bound is kept until an answer contradicts it, so that time
    does not run back by parts of a second. A jump of seconds counts once three answers in a row agree, since one of
    several servers may have another time.

    Parameters
    ----------
    clock
        Seconds, which never decrease.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._ahead: float | None = None
        self._jumped: list[float] = []  # how far ahead the last answers said in a row that the server is, all the same

    def now(self) -> datetime:
        """The least time that the server may have."""
        ahead = self._ahead
        return datetime.now(UTC) if ahead is None else datetime.fromtimestamp(ahead + self._clock(), UTC)

    def note(self, headers: Mapping[str, str], asked: float) -> None:
        """Note the ``Date`` of an answer; ``asked`` is when the question was sent, by our clock."""
        with suppress(KeyError, TypeError, ValueError):
            date = parsedate_to_datetime(headers["Date"])
            second = (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
            least, most = second - self._clock(), second + 1 - asked
            with self._lock:
                self._heard(least, most)

    def _heard(self, least: float, most: float) -> None:
        if self._ahead is not None and least <= self._ahead <= most:
            self._jumped.clear()
            return
        if self._ahead is not None and (least > self._ahead + _JUMP or most < self._ahead - _JUMP):
            self._jumped = [each for each in self._jumped if abs(each - least) <= _JUMP] + [least]
            if len(self._jumped) < _AGREEING:
                return
        self._ahead = least
        self._jumped.clear()


class Client:
    """An API server, with the credentials of one of its users."""

    def __init__(self, credentials: Credentials, sleep: Callable[[float], None] = time.sleep) -> None:
        self.url = credentials.url
        self.until: float | None = None  #: ``time.monotonic()`` up to which the server may have us wait
        self.heard: list[Heard] = []  #: what hears of each request, in the thread that sends it
        self._credentials, self._sleep = credentials, sleep
        self._clock = ServerClock()

    def now(self) -> datetime:
        """The time by the server's clock (:class:`ServerClock`)."""
        return self._clock.now()

    @classmethod
    def connect(cls, kubeconfig: str | None = None, context: str | None = None) -> Client:
        """Find a server, as :func:`~placer.passes.cluster.reading.credentials.find_account` does; nothing is asked of
        it yet.

        Raises
        ------
        UsageError
            The file or the context is not there, or the library that reads them is not installed.
        ClusterError
            A plug-in for credentials fails.
        """
        return cls(Credentials(find_account(kubeconfig, context)))

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        """Ask for something below the server's root, again where that may help.

        Returns
        -------
        Response
            Of status 200, 404 or 410; the caller knows their meaning.

        Raises
        ------
        Forbidden
            We may not read this.
        TooLong
            A page of several objects has more than 8 MiB.
        ClusterError
            The server does not answer, does not know us, has lasting trouble, or asks for too long a wait.
        """
        several = int((parameters or {}).get("limit", "1")) > 1
        query = f"?{urlencode(parameters)}" if parameters else ""
        for remaining in reversed(range(_TRIES)):
            answer, wait, trouble = self._ask(f"{self.url}{path}{query}", path, _PAGE_BYTES if several else None)
            if answer is not None:
                return answer
            self._check_wait(wait, f"{self.url}{path}: {trouble}")
            if remaining:
                pause = _FIRST_WAIT * 2 ** (_TRIES - 1 - remaining) * random.uniform(0.8, 1.2)
                self._sleep(pause if wait is None else wait)
        raise ClusterError(f"{self.url}{path}: {trouble}, {_TRIES} times")

    def _check_wait(self, wait: float | None, trouble: str) -> None:
        """Refuse a wait that is longer than the time left; asking earlier would not help."""
        left = max(_LONGEST_WAIT, self.until - time.monotonic()) if self.until is not None else _LONGEST_WAIT
        if wait is not None and wait > left:
            raise Busy(f"{trouble}; the server wants to be asked again after {wait:g} s, there are {left:.0f}", wait)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        parameters: Mapping[str, str] | None = None,
        kind: str = JSON,
        timeout: float = _WRITTEN,
    ) -> Response:
        """Write something below the server's root, once; the caller knows the meaning of the answer.

        Parameters
        ----------
        timeout
            Seconds to connect, and to wait for the answer.

        Raises
        ------
        Unanswered
            No answer came in time, the connection broke, or the server does not know us.
        """
        import json

        import urllib3

        query = f"?{urlencode(parameters)}" if parameters else ""
        data = None if body is None else json.dumps(body).encode()
        asked = time.monotonic()
        try:
            answer = self._request(
                method, f"{self.url}{path}{query}", {"Content-Type": kind}, body=data, timeout=timeout
            )
        except urllib3.exceptions.HTTPError as error:
            never = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
            why = _no_answer(error, timeout)
            raise Unanswered(f"{self.url}{path}: {why}", sent=not isinstance(error, never), why=why) from error
        self._clock.note(answer.headers, asked)
        return Response(answer.status, answer.data, _again_after(answer.headers))

    def follow(
        self, path: str, parameters: Mapping[str, str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[bytes]:
        """Ask for a watch, and give its lines as they come.

        Parameters
        ----------
        opened
            Called with a function that ends the answer from another thread, as soon as there is one.

        Raises
        ------
        Unanswered
            The connection broke.
        ClusterError
            The answer is not 200; :class:`Busy` where the server says when to ask again.
        """
        import urllib3

        timeout = urllib3.Timeout(connect=_CONNECT, read=_READ * 2)
        url = f"{self.url}{path}?{urlencode(parameters)}"
        try:
            answer = self._request("GET", url, timeout=timeout, preload_content=False)
            try:
                if answer.status == 410:  # said before the first event or in one: it means the same
                    yield b'{"type":"ERROR","object":{"code":410}}'
                    return
                if answer.status != 200:
                    message, wait = f"{path}: {answer.status} {_message(answer.read())}", _again_after(answer.headers)
                    raise ClusterError(message) if wait is None else Busy(message, wait)
                opened(partial(_shut, answer))
                rest = b""
                for part in answer.stream(2**16):
                    *lines, rest = (rest + part).split(b"\n")
                    yield from lines
            finally:
                answer.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unanswered(f"{self.url}{path}: {_no_answer(error, _READ * 2)}") from error

    def _request(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": _AGENT, **(headers or {})}
        caller = self._credentials.caller()
        answer = self._sent(caller, method, url, headers, options)
        if answer.status != 401:
            return answer
        try:
            found = self._credentials.renewed(caller)
        except ClusterError as error:
            answer.close()
            message = f"{self.url}: the server does not know who we are (401), and that cannot be read again: {error}"
            raise Unanswered(message, sent=False, why="the server does not know who placer is (401)") from error
        if found is None:
            return answer
        answer.close()
        return self._sent(found, method, url, headers, options)

    def _sent(
        self, caller: Account, method: str, url: str, headers: Mapping[str, str], options: Mapping[str, Any]
    ) -> urllib3.BaseHTTPResponse:
        asked, status = time.monotonic(), 0
        try:
            answer = caller.pool.request(method, url, headers={**headers, **caller.headers}, retries=False, **options)
            status = answer.status
            return answer
        finally:
            for each in self.heard:
                each(method, url, status, time.monotonic() - asked)

    def _ask(self, url: str, path: str, most: int | None) -> tuple[Response | None, float | None, str]:
        """One question: the answer, or None with the wait in seconds that the server asks for, and the trouble.

        At most ``most`` bytes of an answer are read; None: all of it.
        """
        import urllib3

        timeout = urllib3.Timeout(connect=_CONNECT, read=_READ)
        asked = time.monotonic()
        try:
            answer = self._request("GET", url, timeout=timeout, preload_content=False)
            self._clock.note(answer.headers, asked)
            text = _read(answer, path, most)
        except urllib3.exceptions.SSLError as error:
            raise ClusterError(f"{self.url}: its certificate is not accepted: {error}") from error
        except urllib3.exceptions.HTTPError as error:
            return None, None, _no_answer(error, _READ)
        if answer.status in (200, 404, 410):
            return Response(answer.status, text), None, ""
        message = _message(text)
        if answer.status in _AGAIN:
            return None, _again_after(answer.headers), f"{answer.status} {message}"
        if answer.status == 401:
            raise ClusterError(f"{self.url}: the server does not know who we are (401 {message})")
        if answer.status == 403:
            raise Forbidden(f"{path}: not allowed (403 {message})")
        raise ClusterError(f"{self.url}{path}: {answer.status} {message}")


def own_namespace() -> str | None:
    """The namespace of the pod this runs in; None outside of one."""
    try:
        with open(_NAMESPACE, encoding="utf-8") as file:
            return file.read().strip() or None
    except OSError:
        return None


def _no_answer(error: Exception, seconds: float) -> str:
    import urllib3

    cause = getattr(error, "reason", None)
    error = cause if isinstance(cause, Exception) else error
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"no connection to the server: {str(error).rpartition(': ')[2]}"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return f"no answer within {seconds:g} s"
    return f"the connection broke before the answer was whole ({type(error).__name__})"


def _shut(answer: urllib3.BaseHTTPResponse) -> None:
    with suppress(ValueError, OSError):
        answer.shutdown()


def _read(answer: urllib3.BaseHTTPResponse, path: str, most: int | None) -> bytes:
    try:
        parts, size = [], 0
        for part in answer.stream(2**16):
            parts.append(part)
            size += len(part)
            if most is not None and size > most:
                raise TooLong(f"{path}: a page of more than {most:,} bytes")
        answer.release_conn()
        return b"".join(parts)
    except BaseException:
        answer.close()  # what else it has to say is not waited for
        raise


def _again_after(headers: Mapping[str, str]) -> float | None:
    import urllib3

    after = headers.get("Retry-After")
    try:
        return max(0.0, urllib3.Retry().parse_retry_after(after)) if after is not None else None
    except urllib3.exceptions.InvalidHeader:
        return None


def _message(text: bytes) -> str:
    import json

    try:
        found = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        found = text[:200].decode("utf-8", "replace")
    return str(found).strip()
