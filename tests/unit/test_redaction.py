"""Redaction: credentials go, look-alikes stay, and hostile text costs linear time (C25)."""

import time

import pytest

from dispatcher.facts import CallFacts, ToolFacts
from dispatcher.faults import Fault, Problem
from dispatcher.observation import render_fault, render_success
from dispatcher.redaction import MARK, is_secret_key, redact_text

CALL = CallFacts(name="t", correlation_id="c-abcdefghij234567")
SECRETS = [
    "Bearer abcdefgh12345678",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "a1B2" * 9,
    "xoxb-" + "123456789012-abcdef",
    "sk_live_" + "a1B2c3D4e5F6",
    "sk-ant-" + "a1B2c3D4e5F6g7H8",
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    "postgres://user:hunter22@db/x",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_credential_is_gone_from_result_error_and_key(secret):
    """A credential shows in no result, no hint, no got, no path and no key."""
    part = secret.split("://")[-1].split("@")[0].split(":")[-1]
    shown = render_success({"a": [f"x {secret} y"], secret: 1}, call=CALL, cap_bytes=16_384)
    assert part not in shown.to_json() and shown.redacted >= 2
    problem = Problem(path=f"/{secret.replace('/', '~1')}", keyword="type", message="m", got=f"v {secret}")
    tool = ToolFacts(name="t", schema={"type": "object"})
    error = render_fault(Fault(code="invalid_args", problems=(problem,)), call=CALL, tool=tool)
    assert part not in error.to_json() and part not in error.to_text()


@pytest.mark.parametrize(
    "key", ["password", "api_key", "apiKey", "Authorization", "client-secret", "accessToken", "db_password"]
)
def test_secret_key(key):
    """A value under a secret-looking key does not show as `got`."""
    assert is_secret_key(key)
    problem = Problem(path=f"/{key}", keyword="type", message="m", got="hunter2")
    tool = ToolFacts(name="t", schema={"type": "object"})
    assert render_fault(Fault(code="invalid_args", problems=(problem,)), call=CALL, tool=tool).got == MARK


@pytest.mark.parametrize(
    "key", ["total_tokens", "next_page_token", "primary_key", "tokenizer", "idempotency_key", "monkey"]
)
def test_harmless_key(key):
    """A look-alike is no secret."""
    assert not is_secret_key(key)
    assert redact_text(f"{key}=12345678")[0] == f"{key}=12345678"


NEAR_MISSES = (
    "a", "password", "sk-", "eyJ", "eyJ-", "eyJaaaaaaaa.", "-----BEGIN ", "-----BEGIN KEY-----", "x://", "token: ", "\"'",
)  # fmt: skip


@pytest.mark.parametrize("unit", NEAR_MISSES)
def test_redaction_is_linear(unit):
    """A quarter of a mebibyte of near-misses is read in a moment."""
    text = unit * (262_144 // len(unit))
    began = time.monotonic()
    redact_text(text)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hun\\"ter2abc"}', "Cookie: a=ter2abc; csrftoken=ter2abc", "password => 'ter2abc'", "PGPASSWORD=ter2abc",
        "DB_PASS=ter2abc", "Authorization: Token ter2abc; x=1", "SECRET_KEY_BASE=ter2abc", "Basic dXNlcjpw0ter2abc==",
        "sk-proj-abcdefghijklmnopqrster2abc", "xoxb-123456789012-ter2abc", "https://hooks.slack.com/services/T0/B0/ter2abc",
    ],
)  # fmt: skip
def test_no_half_of_a_secret_stays(text):
    """Escaped quotes, several values and other spellings leave nothing behind, and are counted once each."""
    redacted, count = redact_text(text)
    assert "ter2abc" not in redacted and count == 1 and "]]" not in redacted


@pytest.mark.parametrize(
    "text",
    [
        "Basic understanding of physics", "the bearer certificates", "sk-learn-pipeline-transformer",
        "sk-2024-annual-report-final", "xoxo-hugs-and-kisses", "def f(token: str, password: str)", "next_page_token=abc",
    ],
)  # fmt: skip
def test_ordinary_text_stays(text):
    """What only looks like a credential is neither changed nor counted."""
    assert redact_text(text) == (text, 0)
