#!/usr/bin/env bash
# Builds the release twice, as two people would, and compares; then looks at what is in it.
#
#   scripts/test-release.sh [DIRECTORY]      where the release is left
#
# TARGETS as for release.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

version=9.8.7-rc.1
work=$(mktemp -d "${TMPDIR:-/tmp}/weightfs-release-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
dist=$(mkdir -p "${1:-$work/dist}" && cd "${1:-$work/dist}" && pwd)

passed() { echo "--- PASS: $1"; }
fail() { echo "--- FAIL: $1" && exit 1; }

# The sources as they are now, in two places, with other times, permissions and zones.
export SOURCE_DATE_EPOCH=1700000000
mkdir -p "$work/one" "$work/two/in a deeper place"
git ls-files -z --cached --others --exclude-standard |
	tar --null -T - --ignore-failed-read --warning=no-failed-read -cf - 2>/dev/null | tar -C "$work/one" -xf -
cp -r "$work/one/." "$work/two/in a deeper place/"
find "$work/two" -type f -exec touch -d 2001-02-03 {} + -exec chmod go= {} +
(umask 022 && cd "$work/one" && TZ=UTC DIST=$dist scripts/release.sh "$version" >"$work/log" 2>&1) || { cat "$work/log" && fail release; }
passed release
(umask 077 && cd "$work/two/in a deeper place" && TZ=Asia/Kolkata LANG=C.UTF-8 DIST=$work/again scripts/release.sh "v$version" >"$work/log" 2>&1) || { cat "$work/log" && fail "second release"; }
diff "$dist/SHA256SUMS" "$work/again/SHA256SUMS" || fail "two builds are the same"
passed "two builds are the same"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS) || fail checksums
passed checksums

# has FILE NAME...: the archive holds them.
has() {
	local list name
	case $1 in
	*.tar.gz) list=$(tar -tzf "$1") ;;
	*.zip) list=$(python3 -m zipfile -l "$1") ;;
	*.deb) list=$(dpkg-deb -c "$1") ;;
	*.rpm) list=$(rpm -qlp "$1") ;;
	esac
	for name in "${@:2}"; do
		grep -qF -- "$name" <<<"$list" || fail "$(basename "$1") has $name"
	done
	passed "$(basename "$1")"
}

for f in "$dist"/weightfs[_-]*; do
	case $f in
	*_linux_*) has "$f" /weightfs /README.md /man/weightfs.1 /man/mount.weightfs.8 /completions/_weightfs /systemd/user/weightfs@.service ;;
	*_darwin_*) has "$f" /weightfs /README.md /man/weightfs.1 /completions/weightfs.fish ;;
	*_windows_*) has "$f" /weightfs.exe /README.md /completions/weightfs.ps1 ;;
	*.deb) has "$f" /usr/bin/weightfs /usr/sbin/mount.weightfs /usr/sbin/mount.fuse.weightfs man1/weightfs-mount.1.gz man8/mount.weightfs.8.gz vendor-completions/_weightfs ;;
	*.rpm) ! command -v rpm >/dev/null || has "$f" /usr/bin/weightfs /usr/sbin/mount.weightfs /usr/sbin/mount.fuse.weightfs site-functions/_weightfs ;;
	esac
done

# The program for this machine: static, of that version and day, without a trace of where it was built.
native=$dist/weightfs_${version}_$(go env GOHOSTOS)_$(go env GOHOSTARCH).tar.gz
if [ -e "$native" ]; then
	tar -C "$work" -xzf "$native"
	program=$(echo "$work"/weightfs_*/weightfs)
	[ "$("$program" --version | grep -c "^weightfs $version; go-fuse v.*; 2023-11-14 go")" = 1 ] || fail "version"
	passed version
	! grep -qF -e "$work" -e "$HOME/" "$program" || fail "no path of the machine is in the program"
	passed "no path of the machine is in the program"
	[[ $(ldd "$program" 2>&1 || true) == *"not a dynamic executable"* ]] || fail "the program is static"
	passed "the program is static"
fi
