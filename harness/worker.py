"""The untrusted child: the only program here that imports a submission.

    python -P harness/worker.py FD TASK_PY

It knows no seed, no case name, no tolerance and no other repeat's data: it gets matrices in shared memory, calls
custom_kernel on them, and copies the outputs back into shared memory. What it reports (its own time, its own
observations) the parent believes only as far as its own clock and its own copy of the inputs allow; see evaluate.py.

It stands outside the package on purpose: nothing of the harness is importable from here.
One request a message, JSON in both directions (harness/evaluate.py is the other end):
    load {path}                               -> {}
    map  {kind, buffers: {name: [...]}, ...}  -> {}
    run  {slots, call, flush}                 -> {elapsed_ns}, then {outputs: [...], patched: [...]}
    quit                                      -> end of the channel
Any request may be answered by {fail: status, text} instead.
"""
import ctypes
import importlib.util
import json
import pickle
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection


class Fail(Exception):
    """A verdict on the submission, with the text that explains it."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status, self.text = status, text


def own_frames(error, path):
    """The submission's traceback from its own first frame; a syntax error has no frame, the message suffices."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.filename == path), len(frames))
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(type(error), error)
    return "".join(lines).rstrip()


def load_module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Triton and dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def watched(torch):
    """What a submission might replace to look faster or righter than it is: (owner, attribute) -> identity."""
    from torch.multiprocessing.reductions import StorageWeakRef
    owners = [(torch.cuda, ("synchronize", "Event")), (torch.cuda.Event, ("record", "elapsed_time", "synchronize")),
              (torch, ("empty", "zeros", "equal", "isfinite", "Tensor")), (torch.Tensor, ("copy_", "data_ptr")),
              (torch.linalg, ("householder_product", "matrix_norm", "qr")),
              (torch.UntypedStorage, ("data_ptr", "_expired")), (StorageWeakRef, ("expired",)),
              (time, ("perf_counter", "perf_counter_ns", "time", "monotonic")), (json, ("dumps", "loads")),
              (Connection, ("send_bytes", "recv_bytes"))]
    return {(owner, name): getattr(owner, name, None) for owner, names in owners for name in names}


class Server:
    def __init__(self, channel, task_py):
        self.channel, self.task_py = channel, task_py
        self.kernel = self.path = None
        self.cuda = False
        self.previous = []  # of the last run's last output: (weak reference to a storage, its address)

    def serve(self):
        while True:
            try:
                request = json.loads(self.channel.recv_bytes())
            except (EOFError, OSError):
                return  # the parent is gone or has had enough
            try:
                for reply in getattr(self, "do_" + request.pop("op"))(**request):
                    self.channel.send_bytes(json.dumps(reply).encode())
            except Fail as e:
                self.channel.send_bytes(json.dumps({"fail": e.status, "text": e.text}).encode())

    # ------------------------------------------------------------ requests

    def do_load(self, path):
        import torch
        self.torch, self.path = torch, path
        self.originals, self.threads = watched(torch), threading.active_count()
        self.sync, self.event, self.clock = torch.cuda.synchronize, torch.cuda.Event, time.perf_counter_ns
        from torch.multiprocessing.reductions import StorageWeakRef
        self.weak = StorageWeakRef
        try:
            load_module("task", self.task_py)
            kernel = load_module("submission", path).custom_kernel
        except BaseException as e:  # SystemExit too
            raise Fail("import", own_frames(e, path)) from None
        self.kernel = kernel
        yield {}

    def do_map(self, kind, batch, n, slots, outs, stride):
        """Buffers of the parent: `in` holds `slots` inputs `stride` floats apart; `h` and `tau` hold `outs` outputs."""
        torch = self.torch
        self.shape, self.stride, self.cuda, self.previous = (batch, n, n), stride, kind == "cuda", []
        sizes = {"in": slots * stride, "h": outs * batch * n * n, "tau": outs * batch * n}
        if self.cuda:
            import torch.multiprocessing.reductions  # registers the rebuilding of CUDA tensors
            self.buffers = {name: pickle.loads(self.channel.recv_bytes()) for name in sizes}
        else:
            self.buffers = {name: torch.from_file(self.channel.recv_bytes().decode(), shared=True, size=max(1, size),
                                                  dtype=torch.float32) for name, size in sizes.items()}
        yield {}

    def do_quit(self):
        """Unmap and leave: CUDA memory that another process maps is not the parent's to reuse."""
        self.buffers = self.previous = None
        if self.cuda:
            self.torch.cuda.ipc_collect()
        sys.exit()
        yield

    def do_run(self, slots, call, flush):
        """Call on each slot, timed as a whole. call=False does all but the call and hands the input over, transposed
        as geqrf's H is: the parent's clock learns what the harness itself costs, before "timed" and after."""
        torch = self.torch
        batch, n, _ = self.shape
        inputs = [self.buffers["in"][s * self.stride:s * self.stride + batch * n * n].view(self.shape) for s in slots]
        kernel = self.kernel if call else (lambda a: (a.mT, a[:, 0]))
        outputs = []
        # A storage that outlives the run is the submission's own: what comes back in it is not fresh. Only the weak
        # reference is kept, so that a timed run finds the memory of the run before it free, as the contest's does.
        kept = {address for storage, address in self.previous if not storage.expired()}
        try:
            if self.cuda:
                self.sync()
                if flush:  # a fresh 256 MiB buffer, as the contest does: L2 holds nothing of the last repeat
                    torch.empty(32 << 20, dtype=torch.int64, device="cuda").fill_(1)
                start, end = self.event(enable_timing=True), self.event(enable_timing=True)
                start.record()
                for a in inputs:
                    outputs.append(kernel(a))
                end.record()
                self.sync()
                elapsed = start.elapsed_time(end) * 1e6
            else:
                start = self.clock()
                for a in inputs:
                    outputs.append(kernel(a))
                elapsed = self.clock() - start
        except torch.OutOfMemoryError as e:
            raise Fail("oom", str(e).splitlines()[0]) from None
        except MemoryError:
            raise Fail("oom", "the host's memory is used up") from None
        except BaseException as e:
            raise Fail("raised", own_frames(e, self.path)) from None
        yield {"elapsed_ns": elapsed}
        seen = [self.hand_over(i, out, inputs[i], kept) for i, out in enumerate(outputs)]
        if call and not seen[-1]["problem"]:
            storages = [t.untyped_storage() for t in outputs[-1]]
            self.previous = [(self.weak(s), s.data_ptr()) for s in storages]
        if self.cuda:
            self.sync()
        yield {"outputs": seen, "threads": threading.active_count() - self.threads,
               "patched": sorted(f"{owner.__name__}.{name}" for (owner, name), value in self.originals.items()
                                 if getattr(owner, name, None) is not value)}

    def hand_over(self, i, out, a, earlier):
        """Copy one output into the parent's buffer: "" or what is wrong with its type; and what it shares."""
        torch = self.torch
        batch, n, _ = self.shape
        if type(out) is not tuple and type(out) is not torch.return_types.geqrf:
            return {"problem": f"output must be a tuple (H, tau), got {type(out).__name__}"}
        if len(out) != 2:
            return {"problem": f"output must be a tuple (H, tau), got a tuple of {len(out)}"}
        for name, t, shape in (("H", out[0], (batch, n, n)), ("tau", out[1], (batch, n))):
            if type(t) is not torch.Tensor:
                return {"problem": f"{name} must be a torch.Tensor, got {type(t).__name__}"}
            if t.__dict__:
                return {"problem": f"{name} carries attributes of its own: {', '.join(sorted(t.__dict__))}"}
            if tuple(t.shape) != shape:
                return {"problem": f"{name} has shape {tuple(t.shape)}, expected {shape}"}
            if t.dtype != torch.float32:
                return {"problem": f"{name} has dtype {t.dtype}, expected torch.float32"}
            if t.device.type != a.device.type:
                return {"problem": f"{name} is on {t.device}, expected {a.device}"}
        h, tau = out
        own = {t.untyped_storage().data_ptr() for t in (h, tau)}
        shared = "input" if a.untyped_storage().data_ptr() in own else "earlier output" if own & earlier else ""
        earlier |= own
        size = batch * n * n
        self.buffers["h"][i * size:(i + 1) * size].view(batch, n, n).copy_(h)
        self.buffers["tau"][i * batch * n:(i + 1) * batch * n].view(batch, n).copy_(tau)
        return {"problem": "", "shares": shared}


def main():
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a worker never outlives its parent
    Server(Connection(int(sys.argv[1])), sys.argv[2]).serve()


if __name__ == "__main__":
    main()
