"""What `record.json` holds."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from eldgr_dspy.figures.results.audit_fields import AskedName, Became, Count, RoleSums
from eldgr_dspy.figures.results.summary_fields import Confirmed
from eldgr_dspy.rule.consultations import Outcome
from eldgr_dspy.words import Branch, Task


class Share(TypedDict):
    """How many of how many, and that in percent."""

    count: Count
    """How many."""
    of: Count
    """Of how many."""
    rate: Annotated[float | None, Field(title="%")]
    """In percent; null of none."""


class OverrideRates(TypedDict):
    """How often `eldgr` overrode consensus on a pool, and what that did."""

    questions: Annotated[int, Field(ge=0)]
    """Questions that were decided."""
    by_judge: float
    """Overrides by the judge, in percent of these."""
    by_repair: float
    """Overrides by a repair or a derivation, in percent of these."""
    by_outcome: dict[Branch, dict[Became, float]]
    """Under `judge` and `repair`: the overrides by `outcome`, as [in the audit](#the-audit-in-full), in percent of
    the questions."""
    by_certificate: dict[Branch, dict[str, float]]
    """The same by `level`."""


class Model(TypedDict):
    """A model that was asked, and the one that answered."""

    role: AskedName
    """Which role."""
    asked: str | None
    """The model that was asked for."""
    served: str | None
    """The model that answered, as the server reports."""
    same: bool | None
    """Whether they are the same; null if unknown."""
    calls: Count
    """LM calls."""


class Fingerprints(TypedDict):
    """What stands for a role."""

    role: str
    """Of all details of the role, as in the journal."""
    prompts: str
    """Of its prompts alone."""
    settings: str
    """Of the LM with its settings, and of the adapter."""


class Silence(TypedDict):
    """A reason why a role abstained or its call failed."""

    role: AskedName
    """Which role."""
    outcome: Outcome
    """`abstained` or `failed`."""
    kind: str
    """Its [kind](#kinds-of-abstention), or the error of a failed call."""
    reason: str
    """How the reason begins."""
    consultations: Count
    """How many."""


class PoolStated(TypedDict):
    """A pool, as the journal states it."""

    sha256: Annotated[str, Field(title="sha256 of the content")]
    """Hash of its content."""
    rows: Annotated[Count, Field(title="questions")]
    """How many questions it has."""
    task: Task
    """Its task."""


class OwnCertificateStated(TypedDict):
    """A certificate of the user's own: its name, `module:function`, and a hash of its source, null without one."""

    name: str
    """`module:function`."""
    source: str | None
    """Hash of its source; null without one."""


@with_config(ConfigDict(allow_inf_nan=False))
class Record(TypedDict):
    """What a deployment should state about a judge that decides: the content of `record.json`."""

    default: str
    """The default."""
    certificate: dict[Task, str | OwnCertificateStated | None]
    """The required certificate, for each task; one of your own as `{"name", "source"}`."""
    settings: dict[str, Any]
    """The settings of the rule."""
    override_rates: dict[str, OverrideRates | None]
    """For each pool the measured override rate, [see below](#an-override-rate); null where `eldgr` has no result."""
    models: list[Model]
    """Which model was asked and which answered, for each role, whether they are the `same` (null if unknown), and
    the number of calls; for the whole run directory."""
    fingerprints: dict[AskedName, Fingerprints]
    """Hashes for each role that was asked: `role` of all its details, as in the journal, `prompts` of its prompts
    alone, and `settings` of its LM with its settings and the adapter."""
    parse_failures: dict[AskedName, Share]
    """For each role how many replies were [`unreadable`](#kinds-of-abstention), of how many replies, on the
    questions that were decided and with recorded ones included; `rate` in percent."""
    cost: RoleSums
    """The [consultations](#consultations-of-a-role) of all roles together, with calls, tokens and dollars."""
    remarks: list[str]
    """Those of `summary.json`, of the run and of its pools, and on addresses."""
    silences: list[Silence]
    """Reasons of abstentions and failures on the questions that were decided, for each role, with their
    [kind](#kinds-of-abstention) and number."""
    pools: dict[str, PoolStated]
    """Content hash, rows and task of each pool."""
    roles: dict[AskedName, dict[str, Any]]
    """The details of each role that was asked."""
    confirmation: Confirmed | None
    """The [freeze](../how-to/freeze-and-confirm.md) of the run; null without one."""
