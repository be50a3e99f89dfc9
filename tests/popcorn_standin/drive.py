"""scripts/submit and its like on a .kit folder of the test's own.

    python drive.py KIT_FOLDER VERB ARGUMENTS...      one run, from a fresh interpreter
    python drive.py --fork FD                         a run for each message on a socket, forked from this process

The second form saves each test the half second of imports; every run is still a process of its own, with its own
environment, folder, streams and exit code.
"""
import array
import contextlib
import json
import os
import socket
import sys
import traceback
from pathlib import Path

from harness import cli, results


def run(folder, words):
    results.RUNS_DIR = Path(folder) / "runs"
    cli.MODULES = ("popcorn", "history", "profiling")
    return cli.main(words)


def child(request, streams):
    """Never returns."""
    code = 99
    try:
        for fd, target in zip(streams, (1, 2), strict=True):
            os.dup2(fd, target)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        code = run(request["words"][0], request["words"][1:])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve(fd):
    import httpx  # noqa: F401
    with contextlib.suppress(ImportError):  # not on every GPU box
        import kernelguard  # noqa: F401

    import harness.history
    import harness.lint
    import harness.popcorn.profile
    harness.popcorn.profile.task()  # task.yml, read once
    with socket.socket(fileno=fd) as channel:
        while True:
            message, ancillary, _, _ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(8))
            if not message:
                return
            streams = array.array("i", ancillary[0][2]).tolist()
            pid = os.fork()
            if pid == 0:
                child(json.loads(message), streams)
            for stream in streams:
                os.close(stream)
            channel.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


if __name__ == "__main__":
    if sys.argv[1] == "--fork":
        serve(int(sys.argv[2]))
    else:
        sys.exit(run(sys.argv[1], sys.argv[2:]))
