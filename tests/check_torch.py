#!/usr/bin/env python3
"""Two steps of training in C against the same in PyTorch. Skipped (77) where no Python has PyTorch.

Usage: check_torch.py BUILD SOURCE
"""
import os
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    # The Python of a version manager does not see the packages of the system.
    system = "/usr/bin/python3"
    if os.path.exists(system) and os.path.realpath(sys.executable) != os.path.realpath(system):
        os.execv(system, [system] + sys.argv)
    print("skipped: PyTorch is not installed (Debian: apt-get install python3-torch)")
    sys.exit(77)

sys.path.insert(0, os.path.join(sys.argv[2], "tools"))
import splash_torch  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.safetensors")
        subprocess.run([os.path.join(sys.argv[1], "tests", "test_learn")], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={**os.environ, "SELKIE_STEP_FILE": path})
        tensors, _ = splash_torch.read_tensors(path)
    model = splash_torch.load_network(tensors, "before").train()
    expected = splash_torch.load_network(tensors, "after").state_dict()
    adam = splash_torch.optimiser(model, 1e-2, 0.02)
    for _ in range(2):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(tensors["inputs"])[:, 0], tensors["labels"])
        adam.zero_grad()
        loss.backward()
        adam.step()
    worst = 0.0
    for name, values in model.state_dict().items():
        # Normalisation takes the biases of hidden products out again: their slopes are rounding, whose sign Adam takes.
        if name in ("0.bias", "4.bias") or "num_batches" in name or name in ("1.running_mean", "5.running_mean"):
            continue
        worst = max(worst, float((values - expected[name]).abs().max()))
    print("largest difference after two steps: %.2g" % worst)
    return 0 if worst < 1e-5 else 1


sys.exit(main())
