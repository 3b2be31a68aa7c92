/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM umacct

#if !defined(UMACCT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define UMACCT_TRACE_H

#include <linux/tracepoint.h>

/* The task is the event's own: perf and bpftrace know its pid and cgroup. */
TRACE_EVENT(umacct_alloc,
	TP_PROTO(unsigned long handle, u64 bytes, u32 pages, u64 page_size, bool contiguous,
		 u32 status),
	TP_ARGS(handle, bytes, pages, page_size, contiguous, status),
	TP_STRUCT__entry(
		__field(unsigned long, handle)
		__field(u64, bytes)
		__field(u64, page_size)
		__field(u32, pages)
		__field(u32, status)
		__field(bool, contiguous)
	),
	TP_fast_assign(
		__entry->handle = handle;
		__entry->bytes = bytes;
		__entry->page_size = page_size;
		__entry->pages = pages;
		__entry->status = status;
		__entry->contiguous = contiguous;
	),
	TP_printk("handle=%lx bytes=%llu pages=%u page_size=%llu contiguous=%d status=%#x",
		  __entry->handle, __entry->bytes, __entry->pages, __entry->page_size,
		  __entry->contiguous, __entry->status)
);

TRACE_EVENT(umacct_free,
	TP_PROTO(unsigned long handle, u64 bytes),
	TP_ARGS(handle, bytes),
	TP_STRUCT__entry(
		__field(unsigned long, handle)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->handle = handle;
		__entry->bytes = bytes;
	),
	TP_printk("handle=%lx bytes=%llu", __entry->handle, __entry->bytes)
);

TRACE_EVENT(umacct_refuse,
	TP_PROTO(u64 bytes, u32 pages, u64 page_size),
	TP_ARGS(bytes, pages, page_size),
	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u64, page_size)
		__field(u32, pages)
	),
	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->page_size = page_size;
		__entry->pages = pages;
	),
	TP_printk("bytes=%llu pages=%u page_size=%llu",
		  __entry->bytes, __entry->pages, __entry->page_size)
);

#endif /* UMACCT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
