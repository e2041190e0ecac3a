"""A module that asks its signature once, about material between marker lines."""

from typing import Any

import dspy

from eldgr_dspy.programs.engines.strict import strict_parsing


class OneCall(dspy.Module):
    """Asks its signature once and returns its outputs; a subclass says with `fenced` what is shown."""

    def __init__(self, signature: Any) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)

    def fenced(self, **material: Any) -> dict[str, Any]:
        """Return the inputs of the signature, each text between its marker lines."""
        raise NotImplementedError

    def forward(self, **material: Any) -> dspy.Prediction:
        """Ask once.

        Raises:
            dspy.AdapterParseError: The reply cannot be read.
            dspy.LMError: The request failed.
        """
        with strict_parsing():
            return self.predict(**self.fenced(**material))

    async def aforward(self, **material: Any) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        with strict_parsing():
            return await self.predict.acall(**self.fenced(**material))
