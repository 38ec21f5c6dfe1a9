from __future__ import annotations

import subprocess
import sys


def test_without_the_sdk_the_extra_is_named() -> None:
    program = "import sys; sys.modules['openai'] = None\nimport accord.openai"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "ImportError: accord.openai needs the openai package: pip install 'accord[openai]'" in result.stderr
