# SPDX-License-Identifier: GPL-2.0-or-later
#
# Prints "FILE FUNCTION ALLOCATOR" for each call in C source of something that takes pages,
# slab or vmalloc memory, or holds pages of others: of the kernel's functions, and of the
# names that NVIDIA's modules call these by. A macro counts as a function.

BEGIN {
	call = "k[vmz]*[mzcr]e?alloc(_array|_array_node|_node)?|kmemdup(_nul)?|kstrn?dup|" \
		"v?memdup_user(_nul)?|memdup_array_user|_?_?v[mz]alloc(_user|_node|_32)?|" \
		"kmem_cache_z?alloc(_node|_bulk|_lru)?|mempool_alloc|_?_?alloc_percpu(_gfp)?|" \
		"_?_?(alloc_pages?|folio_alloc)(_node|_exact|_exact_nid|_vma|_bulk|_mpol)?|" \
		"vma_alloc_folio|_?_?get_free_pages?|get_zeroed_page|" \
		"dma_alloc_[a-z]+|dma_pool_z?alloc|sg_alloc_[a-z_]+|shmem_[a-z_]+|vmap(_pfn)?|" \
		"(pin|get)_user_pages(_remote|_fast|_unlocked|_longterm)?|devm_k[a-z]*alloc|" \
		"NV_[A-Z_]*([MZC]ALLOC|KMEM_CACHE_ALLOC|ALLOC_PAGES|GET_FREE_PAGES)[A-Z_]*|" \
		"NV_ALLOC_DMA_SUBMAP_SCATTERLIST|NV_(PIN|GET)_USER_PAGES[A-Z_]*|" \
		"nv_v(map|malloc)|nv_kmem_cache_z?alloc|os_alloc_mem|" \
		"_?_?uvm_kv[mcrz]*e?alloc(_zero)?|nv_drm_[cm]alloc|nvkms_alloc"
	call = "(^|[^A-Za-z0-9_])(" call ")[ \t]*\\("
}

FNR == 1 {
	in_comment = in_macro = 0
	function_name = candidate = ""
}

# The last word of what comes before a parenthesis.
function last_word(text) {
	sub(/[ \t]*\(.*/, "", text)
	sub(/[ \t]+$/, "", text)
	sub(/.*[^A-Za-z0-9_]/, "", text)
	return text
}

# Neither comments nor strings have calls.
function code_of(line,    from, rest, to) {
	gsub(/\\"/, "", line)
	gsub(/"[^"]*"/, "\"\"", line)
	if (in_comment) {
		if (!(from = index(line, "*/")))
			return ""
		line = substr(line, from + 2)
		in_comment = 0
	}
	while (from = index(line, "/*")) {
		rest = substr(line, from + 2)
		line = substr(line, 1, from - 1)
		if (!(to = index(rest, "*/"))) {
			in_comment = 1
			break
		}
		line = line " " substr(rest, to + 2)
	}
	sub(/\/\/.*/, "", line)
	return line
}

function print_calls(name, text,    word) {
	while (match(text, call)) {
		word = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		gsub(/[^A-Za-z0-9_]/, "", word)
		if (word != name)
			print FILENAME, name, word
	}
}

{
	line = code_of($0)
	goes_on = $0 ~ /\\[ \t]*$/
}

in_macro {
	print_calls(macro, line)
	in_macro = goes_on
	next
}

line ~ /^[ \t]*#[ \t]*define[ \t]/ {
	sub(/^[ \t]*#[ \t]*define[ \t]+/, "", line)
	macro = line
	sub(/[^A-Za-z0-9_].*/, "", macro)
	sub(/^[A-Za-z0-9_]+(\([^)]*\))?/, "", line)
	print_calls(macro, line)
	in_macro = goes_on
	next
}

line ~ /^[ \t]*#/ { next }

# What begins in the first column is outside of functions, or ends one.
line ~ /^\}/ { function_name = "" }
line ~ /^\{/ { function_name = candidate }
line ~ /^[A-Za-z_]/ && function_name == "" {
	# With the parenthesis in this line, or alone in the next one.
	if (line ~ /\(/ || line ~ /^[A-Za-z_][A-Za-z0-9_ \t*]*$/)
		candidate = last_word(line)
	if (line !~ /\(.*\{/)
		next
	sub(/^[^{]*\{/, "", line)
	print_calls(candidate, line)
	if (line !~ /\}/)
		function_name = candidate
	next
}

function_name != "" { print_calls(function_name, line) }
