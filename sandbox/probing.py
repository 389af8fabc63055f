"""Find out what this host can confine, by doing it in a throw-away child; the answer is the tier.

A   B and a delegated cgroup v2           C   Landlock and seccomp, no user namespace
B   user namespaces, Landlock, seccomp    D   less: resource limits only
E   macOS                                 none  nothing is asked for
"""

import functools
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from sandbox.confine import Plan, is_prefix_traversable
from sandbox.errors import SandboxUnavailable
from sandbox.linux import privileges

TIERS = ("A", "B", "C", "D", "E", "none")  # strongest first
DEFAULT_ISOLATION = "E" if sys.platform == "darwin" else "C"  # C19: macOS has no walls to ask for
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe_child.py")
_TIMEOUT_S = 10.0

LOST = {
    "user_namespace": "workers share the host's pid, mount, net and ipc namespaces",
    "landlock": "files outside the grants are kept away only by the mount namespace, if there is one",
    "seccomp": "workers may make any system call that their uid may",
    "cgroup": "memory is capped per process, not over a call's whole tree",
    "pidfd": "the zygote engine cannot run",
}
REMEDY = {
    "user_namespace": "allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, or "
    "a container seccomp profile that permits unshare)",
    "landlock": "boot a kernel 5.13 or newer with landlock in its lsm= list",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER on x86-64 or arm64",
    "cgroup": "run under a delegated cgroup v2 (systemd-run --user --scope -p Delegate=yes)",
    "pidfd": "use Linux 5.3 or newer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Hold what was found: the tier, and for each layer that is missing why it is."""

    tier: str
    landlock_abi: int = 0
    kernel: str = ""
    plain_namespaces: bool = False
    missing: dict[str, str] = field(default_factory=dict)

    def has(self, layer: str) -> bool:
        """Ask whether a layer stands."""
        return layer not in self.missing

    def report(self) -> tuple[str, ...]:
        """Return the lines that `dispatcher doctor` prints."""
        lines = [f"tier {self.tier} ({platform.system()} {self.kernel}, Landlock ABI {self.landlock_abi})"]
        for layer, lost in LOST.items():
            if self.has(layer):
                lines.append(f"{layer}: yes")
                continue
            lines.append(f"{layer}: no ({self.missing[layer]})")
            lines.append(f"  lost: {lost}")
            lines.append(f"  to do: {REMEDY[layer]}")
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return asdict(self)


def at_least(tier: str, minimum: str) -> bool:
    """Ask whether `tier` is as strong as `minimum`."""
    return TIERS.index(tier) <= TIERS.index(minimum)


@functools.cache
def probe() -> Probe:
    """Return what this host allows; the child runs once per process. Raises `SandboxUnavailable` on Windows."""
    if sys.platform == "win32":
        raise SandboxUnavailable("Windows has none of the means of this sandbox; use Linux, or WSL 2")
    if sys.platform != "linux":
        missing = {layer: f"not on {platform.system()}" for layer in LOST}
        return Probe(tier="E", kernel=platform.release(), missing=missing)
    return read(_run_child())


def _run_child() -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", _CHILD]
    try:
        child = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=True, cwd="/")
        found: dict[str, Any] = json.loads(child.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return dict.fromkeys(LOST, f"the probe did not run: {type(error).__name__}")
    return found


def read(found: dict[str, Any]) -> Probe:
    """Draw the tier from a probe child's findings. Pure."""
    missing = {layer: str(found[layer]) for layer in LOST if found.get(layer)}
    plain = found.get("plain_namespaces", "no") == ""
    abi = int(found.get("landlock_abi") or 0) if "landlock" not in missing else 0
    return Probe(
        tier=_tier(missing), landlock_abi=abi, kernel=platform.release(), plain_namespaces=plain, missing=missing
    )


def _tier(missing: dict[str, str]) -> str:
    if "seccomp" in missing or "landlock" in missing:
        return "D"
    if "user_namespace" in missing:
        return "C"
    return "B" if "cgroup" in missing else "A"


def plan_for(found: Probe, readable: tuple[str, ...] = ()) -> Plan:
    """Return the walls to build on this host."""
    user = found.has("user_namespace")
    inner = user or found.plain_namespaces
    drops = privileges.can_drop_uid() if sys.platform == "linux" else os.getuid() == 0
    return Plan(
        tier=found.tier,
        user_namespace=user,
        inner_namespaces=inner,
        landlock_abi=found.landlock_abi,
        seccomp=found.has("seccomp"),
        drop_uid=drops and (inner or is_prefix_traversable()),
        readable=readable,
        missing=tuple(sorted(found.missing)),
    )
