"""What a validation says: a table for a person, and the same facts as JSON, JUnit and HTML."""

from stackproof.report.json import as_json
from stackproof.report.model import CommitReport, RunReport, overall
from stackproof.report.text import lines, report_lines
from stackproof.report.write import ReportFiles

__all__ = ["CommitReport", "ReportFiles", "RunReport", "as_json", "lines", "overall", "report_lines"]
