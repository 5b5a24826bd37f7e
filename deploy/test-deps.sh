#!/bin/sh
# Installs what the tests need beside Go: redis-server for the stores, chromium
# for the page. It installs by apt, as root; otherwise it says what is missing.
set -eu

missing=""
command -v redis-server >/dev/null 2>&1 || missing="$missing redis-server"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	# shellcheck disable=SC2086 # a list of packages
	apt-get install -y -qq --no-install-recommends $missing >/dev/null
	exit 0
fi
echo "The tests need:$missing" >&2
echo "Install them and run make test again, on Debian or Ubuntu: sudo apt-get install$missing" >&2
exit 1
