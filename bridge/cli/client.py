"""One HTTP request of a command, with every way it can go wrong said as a CliError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from bridge.cli.problem import CliError, Exit, of_document
from bridge.cli.target import Target

CONNECT_TIMEOUT = 5.0
ANSWER_TIME = 30.0
"""Seconds that an answer may take beyond the wait that was asked for."""


def post(
    target: Target,
    path: str,
    body: Mapping[str, Any],
    *,
    headers: Mapping[str, str],
    wait: float,
    lost: str,
) -> httpx.Response:
    """POST and return a successful answer.

    `wait`: seconds that the bridge may let us wait. `lost`: what to do when the answer does not
    come, though the request may have got there. Raises CliError.
    """
    return _request(target, "POST", path, wait=wait, lost=lost, headers=headers, json=dict(body))


def get(
    target: Target,
    path: str,
    query: Mapping[str, str] | None = None,
    *,
    wait: float = 0.0,
    answer_time: float = ANSWER_TIME,
) -> httpx.Response:
    """GET and return a successful answer; `wait` as for `post`. Raises CliError."""
    return _request(
        target,
        "GET",
        path,
        wait=wait,
        answer_time=answer_time,
        lost="try again",
        params=dict(query or {}),
    )


def _request(
    target: Target,
    method: str,
    path: str,
    *,
    wait: float,
    lost: str,
    headers: Mapping[str, str] | None = None,
    answer_time: float = ANSWER_TIME,
    **content: Any,
) -> httpx.Response:
    timeout = httpx.Timeout(wait + answer_time, connect=CONNECT_TIMEOUT)
    authorized = {"Authorization": f"Bearer {target.token}", **(headers or {})}
    with httpx.Client(timeout=timeout, trust_env=not target.local) as client:
        try:
            response = client.request(method, f"{target.base}{path}", headers=authorized, **content)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise unreachable(target, error) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            detail = f"the answer did not come ({_words(error)}); {lost}"
            raise CliError("UNKNOWN", detail, Exit.UNKNOWN) from error
    if response.is_success:
        return response
    raise of_response(response)


def unreachable(target: Target, error: Exception) -> CliError:
    """No bridge answers at the address."""
    detail = f"no bridge answers at {target.base} ({_words(error)})"
    return CliError("UNREACHABLE", detail, Exit.UNREACHABLE)


def of_response(response: httpx.Response) -> CliError:
    """The error that an answer tells of, also when it is not a bridge that answers."""
    try:
        document = response.json()
    except ValueError:
        document = None
    if isinstance(document, dict) and "code" in document:
        return of_document(document)
    detail = f"{response.url.host} answered {response.status_code}, and not as a bridge does"
    return CliError("UNREACHABLE", detail, Exit.UNREACHABLE)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
