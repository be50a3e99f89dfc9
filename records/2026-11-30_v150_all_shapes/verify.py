import os, sys, time, importlib.util, torch
sys.path.insert(0, os.getcwd())
import reference
from harness.residuals import residuals
spec = importlib.util.spec_from_file_location("s", sys.argv[1]); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)
k = m.custom_kernel
bad, t0 = 0, time.time(); CLASS = len(sys.argv) > 2
P = [("dense",0),("dense",1),("dense",2),("dense",4),("upper",0),("upper",2),("diagonal",0),("rankdef",0),("nearrank",0),("clustered",0),("band",0),("rowscale",0),("nearcollinear",0),("mixed",0),("mixed",2)]
def go(b, n, cases, seeds):
    global bad
    out = []
    for c, cond in cases:
        w = {"factor": 0, "orth": 0, "column": 0}
        for s in range(seeds):
            a = reference.generate_input(b, n, cond, 9100 + s + n, c); keep = a.clone()
            h, tau = k(a)
            r = residuals(a, h, tau).worst()
            if not (torch.isfinite(h).all() and torch.isfinite(tau).all() and torch.equal(a, keep)): r = {"factor": float("inf"), "orth": 0, "column": 0}
            for x in w: w[x] = max(w[x], r[x])
        if not (w["factor"] <= 20 and w["orth"] <= 100 and (not CLASS or w["column"] <= 1)): bad += 1
        over = w["column"] > 1 if CLASS else w["factor"] > 10
        out.append(f"{c}{cond} " + (f"{w['column']:.2f}/{w['orth']:.2f}" if CLASS else f"{w['factor']:.2f}/{w['orth']:.2f}") + (" OVER" if over else ""))
    print(f"b{b} n{n} x{seeds}: " + ", ".join(out), f"[{time.time()-t0:.1f} s]", flush=True)
go(1, 4096, [("upper",0),("upper",2),("band",0),("mixed",2)], 2)
go(2, 4096, P, 3)
go(8, 2048, P, 3)
go(16, 512, P, 3 if CLASS else 10)
for n in (257, 385, 449, 500, 511): go(4, n, [("dense",0),("nearrank",0),("upper",0),("band",0),("mixed",2),("nearcollinear",0)], 1)
go(8, 1024, P, 3); go(60, 1024, [("upper",2)], 3)
for n in (897, 930, 1000, 1100, 1400): go(4, n, [("dense",0),("band",0),("rowscale",0),("nearrank",0)], 1)
for n in (32, 176, 352, *((33, 34, 48, 64, 100, 640, 800) if CLASS else (600, 800))): go(8, n, P, 3 if CLASS else 10)
for n, b in ((1537,2),(1701,2),(2000,3),(3001,1),(3333,1),(4096,5)): go(b, n, [("dense",1),("upper",0),("mixed",2)], 1)
for x in (1e30, 1e-30):
    a = reference.generate_input(4, 512, 0, 5, "dense") * x; h, tau = k(a); print("512 x", x, residuals(a, h, tau).worst())
for n in (176, 512, 1024, 2048):
    for a in (torch.zeros(3, n, n, device="cuda"), torch.eye(n, device="cuda").expand(3, n, n).contiguous()):
        h, tau = k(a); r = residuals(a, h, tau).worst(); bad += not (torch.isfinite(h).all().item() and r["factor"] <= 10)
for b, n, c in ((2, 2048, "dense"), (1, 4096, "upper"), (4, 512, "band"), (4, 512, "mixed")):
    a = reference.generate_input(b, n, 1, 77, c); ok, msg = reference.check_implementation(a, k(a)); bad += not ok; print("contest checker", b, n, c, ok, msg)
a = reference.generate_input(2, 2048, 1, 3, "mixed"); one = k(a); print("bits repeat", all(torch.equal(one[0], k(a)[0]) for _ in range(5)))
print("BAD", bad, f"{time.time()-t0:.1f} s"); sys.exit(bad > 0)
