"""The command as it is installed."""

import sys

COMMAND = [sys.executable, "-c", "import sys; from eldgr_dspy.programs.commands import main; sys.exit(main())"]
