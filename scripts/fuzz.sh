#!/usr/bin/env bash
# Runs every fuzz target of the repository, one after the other, and goes on when one has failed.
#
#   scripts/fuzz.sh [--keep N] [SECONDS PER TARGET]      600 s each
#   scripts/fuzz.sh --differential [SECONDS PER FORMAT]  odd and damaged files, to the formats' libraries and to weightfs
#
# An input that fails a target is written to testdata/fuzz of its package, where every `go test` tries it
# again. What else is new stays in Go's cache; --keep adds to testdata/fuzz N of each target, of all lengths.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

keep=0 differential=
if [ "${1-}" = --differential ]; then
	differential=1 && shift
fi
if [ "${1-}" = --keep ]; then
	keep=${2-} && shift 2
fi
seconds=${1:-600}
case $seconds$keep in
*[!0-9]*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 10 ;;
esac
longest=2048 # bytes of an input that is worth keeping

# targets prints the directory and the name of each.
targets() {
	grep -rnE '^func Fuzz' --include='*_test.go' . | sed -E 's/^([^:]*)\/[^:]*:[0-9]*:func (Fuzz[[:alnum:]_]*).*/\1 \2/' | sort -u
}

# keep_some DIRECTORY TARGET
keep_some() {
	local cache corpus=$1/testdata/fuzz/$2
	cache=$(go env GOCACHE)/fuzz/$(go list "$1")/$2
	[ "$keep" -gt 0 ] && [ -d "$cache" ] || return 0
	mkdir -p "$corpus"
	find "$cache" -type f -size -${longest}c -printf '%s %p\n' | sort -n |
		awk -v n="$keep" '{ path[NR] = $2 } END { for (i = 1; i <= n && i <= NR; i++) print path[(NR > n) ? int((i - 0.5) * NR / n) + 1 : i] }' |
		xargs -r cp -n -t "$corpus"
}

# differ runs every format whose library is there, each with a seed of its own, and goes on when one has failed.
differ() {
	local cache=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-test format python failed=0
	work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
	environment "$cache/python" scripts/requirements.txt
	go build -o "$work/weightfs" .
	for format in safetensors gguf numpy onnx torch; do
		python=$cache/python/bin/python
		[ $format = torch ] && python=$cache/torch/bin/python
		[ -x "$python" ] || continue
		"$python" -W ignore scripts/differential --weightfs "$work/weightfs" --seconds "$seconds" $format || failed=1
	done
	return $failed
}

need_go
export GOFLAGS=-buildvcs=false
if [ "$differential" ]; then
	differ
	exit
fi
failed=0
while read -r dir target; do
	printf '%-40s' "${dir#./} $target"
	# Without a limit on minimising, it goes on for a minute and more.
	if out=$(go test -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" -fuzzminimizetime 10x "$dir" </dev/null 2>&1); then
		grep -E '^fuzz: elapsed' <<<"$out" | tail -n 1 | sed 's/^fuzz: //'
	else
		echo failed
		tail -n 40 <<<"$out"
		failed=$((failed + 1))
	fi
	keep_some "$dir" "$target"
done < <(targets)
echo "$failed failed"
[ "$failed" -eq 0 ]
