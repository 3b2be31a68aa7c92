# SPDX-License-Identifier: GPL-2.0-or-later
#
# Prints the place and the beginning of each comment, of C, C++, JavaScript and shell, that begins with a preposition
# or a relative word, or that speaks of persons or amounts without naming them: "selftests/run lint words".

function ended(first) {
	first = tolower(text)
	sub(/[^a-z'].*/, "", first)
	if (first in odd && substr(text, length(first) + 1, 1) != ":") # "without: ..." describes a parameter
		print file ":" line ": begins oddly: " substr(text, 1, 90)
	if (match(tolower(text), /(^|[^a-z])(nobody|somebody|anybody|everybody|whom|so many|had better)([^a-z]|$)/))
		print file ":" line ": unnamed:" substr(text, RSTART, 90)
	text = ""
}

BEGIN {
	words = "what who whom whose which where when while if of in on at for from to by with without as until since " \
		"behind below above before after between beside besides within through that else because though than unless"
	split(words, list, " ")
	for (i in list)
		odd[list[i]] = 1
}

FNR == 1 {
	ended()
	inside = 0
	file = FILENAME
	shell = file !~ /\.([chS]|cpp|js|css|inc)$/
}

{
	own = 0
	comment = ""
	if (shell) {
		if (match($0, /^[ \t]*#( |$)/)) {
			own = 1
			comment = substr($0, RSTART + RLENGTH)
		}
	} else if (inside) {
		own = 1
		comment = $0
		if (sub(/\*\/.*/, "", comment))
			inside = 0
		sub(/^[ \t]*\*?[ \t]*/, "", comment)
	} else if (match($0, /^[ \t]*\/\/\/?/)) {
		own = 1
		comment = substr($0, RSTART + RLENGTH)
	} else if (match($0, /^[ \t]*\/\*\*?/)) {
		behind = substr($0, RSTART + RLENGTH)
		ended()
		own = 1
		comment = behind
		inside = !sub(/\*\/.*/, "", comment)
	} else if (match($0, /[ \t](\/\/\/<|\/\*|\/\/ )/)) {
		# Behind code.
		behind = substr($0, RSTART + RLENGTH)
		ended()
		line = FNR
		text = behind
		inside = $0 ~ /\/\*/ && text !~ /\*\//
		sub(/^[ \t]+/, "", text)
		ended()
		next
	}
	gsub(/^[ \t]+|[ \t]+$/, "", comment)
	if (!own) {
		ended()
		next
	}
	if (comment ~ /^SPDX|^shellcheck|^!/)
		next
	if (text == "")
		line = FNR
	text = text (text == "" ? "" : " ") comment
}

END { ended() }
