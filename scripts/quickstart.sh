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

if [ $# -gt 2 ] || [[ ${1-} == -* ]]; then
	sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
	exit 10
fi
checkpoint=${1:-$root/testdata/sample}
mountpoint=${2:-mnt}

# shown COMMAND...: as if it was typed.
shown() {
	printf '\n$ %s\n' "$*"
	"$@"
}

build() {
	program=$root/weightfs
	[ -w "$root" ] || program=${XDG_CACHE_HOME:-$HOME/.cache}/weightfs-quickstart/weightfs
	(cd "$root" && CGO_ENABLED=0 go build -buildvcs=false -o "$program" .)
}

is_mounted() { findmnt -rn -t fuse.weightfs -M "$mountpoint" >/dev/null && ls "$mountpoint" >/dev/null 2>&1; }

mount_it() {
	if is_mounted; then
		echo "$mountpoint is mounted already: $(findmnt -rno SOURCE -M "$mountpoint")"
		return
	fi
	[ -e "$mountpoint" ] || mkdir -p "$mountpoint"
	"$program" mount "$checkpoint" "$mountpoint"
}

# a_tensor prints the path of a matrix that is decoded, or of whatever is first.
a_tensor() {
	local f
	f=$(find "$mountpoint/f32" -name '*q*.weight.npy' -print -quit)
	[ -n "$f" ] || f=$(find "$mountpoint/f32" "$mountpoint/raw" -type f -print -quit)
	echo "$f"
}

show_it() {
	local first
	shown ls "$mountpoint"
	first=$(a_tensor)
	[ -n "$first" ] || return 0
	shown ls -v "$(dirname "$first")"
	case $first in
	*.npy) # numbers, with nothing but od: they begin behind a header of a multiple of 64 bytes
		shown od -A d -t f4 -w16 -j "$(header "$first")" -N 32 "$first"
		;;
	*) shown od -A d -t x1 -N 32 "$first" ;;
	esac
	first=${first#"$mountpoint"/*/}
	shown "$program" show "$checkpoint" "$(find "$mountpoint/by-name" -lname "*/raw/${first%.*}.raw" -printf '%f\n' -quit)"
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
