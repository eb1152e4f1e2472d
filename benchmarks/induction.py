"""How time, compositions and memory of the chart grow with the length of sentences.

Run from the project's root: `make bench`, or `.venv/bin/python benchmarks/induction.py --help`. Each length runs in a
process of its own, so that its peak memory is its own. Look at ratios within one run; machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)


def peak_kilobytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("no VmHWM in /proc/self/status")


def measure(options: argparse.Namespace) -> None:
    """Time one length in this process; prints one JSON object."""
    import torch

    from r2d2.model import R2D2Config, R2D2ForBidirectionalLM

    torch.manual_seed(0)
    config = R2D2Config(
        vocab_size=1000,
        hidden_size=options.width,
        intermediate_size=4 * options.width,
        num_attention_heads=4,
        num_hidden_layers=options.layers,
        m=options.m,
    )
    model = R2D2ForBidirectionalLM(config)
    ids = torch.randint(200, 1000, (options.sentences, options.length))
    warm_up = ids[:, :8]
    model.train()(warm_up, labels=warm_up).loss.backward()
    before = peak_kilobytes()
    tokens = ids.numel()
    seconds: dict[str, list[float]] = {"encode": [], "forward": [], "backward": []}
    compositions = 0
    for _ in range(options.repeat):
        start = time.perf_counter()
        with torch.no_grad():
            model.eval()(ids, labels=ids)
        seconds["encode"].append(time.perf_counter() - start)
        start = time.perf_counter()
        output = model.train()(ids, labels=ids, return_chart=True)
        seconds["forward"].append(time.perf_counter() - start)
        start = time.perf_counter()
        output.loss.backward()
        seconds["backward"].append(time.perf_counter() - start)
        compositions = output.chart.compositions
    result = {name: tokens / min(times) for name, times in seconds.items()}
    result["train_seconds_a_token"] = (min(seconds["forward"]) + min(seconds["backward"])) / tokens
    result["compositions"] = compositions / tokens
    result["megabytes"] = (peak_kilobytes() - before) / 1024
    print(json.dumps(result))


def report(options: argparse.Namespace, arguments: list[str]) -> None:
    """Run every length and print a table."""
    import torch

    print(
        f"{options.sentences} sentences, {options.width} x {4 * options.width} x {options.layers}, m = {options.m}; "
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}"
    )
    print("tokens a second without gradients, forward and backward of training; time a token against n = 64")
    print(f"{'n':>5} {'no grad':>9} {'forward':>9} {'backward':>9} {'f a token':>10} {'MB':>7} {'time':>6}")
    rows = []
    for n in LENGTHS:
        command = [sys.executable, __file__, *arguments, "--length", str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout))
    reference = rows[LENGTHS.index(64)]["train_seconds_a_token"]
    for n, row in zip(LENGTHS, rows, strict=True):
        print(
            f"{n:5} {row['encode']:9.0f} {row['forward']:9.0f} {row['backward']:9.0f} {row['compositions']:10.2f} "
            f"{row['megabytes']:7.0f} {row['train_seconds_a_token'] / reference:6.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=4)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--m", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--length", type=int, help="time this length alone, as one JSON object")
    options = parser.parse_args()
    if options.length is None:
        report(options, sys.argv[1:])
    else:
        measure(options)


if __name__ == "__main__":
    main()
