"""What the tests of the two pretraining commands share: overrides as arguments, reports, a run that is killed."""

import json
import os
import signal
import subprocess
import time


def as_arguments(settings):
    return [str(part) for key, value in settings.items() for part in (f"--{key}", json.dumps(value))]


def reports(folder):
    """Without the times."""
    lines = (folder / "metrics.jsonl").read_text("utf8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def kill_at(step, command, metrics, errors):
    """Run a command and kill it as soon as `metrics` has so many lines. errors: file that gets what it says.

    RETURNS: how many lines there are then."""
    with errors.open("w") as file_of_errors:
        with subprocess.Popen(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=file_of_errors,
        ) as process:
            while process.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= step):
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, f"it ended before step {step}: {errors.read_text()[-2000:]}"
    return metrics.read_bytes().count(b"\n")
