# For tests in a mount namespace of their own: runs a shell script with its arguments there, without the
# copies of other tests' mounts. A server lives as long as any namespace has its mount.
while read -r _ at type _; do
	[ "$type" = fuse.weightfs ] && umount -l "$at" 2>/dev/null
done </proc/self/mounts
exec sh "$@"
