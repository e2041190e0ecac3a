"""Many rows at once, in order: the steps of a row in one thread, its calls in several threads or in tasks.

A row is a generator: it yields each call that may take long, is sent what was kept of it, and returns its result. The
results come in the order of the items, each as soon as its turn has come; a bounded number of items is under way or
waiting for its turn. A call that is late is given up.

Both maps are contexts, so that the way out is the same whatever ends them early, be it an item that fails, an error
where the results are used, or ctrl-C: `on_stop` is called at once, what has not begun is dropped, and what is under way
is waited for. Only an interrupt during that wait abandons it.
"""

from eldgr_dspy.programs.run.scheduling.garbage import rarer_collections as rarer_collections
from eldgr_dspy.programs.run.scheduling.order import Call as Call
from eldgr_dspy.programs.run.scheduling.order import OnStop as OnStop
from eldgr_dspy.programs.run.scheduling.order import Steps as Steps
from eldgr_dspy.programs.run.scheduling.order import window_of as window_of
from eldgr_dspy.programs.run.scheduling.pool import in_thread as in_thread
from eldgr_dspy.programs.run.scheduling.pool import reused_threads as reused_threads
from eldgr_dspy.programs.run.scheduling.tasks import amap_ordered as amap_ordered
from eldgr_dspy.programs.run.scheduling.threads import map_ordered as map_ordered
