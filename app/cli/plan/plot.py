"""``conclave plan --plot``: plot the number of answers against epsilon, cutoff T and rows n."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from app.planning.curves import Panel
    from app.planning.plan import Plan
    from app.planning.request import PlanRequest

OPTION: Final = "--plot"
SUFFIXES: Final = (".png", ".svg", ".pdf")
ABSENT: Final = "needs matplotlib, which is not installed; run: pip install 'matplotlib>=3.11'"
INCHES_A_PANEL: Final = 4.3
INCHES_HIGH: Final = 4.9
DOTS_AN_INCH: Final = 150
# Okabe and Ito's colours, told apart by readers who do not see all of them; and shapes.
STYLES: Final = (
    ("#0072b2", "o"),
    ("#009e73", "s"),
    ("#e69f00", "^"),
    ("#d55e00", "D"),
    ("#cc79a7", "v"),
)
# By the text of each lever: what is planned is imported when the command runs.
NAMES: Final = {
    "privacy.epsilon": "epsilon of the release",
    "answers.cutoff": "cutoff T, unstable answers",
    "data.rows": "rows n",
}
LABELS_MIN: Final = 0.8
LABELS_MAX: Final = 1e9
NOTE: Final = (
    "Queries on which this share of the learners agree, all others for one other label; {counted}."
    " Dashed: m as configured. Dotted: the release as planned; all else as it is."
)
COUNTED: Final = "mean number of labels before unstable answer T"
COUNTED_CELLS: Final = "mean number of labels of any number of cells"
COUNTED_NOISY: Final = "labels that lose to the noise at most once in a hundred"


def check_plot(path: Path) -> None:
    """Refuse options with which a plot could not be drawn, before any computation.

    Raises:
        ConfigurationError: matplotlib is not installed, the folder does not exist, or the file's
            suffix is no known format.

    """
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(OPTION, f"must end in {', '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(OPTION, f"{path.absolute().parent} is no folder")
    try:
        import matplotlib.figure  # noqa: F401 -- only whether it is there
    except ImportError:
        raise ConfigurationError(OPTION, ABSENT) from None


def draw_plot(path: Path, name: str, plan: Plan, panels: Sequence[Panel]) -> None:
    """Write the plot in the format of the file's suffix.

    Args:
        path: the file to write.
        name: the release's name.
        plan: the release's plan.
        panels: the computed points of each panel of the plot.

    """
    figure(name, plan, panels).savefig(path, dpi=DOTS_AN_INCH)


def figure(name: str, plan: Plan, panels: Sequence[Panel]) -> Figure:
    """Return the plot of a plan.

    The plot has one panel per varied parameter, and in each panel one line per assumed fraction of
    agreeing models.
    """
    from matplotlib.figure import Figure as Drawn

    drawn = Drawn(figsize=(INCHES_A_PANEL * len(panels), INCHES_HIGH), layout="constrained")
    all_axes = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw_panel(axes, panel, plan.request)
    all_axes[0].set_ylabel("labels given")
    handles, labels = all_axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside right upper", title="learners agree")
    drawn.suptitle(f"{name}: {_settings(plan)}", fontsize=11)
    counted = COUNTED if plan.answers.cutoff is not None else COUNTED_CELLS
    counted = counted if plan.answers.noisy_lead is None else COUNTED_NOISY
    note = NOTE.format(counted=counted)
    drawn.supxlabel(note, fontsize=7.5, color="#555555")
    return drawn


def _draw_panel(axes: Axes, panel: Panel, request: PlanRequest) -> None:
    for curve, (colour, marker) in zip(panel.curves, STYLES, strict=True):
        shown = [(point.value, point.labels) for point in curve.points if point.labels]
        axes.plot(
            [value for value, _ in shown],
            [labels for _, labels in shown],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.5,
            label=f"{float(curve.agreement):.0%}",
        )
    axes.axhline(request.query_count, color="#555555", linestyle="--", linewidth=1)
    if panel.planned is not None:
        axes.axvline(float(panel.planned), color="#555555", linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(LABELS_MIN, max(LABELS_MAX, 10 * request.query_count))
    axes.set_xlabel(NAMES[panel.lever].replace("rows", f"{request.unit}s"))
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    _write_ticks(axes, panel)


def _write_ticks(axes: Axes, panel: Panel) -> None:
    """Write values as numbers at a few places, without powers of ten."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    values = [point.value for point in panel.curves[0].points]
    places = values[:: max(1, (len(values) - 1) // 4)]
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(FixedFormatter([_tick(value) for value in places]))
    axes.xaxis.set_minor_locator(NullLocator())


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= len(NAMES) and value == int(value) else f"{value:.3g}"


def _settings(plan: Plan) -> str:
    """Name what the release is planned with."""
    request = plan.request
    rows = "n not given" if request.row_count is None else f"n = {request.row_count:,}"
    cutoff = "" if plan.answers.cutoff is None else f", T = {plan.answers.cutoff:,}"
    return (
        f"{rows}, epsilon {float(request.epsilon):g}, k = {plan.answers.ensemble_size:,}{cutoff},"
        f" m = {request.query_count:,}"
    )
