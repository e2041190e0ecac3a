"""Many rows at once, in order: the steps of a row in one thread, its calls in several threads or in tasks.

A row is a generator: it yields each call that may take long, is sent what was kept of it, and returns its result. The
results come in the order of the items, each as soon as its turn has come. A bounded number of items is under way or
waiting for its turn. A late call is abandoned.

Both maps are contexts, so that the exit is the same however they end early: an item that fails, an error where the
results are used, or ctrl-C. `on_stop` is called at once, calls that have not started are dropped, and those under way
are awaited. Only an interrupt during that wait abandons them.
"""

from eldgr_dspy.programs.run.scheduling.garbage import rarer_collections as rarer_collections
from eldgr_dspy.programs.run.scheduling.order import Call as Call
from eldgr_dspy.programs.run.scheduling.order import OnStop as OnStop
from eldgr_dspy.programs.run.scheduling.order import Steps as Steps
from eldgr_dspy.programs.run.scheduling.order import window_of as window_of
from eldgr_dspy.programs.run.scheduling.tasks import amap_ordered as amap_ordered
from eldgr_dspy.programs.run.scheduling.threads import map_ordered as map_ordered
from eldgr_dspy.programs.threads import at_once as at_once
from eldgr_dspy.programs.threads import in_thread as in_thread
from eldgr_dspy.programs.threads import reused_threads as reused_threads
