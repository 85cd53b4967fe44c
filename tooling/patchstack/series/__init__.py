"""The declarative side: which changes, in which order, with which message and edits."""

from patchstack.edits.conditions import Applicability, UpstreamMarker, in_words
from patchstack.series.load import find_series, load_series, series_names
from patchstack.series.model import Change, Requirement, Series
from patchstack.series.stacked import stacked

__all__ = [
    "Applicability",
    "Change",
    "Requirement",
    "Series",
    "UpstreamMarker",
    "find_series",
    "in_words",
    "load_series",
    "series_names",
    "stacked",
]
