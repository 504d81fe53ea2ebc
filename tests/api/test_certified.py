"""Certificates of distributions, which the checker turns into the same intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check
from powersum_check.__main__ import main
from tests.oracle import joint_log_table
from tests.strategies import random_model


@pytest.mark.parametrize("seed", range(4))
def test_the_checker_proves_the_distribution(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=6, n_factors=8, zeros=0.2 * (seed % 2))
    joint = joint_log_table(model, {5: 0})
    if joint.max() == -np.inf:
        return
    found = ps.marginals(model, evidence={5: 0}, of=[0, 3], certificate=True)
    assert sorted(found.certificates) == [0, 3]
    ps.write(model, tmp_path / "model.uai")
    (tmp_path / "seen.evid").write_text("1 5 0\n")
    folders = found.save_certificates(tmp_path / "proofs")
    checked = powersum_check.read_model(tmp_path / "model.uai")
    joint = np.exp(joint - joint.max())
    for v, folder in zip((0, 3), folders, strict=True):
        truth = joint.sum(axis=tuple(a for a in range(6) if a != v)) / joint.sum()
        paths = [folder / f"{s}.zip" for s in range(len(truth))]
        shares = powersum_check.check_shares(checked, v, paths, {5: 0})
        for s, share in enumerate(shares):
            assert share.lower <= truth[s] * (1.0 + 1e-12)
            assert share.upper >= truth[s] * (1.0 - 1e-12)
            assert share.upper - share.lower < 1e-6
            assert found[v][s].lower <= truth[s] <= found[v][s].upper + 1e-15
        words = [str(tmp_path / "model.uai"), str(folder), "--evid", str(tmp_path / "seen.evid"), "--share", str(v)]
        assert main(words) == 0
        assert capsys.readouterr().out.count("verified:") == len(truth)
        # Proofs of other states are refused, or what they prove holds all the same.
        try:
            others = powersum_check.check_shares(checked, v, paths[::-1], {5: 0})
        except powersum_check.Rejected:
            others = []
        assert all(
            one.lower <= p * (1.0 + 1e-12) <= one.upper * (1.0 + 2e-12) for one, p in zip(others, truth, strict=False)
        )
        with pytest.raises(powersum_check.BadFile, match="a certificate for each"):
            powersum_check.check_shares(checked, v, paths[1:], {5: 0})
    assert main([str(tmp_path / "model.uai"), str(folders[0]), "--share", "77"]) == 2
    assert main([str(tmp_path / "model.uai"), str(tmp_path), "--share", "0"]) == 2


def test_what_is_refused() -> None:
    model = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    for options, message in (
        ({"of": []}, "give single variables in of"),
        ({"of": [("rain", "wet")]}, "give single variables in of"),
        ({"of": ["rain"], "evidence": {"rain": 1}}, "is observed"),
        ({"of": ["rain"], "evidence": {"wet": [0.5, 0.2]}}, "likelihoods cannot be proven"),
    ):
        with pytest.raises(ps.InputError, match=message):
            ps.marginals(model, certificate=True, **options)


@pytest.mark.parametrize("seed", range(6))
def test_one_certificate_proves_all_distributions(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of networks too, in which all that is not observed is barren; likelihoods are part of the question."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        model = random_model(rng, n_variables=6, n_factors=8, zeros=0.2)
    else:
        parents = [tuple(int(u) for u in rng.choice(v, min(v, 2), replace=False)) for v in range(6)]
        tables = [((*above, v), rng.dirichlet(np.ones(2), (2,) * len(above))) for v, above in enumerate(parents)]
        model = ps.Model.from_factors([2] * 6, tables)
    likelihood = [0.3, 0.9, 0.4, 0.6][: int(model.cardinalities[1])]
    joint = joint_log_table(model, {5: 0}) + np.log(likelihood).reshape((-1, 1, 1, 1, 1))
    joint = np.exp(joint - joint.max())
    found = ps.marginals(model, evidence={5: 0, 1: likelihood}, certificate=True)
    assert found.certificate is not None
    ps.write(model, tmp_path / "model.uai")
    checked = powersum_check.read_model(tmp_path / "model.uai")
    question = powersum_check.Question.of(checked, (), {5: 0}, {1: likelihood})
    (path,) = found.save_certificates(tmp_path / "proofs")
    told = powersum_check.check_marginals(checked, question, path)
    for v, shares in enumerate(told):
        truth = joint.sum(axis=tuple(a for a in range(6) if a != v)) / joint.sum()
        assert shares is not None
        assert all(one.lower - 1e-12 <= p <= one.upper + 1e-12 for one, p in zip(shares, truth, strict=True))
        assert all(one.upper - one.lower < 1e-9 for one in shares)
    plain = ps.marginals(model, certificate=True)
    (path,) = plain.save_certificates(tmp_path)
    assert main([str(tmp_path / "model.uai"), str(path), "--marginals"]) == 0
    assert capsys.readouterr().out.count("verified:") == int(model.cardinalities.sum())


def test_all_distributions_need_an_elimination_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    monkeypatch.setattr("powersum.proof.certificate.TOLD", 0.0)
    with pytest.raises(ps.InputError, match="too wide for all variables"):
        ps.marginals(model, certificate=True)
