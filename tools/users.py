"""Users of a shop, from a small table, registered with a raw schema."""

from typing import Any

from dispatcher import Limits, Registry, ToolError

USERS: dict[int, dict[str, Any]] = {
    7: {"id": 7, "name": "Asha", "email": "asha@example.com"},
    42: {"id": 42, "name": "Tomás", "email": "tomas@example.com"},
}
SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "description": "the user's number"},
        "fields": {"type": "array", "items": {"type": "string", "enum": ["id", "name", "email"]}},
    },
}


def get_user(id: int, fields: list[str] | None = None) -> dict[str, Any]:
    """Return a user, or only the fields asked for."""
    if id not in USERS:
        raise ToolError("not_found")
    user = USERS[id]
    return user if fields is None else {name: user[name] for name in fields}


def register(registry: Registry) -> None:
    """Add the tool."""
    registry.register(
        "db.get_user",
        SCHEMA,
        get_user,
        "Look up a user by number.",
        effect="read",
        limits=Limits(wall_s=2),
        errors={"not_found": "User numbers look like 7 and 42"},
    )
