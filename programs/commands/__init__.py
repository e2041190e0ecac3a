"""The `eldgr` command: one file a subcommand.

Errors that the package raises on purpose are printed as a sentence, without a traceback. Results go to standard
output; progress and remarks go to standard error. Exit codes: 0 done; 1 bad input, or results that could not be
printed; 2 wrong usage; 3 stopped unfinished (the same command, without --fresh, goes on); 130 interrupted by ctrl-C,
143 by SIGTERM (likewise).

Signals are minded before anything else is loaded, hence the few imports.
"""

import os
import signal
import sys
import threading
from types import FrameType

STOPPED, INTERRUPTED, TERMINATED = 3, 130, 143


class Session:
    """What is to be said of a command when it ends early, and what a signal does to it.

    Attributes:
        begun: Whether its run directory has been opened, so that what it asks is journaled there.
        goes_on: Which command goes on with it, as a clause.
        unbegun: What an interrupted command has done where no run directory is open.
        code: The exit code of the signal that came; 0 where none did.
    """

    def __init__(self) -> None:
        """Begin a command."""
        self.begun = False
        self.goes_on = "the same command goes on"
        self.unbegun = "Nothing was asked."
        self.code = 0
        self._said = False

    def begin(self) -> None:
        """Take note that the run directory is open."""
        self.begun = True

    def mind_signals(self) -> None:
        """Have ctrl-C and SIGTERM end this process, but for one that whoever started it has it ignore."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self.end)

    def end(self, number: int, frame: FrameType | None) -> None:
        """End the process at once, wherever Python stands.

        Raises:
            KeyboardInterrupt: instead, where a run has looked for signals and ends in order; there is no frame then.
        """
        self.code = TERMINATED if number == signal.SIGTERM else INTERRUPTED
        if frame is None:
            raise KeyboardInterrupt
        try:
            _put_away()
            os.write(2, self.interrupted().encode())
        finally:
            os._exit(self.code)

    def interrupted(self) -> str:
        """What is said of a command that was interrupted, with a line end; nothing where it was said before."""
        if self._said:
            return ""
        self._said = True
        lost = "The calls under way were abandoned." if abandoned() else ""
        kept = f"What was asked is in the journal; {self.goes_on}." if self.begun else self.unbegun
        return f"{' '.join(filter(None, ('Interrupted.', lost, kept)))}\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command. Returns its exit code, except where calls were abandoned: then the process ends here.

    Without `argv` the command is the process, and a signal that no run is there to look for ends it at once. With
    `argv` a program has called it, whose handlers stay as they are.
    """
    session = Session()
    if argv is None and threading.current_thread() is threading.main_thread():
        session.mind_signals()
    from eldgr_dspy.programs.commands.command import run
    from eldgr_dspy.programs.commands.messages import say_bugs

    if argv is None:
        say_bugs()
    code = run(argv, session)
    return session.code or code


def abandoned() -> bool:
    """Whether calls are under way, which nobody will wait for."""
    loaded = sys.modules.get("eldgr_dspy.programs.run.scheduling.threads")  # where it is not, nobody was called
    name = getattr(loaded, "THREADS", None)
    return name is not None and any(thread.name.startswith(name) for thread in threading.enumerate())


def _put_away() -> None:
    """Remove the files that were being written, and show the cursor that a progress bar hides."""
    files = sys.modules.get("eldgr_dspy.files")
    remove = getattr(files, "remove_begun", None)
    if remove is not None:
        remove()
    if os.isatty(2):
        os.write(2, b"\x1b[?25h\n")
