# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Debian packages for the cells, by an apt of the rig's own: its state, sources and
# downloads lie in the cache, and the host's apt and dpkg are not touched. Nothing
# is installed, only unpacked.

# Who wants other suites sets both before anything else.
apt_dir=$cache/apt
apt_suites=(
	"bookworm main contrib non-free" "bookworm-backports main" "trixie main contrib non-free"
	"trixie-backports main"
)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The tests' packages must work together, so they come from these suites only.
# shellcheck disable=SC2034 # used by some who source this
userland_suite=bookworm

# How old apt's lists may get. Versions that were resolved stay until then.
lists_max_age_minutes=1440

debian_mirror() {
	if [[ ${UMACCT_DEBIAN_MIRROR-} ]]; then
		echo "$UMACCT_DEBIAN_MIRROR"
		return
	fi
	local mirror
	# shellcheck disable=SC2016 # apt expands it
	mirror=$(apt-get indextargets --format '$(REPO_URI)' \
		'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
	if [[ ! $mirror ]]; then
		mirror=$(grep -rhoE 'http://[^ ">]+/debian\b' /usr/sbin/debootstrap \
			/usr/share/doc/debootstrap 2>/dev/null | head -n 1)
	fi
	[[ $mirror ]] || die "no Debian mirror found; set UMACCT_DEBIAN_MIRROR"
	echo "$mirror"
}

apt_sources() { # MIRROR
	printf "deb [signed-by=$keyring] $1 %s\n" "${apt_suites[@]}"
}

write_apt_configuration() {
	mkdir -p "$apt_dir/state/lists/partial" "$apt_dir/cache/archives/partial"
	: >"$apt_dir/state/status"
	apt_sources "$(debian_mirror)" >"$apt_dir/sources.list"
	{
		# How this machine reaches a mirror (proxies and the like) is as for its own.
		env -u APT_CONFIG apt-config dump | grep '^Acquire::' || true
		cat <<-END
			Dir::State "$apt_dir/state";
			Dir::State::status "$apt_dir/state/status";
			Dir::Cache "$apt_dir/cache";
			Dir::Etc::main "/dev/null";
			Dir::Etc::parts "/dev/null";
			Dir::Etc::sourcelist "$apt_dir/sources.list";
			Dir::Etc::sourceparts "/dev/null";
			Dir::Etc::preferencesparts "/dev/null";
			APT::Architecture "amd64";
			APT::Architectures { "amd64"; "arm64"; };
			APT::Sandbox::User "root";
			Acquire::Languages "none";
			Acquire::Retries "5";
		END
	} >"$apt_dir/apt.conf"
}

rig_apt() { # COMMAND...
	APT_CONFIG=$apt_dir/apt.conf "$@"
}

# Clones that share the cache may know of different suites.
lists_are_fresh() {
	local suite
	[[ $(find "$apt_dir/updated" -mmin "-$lists_max_age_minutes" 2>/dev/null) ]] || return
	for suite in "${apt_suites[@]}"; do
		grep -q " $suite\$" "$apt_dir/sources.list" || return
	done
}

update_lists() {
	lists_are_fresh && return
	note "updating the rig's package lists"
	write_apt_configuration
	if rig_apt apt-get update -q >"$apt_dir/update.log" 2>&1; then
		touch "$apt_dir/updated"
	elif [[ -e $apt_dir/updated ]]; then
		note "no newer package lists could be had; the old ones serve"
	else
		tail -n 20 "$apt_dir/update.log" >&2
		die "apt-get update failed"
	fi
}

# A package is written NAME:ARCHITECTURE=VERSION.
newest() { # NAME:ARCHITECTURE SUITE
	local version
	version=$(rig_apt apt-cache madison "$1" | awk -F ' *[|] *' -v suite="$2" '
		{ split($3, source, " "); split(source[2], place, "/") }
		place[1] == suite { print $2; exit }')
	[[ $version ]] || die "$2 has no package $1"
	echo "$1=$version"
}

depends() { # PACKAGE PATTERN
	rig_apt apt-cache show "$1" | sed -n 's/^Depends: //p' | sed 's/[,|]/\n/g' |
		sed 's/^ *//; s/ .*//' | grep -m 1 -x -e "$2" || die "$1 depends on no $2"
}

version_of() { # PACKAGE
	echo "${1#*=}"
}

# unpacked PACKAGE...: the directory where all of them lie unpacked together.
unpacked() {
	local key dir
	key=$(printf '%s\n' "$@" | sha256sum | cut -c 1-12)
	dir=$cache/packages/${1%%:*}-$(version_of "$1" | tr : _)-$key
	once "$dir" unpack_into "$dir" "$@"
	echo "$dir"
}

unpack_into() { # DIR PACKAGE...
	local dir=$1 work deb link target
	shift
	mkdir -p "$cache/packages"
	work=$(mktemp -d "$dir.XXXXXX")
	mkdir "$work/root"
	note "downloading $*"
	(cd "$work" && rig_apt apt-get download -qq "$@") >&2
	for deb in "$work"/*.deb; do
		dpkg-deb -x "$deb" "$work/root"
	done
	# The packages expect to lie in /.
	find "$work/root" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
		ln -sfrn "$work/root$target" "$link"
	done
	mv "$work/root" "$dir"
	rm -rf "$work"
}
