# shellcheck shell=bash
# What the scripts have in common; they source it.

go_wanted=1.26

# need_go says which Go is needed when there is none, or an older one.
need_go() {
	command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
	local have
	have=$(GOTOOLCHAIN=local GOFLAGS='' go env GOVERSION 2>/dev/null) || true
	have=${have#go}
	if [ "$(printf '%s\n' "$go_wanted" "${have:-0}" | sort -V | head -n 1)" != "$go_wanted" ]; then
		echo "weightfs is built with Go $go_wanted or later; here is ${have:-none}" >&2
		return 1
	fi
}

# need COMMAND:PACKAGES... installs the Debian packages of the commands that are missing, as root or
# through sudo where that asks for no password. Returns 1, and says what to install, where it cannot.
need() {
	local pair missing='' sudo=()
	for pair; do
		PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=" ${pair#*:}"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		sudo=(sudo -n)
		sudo -n true 2>/dev/null || sudo=(false)
	fi
	if command -v apt-get >/dev/null && [ "${sudo[0]-}" != false ]; then
		echo "installing$missing" >&2
		# shellcheck disable=SC2086
		"${sudo[@]}" apt-get update -qq >&2 &&
			"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && return 0
	fi
	echo "please install:$missing" >&2
	return 1
}

# environment DIRECTORY REQUIREMENTS...: a Python environment with these libraries, made once.
environment() {
	local stamp
	stamp=$(cat "${@:2}" <(python3 --version))
	[ "$(cat "$1/made-of" 2>/dev/null)" != "$stamp" ] || return 0
	rm -rf "${1:?}"
	python3 -m venv "$1"
	# shellcheck disable=SC2046
	"$1/bin/python" -m pip install -q --disable-pip-version-check $(printf -- '-r %s ' "${@:2}") >&2
	echo "$stamp" >"$1/made-of"
}
