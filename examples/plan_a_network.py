"""Form clusters of a network with known devices, look at candidates, write the plan."""

from pathlib import Path
from tempfile import mkdtemp

import ssdfl
from ssdfl.clusters import read_devices, write_plan
from ssdfl.report import write_plan_page
from ssdfl.theory import Constants

network = ssdfl.load_network("barbell:size=3")
devices = read_devices(Path(__file__).parent / "devices.csv", network.names)
settings = ssdfl.FormationSettings(
    Constants(learning_rate=0.02, tau_a=5), score="time", message_bytes=200_000
)
plan = ssdfl.form_clusters(network, devices, settings)

for candidate in plan.candidates:
    conductance, verdict = candidate.min_conductance.upper, "" if candidate.feasible else "not "
    print(
        f"S = {candidate.num_clusters}: {candidate.score:.3f} s, Φ = {conductance:.3f}, "
        f"{verdict}feasible"
    )
print(f"chosen ({plan.choice}): {plan.clusters}")

folder = Path(mkdtemp())
write_plan(plan, folder / "plan.json")
write_plan_page(network, plan, folder / "plan.html")
