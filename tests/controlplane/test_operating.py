"""Tokens that are renewed and revoked, certificates that are replaced, and the log of who did what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from running_controller import PATIENT, Place, request, until

from catchment.controlplane.controller import audit, certificates
from catchment.controlplane.controller.audit import AuditLog
from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.jobs import JobError
from catchment.host.membership import MembershipError
from catchment.wire.service import CONTROLLER_NAME, OPERATOR_NAME, credential_files, host_name

pytestmark = pytest.mark.parametrize("timing", [PATIENT], ids=["patient"])


def deeds(place: Place) -> list[dict[str, Any]]:
    path = place.controller.settings.folder / "lab.audit.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_token_whose_reply_was_lost_can_be_asked_for_again(place: Place) -> None:
    with place.controller.operator() as operator:
        lost = operator.create(request()).token
        token = operator.renew_token("train")
        assert token not in ("", lost)
        with pytest.raises(MembershipError, match="may not join"):
            place.controller.join("train", "w0", lost)
        with place.controller.join("train", "w0", token) as member:
            operator.renew_token("train", revoke=True)
            with pytest.raises(MembershipError, match="may not join"):
                place.controller.join("train", "w1", token)
            with pytest.raises(MembershipError, match="may not join"):
                place.controller.join("train", "w1", "")
            assert member.error is None, "who has joined stays"
            place.controller.stop()
            place.controller.start()
            with pytest.raises(MembershipError, match="may not join"):
                place.controller.join("train", "w1", token)
            again = operator.renew_token("train")
            with place.controller.join("train", "w1", again):
                pass
        with pytest.raises(ControllerError, match="no job 'other'"):
            operator.renew_token("other")


def test_a_token_that_cannot_be_noted_does_not_change(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token

        def refuse(*_: object) -> None:
            raise JobError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr("catchment.controlplane.deployment.live_store.LiveStore._write", refuse)
            with pytest.raises(ControllerError, match="disk is full"):
                operator.renew_token("train")
        with place.controller.join("train", "w0", token):
            pass


def serial(place: Place, name: str) -> str:
    file = place.controller.certificates / credential_files(name)[0]
    return f"{x509.load_pem_x509_certificate(file.read_bytes()).serial_number:x}"


def test_the_controller_shows_a_new_certificate_without_a_restart(place: Place) -> None:
    folder = place.controller.certificates
    shown = serial(place, CONTROLLER_NAME)
    certificates.renew(folder, CONTROLLER_NAME, revoke=True)
    assert serial(place, CONTROLLER_NAME) != shown
    with place.controller.operator() as operator:
        operator.create(request())
    # The authority is another from here on: who still trusts the old one alone cannot talk to the controller any more,
    # which is how a client that cannot look into the handshake sees that it shows the new files.
    old = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for path in folder.glob("*.*"):
        path.unlink()
    certificates.make(folder, place.topology.hosts)
    with place.controller.operator() as operator:
        assert [job.name for job in operator.jobs()] == ["train"]
    stale = folder.with_name("stale")
    stale.mkdir()
    for name, content in old.items():
        (stale / name).write_bytes(content)
    place.controller.certificates = stale
    with place.controller.operator() as operator, pytest.raises(ControllerError, match="does not answer"):
        operator.jobs()


def test_half_replaced_files_are_not_shown(place: Place) -> None:
    folder = place.controller.certificates
    certificate, key = (folder / file for file in credential_files(CONTROLLER_NAME))
    kept = key.read_bytes()
    certificates.renew(folder, CONTROLLER_NAME)
    key.write_bytes(kept)
    with place.controller.operator() as operator:
        assert operator.jobs() == []
    assert certificate.read_bytes()


def test_a_revoked_certificate_is_refused_and_named(place: Place) -> None:
    folder = place.controller.certificates
    with place.controller.operator() as thief, place.controller.operator() as operator:
        token = thief.create(request()).token
        stolen = serial(place, OPERATOR_NAME)
        certificates.renew(folder, OPERATOR_NAME)
        thief.jobs()  # both count until it is revoked
        member = place.controller.join("train", "w0", token)
        certificates.renew(folder, host_name("w0"), revoke=True)
        until(lambda: member.error, "its heartbeats are refused")
        (folder / certificates.REVOKED).open("a").write(f"{stolen}\n")
        with pytest.raises(RefusedError, match=f"{stolen} of operator was revoked"):
            thief.remove("train")
        (folder / certificates.REVOKED).unlink()
        with pytest.raises(RefusedError, match="revoked"):
            operator.jobs()
    with place.controller.operator() as operator:
        assert [job.name for job in operator.jobs()] == ["train"]
    assert any(deed["action"] == "RemoveJob" and "revoked" in deed["outcome"] for deed in deeds(place))


def test_who_did_what_is_logged_without_secrets(place: Place) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token
        with pytest.raises(ControllerError, match="exists"):
            operator.create(request())
        with place.controller.join("train", "w0", token) as member:
            session = member._session
        with pytest.raises(MembershipError):
            place.controller.join("train", "w0", "guess", proves="w1")
        renewed = operator.renew_token("train")
        operator.remove("train")
    found = [(deed["who"].partition(" ")[0], deed["action"], deed["subject"], deed["outcome"]) for deed in deeds(place)]
    assert [one[:3] for one in found] == [
        ("operator", "CreateJob", "train"),
        ("operator", "CreateJob", "train"),
        ("host:w0", "Join", "train w0"),
        ("host:w0", "Leave", ""),
        ("host:w1", "Join", "train w0"),
        ("operator", "RenewToken", "train"),
        ("operator", "RemoveJob", "train"),
    ]
    assert [one[3][:7] for one in found] == ["ok", "job tra", "ok", "ok", "refused", "ok", "ok"]
    path = place.controller.settings.folder / "lab.audit.jsonl"
    text = path.read_text("utf-8")
    assert not any(secret in text for secret in (token, session, renewed, "guess"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert serial(place, OPERATOR_NAME) in text, "two operators are told apart by their certificates"
    assert all(deed["peer"] for deed in deeds(place))


def test_a_log_that_cannot_be_written_stops_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    log = AuditLog(tmp_path / "full" / "audit.jsonl")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(audit.AuditLog, "_open", refuse)
    for _ in range(3):
        log.note("operator", "RemoveJob", "train")
    said = [record.message for record in caplog.records if "audit log" in record.message]
    assert len(said) == 1 and "cannot be written" in said[0]
