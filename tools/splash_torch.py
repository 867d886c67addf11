#!/usr/bin/env python3
"""Models of splashes in PyTorch: loads the files of `selkie splash`, judges and trains them.

    tools/splash_torch.py judge MODEL.safetensors DATA_FOLDER
    tools/splash_torch.py train DATA_FOLDER [--steps N] [--width N]

Both print the area under the curve on the held-out runs. It needs PyTorch; the formats are in docs/manual/splash.md.
"""
import json
import struct
import sys

import torch

TYPES = {"F32": torch.float32, "I32": torch.int32, "U8": torch.uint8}


def read_tensors(path):
    """Tensors and metadata of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
        body = bytearray(file.read())
    meta = head.pop("__metadata__", {})
    tensors = {}
    for name, entry in head.items():
        begin, end = entry["data_offsets"]
        kind = TYPES[entry["dtype"]]
        count = (end - begin) // torch.empty(0, dtype=kind).element_size()
        values = torch.frombuffer(body, dtype=kind, count=count, offset=begin) if count else torch.empty(0, dtype=kind)
        tensors[name] = values.reshape(entry["shape"])
    return tensors, meta


def network(sizes, activation="gelu", dropout=0.0):
    """Layers of products with batch normalisation, an activation and dropout; the last layer is the product alone."""
    layers = []
    for n in range(len(sizes) - 1):
        layers.append(torch.nn.Linear(sizes[n], sizes[n + 1]))
        if n + 2 < len(sizes):
            layers.append(torch.nn.BatchNorm1d(sizes[n + 1]))
            layers.append(torch.nn.GELU(approximate="tanh") if activation == "gelu" else torch.nn.Tanh())
            layers.append(torch.nn.Dropout(dropout))
    return torch.nn.Sequential(*layers)


def load_network(tensors, name, activation="gelu"):
    """A network from the tensors NAME.L.weight and so on."""
    count = 0
    while f"{name}.{count}.weight" in tensors:
        count += 1
    sizes = [tensors[f"{name}.0.weight"].shape[1]] + [tensors[f"{name}.{n}.weight"].shape[0] for n in range(count)]
    result = network(sizes, activation)
    with torch.no_grad():
        for n in range(count):
            result[4 * n].weight.copy_(tensors[f"{name}.{n}.weight"])
            result[4 * n].bias.copy_(tensors[f"{name}.{n}.bias"])
            if n + 1 < count:
                norm = result[4 * n + 1]
                norm.weight.copy_(tensors[f"{name}.norm{n}.weight"])
                norm.bias.copy_(tensors[f"{name}.norm{n}.bias"])
                norm.running_mean.copy_(tensors[f"{name}.norm{n}.running_mean"])
                norm.running_var.copy_(tensors[f"{name}.norm{n}.running_var"])
    return result


def optimiser(model, rate, decay):
    """AdamW with decay of the weights of products only."""
    weights = [layer.weight for layer in model if isinstance(layer, torch.nn.Linear)]
    others = [p for p in model.parameters() if not any(p is w for w in weights)]
    groups = [{"params": weights, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.999), eps=1e-8)


def area(logits, labels, weights):
    """Weighted area under the curve."""
    order = torch.argsort(logits)
    labels, weights = labels[order].double(), weights[order].double()
    below = torch.cumsum(weights * (1 - labels), 0)
    return float((weights * labels * below).sum() / ((weights * labels).sum() * below[-1]))


def held_out(data):
    return data["run"] % 5 == 4


def judge(model, data, mean, scale):
    rows = held_out(data)
    with torch.no_grad():
        logits = model.eval()((data["features"][rows] - mean) / scale)[:, 0]
    return area(logits, data["label"][rows], data["weight"][rows])


def train(data, steps, width, batch=1200):
    keep = ~held_out(data) & (data["run"] % 10 != 2)
    features, labels = data["features"][keep], data["label"][keep]
    quiet = features[labels == 0]
    mean, scale = quiet.mean(0), quiet.std(0)
    scale[scale < 1e-3] = 1.0
    lists = [torch.nonzero(labels == n)[:, 0] for n in (0, 1)]
    model = network([features.shape[1], width, width // 2, 1], dropout=0.1)
    adam = optimiser(model, 2e-3, 0.02)
    cycle = torch.optim.lr_scheduler.OneCycleLR(adam, 2e-3, total_steps=steps)
    for _ in range(steps):
        rows = torch.cat([group[torch.randint(len(group), (batch // 2,))] for group in lists])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            model((features[rows] - mean) / scale)[:, 0], labels[rows].float())
        adam.zero_grad()
        loss.backward()
        adam.step()
        cycle.step()
    return judge(model, data, mean, scale)


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "judge":
        tensors, meta = read_tensors(arguments[1])
        data, _ = read_tensors(arguments[2] + "/data.safetensors")
        model = load_network(tensors, "classifier", meta["activation"])
        print("held out: AUC %.4f" % judge(model, data, tensors["features.mean"], tensors["features.scale"]))
        return 0
    if len(arguments) >= 2 and arguments[0] == "train":
        options = dict(zip(arguments[2::2], arguments[3::2]))
        data, _ = read_tensors(arguments[1] + "/data.safetensors")
        torch.manual_seed(1)
        print("held out: AUC %.4f" % train(data, int(options.get("--steps", 1500)), int(options.get("--width", 32))))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
