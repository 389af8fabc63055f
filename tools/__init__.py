"""The bundled tools, written as any user would write them; `tools:registry` is what the command line uses by default."""

from dispatcher import Registry
from tools import calculator, files, jobs, power, users, weather

registry = Registry()
for module in (calculator, weather, jobs, users, files, power):
    module.register(registry)
