"""Jobs of a build farm, from a small table."""

from typing import Annotated, Any

from annotated_types import Ge

from dispatcher import Coerce, Limits, Registry, ToolError

JOBS: dict[int, dict[str, Any]] = {
    17: {"job_id": 17, "status": "failed", "step": "compile", "exit_code": 2},
    42: {"job_id": 42, "status": "failed", "step": "deploy", "exit_code": 1},
}


def get_job(job_id: Annotated[int, Coerce.positive_int, Ge(1)]) -> dict[str, Any]:
    """Tell a job's status."""
    if job_id not in JOBS:
        raise ToolError("not_found")
    return JOBS[job_id]


def register(registry: Registry) -> None:
    """Add the tool."""
    known = " and ".join(str(job_id) for job_id in JOBS)
    registry.tool(effect="read", limits=Limits(wall_s=2), errors={"not_found": f"Job ids look like {known}"})(get_job)
