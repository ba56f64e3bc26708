#!/usr/bin/env bash
# Builds weightfs, mounts a checkpoint, shows what is in it, and leaves it mounted.
#
#   scripts/quickstart.sh [CHECKPOINT [MOUNTPOINT]]
#
# CHECKPOINT is anything that `weightfs mount` takes; the default is the small model in
# testdata/sample. MOUNTPOINT is made if it is not there; the default is `mnt` in this directory.
set -euo pipefail
root=$(cd -P "$(dirname "$0")/.." && pwd)
. "$root/scripts/install.sh"

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }

if [ "${1-}" = --help ] || [ "${1-}" = -h ]; then
	usage
	exit
fi
if [ $# -gt 2 ] || [[ ${1-} == -* ]]; then
	usage >&2
	exit 10
fi
checkpoint=${1:-$root/testdata/sample}
mountpoint=${2:-mnt}

# shown COMMAND...: as if it was typed.
shown() {
	printf '\n$'
	printf ' %q' "$@"
	echo
	"$@"
}

build() {
	program=$root/weightfs
	[ -w "$root" ] || program=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-quickstart/weightfs
	echo "building $program: the first time it takes a minute or two" >&2
	(cd "$root" && CGO_ENABLED=0 go build -buildvcs=false -o "$program" .)
}

# mounted prints what is mounted there, if it answers.
mounted() { findmnt -rno SOURCE -t fuse.weightfs -M "$mountpoint" && ls "$mountpoint" >/dev/null 2>&1; }

mount_it() {
	local there made=''
	if there=$(mounted); then
		if ! [ "$there" -ef "$checkpoint" ]; then
			echo "$mountpoint: $there is mounted there already: name another directory, or $program umount $mountpoint" >&2
			return 16
		fi
		echo "$mountpoint is mounted already: $there"
		return
	fi
	if ! [ -e "$mountpoint" ]; then
		mkdir -- "$mountpoint" || return 15
		made=$mountpoint
	fi
	shown "$program" mount "$checkpoint" "$mountpoint" || {
		local code=$?
		[ -z "$made" ] || rmdir -- "$made"
		return "$code"
	}
}

# a_checkpoint prints the top of the first tree: of many checkpoints each has its own.
a_checkpoint() { find "$mountpoint" -name tensors.json -printf '%h\n' -quit; }

# a_tensor prints the path of a matrix that is decoded, or of whatever is first.
a_tensor() {
	local f
	f=$(find "$top/f32" -name '*q*.weight.npy' -print -quit)
	[ -n "$f" ] || f=$(find "$top/f32" "$top/raw" -type f -print -quit)
	echo "$f"
}

show_it() {
	local top first
	shown ls "$mountpoint"
	top=$(a_checkpoint)
	[ -n "$top" ] || return 0
	if [ "$top" != "$mountpoint" ]; then # many: what follows is of one of them
		shown ls "$top"
		checkpoint=$(head -n 1 "$top/README.txt")
	fi
	first=$(a_tensor)
	[ -n "$first" ] || return 0
	shown ls -v "$(dirname "$first")"
	case $first in
	*.npy) # numbers, with nothing but od: they begin behind a header of a multiple of 64 bytes
		shown od -A d -t f4 -w16 -j "$(header "$first")" -N 32 "$first"
		;;
	*) shown od -A d -t x1 -N 32 "$first" ;;
	esac
	# By its path, since the name may be of any bytes. A type that has no numbers is no reason to stop.
	shown "$program" show "$checkpoint" "${first#"$top"/}" || true
}

header() { echo $((10 + $(od -A n -t u2 -j 8 -N 2 "$1"))); }

need_go || exit 2
# Go fetches modules by TLS. Root mounts without fusermount3, so go on without it too.
need update-ca-certificates:ca-certificates fusermount3:fuse3 || true
build
mount_it || {
	code=$?
	if [ "$code" -eq 17 ]; then
		printf '\nThere is no FUSE here. This is what can be seen without a mount:\n'
		shown "$program" info "$checkpoint"
	fi
	exit "$code"
}
show_it
cat <<END

It stays mounted. Look around in $mountpoint (README.txt tells what is there); then unmount it:

  $program umount $mountpoint
END
