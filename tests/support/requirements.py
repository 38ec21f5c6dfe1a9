"""What a machine lacks is a reason to skip a test, except where `ACCORD_REQUIRE_SERVICES=1` says nothing may lack."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skips the test for `reason`; fails it where everything is required, as in CI."""
    if os.environ.get("ACCORD_REQUIRE_SERVICES") == "1":
        pytest.fail(f"{reason} (and ACCORD_REQUIRE_SERVICES=1 requires it)", pytrace=False)
    pytest.skip(reason)
