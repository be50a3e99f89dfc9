"""`ncu --csv --page details` as text: the table's columns and words as Nsight Compute 2025 writes them."""
from __future__ import annotations

import csv
import io

HEAD = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
        "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
        "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
L1TEX = ("On average, each warp of this workload spends 7.2 cycles being stalled waiting for a scoreboard dependency "
         "on a L1TEX (local, global, surface, texture) operation. Find the instruction producing the data being waited "
         "upon to identify the culprit.\nThis stall type represents about 58.9% of the total average of 12.3 cycles.")
BARRIER = ("On average, each warp of this workload spends 3.0 cycles being stalled waiting for sibling warps at a CTA "
           "barrier. A high number of warps waiting at a barrier is commonly caused by diverging code paths.")
PANEL = "void geqr2_panel<(int)512>(const float *, float *, int)"
GEMM = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32"
FILL = ("void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *, "
        "(unsigned long)1>>(int, T2, T3)")


def launch(number: int, kernel: str, duration: tuple[str, str], compute: str, memory: str, stall: str = "",
           registers: str = "64", spills: str = "0") -> list[tuple[str, ...]]:
    """Rows of one launch. duration: (value, unit)."""
    front = (str(number), "4242", "python3.12", "127.0.0.1", kernel, "1", "7", "(256, 1, 1)", "(640, 1, 1)", "0", "9.0")

    def metric(section: str, name: str, unit: str, value: str) -> tuple[str, ...]:
        return (*front, section, name, unit, value, "", "", "", "", "")

    rows = [metric("GPU Speed Of Light Throughput", "SM Frequency", "Ghz", "1.75"),
            metric("GPU Speed Of Light Throughput", "Memory Throughput", "%", memory),
            metric("GPU Speed Of Light Throughput", "Duration", duration[1], duration[0]),
            metric("GPU Speed Of Light Throughput", "Compute (SM) Throughput", "%", compute),
            metric("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "2.10"),
            metric("Memory Workload Analysis", "Local Memory Spilling Requests", "", spills),
            metric("Launch Statistics", "Registers Per Thread", "register/thread", registers),
            metric("Occupancy", "Theoretical Occupancy", "%", "50"),
            metric("Occupancy", "Achieved Occupancy", "%", "41.5")]
    if stall:
        rows.append((*front, "WarpStateStats", "", "", "", "CPIStall", "OPT", stall, "global", "23.5"))
    return rows


def table(*launches: list[tuple[str, ...]]) -> str:
    out = io.StringIO()
    out.write("==PROF== Connected to process 4242 (/usr/bin/python3.12)\n==PROF== Disconnected from process 4242\n")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(HEAD)
    for rows in launches:
        writer.writerows(rows)
    return out.getvalue()


SOLVER = table(launch(0, FILL, ("2,048", "ns"), "3.1", "71.0"),
               launch(1, PANEL, ("1.50", "ms"), "22.0", "35.5", L1TEX, registers="255", spills="1,536"),
               launch(2, GEMM, ("900.00", "us"), "88.4", "41.0", BARRIER, registers="168"),
               launch(3, PANEL, ("500.00", "us"), "22.0", "35.5", L1TEX, registers="255", spills="512"))
SETUP_ONLY = table(*(launch(i, FILL, ("2,048", "ns"), "3.1", "71.0") for i in range(10)))
