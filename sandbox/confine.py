"""Confine: the walls in the order in which they must go up, each step a plain function, each recorded.

Processes: the guardian runs `enter_namespaces` and forks; its child, the zygote (pid 1 of the new pid namespace), loads
handlers and runs ZYGOTE_STEPS; every worker it forks runs WORKER_STEPS. The first step that fails ends the process:
nothing runs less confined than its receipt says. Child side, standard library only.
"""

import os
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from sandbox.linux import landlock, mounts, namespaces, privileges, rlimits, seccomp, syscalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Say which walls the host found it can build (by `sandbox.probing`), and what a worker may read."""

    tier: str = "none"
    user_namespace: bool = False
    inner_namespaces: bool = False
    landlock_abi: int = 0
    seccomp: bool = False
    drop_uid: bool = False
    readable: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @staticmethod
    def from_wire(wire: dict[str, Any]) -> "Plan":
        """Return the plan from its JSON form."""
        return Plan(**{**wire, "readable": tuple(wire["readable"]), "missing": tuple(wire["missing"])})


@dataclass(slots=True, kw_only=True)
class Prepared:
    """Hold what the zygote has built for its workers, and the names of the layers in force."""

    plan: Plan
    layers: list[str] = field(default_factory=list)
    visible: tuple[str, ...] = ()
    ruleset: int | None = None
    filter: seccomp.Filter | None = None
    seccomp_digest: str = ""


def enter_namespaces(plan: Plan) -> list[str]:
    """Enter the namespaces that the plan has, and return their names; the caller must fork to be in the pid one."""
    layers = []
    if plan.user_namespace:
        namespaces.enter_user_namespace()
        layers.append("user_namespace")
    if plan.inner_namespaces:
        namespaces.enter_inner_namespaces()
        layers += [f"{kind}_namespace" for kind in namespaces.KINDS]
    return layers


def _set_limits(prepared: Prepared) -> str:
    rlimits.set_fixed()
    return "rlimits"


def _seal_view(prepared: Prepared) -> str:
    if not prepared.plan.inner_namespaces:
        prepared.visible = (*mounts.SYSTEM, *mounts.SYSTEM_FILES, *mounts.interpreter_paths(), *prepared.plan.readable)
        return ""
    prepared.visible = mounts.enter_minimal_root(prepared.plan.readable)
    return "minimal_root"


def _build_landlock(prepared: Prepared) -> str:
    if prepared.plan.landlock_abi:
        prepared.ruleset = landlock.build((*prepared.visible, *mounts.DEVICES), prepared.plan.landlock_abi)
    return ""


def _leave_session(prepared: Prepared) -> str:
    if os.getsid(0) != os.getpid():
        os.setsid()
    os.umask(0o077)
    return "session"


def _drop_uid(prepared: Prepared) -> str:
    if not prepared.plan.drop_uid:
        return ""
    privileges.drop_bounding_set()
    privileges.drop_uid(privileges.NOBODY, privileges.NOBODY)
    return "unprivileged_uid"


def _clear_capabilities(prepared: Prepared) -> str:
    if prepared.plan.user_namespace and not prepared.plan.drop_uid:
        privileges.drop_bounding_set()
    privileges.clear_capabilities()
    return "no_capabilities"


def _forbid_new_privileges(prepared: Prepared) -> str:
    privileges.set_no_new_privileges()
    return "no_new_privileges"


def _forbid_dumps(prepared: Prepared) -> str:
    privileges.set_not_dumpable()
    return "not_dumpable"


def _build_filter(prepared: Prepared) -> str:
    if prepared.plan.seccomp:
        program = seccomp.assemble()
        prepared.filter = seccomp.Filter(program)
        prepared.seccomp_digest = seccomp.digest(program)
    return ""


ZYGOTE_STEPS = (
    _set_limits,
    _seal_view,
    _build_landlock,
    _leave_session,
    _drop_uid,
    _clear_capabilities,
    _forbid_new_privileges,
    _forbid_dumps,
    _build_filter,
)


def confine_zygote(plan: Plan, layers: list[str]) -> Prepared:
    """Run the zygote's steps, after its handlers are loaded; `layers` are those already in force."""
    prepared = Prepared(plan=plan, layers=list(layers))
    for step in ZYGOTE_STEPS:
        name = step(prepared)
        if name:
            prepared.layers.append(name)
    prepared.layers += ["landlock"] * bool(plan.landlock_abi) + ["seccomp"] * bool(plan.seccomp)
    return prepared


def confine_worker(prepared: Prepared) -> None:
    """Add a worker's own walls: a bound on threads, its Landlock domain, then the filter that refuses fork and exec."""
    if prepared.plan.user_namespace or prepared.plan.drop_uid:  # else the uid is the host's own, with all that it runs
        rlimits.limit_tasks()
    if prepared.ruleset is not None:
        landlock.restrict_self(prepared.ruleset)
        os.close(prepared.ruleset)
    if prepared.filter is not None:
        prepared.filter.install()


def is_prefix_traversable() -> bool:
    """Ask whether another uid could reach the interpreter: without a mount namespace a 0700 home keeps it out."""
    for prefix in {sys.prefix, sys.base_prefix}:
        path = os.path.realpath(prefix)
        while path != "/":
            if not os.stat(path).st_mode & 0o001:
                return False
            path = os.path.dirname(path)
    return True


def is_architecture_known() -> bool:
    """Ask whether the seccomp table knows this machine."""
    return syscalls.is_supported()
