"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Machine:
    """The machine, and how busy it was before the first figure was taken."""

    processor: str
    cores: int
    memory: float
    system: str
    load: float
    date: str

    @classmethod
    def now(cls) -> Self:
        return cls(
            processor=_field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
            cores=os.cpu_count() or 1,
            memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
            system=f"{platform.system()} {platform.release()}",
            load=os.getloadavg()[0],
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
        )

    @property
    def busy(self) -> bool:
        """Whether somebody else is at work on it."""
        return self.load > 0.5

    def __str__(self) -> str:
        return (
            f"{self.processor}, {self.cores} cores, {self.memory:.0f} GiB, {self.system}; "
            f"load average before the first figure: {self.load:.2f}"
        )


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)
