"""What a command prints is looked at: the server in the same process is to log elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def _quiet_server() -> Iterator[None]:
    with capture_logs():
        yield
