#!/usr/bin/env python3
"""Train a small language model and save it to testdata/sample, as large ones are saved.

    gen_sample.py [STEPS]         train and save (five to ten minutes on one core)
    gen_sample.py --gguf          make testdata/sample.gguf from testdata/sample
    gen_sample.py --spell MNT N   spell the number N with the weights of a mount

The same weights are in testdata/sample.gguf, quantised to Q8_0 by gguf-py. The model is a transformer over characters that spells numbers: it continues `342=` with
`three hundred forty two`. Twelve layers, one of them with a mixture of four experts whose weights
are fused into tensors of three dimensions. It is trained in float32 by NumPy alone, a fifth of the
numbers held out, and saved by the safetensors library: matrices as BF16, norms as F32, three shards
and an index. With the same NumPy and processor two runs give the same bytes."""
import json
import pathlib
import sys

import numpy as np

LAYERS, WIDTH, HEADS, INNER, EXPERTS, MOE_LAYER, LENGTH = 12, 32, 4, 64, 4, 5, 32
CHARS = "\n=0123456789 abcdefghijklmnopqrstuvwxyz"
ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
OUT = pathlib.Path(__file__).parent.parent / "testdata" / "sample"


def spelled(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10 - 2] + (" " + ONES[n % 10] if n % 10 else "")
    return ONES[n // 100] + " hundred" + (" " + spelled(n % 100) if n % 100 else "")


class Var:
    """An array, what the loss changes by when it changes, and how to hand that on."""

    def __init__(self, value, back=None):
        self.value, self.back = value, back
        self.grad = np.zeros_like(value)


class Tape:
    """The operations of the model; backward undoes them in reverse order."""

    def __init__(self):
        self.steps = []

    def record(self, value, back):
        out = Var(value, back)
        self.steps.append(out)
        return out

    def backward(self):
        for step in reversed(self.steps):
            step.back(step.grad)

    def embed(self, table, ids):
        def back(g):
            np.add.at(table.grad, ids, g)

        return self.record(table.value[ids], back)

    def add(self, a, b):
        def back(g):
            a.grad += g
            b.grad += g if b.grad.shape == g.shape else g.sum(0)

        return self.record(a.value + b.value, back)

    def linear(self, x, w):
        def back(g):
            x.grad += g @ w.value
            w.grad += g.reshape(-1, g.shape[-1]).T @ x.value.reshape(-1, x.value.shape[-1])

        return self.record(x.value @ w.value.T, back)

    def norm(self, x, w):
        scale = 1 / np.sqrt((x.value**2).mean(-1, keepdims=True) + 1e-5)
        unit = x.value * scale

        def back(g):
            w.grad += (g * unit).sum((0, 1))
            gw = g * w.value
            x.grad += scale * (gw - unit * (gw * unit).mean(-1, keepdims=True))

        return self.record(unit * w.value, back)

    def relu(self, x):
        def back(g):
            x.grad += g * (x.value > 0)

        return self.record(np.maximum(x.value, 0), back)

    def attend(self, q, k, v):
        def split(x):
            return x.reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2)

        def join(x):
            return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)

        qs, ks, vs = split(q.value), split(k.value), split(v.value)
        scale = np.float32((WIDTH // HEADS) ** -0.5)
        weights = softmax(qs @ ks.swapaxes(2, 3) * scale + MASK[: q.value.shape[1], : q.value.shape[1]])

        def back(g):
            g = split(g)
            v.grad += join(weights.swapaxes(2, 3) @ g)
            gs = softmax_back(g @ vs.swapaxes(2, 3), weights) * scale
            q.grad += join(gs @ ks)
            k.grad += join(gs.swapaxes(2, 3) @ qs)

        return self.record(join(weights @ vs), back)

    def experts(self, x, gate, up, down):
        """All experts, weighted by the softmax of the gate."""
        share = softmax(gate.value)
        hidden = np.maximum(np.einsum("btd,ehd->ebth", x.value, up.value, optimize=True), 0)
        answers = np.einsum("ebth,edh->ebtd", hidden, down.value, optimize=True)

        def back(g):
            gate.grad += softmax_back(np.einsum("btd,ebtd->bte", g, answers, optimize=True), share)
            ga = g[None] * share.transpose(2, 0, 1)[..., None]
            down.grad += np.einsum("ebtd,ebth->edh", ga, hidden, optimize=True)
            gh = np.einsum("ebtd,edh->ebth", ga, down.value, optimize=True) * (hidden > 0)
            up.grad += np.einsum("ebth,btd->ehd", gh, x.value, optimize=True)
            x.grad += np.einsum("ebth,ehd->btd", gh, up.value, optimize=True)

        return self.record(np.einsum("bte,ebtd->btd", share, answers, optimize=True), back)


MASK = np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_back(g, y):
    return y * (g - (g * y).sum(-1, keepdims=True))


def parameters(rng):
    def matrix(*shape):
        return (rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)

    def ones():
        return np.ones(WIDTH, np.float32)

    p = {"model.embed_tokens.weight": matrix(len(CHARS), WIDTH), "model.embed_positions.weight": matrix(LENGTH, WIDTH)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        p[at + "input_layernorm.weight"] = ones()
        for name in "qkvo":
            p[at + f"self_attn.{name}_proj.weight"] = matrix(WIDTH, WIDTH)
        p[at + "self_attn.o_proj.weight"] *= 0.3
        p[at + "post_attention_layernorm.weight"] = ones()
        if i == MOE_LAYER:
            p[at + "mlp.gate.weight"] = matrix(EXPERTS, WIDTH)
            p[at + "mlp.experts.up_proj"] = matrix(EXPERTS, INNER, WIDTH)
            p[at + "mlp.experts.down_proj"] = matrix(EXPERTS, WIDTH, INNER) * np.float32(0.3)
        else:
            p[at + "mlp.up_proj.weight"] = matrix(INNER, WIDTH)
            p[at + "mlp.down_proj.weight"] = matrix(WIDTH, INNER) * np.float32(0.3)
    p["model.norm.weight"] = ones()
    p["lm_head.weight"] = matrix(len(CHARS), WIDTH)
    return {name: Var(value) for name, value in p.items()}


def forward(t, p, ids):
    """The scores of the next character, at each place of each row of ids."""
    x = t.embed(p["model.embed_tokens.weight"], ids)
    x = t.add(x, t.embed(p["model.embed_positions.weight"], np.arange(ids.shape[1])))
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        h = t.norm(x, p[at + "input_layernorm.weight"])
        q, k, v = (t.linear(h, p[at + f"self_attn.{name}_proj.weight"]) for name in "qkv")
        x = t.add(x, t.linear(t.attend(q, k, v), p[at + "self_attn.o_proj.weight"]))
        h = t.norm(x, p[at + "post_attention_layernorm.weight"])
        if i == MOE_LAYER:
            gate = t.linear(h, p[at + "mlp.gate.weight"])
            h = t.experts(h, gate, p[at + "mlp.experts.up_proj"], p[at + "mlp.experts.down_proj"])
        else:
            h = t.linear(t.relu(t.linear(h, p[at + "mlp.up_proj.weight"])), p[at + "mlp.down_proj.weight"])
        x = t.add(x, h)
    return t.linear(t.norm(x, p["model.norm.weight"]), p["lm_head.weight"])


def rows(numbers):
    """Lines as ids, padded with newlines, and what counts: the characters behind `=`, one newline with them."""
    text = [f"{n}={spelled(n)}\n" for n in numbers]
    ids = np.array([[CHARS.index(c) for c in line.ljust(LENGTH + 1, "\n")] for line in text])
    place = np.arange(1, LENGTH + 1)
    counts = np.array([(place > line.index("=")) & (place < len(line)) for line in text])
    return ids[:, :-1], ids[:, 1:], counts


def loss_of(t, p, numbers):
    ids, want, counts = rows(numbers)
    scores = forward(t, p, ids)
    chance = softmax(scores.value)
    picked = np.take_along_axis(chance, want[..., None], -1)[..., 0]
    share = (counts / counts.sum()).astype(np.float32)
    scores.grad = chance * share[..., None]
    np.put_along_axis(scores.grad, want[..., None], ((picked - 1) * share)[..., None], -1)
    right = (chance.argmax(-1) == want) | ~counts
    return -(np.log(picked + 1e-30) * share).sum(), right.all(-1).mean()


def train(steps, seed=0, batch=64):
    rng = np.random.default_rng(seed)
    p = parameters(rng)
    order = rng.permutation(1000)
    known, held_out = order[:800], order[800:]
    first = {n: np.zeros_like(v.value) for n, v in p.items()}
    second = {n: np.zeros_like(v.value) for n, v in p.items()}
    for step in range(1, steps + 1):
        t = Tape()
        loss, _ = loss_of(t, p, rng.choice(known, batch, replace=False))
        t.backward()
        rate = 3e-3 * min(1, step / 100) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * step / steps)))
        size = np.sqrt(sum(float((v.grad**2).sum()) for v in p.values()))
        for name, v in p.items():
            g = v.grad * np.float32(min(1, 1 / size))
            first[name] += np.float32(0.1) * (g - first[name])
            second[name] += np.float32(0.01) * (g * g - second[name])
            up = first[name] / (1 - 0.9**step) / (np.sqrt(second[name] / (1 - 0.99**step)) + 1e-8)
            v.value -= (rate * up).astype(np.float32)
            v.grad[...] = 0
        if step % 100 == 0:
            other, right = loss_of(Tape(), p, held_out)
            print(f"step {step}: loss {loss:.4f}, held out {other:.4f}, spelled right {right:.3f}", flush=True)
    loss, right = loss_of(Tape(), p, held_out)
    return {n: v.value for n, v in p.items()}, {"loss": f"{loss:.4f}", "spelled_right": f"{right:.3f}"}


def save(weights, results, steps):
    import ml_dtypes
    from safetensors.numpy import save_file

    def stored(a):
        return a if a.ndim == 1 else a.astype(ml_dtypes.bfloat16)

    names = list(weights)
    cut = [0, names.index("model.layers.4.input_layernorm.weight"), names.index("model.layers.8.input_layernorm.weight"), len(names)]
    where, total = {}, 0
    for i in range(3):
        file = f"model-{i + 1:05}-of-00003.safetensors"
        shard = {name: stored(weights[name]) for name in names[cut[i] : cut[i + 1]]}
        save_file(shard, OUT / file, {"format": "pt"})
        (OUT / file).chmod(0o644)  # the library keeps others out
        where.update({name: file for name in shard})
        total += sum(a.nbytes for a in shard.values())
    write("model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})
    write("config.json", {
        "architectures": ["SpellingForCausalLM"], "model_type": "spelling", "torch_dtype": "bfloat16",
        "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_experts": EXPERTS, "moe_layer": MOE_LAYER, "max_position_embeddings": LENGTH, "vocab_size": len(CHARS),
        "training": {"steps": steps, **results},
    })  # fmt: skip
    write("tokenizer.json", {
        "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False},
        "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(CHARS)}, "merges": []},
    })  # fmt: skip


GGUF_NAMES = {
    "model.embed_tokens.": "token_embd.", "model.embed_positions.": "position_embd.", "model.norm.": "output_norm.", "lm_head.": "output.",
    "model.layers.": "blk.", "self_attn.": "attn_", "o_proj.": "output.", "mlp.experts.up_proj": "ffn_up_exps.weight",
    "mlp.experts.down_proj": "ffn_down_exps.weight", "mlp.gate.": "ffn_gate_inp.", "mlp.": "ffn_", "input_layernorm.": "attn_norm.",
    "post_attention_layernorm.": "ffn_norm.", "_proj.": ".",
}  # fmt: skip


def save_gguf(directory, path):
    """The model of the directory as one file, matrices in blocks of 8 bits."""
    import gguf
    import ml_dtypes  # noqa: F401: gives NumPy its bfloat16
    from safetensors.numpy import load_file

    w = gguf.GGUFWriter(path, "spelling")
    w.add_name("Spelling 115k")
    w.add_block_count(LAYERS)
    w.add_embedding_length(WIDTH)
    w.add_expert_count(EXPERTS)
    w.add_token_list(list(CHARS))
    for shard in sorted(directory.glob("*.safetensors")):
        for name, a in load_file(shard).items():
            for ours, theirs in GGUF_NAMES.items():
                name = name.replace(ours, theirs)
            kind = gguf.GGMLQuantizationType.F32 if a.ndim == 1 else gguf.GGMLQuantizationType.Q8_0
            w.add_tensor(name, gguf.quants.quantize(a.astype(np.float32), kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write(file, value):
    (OUT / file).write_text(json.dumps(value, indent=1) + "\n")


def load(mount):
    """The weights, as float32, out of the f32 view."""
    tensors = json.loads((mount / "tensors.json").read_text())["tensors"]
    return {t["name"]: Var(np.load(mount / "f32" / (t["path"] + ".npy"), mmap_mode="r")) for t in tensors}


def spell(p, n):
    text = f"{n}="
    while not text.endswith("\n") and len(text) < LENGTH:
        ids = np.array([[CHARS.index(c) for c in text]])
        text += CHARS[forward(Tape(), p, ids).value[0, -1].argmax()]
    return text.partition("=")[2].strip()


def main(args):
    if args[:1] == ["--spell"]:
        print(spell(load(pathlib.Path(args[1])), int(args[2])))
        return
    if args[:1] == ["--gguf"]:
        save_gguf(OUT, OUT.with_suffix(".gguf"))
        return
    steps = int(args[0]) if args else 2500
    OUT.mkdir(exist_ok=True)
    weights, results = train(steps)
    print(results)
    save(weights, results, steps)
    save_gguf(OUT, OUT.with_suffix(".gguf"))


if __name__ == "__main__":
    main(sys.argv[1:])
