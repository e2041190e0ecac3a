"""Selectors whose requests have a price."""

import json
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.selector import Selector
from tests.capitals import VERDICT
from tests.lm_server import LMServer

SAID = json.dumps(VERDICT)


@pytest.fixture(autouse=True)
def loopback_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "key")


def selector_at(server: LMServer, **options: Any) -> Selector:
    selector = Selector()
    options = {"num_retries": 0, **options}
    selector.set_lm(dspy.LM("openai/gpt-4o-mini", api_base=server.address, api_key="key", cache=False, **options))
    return selector
