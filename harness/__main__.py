import os

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # a worker that had to be killed is no news from CUDA IPC

from harness.cli import main

raise SystemExit(main())
