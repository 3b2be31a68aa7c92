// SPDX-License-Identifier: GPL-2.0-or-later
#include "ask.h"

const void *ask_attribute(const struct nlattr *attributes, size_t size, uint16_t type,
			  size_t bytes)
{
	const char *at = (const char *)attributes;

	while (size >= NLA_HDRLEN) {
		const struct nlattr *attribute = (const struct nlattr *)at;
		const size_t length = attribute->nla_len, whole = NLA_ALIGN(length);

		if (length < NLA_HDRLEN || length > size)
			break;
		if ((attribute->nla_type & NLA_TYPE_MASK) == type)
			return length - NLA_HDRLEN >= bytes ? at + NLA_HDRLEN : NULL;
		if (whole >= size)
			break;
		at += whole;
		size -= whole;
	}
	return NULL;
}
