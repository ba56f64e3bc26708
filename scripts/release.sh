#!/usr/bin/env bash
# Builds what is released: for each system one static binary in an archive, .deb and .rpm packages for
# Linux, and SHA256SUMS. Runs on Linux. Two runs on one commit, wherever, give the same bytes.
#
#   scripts/release.sh [VERSION]      as cli/version.go has it, without VERSION
#
# DIST               where to put it (dist)
# TARGETS            the systems (linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64)
# SOURCE_DATE_EPOCH  the time of everything, in seconds (the commit's)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

targets=${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}
version=${1:-$(sed -n 's/.*Version *= *"\(.*\)"/\1/p' cli/version.go)}
version=${version#v}
# Later ones need modules that the public proxy does not have.
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2

if ! grep -qE '^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$' <<<"$version"; then
	echo "release.sh: VERSION $version: not of the form 1.2.3 or 1.2.3-rc.1" >&2
	exit 2
fi
need_go
need zip:zip tar:tar gzip:gzip

dist=$(mkdir -p "${DIST:-dist}" && cd "${DIST:-dist}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/weightfs-release.XXXXXX")
trap 'rm -rf "$work"' EXIT

# What could differ between two machines.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT='' GOWORK=off
umask 022
date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)

# build OUT: with GOOS and GOARCH from the environment, if they are there.
build() {
	go build -trimpath -ldflags "-s -w -X weightfs/cli.Version=$version -X weightfs/cli.Date=$date" -o "$1" .
}

# dated DIRECTORY: everything in it gets the one time.
dated() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# The manual pages and completions are the same for all systems: the program writes them.
describe() {
	build "$work/host"
	mkdir -p "$work/man" "$work/completions"
	"$work/host" man "$work/man"
	"$work/host" completion bash >"$work/completions/weightfs.bash"
	"$work/host" completion zsh >"$work/completions/_weightfs"
	"$work/host" completion fish >"$work/completions/weightfs.fish"
	"$work/host" completion powershell >"$work/completions/weightfs.ps1"
}

documents() {
	local f
	for f in README.md CHANGELOG.md LICENSE; do
		[ ! -e "$f" ] || install -m 644 "$f" "$1/"
	done
}

# archive OS ARCH: an archive that is unpacked anywhere.
archive() {
	local os=$1 arch=$2 name=weightfs_${version}_$1_$2
	local dir=$work/archive/$name exe=
	[ "$os" != windows ] || exe=.exe
	mkdir -p "$dir"
	install -m 755 "$work/$os-$arch" "$dir/weightfs$exe"
	documents "$dir"
	cp -r "$work/completions" "$dir/"
	if [ "$os" != windows ]; then
		cp -r "$work/man" "$dir/"
	fi
	if [ "$os" = linux ]; then
		cp -r packaging/systemd "$dir/"
	else
		rm -f "$dir"/man/*mount* "$dir/man/weightfs-status.1"
	fi
	chmod -R u=rwX,go=rX "$dir"
	dated "$dir"
	cd "$work/archive"
	if [ "$os" = windows ]; then
		find "$name" | sort | zip -q -X -@ "$dist/$name.zip"
	else
		tar --sort=name --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" | gzip -n9 >"$dist/$name.tar.gz"
	fi
	cd "$OLDPWD"
}

# packages ARCH: the .deb and the .rpm, by packaging/nfpm.yaml.
packages() {
	local root=$work/package-$1 format
	mkdir -p "$root/doc"
	install -m 755 "$work/linux-$1" "$root/weightfs"
	documents "$root/doc"
	cp -r "$work/man" "$work/completions" packaging/systemd packaging/hooks "$root/"
	gzip -n9 "$root"/man/*
	chmod -R u=rwX,go=rX "$root"
	dated "$root"
	for format in deb rpm; do
		(cd "$root" && env VERSION="$version" GOARCH="$1" "$work/nfpm" package --config "$OLDPWD/packaging/nfpm.yaml" --packager $format --target "$dist/")
	done
}

rm -f "$dist"/weightfs[_-]* "$dist/SHA256SUMS"
describe
for target in $targets; do
	os=${target%/*} arch=${target#*/}
	GOOS=$os GOARCH=$arch build "$work/$os-$arch"
	archive "$os" "$arch"
	if [ "$os" = linux ]; then
		[ -x "$work/nfpm" ] || GOBIN=$work go install "$nfpm"
		packages "$arch"
	fi
done
cd "$dist"
sha256sum weightfs[_-]* >SHA256SUMS
cat SHA256SUMS
