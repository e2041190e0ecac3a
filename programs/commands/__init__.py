"""The `eldgr` command. Signals are handled before anything else is loaded, so this module imports little."""

import os
import signal
import sys
import threading
from types import FrameType

STOP, INTERRUPTION, TERMINATION = 3, 130, 143  # exit codes, as docs/reference/command.md lists them


class Session:
    """What is printed when a command ends early, and how it handles signals."""

    def __init__(self) -> None:
        self.is_open = False  # whether the run directory is open, so that replies are in the journal
        self.resume = "run the same command to resume"
        self.before_open = "Nothing was asked."
        self.code = 0  # of the signal that came
        self._is_quiet = False

    def begin(self) -> None:
        """Note that the run directory is open."""
        self.is_open = True

    def end(self, number: int, frame: FrameType | None) -> None:
        """End the process at once. A run that ends in order passes no frame, and gets a KeyboardInterrupt."""
        self.code = TERMINATION if number == signal.SIGTERM else INTERRUPTION
        if frame is None:
            raise KeyboardInterrupt
        try:
            remove = getattr(sys.modules.get("eldgr_dspy.base.files"), "remove_temporaries", None)
            if remove is not None:
                remove()  # partly written files
            if os.isatty(2):
                os.write(2, b"\x1b[?25h\n")  # show the cursor that a progress bar hides
            os.write(2, self.interruption().encode())
        finally:
            os._exit(self.code)

    def interruption(self) -> str:
        """Return the message of an interrupted command, with a line end; empty if it was printed before."""
        if self._is_quiet:
            return ""
        self._is_quiet = True
        calls = "The calls under way were abandoned." if has_abandoned_calls() else ""
        state = f"The replies so far are in the journal; {self.resume}." if self.is_open else self.before_open
        return f"{' '.join(filter(None, ('Interrupted.', calls, state)))}\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code. With `argv`, a program called it and keeps its own signal handlers."""
    session = Session()
    if argv is None and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # which the parent may have set
                signal.signal(number, session.end)
    from eldgr_dspy.programs.commands.command import run
    from eldgr_dspy.programs.commands.messages import say_bugs

    if argv is None:
        say_bugs()
    code = run(argv, session)
    return session.code or code


def has_abandoned_calls() -> bool:
    """Return whether calls are under way that nobody will wait for."""
    module = sys.modules.get("eldgr_dspy.programs.run.scheduling")  # if it is not loaded, no call was made
    name = getattr(module, "THREADS", None)
    return name is not None and any(thread.name.startswith(name) for thread in threading.enumerate())
