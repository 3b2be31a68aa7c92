# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a C++ file of the page's files. web: their folder. files: their names in there. to: it.
set(types_html "text/html; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_svg "image/svg+xml")
set(types_license "text/plain; charset=utf-8")

set(arrays "")
set(rows "")
set(number 0)
foreach(file ${files})
	file(READ ${web}/${file} hex HEX)
	string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
	get_filename_component(type ${file} LAST_EXT)
	string(SUBSTRING ${type} 1 -1 type)
	get_filename_component(path ${file} NAME)
	if(path STREQUAL "index.html")
		set(path "")
	endif()
	string(APPEND arrays "constexpr unsigned char file_${number}[] = {\n${bytes}};\n")
	string(APPEND rows "    PageFile{\"/${path}\", \"${types_${type}}\",\n"
		"             {reinterpret_cast<const char *>(file_${number}), sizeof(file_${number})}},\n")
	math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${to} "// Made by userspace/web/embed.cmake: do not edit.\n#include \"exporter/page.h\"\n\n"
	"namespace umacct {\n\nnamespace {\n\n${arrays}\n} // namespace\n\n"
	"std::span<const PageFile> page_files() {\n    static const PageFile files[] = {\n${rows}    };\n\n"
	"    return files;\n}\n\n} // namespace umacct\n")
