#!/usr/bin/env bash
# Mounts a checkpoint of every format and reads them as many clients do: random ranges of random files
# of every view, each byte compared with what `weightfs cp` gives without a mount.
#
#   scripts/load.sh [--race] [SECONDS [CLIENTS]]      600 s and 200 clients; --race: 30 s, 64, slower
#
# Prints the servers' memory and descriptors at the start, every minute and at the end, and latencies as
# a Markdown table. Fails when a byte differs, a call fails, or a server grows.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

race=
[ "${1-}" != --race ] || { race=-race && shift; }
seconds=${1:-${race:+30}} clients=${2:-${race:+64}}
seconds=${seconds:-600} clients=${clients:-200}
case $seconds$clients in
*[!0-9]*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 10 ;;
esac

views=(raw npy f32 rows parts assembled json stats tensors.json SHA256SUMS)
work=$(mktemp -d "${TMPDIR:-/tmp}/weightfs-load.XXXXXX")
pids=() pairs=()

finish() {
	local m
	for m in "$work"/mnt/*; do
		"$work/weightfs" umount -q "$m" 2>/dev/null || "$work/weightfs" umount -q --lazy "$m" 2>/dev/null || true
	done
	rm -rf --one-file-system "$work"
}
trap finish EXIT

need_go
export GOFLAGS=-buildvcs=false XDG_CACHE_HOME=$work/cache GORACE="atexit_sleep_ms=0"
CGO_ENABLED=$([ -n "$race" ] && echo 1 || echo 0) go build ${race:+"$race"} -o "$work/weightfs" .
go build -o "$work/load" ./scripts/load
"$work/load" make "$work" >"$work/out"
grep -qx ok "$work/out" || { cat "$work/out" >&2 && exit 1; }

# source FORMAT: the checkpoint of a format, a directory or a file.
source_of() {
	[ -e "$work/$1/model.safetensors.index.json" ] && echo "$work/$1" || echo "$work/$1"/model.*
}

for format in safetensors gguf torch npz-stored npz-deflated onnx; do
	mkdir -p "$work/want/$format" "$work/mnt/$format"
	"$work/weightfs" cp -q -r "$(source_of $format)" "${views[@]}" "$work/want/$format/"
	diff -r "$work/raw/$format" "$work/want/$format/raw"
	pid=$("$work/weightfs" mount --json --log-file="$work/log.$format" "$(source_of $format)" "$work/mnt/$format" |
		sed 's/.*"pid": \([0-9]*\).*/\1/')
	pids+=("$pid") pairs+=("$work/mnt/$format=$work/want/$format")
done

limit=100
[ -z "$race" ] || limit=1000 # the detector remembers who touched what
"$work/load" read "$seconds" "$clients" "$limit" "${pids[@]}" -- "${pairs[@]}" | tee "$work/out"
if grep -hE 'level=ERROR|DATA RACE|panic|internal error' "$work"/log.* | head -n 20 | grep . >&2; then
	echo "failed: the servers' logs have errors"
	exit 1
fi
for m in "$work"/mnt/*; do "$work/weightfs" umount "$m"; done
! grep -qs "$work/mnt" /proc/mounts || { echo "failed: a mount is left" && exit 1; }
tail -n 1 "$work/out" | grep -qx ok
