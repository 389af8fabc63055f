"""Redaction: what looks like a credential never leaves in an error, a record or a result (C25). Linear time."""

import re
from collections.abc import Callable
from typing import Any

import re2

from dispatcher.caps import clean

MARK = "[redacted]"

# Matched with RE2: what a hostile result can say must not cost more than its length.
_CREDENTIALS = re2.compile(
    "|".join(
        (
            r"-----BEGIN [A-Z0-9 ]*(?:KEY|CERTIFICATE)[A-Z ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*-----|\z)",
            r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",
            r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,128}\b",
            r"\bAIza[A-Za-z0-9_-]{30,}",
            r"\bya29\.[A-Za-z0-9_-]{20,}",
            r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}",
            r"\bgithub_pat_[A-Za-z0-9_]{20,}",
            r"\bgl(?:pat|oas|dt|rt|ptt)-[A-Za-z0-9_.-]{16,}",
            r"\bxox[abeoprs]-[0-9][A-Za-z0-9-]{7,}",
            r"\bxapp-[A-Za-z0-9-]{8,}",
            r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}",
            r"\bwhsec_[A-Za-z0-9+/=]{16,}",
            r"\bsk-(?:[A-Za-z0-9]+-)?[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*",
            r"\bnpm_[A-Za-z0-9]{30,}",
            r"\bpypi-AgE[A-Za-z0-9_-]{20,}",
            r"\bdop_v1_[a-f0-9]{32,}",
            r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}",
            r"\bhv[sb]\.[A-Za-z0-9_-]{20,}",
            r"\bAGE-SECRET-KEY-1[A-Z0-9]{40,}",
            r"\bAccountKey=[A-Za-z0-9+/=]{20,}",
            r"\bX-Amz-(?:Signature|Security-Token)=[A-Za-z0-9%+/=-]{20,}",
            r"\bhooks\.slack\.com/services/[A-Za-z0-9/_-]+",
            r"\bdiscord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]+",
            r"\bhf_[A-Za-z0-9]{20,}",
            r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}",
            r"\b\d{8,10}:AA[A-Za-z0-9_-]{30,64}",
        )
    )
)
# A scheme and a token; "basic understanding" is neither.
_SCHEME = re2.compile(r"\b((?:[Bb]earer|[Bb]asic|BEARER|BASIC) +)([A-Za-z0-9._~+/=-]{8,})")
# To the end of the line: several values may follow each other.
_HEADER = re2.compile(r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)[^\s\n\"'][^\n\"']*")
_URL_PASSWORD = re2.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{1,20}://)[^\s/@:]{0,256}:[^\s/@]{1,256}@")
_SECRET_WORDS = (
    "password|passwd|passphrase|pwd|secret|token|apikey|api_key|api-key|authorization|cookie|credential|credentials|"
    "private_key|private-key|access_key|access-key|client_secret|session_key|auth_token|access_token|refresh_token|"
    "secret_key_base|secret_key|secret-key|db_pass|signing_key|encryption_key|session_id|session-id|connection_string|dsn"
)
# In free text: a secret-looking word, then : or =, then the value.
_ASSIGNED = re2.compile(
    rf"""(?i)(["']?\b[\w-]{{0,40}}?(?:{_SECRET_WORDS})["']?\s{{0,3}}[:=]>?\s{{0,3}})"""
    r"""((?:(?:token|bearer|basic|digest|apikey) +)?(?:"(?:[^"\\\n]|\\.)+"?|'(?:[^'\\\n]|\\.)+'?|[^\s,;&"'}\])]+))"""
)
_KEY = re.compile(
    r"^.*(?:password|passwd|passphrase)$|^(?:.*_)?(?:pass|secret_key_base|password|passwd|passphrase|pwd|secret|secrets|token|apikey|api_key|authorization|cookie|cookies|"
    r"credential|credentials|private_key|access_key|secret_key|signing_key|encryption_key|session_key|auth|bearer|"
    r"client_secret|session_id|connection_string|dsn)(?:_(?:value|hash|base64|id|1|2))?$"
)
_HARMLESS = frozenset(
    "total_tokens next_page_token page_token primary_key tokenizer idempotency_key max_tokens token_count token_id "
    "prompt_tokens completion_tokens continuation_token secret_id".split()
)


def redact_text(text: str, *, assignments: bool = True) -> tuple[str, int]:
    """Return `text`, clean, without credentials, and how many there were; `assignments` covers `password=…` in prose."""
    count = 0
    text = str(clean(text))
    if len(text) >= 8:
        text, count = _CREDENTIALS.subn(MARK, text)
        text, found = _replaced(_SCHEME, text, _after_scheme)
        count += found
        if "://" in text:
            text, found = _URL_PASSWORD.subn(rf"\1{MARK}@", text)
            count += found
        if assignments and ("=" in text or ":" in text):
            text, found = _replaced(_HEADER, text, lambda match: f"{match.group(1)}{match.group(2)}{MARK}")
            count += found
            text, found = _replaced(_ASSIGNED, text, _assigned)
            count += found
    return text, count


def _replaced(pattern: Any, text: str, replace: Callable[[Any], str]) -> tuple[str, int]:
    """Replace every match, and count those that were changed."""
    changed = 0

    def count(match: Any) -> str:
        nonlocal changed
        new = replace(match)
        changed += new != match.group(0)
        return new

    return pattern.sub(count, text), changed


def _after_scheme(match: Any) -> str:
    token = match.group(2)
    is_prose = token.islower() and not any(character.isdigit() or character in "=_~+/" for character in token)
    return str(match.group(0)) if is_prose else f"{match.group(1)}{MARK}"


def _assigned(match: Any) -> str:
    name = re.sub(r"[\s\"':=>]+", "", match.group(1))
    value = match.group(2).strip("\"'")
    if not is_secret_key(name) or value.startswith(MARK[:-1]) or value.rstrip(").,") in _NO_SECRETS:
        return str(match.group(0))
    return str(match.group(1)) + MARK


# What stands after a secret's name where it is only spoken of: a type, a constant.
_NO_SECRETS = frozenset("str int bool bytes float string None null true false True False str|None".split())


def is_secret_key(key: str) -> bool:
    """Ask whether a key's name says that its value is a secret."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key[:200]).lower().replace("-", "_").replace(" ", "_")
    return name not in _HARMLESS and _KEY.match(name) is not None


def redact_value(value: Any, *, keys: bool) -> tuple[Any, int]:
    """Return a JSON value without credentials, and how many there were; `keys` hides what stands under secret names."""
    kind = type(value)
    if kind is str:
        return redact_text(value, assignments=keys)
    if kind is list:
        return _redact_list(value, keys)
    if kind is dict:
        return _redact_map(value, keys)
    return value, 0


def _redact_list(value: list[Any], keys: bool) -> tuple[Any, int]:
    redacted = [redact_value(item, keys=keys) for item in value]
    count = sum(found for _, found in redacted)
    return ([item for item, _ in redacted], count) if count else (value, 0)


def _may_be_secret(item: Any) -> bool:
    return item is not None and not isinstance(item, bool) and item not in ("", MARK, [], {})


def _redact_map(value: dict[str, Any], keys: bool) -> tuple[Any, int]:
    result: dict[str, Any] = {}
    total = 0
    for key, item in value.items():
        name, found = redact_text(key, assignments=False)
        if keys and is_secret_key(key) and _may_be_secret(item):
            shown, inner = MARK, 1
        else:
            shown, inner = redact_value(item, keys=keys)
        result[name] = shown
        total += found + inner
    return (result, total) if total else (value, 0)
