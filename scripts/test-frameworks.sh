#!/usr/bin/env bash
# Loads checkpoints in NumPy, PyTorch, transformers, TensorFlow and JAX, by their own loaders and through
# a mount, compares every byte, and prints a table of times and memory.
#
#   scripts/test-frameworks.sh [--install] [--mib N] [--rounds N] [SUITE...]
#
# --install makes the Python environments (7 GB), in ${XDG_CACHE_HOME:-~/.cache}/weightfs-test. The
# checkpoints, 3 × N MiB (512), lie in /dev/shm while it runs. Not a part of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

cache=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-test

# environment NAME REQUIREMENTS: as test.sh makes it, so that both use the same.
environment() {
	local stamp
	stamp=$(cat "$2" <(python3 --version))
	[ "$(cat "$cache/$1/made-of" 2>/dev/null)" != "$stamp" ] || return 0
	rm -rf "${cache:?}/$1"
	python3 -m venv "$cache/$1"
	requirements "$1" "$2"
	echo "$stamp" >"$cache/$1/made-of"
}

requirements() { "$cache/$1/bin/python" -m pip install -q --disable-pip-version-check -r "$2"; }

install() {
	mkdir -p "$cache"
	environment torch scripts/requirements-torch.txt
	requirements torch scripts/frameworks/requirements-transformers.txt
	environment tensorflow scripts/frameworks/requirements-tensorflow.txt
	environment jax scripts/frameworks/requirements-jax.txt
}

case ${1-} in
-h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit ;;
--install)
	install
	shift
	;;
esac

need_go
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/weightfs" .
if [ ! -x "$cache/torch/bin/python" ]; then
	echo "scripts/test-frameworks.sh --install makes the environments that are missing" >&2
	exit 2
fi
"$cache/torch/bin/python" scripts/frameworks --weightfs "$work/weightfs" --venvs "$cache" "$@"
