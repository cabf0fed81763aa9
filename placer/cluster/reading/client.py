"""HTTP to an API server: what is tried again, lists in pages.

How it is found and who we are there is another matter (:mod:`placer.cluster.reading.credentials`). A request that is
answered with 401 was not done, whatever it was: it goes out once more where who we are can be read anew. The typed
calls of the ``kubernetes`` library are not used: they take many times as long as the text they read.
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

from placer.cluster.reading.credentials import Caller, Credentials, find_account
from placer.errors import ClusterError
from placer.version import __version__

if TYPE_CHECKING:
    import urllib3

    from placer.cluster.reading.views import Page

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
    "pages",
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
    """No answer came, so it is not known whether what was asked for has happened; unless it was not even ``sent``.

    ``why`` says what came in its place, in words that tenants may read: without what was asked, and where.
    """

    def __init__(self, message: str, *, sent: bool = True, why: str = "") -> None:
        super().__init__(message)
        self.sent, self.why = sent, why or message


class Forbidden(ClusterError):
    """The server knows who we are, and that we may not read this."""


class Busy(ClusterError):
    """The server has no time for us now; ``again_after`` is the seconds after which it wants to be asked again."""

    def __init__(self, message: str, again_after: float) -> None:
        super().__init__(message)
        self.again_after = again_after


class TooLong(ClusterError):
    """A page has more bytes than are read of one."""


class Response:
    """What the server said: a status, a text, and the seconds after which to ask again, where it says so."""

    __slots__ = ("again_after", "status", "text")

    def __init__(self, status: int, text: bytes, again_after: float | None = None) -> None:
        self.status, self.text, self.again_after = status, text, again_after

    @property
    def message(self) -> str:
        """The message of a Status, or the beginning of the text."""
        return _message(self.text)

    @property
    def too_large(self) -> bool:
        """Whether what was to be written is longer than the store takes, however often it is sent (409 or 500)."""
        return self.status in (409, 500) and "request is too large" in self.message


class Unlisted(ClusterError):
    """A page of a list was answered with another status than 200: the server does not know it, or no longer."""

    def __init__(self, path: str, selector: str, answer: Response) -> None:
        super().__init__(f"{path}: {answer.status}{selector and f' for {selector}'}")
        self.answer = answer


def pages(
    ask: Callable[[str, Mapping[str, str]], Response],
    path: str,
    decode: Callable[[bytes], AnyPage],
    selector: str = "",
) -> Iterator[AnyPage]:
    """Ask for a list, page by page.

    Parameters
    ----------
    ask
        Asks for a path with parameters, as :meth:`Client.get` does.
    path
        Of the list.
    decode
        Reads a page.
    selector
        Of fields; empty: all objects.

    Raises
    ------
    Unlisted
        A page is not to be had.
    ClusterError
        The answer is no page of a list.
    """
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
    """All pages of a list, as :func:`pages` asks for them; begun anew where the server has forgotten how far we were.

    Parameters
    ----------
    ask, path, decode, selector
        As :func:`pages` takes them.
    watch
        Called after each page with the number of objects so far.

    Raises
    ------
    Unlisted
        A page is not to be had, for another reason than that.
    ClusterError
        The server forgot the list again and again.
    """
    for _ in range(_STARTS):
        found: list[AnyPage] = []
        count = 0
        try:
            for page in pages(ask, path, decode, selector):
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
    """Objects of a list, each read as a shape that msgspec knows; as :func:`whole_list` asks for them.

    One that has another shape is left out: a single odd object must not keep all others from being read.
    """
    import msgspec

    from placer.cluster.reading.views import Page

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
    """The time by a server's own clock, where it tells it as :meth:`Client.now` does; else by ours."""
    clock: Callable[[], datetime] | None = getattr(server, "now", None)
    return datetime.now(UTC) if clock is None else clock()


class Server(Protocol):
    """What answers questions: a :class:`Client`, or a double of it in tests."""

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        """Ask for something."""


class SendOptions(TypedDict, total=False):
    """What a request that writes may say beside its body; :meth:`Client.send` has the defaults."""

    parameters: Mapping[str, str] | None
    kind: str
    timeout: float


class Writer(Server, Protocol):
    """What takes what is written: a :class:`Client`, or a double of it in tests."""

    def send(self, method: str, path: str, body: object = None, **options: Unpack[SendOptions]) -> Response:
        """Write something, once."""


class Follower(Server, Protocol):
    """What reports events as they happen: a :class:`Client`, or a double of it in tests."""

    def follow(
        self, path: str, parameters: Mapping[str, str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[bytes]:
        """Lines of an answer that goes on."""


class ServerClock:
    """A server's clock, from the ``Date`` of its answers; by ours until it has said one.

    Conditions and ages are by the server's clock, and ours may be off. A ``Date`` has whole seconds, and was written
    somewhen between question and answer: each says that the server is ahead of our monotonic clock by so much at least,
    and by so much at most. The most that was said at least so stays as long as no answer contradicts it. So the time
    does not go back by a part of a second from one answer to the next, as it would if the last one counted; it does
    where the server's clock was put back. Of several servers one may have another time, so a jump of some seconds
    counts once three answers in a row agree on it.

    Parameters
    ----------
    clock
        Seconds, which never go back; tests put one here that they move.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._ahead: float | None = None
        self._jumped: list[float] = []  # how far ahead the last answers said in a row that the server is, all the same

    def now(self) -> datetime:
        """The least that it may be there."""
        ahead = self._ahead
        return datetime.now(UTC) if ahead is None else datetime.fromtimestamp(ahead + self._clock(), UTC)

    def note(self, headers: Mapping[str, str], asked: float) -> None:
        """Note what an answer says of the time; ``asked`` is when our clock had the question go out."""
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
    """An API server, with the credentials of one of its users.

    Parameters
    ----------
    credentials
        Where it is, and who we are there.
    sleep
        Waits; tests put something faster here.
    """

    def __init__(self, credentials: Credentials, sleep: Callable[[float], None] = time.sleep) -> None:
        self.url = credentials.url
        self.until: float | None = None  #: ``time.monotonic()`` up to which the server may have us wait
        self.heard: list[Heard] = []  #: what hears of each request, in the thread that sends it
        self._credentials, self._sleep = credentials, sleep
        self._clock = ServerClock()

    def now(self) -> datetime:
        """The time by the server's clock, as :class:`ServerClock` knows it."""
        return self._clock.now()

    @classmethod
    def connect(cls, kubeconfig: str | None = None, context: str | None = None) -> Client:
        """Find a server; nothing is asked of it yet.

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
        ClusterError
            A plug-in that is to say who we are fails.
        """
        return cls(Credentials(find_account(kubeconfig, context)))

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        """Ask for something below the server's root; what may work the next time is asked again.

        Returns
        -------
        Response
            Of status 200, 404 or 410; what these mean is for the caller to say.

        Raises
        ------
        Forbidden
            We may not read this.
        TooLong
            A page of several objects has more than 8 MiB.
        ClusterError
            The server does not answer, does not know us, is in trouble that does not end, or wants us to wait for
            longer than there is time.
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
        """Refuse to wait for longer than there is time; coming back earlier than the server wants would not help."""
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
        """Write something below the server's root, once; what an answer means is for the caller to say.

        Parameters
        ----------
        method
            POST, PUT, PATCH, DELETE; GET, to ask once only.
        body
            What JSON can say; None: nothing.
        kind
            Content type of the body.
        timeout
            Seconds to wait for the answer, and to connect.

        Raises
        ------
        Unanswered
            No answer came in time, or the connection broke: it may have happened, or not. Or the server does not know
            us, and who we are cannot be read again: it has not.
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
            Called with what ends the answer from another thread, as soon as there is one.

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
        """Send something once; where the server does not know us, once more as who we are by now."""
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
        self, caller: Caller, method: str, url: str, headers: Mapping[str, str], options: Mapping[str, Any]
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
        """One question: the answer, or None with the seconds the server wants us to wait and what the matter is.

        Of an answer no more than ``most`` bytes are read; None: all of it.
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
    """Why no answer came, in words: those of the library are about its own objects."""
    import urllib3

    cause = getattr(error, "reason", None)
    error = cause if isinstance(cause, Exception) else error
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"no connection to the server: {str(error).rpartition(': ')[2]}"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return f"no answer within {seconds:g} s"
    return f"the connection broke before the answer was whole ({type(error).__name__})"


def _shut(answer: urllib3.BaseHTTPResponse) -> None:
    """End an answer that another thread reads; one that has ended already stays so."""
    with suppress(ValueError, OSError):
        answer.shutdown()


def _read(answer: urllib3.BaseHTTPResponse, path: str, most: int | None) -> bytes:
    """All of an answer, of which there is no more than ``most``."""
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
    """Seconds that the server wants us to wait; None where it says nothing, or nothing that can be read."""
    import urllib3

    after = headers.get("Retry-After")
    try:
        return max(0.0, urllib3.Retry().parse_retry_after(after)) if after is not None else None
    except urllib3.exceptions.InvalidHeader:
        return None


def _message(text: bytes) -> str:
    """The message of a Status, or the beginning of the text."""
    import json

    try:
        found = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        found = text[:200].decode("utf-8", "replace")
    return str(found).strip()
