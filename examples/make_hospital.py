"""Write the example of this folder: a hospital's network of risks, diseases and findings, many of them known.

Run it to see how the files came about; they are shipped, so that the demo needs nothing else.
"""

from pathlib import Path

import powersum as ps
from powersum.formats import write_query

HERE = Path(__file__).parent


def main() -> None:
    """Generate the network and ask for its diseases."""
    model, _ = ps.generate.diagnosis(150, states=4, parents=3, observed=0.8, seed=11)
    names = [model.name(variable) for variable in range(model.n_variables)]
    ps.write(model, HERE / "hospital.uai.gz")
    write_query([i for i, name in enumerate(names) if name.startswith("disease")], HERE / "hospital.uai.query")
    (HERE / "hospital.names").write_text("\n".join(names) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
