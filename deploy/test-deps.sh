#!/bin/sh
# Installs what the tests need beside Go: redis-server for the stores, a C
# compiler for the race detector, chromium for the page, prometheus and promtool
# for metrics and alerts. It installs by apt, as root; otherwise it says what is
# missing. Without a browser the tests of the page are skipped, except where CI is
# set: Ubuntu has none in apt but a snap.
# With the argument sdk: Python and Node instead, for the suites of the SDKs.
set -eu

have() {
	command -v "$1" >/dev/null 2>&1
}

if [ "${1:-}" = sdk ]; then # a suite whose language is missing is skipped, and says so
	missing=""
	python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3 python3-venv"
	have npm || missing="$missing nodejs npm"
	if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && have apt-get; then
		echo "installing:$missing"
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq || true # the lists at hand may do
		# shellcheck disable=SC2086 # a list of packages
		apt-get install -y -qq --no-install-recommends $missing >/dev/null || echo "apt could not install$missing" >&2
	fi
	exit 0
fi

if [ "${1:-}" = packages ]; then # what cannot be installed is skipped, and says so
	missing=""
	have debootstrap || missing="$missing debootstrap"
	have rpm || missing="$missing rpm"
	have npm || missing="$missing nodejs npm"
	python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3 python3-venv"
	if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && have apt-get; then
		echo "installing:$missing"
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq || true # the lists at hand may do
		# shellcheck disable=SC2086 # a list of packages
		apt-get install -y -qq --no-install-recommends $missing >/dev/null || echo "apt could not install$missing" >&2
	fi
	exit 0
fi

missing=""
have redis-server || missing="$missing redis-server"
have gcc || have clang || [ -n "${CC:-}" ] || missing="$missing gcc libc6-dev"
browser=""
have chromium || have chromium-browser || have google-chrome || have chrome || browser=" chromium"
prometheus=""
have prometheus && have promtool || prometheus=" prometheus"
[ -z "$missing$browser$prometheus" ] && exit 0

# The two programs alone: the package would start a server on Pacer's own port.
unpack_prometheus() {
	dir=$(mktemp -d)
	chmod 755 "$dir"
	(cd "$dir" && apt-get download -qq prometheus >/dev/null 2>&1 && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/prometheus ./usr/bin/promtool &&
		install -m 755 usr/bin/prometheus usr/bin/promtool /usr/local/bin) || echo "no prometheus from apt: the tests of alerts are skipped" >&2
	rm -rf "$dir"
}

if [ "$(id -u)" = 0 ] && have apt-get; then
	echo "installing:$missing$browser$prometheus"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq || true # the lists at hand may do
	# shellcheck disable=SC2086 # a list of packages
	[ -z "$missing" ] || apt-get install -y -qq --no-install-recommends $missing >/dev/null
	# shellcheck disable=SC2086
	[ -z "$browser" ] || apt-get install -y -qq --no-install-recommends $browser >/dev/null ||
		echo "no chromium from apt: without a browser the tests of the page are skipped" >&2
	[ -z "$prometheus" ] || unpack_prometheus
	exit 0
fi
if [ -n "$prometheus" ]; then
	echo "No prometheus and promtool: the tests of alerts are skipped; on Debian: sudo apt-get install prometheus" >&2
fi
if [ -n "$browser" ]; then
	echo "No Chromium or Chrome: the tests of the page are skipped; on Debian: sudo apt-get install chromium" >&2
fi
[ -z "$missing" ] && exit 0
echo "The tests need:$missing" >&2
echo "Install them and run make test again, on Debian or Ubuntu: sudo apt-get install$missing" >&2
exit 1
