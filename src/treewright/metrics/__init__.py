"""Evaluation metrics, and tests of statistical significance."""

from treewright.metrics.attachment import AttachmentScore, RelationScore, attachment
from treewright.metrics.calibration import Reliability, calibration
from treewright.metrics.conll2018 import AlignedScore, Conll2018Scores, conll2018
from treewright.metrics.parseval import ParsevalScore, parseval
from treewright.metrics.roles import RoleScore, RoleScores, roles
from treewright.metrics.significance import SignificanceResult, significance

__all__ = [
    "AlignedScore",
    "AttachmentScore",
    "Conll2018Scores",
    "ParsevalScore",
    "RelationScore",
    "Reliability",
    "RoleScore",
    "RoleScores",
    "SignificanceResult",
    "attachment",
    "calibration",
    "conll2018",
    "parseval",
    "roles",
    "significance",
]
