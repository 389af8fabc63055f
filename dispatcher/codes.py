"""The closed list of codes: what each means, what to do next, what its hint says. README's table is drawn from here."""

from dataclasses import dataclass

NEXTS = ("retry", "wait", "fix", "handoff", "stop")  # from the loosest to the strictest


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRow:
    """Hold one row of the code table; `next_write` differs where a write may have happened."""

    code: str
    means: str
    next_read: str
    next_write: str
    hint_says: str
    default_hint: str
    reasons: tuple[str, ...] = ()
    has_id: bool = False  # the correlation id is always shown

    def next_for(self, effect: str) -> str:
        """Return the next step for a tool that reads or writes."""
        return self.next_read if effect == "read" else self.next_write


def _row(
    code: str, means: str, nexts: str, hint_says: str, default_hint: str, reasons: str = "", *, has_id: bool = False
) -> CodeRow:
    read, _, write = nexts.partition("/")
    return CodeRow(
        code=code,
        means=means,
        next_read=read,
        next_write=write or read,
        hint_says=hint_says,
        default_hint=default_hint,
        reasons=tuple(reasons.split()),
        has_id=has_id,
    )


_ROWS = (
    _row("unknown_tool", "no such tool", "fix", "the names that exist (capped), the nearest one", "No such tool"),
    _row(
        "invalid_json",
        "the text is not one JSON value",
        "fix",
        "the short reason",
        "The arguments are not valid JSON",
        "size depth syntax trailing_data number_size non_finite surrogate duplicate_key",
    ),
    _row("invalid_args", "shape or value is wrong", "fix", "path, what is allowed", "The arguments are not valid"),
    _row("not_found", "the thing asked for does not exist", "stop", "what ids look like", "It does not exist"),
    _row(
        "denied",
        "policy says no",
        "stop",
        "the permission or rule",
        "This is not allowed",
        "permission host path amount isolation policy",
    ),
    _row("needs_approval", "waits for a person", "wait", "the approval id", "A person must approve this first"),
    _row(
        "conflict",
        "same idempotency key, other arguments; `outcome_unknown`; a state conflict",
        "stop/handoff",
        "which",
        "It conflicts with the present state",
        "outcome_unknown",
    ),
    _row("pending", "the same key is still running", "wait", "poll", "The same call is still running"),
    _row("rate_limited", "too many calls", "wait", "`retry_after`", "Too many calls; wait", "limit upstream"),
    _row(
        "unavailable",
        "never ran, or `upstream`: a handler said so",
        "retry",
        "`retry_after`",
        "The tool is not available now; try later",
        "overloaded circuit_open no_sandbox budget preload upstream",
        has_id=True,
    ),
    _row(
        "timeout",
        "killed at the wall-clock deadline, or reason `upstream`",
        "retry/handoff",
        "the limit; for a write: it may have happened",
        "The tool took too long",
        "upstream",
        has_id=True,
    ),
    _row("cancelled", "the caller gave up", "stop", "–", "The call was cancelled"),
    _row(
        "stopped",
        "a retry cap or a conversation's total is spent; not run",
        "handoff",
        "which cap",
        "No further tries are allowed",
        "calls wall_time writes",
    ),
    _row(
        "internal_error",
        "the handler's bug, ours, or a death",
        "retry/handoff",
        'the id, "try later"',
        "The tool failed",
        "handler_error bad_result unknown_code memory_limit cpu_limit output_limit result_limit worker_crashed "
        "no_result protocol_violation worker_lost",
        has_id=True,
    ),
)
CODES: dict[str, CodeRow] = {row.code: row for row in _ROWS}
INTERNAL_REASONS = CODES["internal_error"].reasons

# What a handler may report, if its catalogue lists it (C28); the last two only with reason "upstream".
REPORTABLE = ("invalid_args", "not_found", "denied", "conflict", "rate_limited", "unavailable", "timeout")
UPSTREAM_ONLY = ("unavailable", "timeout")
HANDLER_DENIED_REASONS = ("host", "path", "amount")


def table_rows() -> list[tuple[str, str, str, str]]:
    """Return code, meaning, next, hint for each row, as README and the command line print them."""
    rows = []
    for row in CODES.values():
        reasons = ", ".join(f"`{reason}`" for reason in row.reasons) if row.code != "internal_error" else ""
        means = row.means + (f" ({reasons})" if reasons else "")
        same = row.next_read == row.next_write
        nexts = row.next_read if same else f"{row.next_read} (read) / {row.next_write} (write)"
        rows.append((row.code, means, nexts, row.hint_says))
    return rows
