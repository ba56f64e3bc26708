#!/usr/bin/env bash
# Installs the .deb on this machine, uses it, removes it, and looks whether something is left.
#
#   scripts/test-deb.sh FILE.deb      as root, where no package weightfs is installed
#
# Skips itself, with exit code 0, where this cannot be tried.
set -euo pipefail
cd "$(dirname "$0")/.."
deb=$(realpath "$1")

skip() { echo "--- SKIP: the .deb ($1)" && exit 0; }
passed() { echo "--- PASS: $1"; }
fail() { echo "--- FAIL: $1" && exit 1; }

[ "$(id -u)" = 0 ] || skip "only root installs packages"
command -v dpkg >/dev/null || skip "no dpkg here"
[ "$(dpkg-deb -f "$deb" Architecture)" = "$(dpkg --print-architecture)" ] || skip "it is for another architecture"
dpkg-query -W -f '${Status}' fuse3 2>/dev/null | grep -q ' installed' || skip "it needs fuse3"
[ ! -e /usr/bin/weightfs ] || skip "weightfs is installed"
(: <>/dev/fuse) 2>/dev/null || skip "no FUSE here"

work=$(mktemp -d "${TMPDIR:-/tmp}/weightfs-deb.XXXXXX")
mkdir "$work/mnt"
model=$PWD/testdata/sample

# ours lists what on this machine bears our name, where packages put things. man(1) keeps what it showed.
ours() { find /etc /lib /usr /var -xdev -name '*weightfs*' -not -path '/usr/local/*' -not -path '/var/tmp/*' -not -path '/var/cache/man/*' | sort; }

# package runs dpkg, and waits while another one runs.
package() {
	local _
	for _ in $(seq 60); do
		if dpkg "$@" >"$work/log" 2>&1; then return; fi
		grep -q 'locked by another process' "$work/log" || break
		sleep 1
	done
	cat "$work/log"
	return 1
}

finish() {
	umount -l "$work/mnt" 2>/dev/null || true
	package --purge weightfs >/dev/null || true
	find /var/cache/man -name '*weightfs*' -delete 2>/dev/null || true
	[ ! -e "$work/cache" ] || [ -e /var/cache/weightfs ] || mv "$work/cache" /var/cache/weightfs
	rm -rf --one-file-system "$work"
}
trap finish EXIT
# What root has computed already is no part of this.
[ ! -e /var/cache/weightfs ] || mv /var/cache/weightfs "$work/cache"
ours >"$work/before"

# Nothing but the package is in the way: no PATH and no HOME of ours.
clean() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }

unmounted() { ! grep -q " $work/mnt " /proc/mounts; }

package -i "$deb" || fail "dpkg -i"
[ -z "$(dpkg -V weightfs)" ] || fail "dpkg -V"
passed "installed"

want=$(clean weightfs cat "$model" model.norm.weight | sha256sum)
for how in "weightfs mount --quiet" "mount -t weightfs" "mount -t fuse.weightfs"; do
	read -ra command <<<"$how"
	clean "${command[@]}" "$model" "$work/mnt"
	[ "$(clean ls "$work/mnt/raw/model/layers" | wc -l)" -gt 1 ] || fail "$how: ls"
	[ "$(sha256sum <"$work/mnt/raw/model/norm.weight.raw")" = "$want" ] || fail "$how: the bytes of a tensor"
	clean umount "$work/mnt"
	unmounted || fail "$how: umount"
	passed "$how"
done

# The package is replaced under a mount that goes on.
clean mount -t weightfs "$model" "$work/mnt"
package -i "$deb" || fail "dpkg -i over itself"
[ "$(sha256sum <"$work/mnt/raw/model/norm.weight.raw")" = "$want" ] || fail "an upgrade under a mount"
clean weightfs umount "$work/mnt"
passed "an upgrade under a mount"

if ! grep -qrs '^path-exclude.*/man' /etc/dpkg/dpkg.cfg.d /etc/dpkg/dpkg.cfg && command -v man >/dev/null; then
	for page in weightfs.1 weightfs-mount.1 weightfs-ls.1 mount.weightfs.8; do
		clean man -P cat "$page" 2>&1 | grep -q '^NAME' || fail "man $page"
	done
	passed "manual pages"
fi

clean bash -c '. /usr/share/bash-completion/completions/weightfs && complete -p weightfs' >/dev/null || fail "completion for bash"
[ "$(clean weightfs __complete ls "$model" model.norm 2>/dev/null | head -n 1)" = model.norm.weight ] || fail "completion of a tensor's name"
if command -v zsh >/dev/null; then
	clean zsh -fc 'autoload -Uz compinit && compinit -u -D && (( $+_comps[weightfs] ))' || fail "completion for zsh"
fi
if command -v fish >/dev/null; then
	clean env HOME="$work" fish -c 'complete -C "weightfs mou"' | grep -q '^mount' || fail "completion for fish"
fi
passed completions

if command -v systemd-analyze >/dev/null; then
	[ -z "$(systemd-analyze verify --man=no /usr/lib/systemd/system/weightfs@.service 2>&1)" ] || fail "the unit"
	passed "the unit"
fi

dpkg -L weightfs | while read -r f; do [ -d "$f" ] || echo "$f"; done >"$work/files"
package --purge weightfs || fail "dpkg --purge"
while read -r f; do
	[ ! -e "$f" ] || fail "$f is left"
done <"$work/files"
ours | diff "$work/before" - || fail "something is left"
[ ! -e /var/cache/weightfs ] || fail "the cache is left"
passed "nothing is left"
