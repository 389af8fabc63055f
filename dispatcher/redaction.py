"""Redaction: what looks like a credential never leaves in an error, a record or a result (C25). Linear time."""

import re
from typing import Any

MARK = "[redacted]"

_CREDENTIALS = re.compile(
    r"""
    -----BEGIN\ [A-Z0-9 ]{0,40}(?:KEY|CERTIFICATE)[A-Z ]{0,20}-----[\s\S]*?(?:-----END\ [A-Z0-9 ]{0,60}-----|\Z)
  | \b(?:[Bb]earer|[Bb]asic)[ ]+[A-Za-z0-9._~+/=-]{8,4096}
  | \beyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{4,8192}(?:\.[A-Za-z0-9_-]{0,4096})?
  | \b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,128}\b
  | \bAIza[A-Za-z0-9_-]{30,128}
  | \bya29\.[A-Za-z0-9_-]{20,1024}
  | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,255}
  | \bgithub_pat_[A-Za-z0-9_]{20,255}
  | \bgl(?:pat|oas|dt|rt|ptt)-[A-Za-z0-9_.-]{16,255}
  | \bxox[abeoprs]-[A-Za-z0-9-]{8,255}
  | \bxapp-[A-Za-z0-9-]{8,255}
  | \b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,255}
  | \bwhsec_[A-Za-z0-9+/=]{16,255}
  | \bsk-[A-Za-z0-9_-]{16,512}
  | \b(?:npm_[A-Za-z0-9]{30,255}|pypi-[A-Za-z0-9_-]{30,1024}|hf_[A-Za-z0-9]{20,255})
  | \bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}
  | \b\d{8,10}:AA[A-Za-z0-9_-]{30,64}
    """,
    re.VERBOSE,
)
_URL_PASSWORD = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{1,20}://)[^\s/@:]{0,256}:[^\s/@]{1,256}@")
_SECRET_WORDS = (
    "password|passwd|passphrase|pwd|secret|token|apikey|api_key|api-key|authorization|cookie|credential|credentials|"
    "private_key|private-key|access_key|access-key|client_secret|session_key|auth_token|access_token|refresh_token"
)
# In free text: a secret-looking word, then : or =, then the value.
_ASSIGNED = re.compile(
    rf"""(?i)(["']?\b[\w-]{{0,40}}?(?:{_SECRET_WORDS})["']?\s{{0,3}}[:=]\s{{0,3}})("[^"\n]{{1,2000}}"?|'[^'\n]{{1,2000}}'?|[^\s,;&"'}}\])]{{1,2000}})"""
)
_KEY = re.compile(
    r"^(?:.*_)?(?:password|passwd|passphrase|pwd|secret|secrets|token|apikey|api_key|authorization|cookie|cookies|"
    r"credential|credentials|private_key|access_key|secret_key|signing_key|encryption_key|session_key|auth|bearer|"
    r"client_secret|session_id|connection_string|dsn)(?:_(?:value|hash|base64|id|1|2))?$"
)
_HARMLESS = frozenset(
    "total_tokens next_page_token page_token primary_key tokenizer idempotency_key max_tokens token_count token_id "
    "prompt_tokens completion_tokens continuation_token secret_id".split()
)


def redact_text(text: str, *, assignments: bool = True) -> tuple[str, int]:
    """Return `text` without credentials, and how many there were; `assignments` covers `password=…` in prose too."""
    count = 0
    if len(text) >= 8:
        text, found = _CREDENTIALS.subn(MARK, text)
        count += found
        if "://" in text:
            text, found = _URL_PASSWORD.subn(rf"\1{MARK}@", text)
            count += found
        if assignments and ("=" in text or ":" in text):
            text, found = _ASSIGNED.subn(_assigned, text)
            count += found
    return text, count


def _assigned(match: re.Match[str]) -> str:
    name = re.sub(r"[\s\"':=]+", "", match.group(1))
    if not is_secret_key(name) or match.group(2).strip("\"'") == MARK:
        return match.group(0)
    return match.group(1) + MARK


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


def _redact_map(value: dict[str, Any], keys: bool) -> tuple[Any, int]:
    result: dict[str, Any] = {}
    total = 0
    for key, item in value.items():
        name, found = redact_text(key, assignments=False)
        if keys and is_secret_key(key) and item not in (None, "", MARK):
            shown, inner = MARK, 1
        else:
            shown, inner = redact_value(item, keys=keys)
        result[name] = shown
        total += found + inner
    return (result, total) if total else (value, 0)
