#!/usr/bin/env bash
# Loads checkpoints in NumPy, PyTorch, transformers, TensorFlow and JAX, by their own loaders and through
# a mount, compares every byte, and prints a table of times and memory.
#
#   scripts/test-frameworks.sh [--install] [--mib N] [--rounds N] [SUITE...]
#
# --install makes the Python environments (8 GB), in ${XDG_CACHE_HOME:-~/.cache}/weightfs-test. The
# checkpoints, 3 × N MiB (512), lie in /dev/shm while it runs. Not a part of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

venvs=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-test/frameworks

install() {
	mkdir -p "$venvs"
	environment "$venvs/torch" scripts/requirements-torch.txt scripts/frameworks/requirements-transformers.txt
	environment "$venvs/tensorflow" scripts/frameworks/requirements-tensorflow.txt
	environment "$venvs/jax" scripts/frameworks/requirements-jax.txt
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
for name in torch tensorflow jax; do
	[ -e "$venvs/$name/made-of" ] && continue
	echo "scripts/test-frameworks.sh --install makes the environments that are missing" >&2
	exit 2
done
"$venvs/torch/bin/python" -B scripts/frameworks --weightfs "$work/weightfs" --venvs "$venvs" "$@"
