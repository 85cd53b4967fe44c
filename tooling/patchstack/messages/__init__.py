"""Commit messages: their parts, their rules, and the trailers that tie them to pull requests."""

from patchstack.messages.model import (
    CoAuthor,
    GhstackTrailers,
    Message,
    MessageFinding,
    MessagePart,
    PullRequest,
    Severity,
)
from patchstack.messages.rules import check_message, check_series, check_text, refused
from patchstack.messages.trailers import (
    Carried,
    OldMessage,
    carry,
    changed_since_submit,
    extract,
    parse_message,
    same_prose,
    without_ghstack,
)

__all__ = [
    "Carried",
    "CoAuthor",
    "GhstackTrailers",
    "Message",
    "MessageFinding",
    "MessagePart",
    "OldMessage",
    "PullRequest",
    "Severity",
    "carry",
    "changed_since_submit",
    "check_message",
    "check_series",
    "check_text",
    "extract",
    "parse_message",
    "refused",
    "same_prose",
    "without_ghstack",
]
