"""What no command can do is refused in a sentence, with nothing printed, no traceback, and no file written.

Each case is a command line as it is typed, in a folder with a pool, a finished run, recordings, and files that are
broken in one way each.
"""

import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from tests.capitals import recording, row, write_pool
from tests.finished_runs import finished_run
from tests.pools.layouts import predictions
from tests.results.demo_pools import ARTIFACTS

FILES = {
    "torn.jsonl": b'{"id": "q", "question": "?", "prediction": "x"}\n{\n',
    "bad.jsonl": b"{",
    "w.csv": b"id,gpt\n1,Nice\n",
    "blank.jsonl": b"\n",
    "rows.jsonl": b'{"text": "Doha"}\n{"title": "Doha"}\n',
    "empty.txt": b" \n",
    "latin.txt": "né".encode("latin-1"),
    "long.txt": b"a" * 500_001,
    "huge.txt": b"a" * 2_000_001,
    "a.txt": b"Doha is the capital.",
    "ending.py": b"raise SystemExit(0)",
    "refused_code.py": b"class Strict:\n    def __call__(self, answer, evidence):\n        return False\n\nnumber = 7",
}

POOL_FILES = {
    "POOL": "capitals.jsonl",
    "DEMO": str(ARTIFACTS / "demo-retrieval.jsonl"),
    "NUMBERS": str(ARTIFACTS / "demo-arithmetic.jsonl"),
}

SYNTAX = 2
"""The exit code of wrong usage."""

EVALUATE = [
    ("evaluate", SYNTAX, "Missing argument 'POOLS...'"),
    ("evaluate POOL --rules best", 1, "rules='best' is not known; use one of 'first', 'majority'"),
    ("evaluate POOL --max-abstentions few", 1, "max_abstentions must be a count such as 10 or a share such as 5%; got"),
    ("evaluate POOL --limit 0", SYNTAX, "0 is not in the range x>=1"),
    ("evaluate nowhere.jsonl", 1, "nowhere.jsonl: no such file"),
    ("evaluate POOL POOL", 1, "are both named 'capitals'; rename one of the files"),
    ("evaluate POOL --replay nowhere", SYNTAX, "File 'nowhere' does not exist"),
    ("evaluate POOL --judge ''", 1, "A model must be PROVIDER/MODEL"),
    (
        "evaluate POOL --lm openai/none --repairer ''",
        1,
        "A model must be PROVIDER/MODEL, such as ollama/deepseek-r1:7b; got ''",
    ),
    ("freeze --judge ''", 1, "A model must be PROVIDER/MODEL"),
    (
        "evaluate POOL --api-base http://h/v1",
        1,
        "--api-base='http://h/v1' needs a model to ask, but none is given. Add --lm MODEL",
    ),
    (
        "evaluate POOL --judge ollama/none --repairer openai/none --api-base me:secret@h:8000/v1",
        1,
        "Error: --api-base='h:8000/v1' must be an address with http:// or https://, for example http://localhost:8000/v1.",
    ),
    ("evaluate POOL --lm openai/none --api-base ''", 1, "--api-base='' must be an address"),
    ("doctor --judge openai/none --api-base h/v1", 1, "--api-base='h/v1' must be an address"),
    ("doctor --judge openai/m --num-ctx 4096", 1, "num_ctx=4096 is for models of Ollama; got openai/m."),
    ("evaluate POOL --judge openai/m --set num_ctx=9999", 1, "num_ctx=9999 is for models of Ollama; got openai/m."),
    ("evaluate POOL --set num_ctx=9999", 1, "got no model"),
    ("judge", SYNTAX, "No such command 'judge'"),
    (
        "evaluate POOL --set replys=strict",
        SYNTAX,
        "It must be NAME=VALUE, NAME one of homogeneous, preference, refusal, refusals,",
    ),
    ("evaluate POOL --set orders", SYNTAX, "got 'orders'."),
    ("evaluate POOL --set orders=0", SYNTAX, "orders: 0 is not in the range 1<=x<=100."),
    ("evaluate POOL --set orders=two", SYNTAX, "orders: 'two' is not a valid integer range."),
    ("evaluate POOL --set refusal=often", SYNTAX, "refusal: 'often' is not one of 'inapplicable', 'no_answer'."),
    ("evaluate POOL --set orders=2 --set orders=3", SYNTAX, "orders is set twice. Set it once."),
]
JUDGES = [
    ("a=m,a=n", SYNTAX, "'a' names two judges. Give each its own name."),
    ("a[1]=m", SYNTAX, "must consist of letters, digits, '-', '_' and '.'; got 'a[1]'."),
    ("=m", SYNTAX, "'-', '_' and '.'; got ''."),
    ("a=", SYNTAX, "a= lacks a model or a style."),
    ("a", 1, "--judges a needs a model or a recording. Give a=MODEL or --replay a=FILE."),
    ("a=pairwise", 1, "--judges a=pairwise needs a model."),
    ("a=heuristic --judge openai/m", 1, "--judge=openai/m is for judges that are given as NAME=STYLE"),
    ("a=cisc:0.5 --judge openai/m", 1, "--judge=openai/m is for judges that are given as NAME=STYLE"),
    ("a --replay a=r.jsonl --replay b=s.jsonl", 1, "got 'b'. Name it in judges too."),
    ("a --replay a=r.jsonl --replay a=s.jsonl", SYNTAX, "judge 'a' must have one recording"),
    ("a --replay r.jsonl --replay s.jsonl", SYNTAX, "the run must have one recording; got another, s.jsonl."),
    ("a --replay a=c.jsonl", SYNTAX, "File 'c.jsonl' does not exist."),
    ("a=cisc:0", 1, "formula='cisc:0' must end with a number from 1e-06 to 1e+06; got '0'."),
    ("a=cisc:warm", 1, "formula='cisc:warm' must end with a number"),
    ("a=best_of_n", 1, "formula='best_of_n' must name a score. Write best_of_n:SCORE, such as best_of_n:prm."),
    ("a=best_of_n:prm:mean", 1, "must end with one of min, last, product, or with nothing more; got 'mean'."),
    ("a=autodspy", 1, "autodspy must name a training pool; got ''. Write autodspy:FILE."),
    ("a=autodspy:none.jsonl", 1, "none.jsonl"),
    ("a=cisk:0.5", 1, "A model must be PROVIDER/MODEL"),
    ("a=drm:1", 1, "A model must be PROVIDER/MODEL"),
    ("a=refused_code:missing", 1, "has no 'missing'; check the name."),
    ("a=refused_code:number", 1, "must be a dspy.Module or a function of a ballot; got int."),
    ("a=no_such_module:judge", 1, "the module 'no_such_module' cannot be imported"),
]
CERTIFICATES = [
    ("quoted", SYNTAX, "'quoted' is not one of 'substring', 'token', 'folded'; MODULE:FUNCTION names your own."),
    ("missing_module:quoted", 1, "the module 'missing_module' cannot be imported (ModuleNotFoundError"),
    ("refused_code:missing", 1, "the module 'refused_code' has no 'missing'; check the name."),
    ("refused_code:Strict", 1, "or an instance of a DSPy module; got <class 'refused_code.Strict'>."),
    (":", 1, "certificate must name a certificate; got ':'. Write MODULE:FUNCTION, such as my_certificates:quoted."),
]
REFUSALS = [
    ("no_such:thing", 1, "refusals='no_such:thing': the module 'no_such' cannot be imported"),
    ("tests.refusing_function:no", 1, "the module 'tests.refusing_function' has no 'no'; check the name."),
]
BEFORE = [
    ("bound", SYNTAX, "Missing argument 'POOLS...'"),
    ("bound nowhere.jsonl", 1, "nowhere.jsonl: no such file"),
    ("bound POOL POOL", 1, "are both named 'capitals'; rename one of the files"),
    ("bound POOL --rules ending:rule", 1, "Error: your code ended the process (SystemExit 0). Guard it by __name__"),
    ("bound POOL --rules vote", 1, "rules='vote' is not known; use one of 'first', 'majority', 'certified', 'judge'"),
    (
        "bound POOL --rules ,",
        SYNTAX,
        "--rules must name at least one rule; got ','. Give one or more of first, majority, certified, judge",
    ),
    ("bound POOL --rules judge[x]", 1, "Error: rules='judge[x]' must not name a judge"),
    ("bound POOL --rules near(1)[x]", 1, "Give 'near(1)'."),
    ("bound POOL --rules majority[x]", 1, "Give 'majority'."),
    ("bound POOL --out POOL", SYNTAX, "is a file that the command reads, or a part of a run. Give another."),
    ("bound POOL --worst 0", SYNTAX, "0.0 is not in the range 0<x<100"),
    ("bound POOL --worst 100", SYNTAX, "100.0 is not in the range 0<x<100"),
    ("bound POOL --worst nan", 1, "worst must be between 0 and 100 percentage points; got nan"),
    ("plan", SYNTAX, "Missing option '--gain'"),
    ("plan --gain 2", SYNTAX, "Missing option '--discordant'"),
    ("plan --gain 0 --discordant 6", SYNTAX, "0.0 is not in the range 0<x<=100."),
    ("plan --gain nan --discordant 6", 1, "gain=nan"),
    ("plan --gain 2 --discordant 6 --power 80", SYNTAX, "80.0 is not in the range 0<x<1."),
    ("plan --gain 8 --discordant 6", 1, "gain=8 is more than discordant=6: wins minus losses can't be more"),
    ("plan --gain 0.001 --discordant 6", 1, "A gain of 0.001 % with 6 % discordant needs more"),
]
FINISHED = [
    ("report", SYNTAX, "Missing argument 'RUN'"),
    ("report nowhere", 1, "nowhere: no such directory"),
    ("report run --format word", SYNTAX, "is not one of 'text', 'markdown', 'latex', 'csv', 'json', 'html'"),
    ("report run --out nowhere/there", 1, "The report could not be written:"),
    ("report run --out run/summary.json", SYNTAX, "--out run/summary.json is a file that the command reads, or a part"),
    ("report run --format html --out run/journal.jsonl", SYNTAX, "or a part of a run. Give another."),
    ("report run POOL", SYNTAX, "POOLS are only for --format html; got --format text."),
    ("report run --pages", SYNTAX, "--pages is only for --format html; got --format text."),
    ("report run --json --format markdown", SYNTAX, "--json and --format markdown contradict each other."),
    ("show run", SYNTAX, "Missing argument 'ID'"),
    ("show run q8", 1, "Error: run: no question has the id 'q8'; the first ids are 'q0', 'q1'"),
    ("show run q1 --rules mine", 1, "run: rule 'mine' has no decision on 'q1'; use one of first, majority,"),
    ("show nowhere q1", 1, "nowhere: no such directory"),
    ("show run q1 --out nowhere/there", 1, "The question could not be written:"),
    ("compare", SYNTAX, "Missing argument '[NAME=]RUN[:POOL]...'"),
    ("compare a=run", 1, "A comparison needs two or more runs; got 1."),
    ("compare run --seeds majority", 1, "A comparison of seeds needs two or more runs; got 1. Give one run a seed."),
    ("compare run run", 1, "is given already; give each run a name, NAME=RUN."),
    ("compare a=run b=nowhere", 1, "nowhere: no such directory"),
    ("compare a=run b=run:towns", 1, "has no pool 'towns'; its pools are 'capitals'."),
    ("compare a=run b=run --rule judge(x)", 1, "has no result of rule 'judge(x)' on pool 'capitals'"),
    ("compare a=run b=run --format html", SYNTAX, "is not one of 'text', 'markdown', 'latex', 'csv', 'json'"),
    ("compare a=run b=run --out nowhere/there", 1, "The comparison could not be written:"),
    ("decide run", SYNTAX, "Missing option '--rules'"),
    ("decide run --rules ''", 1, "rule='' is not known"),
    ("decide nowhere --rules eldgr", 1, "nowhere: no such directory"),
    (
        "decide run --rules best",
        1,
        "rule='best' is not known; use one of 'first', 'majority', 'certified', 'judge', 'eldgr', ",
    ),
    ("decide run --rules nowhere_rules:f", 1, "the module 'nowhere_rules' cannot be imported (ModuleNotFoundError"),
    ("decide run gone.jsonl --rules eldgr", 1, "was not made on a pool 'gone'"),
]
POOLS = [
    ("build p.jsonl --answer short", SYNTAX, "Missing option '--out'"),
    ("build --answer short --out q.jsonl", SYNTAX, "Missing argument 'SOURCE...'"),
    ("build p.jsonl --answer trivia --out q.jsonl", SYNTAX, "answer must be one of 'short', "),
    ("build no.jsonl --answer short --out q.jsonl", 1, "Error: no.jsonl: no such file"),
    ("build p.jsonl --answer short --out q.csv", 1, "Error: q.csv: the format is not known"),
    ("build p.jsonl --answer short --out no/q.jsonl", 1, "Error: no/q.jsonl could not be written"),
    ("build torn.jsonl --answer short --out q.jsonl", 1, "Error: torn.jsonl, line 2: not one JSON"),
    (
        "build p.jsonl --answer short --out q.jsonl --column prediction=x",
        1,
        "--column prediction=x: no file has this column; none is a table.",
    ),
    (
        "build w.csv --answer short --out q.jsonl --column prediction",
        SYNTAX,
        "'prediction' must be FIELD=NAME, with a FIELD of id, question, gold, evidence, prediction,",
    ),
    ("build w.csv --answer short --out q.jsonl --column guess=a", SYNTAX, "'guess=a' must be FIELD=NAME"),
    ("build w.csv --answer short --out q.jsonl --column prediction=", SYNTAX, "'prediction=' must be FIELD=NAME"),
    (
        "build w.csv --answer short --out q.jsonl --column prediction=gtp",
        1,
        "w.csv, row 1: no column is named 'gtp'; the columns are 'id', 'gpt'. Say which one it is:",
    ),
    (
        "build w.csv --answer short --out q.jsonl --column gold=Right --column prediction=gpt",
        1,
        "--column gold=Right: no file has this column; they have 'gpt', 'id'. Correct the name, or",
    ),
    ("check p.jsonl", 1, "Error: p.jsonl, line 1, id 'q0': task is missing; add it. (2 more in this row.)"),
    ("check POOL POOL", 1, "are both named 'capitals'; rename one of the files"),
    ("split POOL --out-dev x.jsonl", SYNTAX, "Missing option '--out-confirm'"),
    ("split POOL --confirm 1 --out-dev x.jsonl --out-confirm y.jsonl", SYNTAX, "0<x<1"),
    ("split POOL --out-dev x.jsonl --out-confirm x.jsonl", 1, "must be three files"),
    ("split DEMO --out-dev no/x.jsonl --out-confirm y.jsonl", 1, "parts could not be written"),
    ("pairs NUMBERS --out q.jsonl", 1, "must have answers that evidence certifies; got answers of the type 'number'"),
    ("pairs POOL --score prm --out q.jsonl", 1, "got 'prm', and they state no scores."),
    ("pairs POOL --score prm --layout kto --out q.jsonl", 1, "score must be left out with layout="),
    ("pairs POOL --most 0 --out q.jsonl", SYNTAX, "Invalid value for '--most': 0 is not in the range x>=1."),
    (
        "pairs POOL --gold --certificate token --out q.jsonl",
        SYNTAX,
        "--gold and --certificate contradict each other. Give one of them.",
    ),
    ("pairs POOL --answer number --out q.jsonl", 1, "answers of the type 'number'; got 'short'"),
    ("pairs POOL --out nowhere/q.jsonl", 1, "nowhere/q.jsonl could not be written: "),
]
INSPECT = [
    ("POOL", SYNTAX, "Give --nli MODEL, --lm MODEL or both: one of them must score."),
    ("", SYNTAX, "Missing argument 'POOL|FILE'"),
    ("POOL --nli m --question ?", SYNTAX, "--question and --evidence are for a text in a file"),
    ("POOL --nli m --evidence e.txt", SYNTAX, "--question and --evidence are for a text in a file"),
    ("POOL --nli m --k 0", SYNTAX, "0 is not in the range x>=1"),
    ("POOL --nli m --reading best", SYNTAX, "'best' is not one of 'label', 'expected', 'settled'"),
    ("nowhere.jsonl --nli m", 1, "Error: nowhere.jsonl: no such file; check the name."),
    ("bad.jsonl --nli m", 1, "Error: bad.jsonl, line 1: not one JSON object"),
    ("nowhere.txt --nli m", 1, "Error: nowhere.txt: no such file; check the name."),
    ("folder --nli m", 1, "Error: folder: is a folder; give a file."),
    ("empty.txt --nli m", 1, "Error: empty.txt: has no text; check the name."),
    ("latin.txt --nli m", 1, "Error: latin.txt: byte 2 is not UTF-8; save the file as UTF-8."),
    ("long.txt --nli m", 1, "Error: long.txt: has more than 500,000 characters; shorten it, or give a part of it."),
    ("huge.txt --nli m", 1, "Error: huge.txt: has more than 500,000 characters; shorten it, or give a part of it."),
    ("a.txt --nli m --evidence nowhere", 1, "Error: nowhere: no such file; check the name."),
    ("a.txt --nli m --evidence blank.jsonl", 1, "Error: blank.jsonl: must have 1 to 10,000 passages; got 0."),
    ("a.txt --nli m --evidence bad.jsonl", 1, "Error: bad.jsonl, line 1: not one JSON object"),
    ("a.txt --nli m --evidence rows.jsonl", 1, "Error: rows.jsonl, line 2: evidence[0]"),
    ("a.txt --nli ./nowhere", 1, "Error: model='./nowhere' must be a folder on this disk; give the folder that"),
    ("a.txt --lm gpt", 1, "Error: A model must be PROVIDER/MODEL, such as ollama/"),
]
ROLES = [
    ("", "judge and the repairer"),
    ("--rules judge", "judge"),
    ("--judge openai/none", "repairer"),
    ("--judges words=heuristic", "repairer"),
    ("--rules near(0) --answer number", "judge and the deriver"),
    ("--answer number", "judge and the deriver"),
]
"""What is frozen, and the roles that its rules may ask, which have no model."""

CASES = [
    *EVALUATE,
    *((f"evaluate POOL --out new --judges {given}", code, message) for given, code, message in JUDGES),
    *(
        (f"{command} --certificate {given}", code, message)
        for command in ("evaluate POOL", "bound POOL", "freeze --heuristic")
        for given, code, message in CERTIFICATES
    ),
    *(
        (f"{command} POOL --set refusals={given}", code, message)
        for command in ("evaluate", "bound")
        for given, code, message in REFUSALS
    ),
    *BEFORE,
    *FINISHED,
    *((f"pool {line}", code, message) for line, code, message in POOLS),
    *((f"inspect {line}", code, message) for line, code, message in INSPECT),
    *(
        (
            f"freeze {given}",
            SYNTAX,
            f"No model is given for the {roles}, and the rules may ask them. Give --lm MODEL, or --heuristic",
        )
        for given, roles in ROLES
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("refused")
    with chdir(folder):
        finished_run(folder, n=3)
        for name in ("r.jsonl", "s.jsonl"):
            recording(Path(name), ["q0"])
        write_pool(Path("gone.jsonl"), [row(0)])
        predictions(Path("p.jsonl"))
        Path("folder").mkdir()
        for name, content in FILES.items():
            Path(name).write_bytes(content)
        yield folder


@pytest.mark.parametrize(("line", "code", "message"), CASES)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, message: str
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in path.parts}
    assert main([POOL_FILES.get(word, word) for word in shlex.split(line)]) == code
    out, err = capsys.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    assert message in " ".join(err.split())
    assert {path: path.stat().st_mtime_ns for path in before if path.is_file()}.items() <= before.items()
    assert {path for path in folder.rglob("*") if "__pycache__" not in path.parts} == {*before}
