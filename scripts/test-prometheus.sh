#!/usr/bin/env bash
# Has promtool check the metrics of a mount, and a Prometheus server scrape them; runs every query of
# the dashboard.
#
#   scripts/test-prometheus.sh [--install] [WEIGHTFS]
#
# --install unpacks Debian's package prometheus into ${XDG_CACHE_HOME:-~/.cache}/weightfs-test when
# there is none: installed, it would start a server of its own. WEIGHTFS is the program to test.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

unpacked=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-test/prometheus
PATH=$PATH:$unpacked/usr/bin

# download fetches the package; without lists of packages, which only root can get, there is none.
# APT's own user need not be let into this directory.
download() { apt-get -o APT::Sandbox::User=root -qq download prometheus; }

install() {
	command -v prometheus promtool >/dev/null && return
	mkdir -p "$unpacked"
	(cd "$unpacked" && { download 2>/dev/null || { apt-get -qq update && download; }; } && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb)
}

case ${1-} in
-h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit ;;
--install)
	install
	shift
	;;
esac
if ! command -v prometheus promtool >/dev/null || ! command -v curl >/dev/null; then
	echo "prometheus, promtool and curl are needed (scripts/test-prometheus.sh --install brings the first two)" >&2
	exit 2
fi

work=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	"$weightfs" umount --lazy "$work/mnt" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}
trap finish EXIT

weightfs=${1-$work/weightfs}
if [ $# -eq 0 ]; then
	need_go
	go build -buildvcs=false -o "$weightfs" .
fi

passed=0
fail() { echo "FAILED: $1" >&2 && exit 1; }

# check NAME COMMAND...
check() {
	"${@:2}" || fail "$1"
	passed=$((passed + 1))
	echo "ok  $1"
}

# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	until "${@:2}"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

mount_it() {
	mkdir "$work/mnt"
	cp -r testdata/sample "$work/model"
	"$weightfs" mount -q --metrics-addr 127.0.0.1:0 --log-file "$work/log" "$work/model" "$work/mnt"
	address=$(sed -n 's/.*msg=metrics addr=\([0-9.:]*\).*/\1/p' "$work/log")
	[ -n "$address" ] || fail "the log does not tell the address of the metrics"
}

start_prometheus() {
	prometheus=127.0.0.1:$(free_port)
	cat >"$work/prometheus.yml" <<-END
		global: {scrape_interval: 200ms, scrape_timeout: 200ms}
		scrape_configs:
		  - job_name: weightfs
		    static_configs: [{targets: ["$address"]}]
	END
	promtool check config "$work/prometheus.yml" >/dev/null
	prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address="$prometheus" --log.level=warn 2>"$work/prometheus.log" &
	server=$!
	until_true 30 curl -sf -o /dev/null "http://$prometheus/-/ready" || fail "Prometheus did not start: $(tail -n 3 "$work/prometheus.log")"
}

# query EXPRESSION prints one line a series: labels => value @[time].
query() { promtool query instant "http://$prometheus" "$1"; }

answers() { [ -n "$(query "$1")" ]; }

# is EXPRESSION VALUE: the sum that Prometheus has is that number.
is() { [ "$(query "sum($1)" | sed 's/.*=> \([^ ]*\) .*/\1/')" = "$2" ]; }

comes_to() { check "$1 is $2" until_true 15 is "$1" "$2"; }

read_tensors() {
	find "$work/mnt/raw" -type f -exec cat {} + >/dev/null
	find "$work/mnt/npy" -type f -name '*.weight.npy' -exec cat {} + >/dev/null
}

count() { find "$work/mnt/$1" -type f -name "$2" | wc -l; }

# Grafana's variables are filled in as it would.
dashboard() {
	python3 - >"$work/queries" <<-'END'
		import json
		for panel in json.load(open("scripts/grafana.json"))["panels"]:
		    for target in panel["targets"]:
		        print(target["expr"].replace("$__rate_interval", "1m").replace("$__range", "1h").replace("$job", ".*").replace("$instance", ".*"))
	END
	while read -r expression; do
		answers "$expression" || { echo "no answer: $expression" >&2 && return 1; }
	done <"$work/queries"
	[ -s "$work/queries" ]
}

conventions() { curl -sf "http://$address/metrics" | promtool check metrics; }

# health STATUS PATTERN
health() { curl -s -w '%{http_code}\n' "http://$address/healthz" | paste -sd ' ' | grep -qE "$2 $1\$"; }

# The kernel keeps what was read: only another file of the mount asks for the shard again.
break_shard() {
	truncate -s 100000 "$work/model/model-00001-of-00003.safetensors"
	! cat "$work"/mnt/parts/model/layers/*.safetensors >/dev/null 2>&1
}

mount_it
check "/healthz" health 200 ok
start_prometheus
comes_to weightfs_checkpoints 1
read_tensors
comes_to 'weightfs_tensor_loads_total{view="raw", format="safetensors"}' "$(count raw '*')"
comes_to 'weightfs_tensor_loads_total{view="npy", format="safetensors"}' "$(count npy '*.weight.npy')"
comes_to weightfs_open_files 0
check "READs are timed" answers 'weightfs_load_latency_seconds_count > 0'
check "promtool check metrics" conventions
check "every query of the dashboard" dashboard
check "a shard is cut short" break_shard
check "/healthz of a shard cut short" until_true 5 health 503 'model-00001-of-00003.safetensors: .* changed.*'
check "weightfs_errors_total" until_true 15 answers 'weightfs_errors_total{errno=~"ESTALE|EIO"} > 0'
"$weightfs" umount "$work/mnt"
comes_to 'up{job="weightfs"}' 0
echo "$passed passed, 0 failed"
