"""The policies of a miniature: each trained by its recipe, from one start, through the code of the command.

For `ra_msd` that is `python -m eldgr_dspy.training.grpo --config miniature/ra_msd`, with the flags of `flags`.
The recipe at the scale of the paper is another file used in its place.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from eldgr_dspy.files import replacing
from eldgr_dspy.training.curves import FILE, draw_curves
from eldgr_dspy.training.grpo import parsed, train
from eldgr_dspy.training.miniature.settings import Settings
from eldgr_dspy.training.miniature.task import Questions


def write_data(out: Path, questions: Questions) -> None:
    """Write what the command reads: `train.jsonl` with a row a question, and the corpus for the steps."""
    folder = out / "data"
    folder.mkdir(exist_ok=True)
    rows = [question.row(f"t{number}") for number, question in enumerate(questions.of("trained"), start=1)]
    corpus = [{"title": passage.title, "text": passage.text} for passage in questions.corpus()]
    for path, records in ((folder / "train.jsonl", rows), (out / "corpus.jsonl", corpus)):
        with replacing(path) as file:
            file.writelines(json.dumps(record).encode("ascii") + b"\n" for record in records)


def flags(out: Path, policy: str, settings: Settings, seed: int) -> list[str]:
    """Return the flags of the command by which a policy is trained."""
    own = {
        "config": f"miniature/{policy}",
        "model_name_or_path": out / "warm",
        "dataset_name": out / "data",
        "output_dir": out / "checkpoints" / policy,
        "nli": out / "nli",
        "corpus": out / "corpus.jsonl",
        "seed": seed,
        "data_seed": seed,
        "save_strategy": "no",
        "disable_tqdm": "true",
    }
    return [word for name, value in {**own, **settings.training}.items() for word in (f"--{name}", str(value))]


def train_policy(out: Path, policy: str, settings: Settings, seed: int) -> None:
    """Train a policy. Raises what `train` raises."""
    train(parsed(flags(out, policy, settings, seed)))


def draw(out: Path, policies: Sequence[str]) -> None:
    """Bring the learning curves of the policies together: in one file, a line a step, and in a drawing."""
    curves = {policy: out / "checkpoints" / policy / FILE for policy in policies}
    with replacing(out / "curves.jsonl") as file:
        for policy, path in curves.items():
            for line in path.read_text("utf-8").splitlines():
                file.write(json.dumps({"policy": policy, **json.loads(line)}).encode("ascii") + b"\n")
    draw_curves(curves, out / "curves.svg")
