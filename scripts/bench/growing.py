"""How the cost of a mount grows, as a table, and what follows for a large store."""
from bench import GB, MB
from samples import line

PREFIX = "growth: "
TENSORS, SHARDS = PREFIX + "tensors in one file", PREFIX + "shards"
TENSORS_A_SHARD = 100  # of those that are measured
MODELS, BYTES, SHARD, TENSORS_A_MODEL = 1_000, 100e12, 5e9, 700  # the store


def markdown(samples, tables):
    fits = {t: fit(samples, t) for t in tables}
    text = "\n\n".join(table(samples, t, *fits[t]) for t in tables)
    if TENSORS in fits and SHARDS in fits:
        text += "\n\n" + store(*(f[1] for t in (TENSORS, SHARDS) for f in fits[t]))
    return text


def points(samples, table, measure):
    systems = dict.fromkeys(s.system for s in samples.all if s.table == table)
    return [(int(s.replace(",", "")), samples.median(table, s, measure)) for s in systems]


def fit(samples, table):
    return [line(points(samples, table, m)) for m in ("mount", "anon before")]


def table(samples, name, time, memory):
    rows = [f"| {name.removeprefix(PREFIX)} | mount | RssAnon |", "|---|---|---|"]
    for (n, seconds), (_, anon) in zip(points(samples, name, "mount"), points(samples, name, "anon before")):
        rows.append(f"| {n:,} | {seconds * 1e3:,.0f} ms | {anon / MB:.1f} MB |")
    rows.append(f"| each | {time[1] * 1e6:.2f} µs | {memory[1]:,.0f} B |")
    rows.append(f"| farthest from the straight line | {time[2]:.0%} | {memory[2]:.0%} |")
    return "\n".join(rows)


def store(tensor_time, tensor_memory, shard_time, shard_memory):
    """What the slopes come to for a thousand models on a network file system."""
    shards, tensors = BYTES / SHARD, MODELS * TENSORS_A_MODEL
    besides = tensors - shards * TENSORS_A_SHARD  # those that a shard of the measurement brings along are in its cost
    seconds, memory = shards * shard_time + besides * tensor_time, shards * shard_memory + besides * tensor_memory
    return (f"A store of {MODELS:,} models and {BYTES / 1e12:.0f} TB is some {shards:,.0f} shards of {SHARD / GB:.0f} GB with {tensors:,} tensors. If each of them "
            f"were open at once, these lines come to {seconds:.0f} s of opening and {memory / MB:,.0f} MB of RssAnon, and to {shards:,.0f} descriptors, which is "
            f"what `ulimit -n` must allow; a model that nobody enters costs none of it. On a network file system the waits come on top: a shard is opened "
            f"and its header read in three to four round trips, so at 1 ms a round trip and four shards at a time all {shards:,.0f} take about "
            f"{shards * 3.5e-3 / 4:.0f} s, and a model of {shards / MODELS:.0f} shards {shards / MODELS * 3.5 / 4:.0f} ms. With an index kept, opening reads no shard, and "
            f"only looks at its size and times.")
