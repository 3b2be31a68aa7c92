# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
#
# Packages of npm's, by their checksums.

# npm_package PACKAGE VERSION SHA512: its folder, in the cache. Nothing of it is run but what is here.
npm_package() {
	local to=$cache/npm/$1-$2
	once "$to" fetch_npm_package "$to" "$@"
	echo "$to"
}

fetch_npm_package() { # TO PACKAGE VERSION SHA512
	local work=$1.$$ got
	rm -rf "$work"
	mkdir -p "$work"
	note "downloading $2 $3"
	(cd "$work" && npm pack --silent "$2@$3" >/dev/null) || die "npm has no $2 $3"
	got=$(perl -MDigest::SHA -e 'print Digest::SHA->new(512)->addfile($ARGV[0], "b")->b64digest' \
		"$work"/*.tgz)==
	[[ $got == "$4" ]] || die "$2 $3 has the checksum $got"
	tar -C "$work" -xzf "$work"/*.tgz
	mv "$work/package" "$1"
	rm -rf "$work"
}
