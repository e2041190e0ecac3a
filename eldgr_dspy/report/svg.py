"""Drawings by matplotlib as SVG that stands in a page: in the page's colours and fonts, without ids, styles or links.

Only here and in `eldgr_dspy.report.plots` is matplotlib used, and it is imported when something is drawn.
"""

import io
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from eldgr_dspy.showing import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 820
"""How wide a drawing is, in pixels of its own."""

_COLOURS = ("ink", "soft", "line", "page", "blue", "pale", "good", "bad", "orange", "violet")
_INCH = 72  # pixels, so that matplotlib's points are pixels
_DROPPED = ("id", "clip-path", "transform")  # ids would have to be unique in the page; nothing is clipped or turned
# Those settings of matplotlib that a drawing depends on; they are its own defaults here.
_SETTINGS = frozenset("axes figure font grid lines patch path savefig svg text xaxis xtick yaxis ytick".split())
_LOCK = threading.Lock()  # matplotlib's settings are those of the whole process


def colour(name: str) -> str:
    """Return what stands for a colour of the page until the drawing is put into it."""
    return f"#0101{_COLOURS.index(name):02x}"


class Sheet:
    """A drawing under way, `WIDTH` pixels wide; places are pixels from its upper left corner."""

    def __init__(self, height: float) -> None:
        from matplotlib.figure import Figure

        self.height = height
        self.figure = Figure(figsize=(WIDTH / _INCH, height / _INCH), dpi=_INCH)
        self._texts: list[str] = []

    def axes(self, left: float, right: float, top: float, bottom: float) -> "Axes":
        """Return axes without a frame that reach from `left` to `right` and from `top` to `bottom`."""
        place = (left / WIDTH, 1 - bottom / self.height, (right - left) / WIDTH, (bottom - top) / self.height)
        axes = self.figure.add_axes(place)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.patch.set_visible(False)
        axes.tick_params(length=0, labelsize=12, labelcolor=colour("soft"), pad=6)
        return axes

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "left", tone: str = "ink", size: float = 13.5
    ) -> None:
        """Set a line of any text whose middle is at the height `y`. Matplotlib never sees it: it lacks many letters."""
        self._texts.append(printable(text))
        self.figure.text(
            x / WIDTH,
            1 - y / self.height,
            f"@{len(self._texts) - 1}",
            horizontalalignment=anchor,
            verticalalignment="center",
            color=colour(tone),
            fontsize=size,
        )

    def rule(self, x: float, y: float, width: float, **look: Any) -> None:
        """Draw a horizontal line, as in a key."""
        from matplotlib.lines import Line2D

        at = 1 - y / self.height
        self.figure.add_artist(Line2D([x / WIDTH, (x + width) / WIDTH], [at, at], **look))

    def svg(self, name: str) -> str:
        """Return the drawing as an element of a page, under a name for those who do not see it."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        self.figure.patch.set_visible(False)
        written = io.StringIO()
        FigureCanvasSVG(self.figure)
        self.figure.savefig(written, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        drawn = ElementTree.fromstring(written.getvalue())
        root = ElementTree.Element(
            "svg", {"viewBox": f"0 0 {WIDTH} {self.height:g}", "role": "img", "aria-label": printable(name)}
        )
        root.extend(_shapes(drawn, self._texts))
        return ElementTree.tostring(root, encoding="unicode")


def drawn(draw: Callable[[Sheet], None], height: float, name: str) -> str:
    """Return what `draw` draws on a sheet, whatever settings of matplotlib's the process has."""
    import matplotlib

    defaults: dict[Any, Any] = {
        key: value for key, value in matplotlib.rcParamsDefault.items() if key.partition(".")[0] in _SETTINGS
    }
    with _LOCK, matplotlib.rc_context({**defaults, "svg.fonttype": "none"}):
        sheet = Sheet(height)
        draw(sheet)
        return sheet.svg(name)


def _shapes(drawn: ElementTree.Element, texts: list[str]) -> list[ElementTree.Element]:
    """The paths and texts of a drawing of matplotlib's in order, in the page's colours, with the texts it lacks."""
    found = []
    for element in drawn.iter():
        kind = element.tag.rpartition("}")[2]
        if kind not in ("path", "text"):
            continue
        kept = {name: value for name, value in element.attrib.items() if name not in _DROPPED}
        shape = ElementTree.Element(kind, {**kept, "style": _style(element.get("style", ""))})
        said = element.text or ""
        shape.text = texts[int(said[1:])] if said.startswith("@") else element.text
        shape.tail = "\n"
        found.append(shape)
    return found


def _style(style: str) -> str:
    """A style in the page's colours, with the page's font."""
    kept = [part.strip() for part in style.split(";") if not part.strip().startswith("font-family")]
    joined = "; ".join(kept)
    for name in _COLOURS:
        joined = joined.replace(colour(name), f"var(--{name})")
    return joined
