// SPDX-License-Identifier: GPL-2.0-or-later
// Draws the screen. model.js requests the figures.
'use strict';

(() => {
const row_height = 32;
const spare_rows = 8;
const points = 400;
const most_rows_of_table = 50;
const most_events = 100;

const $ = (id) => document.getElementById(id);
const model = new Worker('model.js');

// --- words for numbers ------------------------------------------------------------

// Formats a size as umacct does.
function size(bytes) {
	const units = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];

	if (bytes < 0)
		return `-${size(-bytes)}`;
	for (const [unit, of] of units) {
		// Exact, as it is computed in parts.
		const hundredths = Math.floor(bytes / of) * 100 +
			Math.floor(((bytes % of) * 100 + of / 2) / of);

		if (hundredths >= 100)
			return `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, '0')} ${unit}`;
	}
	return `${bytes} B`;
}

const limit = (bytes) => (bytes === null ? 'max' : size(bytes));
const known = (bytes) => (bytes === null ? '-' : size(bytes));
const percent = (share) => `${(100 * share).toFixed(1)} %`;

// Names that a tenant chose may contain anything.
const printable = (text) =>
	text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

// "2026-11-25 03:11:58", of the local clock.
function stamp(ms) {
	const then = new Date(ms);
	const two = (n) => String(n).padStart(2, '0');

	return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ` +
		`${two(then.getHours())}:${two(then.getMinutes())}:${two(then.getSeconds())}`;
}

// The time alone where it is of today.
function clock(ms) {
	const text = stamp(ms);

	return text.slice(0, 10) === stamp(Date.now()).slice(0, 10) ? text.slice(11) : text;
}

function make(tag, text, name) {
	const element = document.createElement(tag);

	if (text !== undefined)
		element.textContent = text;
	if (name)
		element.className = name;
	return element;
}

// Nothing is touched that says the same already.
function say(element, text) {
	if (element.textContent !== text)
		element.textContent = text;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// --- where the memory is ------------------------------------------------------------

// Same order and colours as umacct audit.
const parts = [
	['free', 'free', '#e8ece8'],
	['free_lists', 'free, in per-CPU lists', '#dbe2db'],
	['page_cache', 'page cache', '#8fbc8f'],
	['shared_memory', 'shared memory, tmpfs', '#6fa8a8'],
	['anonymous', 'anonymous', '#6f8fc8'],
	['hugetlb', 'huge page pool', '#4f6fa8'],
	['slab', 'kernel: slab', '#d8c8a0'],
	['kernel_stack', 'kernel: stacks', '#ccb888'],
	['page_tables', 'kernel: page tables', '#c0a870'],
	['vmalloc', 'kernel: vmalloc', '#b49858'],
	['percpu', 'kernel: percpu', '#a88840'],
	['kernel_other', 'kernel: other', '#9c7828'],
	['zram', "zram's store", '#7898b0'],
	['cma', "devices' memory (CMA)", '#b088b0'],
	['other_gpu', 'other GPU drivers', '#987098'],
	['driver_charged', 'driver: charged', '#e8a860'],
	['driver_uncharged', 'driver: uncharged', '#c8742c'],
	['driver_own', 'driver: its own', '#8f4f1c'],
	['driver_pools', 'driver: its pools', '#dcb48c'],
	['unexplained', 'unexplained', '#888888'],
];

const part_rows = new Map();

function make_parts() {
	for (const [key, label, background] of parts) {
		const row = make('tr');
		const name = make('td');
		const swatch = make('span', undefined, 'swatch');
		const segment = make('span');

		swatch.style.background = background;
		segment.style.background = background;
		segment.dataset.part = key;
		name.append(swatch, label);
		row.append(name, make('td', '', 'n'), make('td', '', 'n'));
		row.dataset.part = key;
		row.hidden = true;
		for (const each of [row, segment]) {
			each.addEventListener('pointerenter', () => pick(key));
			each.addEventListener('pointerleave', () => pick(null));
		}
		$('parts').tBodies[0].append(row);
		$('bar').append(segment);
		part_rows.set(key, { row, segment, label });
	}
}

function pick(key) {
	$('bar').classList.toggle('picked', key !== null);
	for (const [each, { segment }] of part_rows)
		segment.classList.toggle('picked', each === key);
}

function show_audit(audit) {
	const machine = audit.machine;
	const said = [];
	// Overlapping counters make the last part negative, and the sum of the others exceed the
	// total.
	const sum = Math.max(machine.total_bytes, parts.reduce(
		(all, [key]) => all + Math.max(0, machine[`${key}_bytes`] ?? 0), 0));

	for (const [key] of parts) {
		const { row, segment, label } = part_rows.get(key);
		const bytes = machine[`${key}_bytes`];

		row.hidden = bytes === 0;
		row.dataset.bytes = String(bytes);
		segment.style.width = `${100 * Math.max(0, bytes ?? 0) / sum}%`;
		segment.title = `${label}: ${bytes === null ? 'unknown' : size(bytes)}`;
		say(row.cells[1], bytes === null ? 'unknown' : size(bytes));
		say(row.cells[2], bytes === null ? '' : percent(bytes / machine.total_bytes));
		if (bytes !== null && bytes > sum / 100)
			said.push(`${label} ${size(bytes)}`);
	}
	$('total').dataset.bytes = String(machine.total_bytes);
	say($('total'), size(machine.total_bytes));
	$('bar').setAttribute('aria-label',
		`A bar of ${size(machine.total_bytes)}: ${said.join(', ')}. The table has all parts.`);
	say($('available'), `available ${size(audit.available_bytes)}` +
		(audit.kept_bytes > 0 ? `, of it kept by guarantees ${size(audit.kept_bytes)}` : '') +
		`, pinned for devices ${size(audit.pinned_bytes)}`);
	$('available').dataset.bytes = String(audit.available_bytes);
	$('bar').dataset.time = audit.time;
}

// --- who has it ---------------------------------------------------------------------

const colours = new Map(); // each owner keeps its own as long as the page is open
const most_colours = 7;
const most_owners = 5;

// The same in the bar, the list and the plot.
function colour_of(path) {
	if (!colours.has(path) && colours.size < most_colours)
		colours.set(path, `--a${colours.size}`);
	return colours.get(path) ?? '--others';
}

function show_owners(machine) {
	const first = machine.owners[0];
	const rest = machine.complete ? 'the rest: kernel, driver' : 'not visible to you, kernel';
	const shown = machine.owners.slice(0, most_owners);
	const more = machine.owners.slice(most_owners);
	const sum = (owners) => owners.reduce((all, owner) => all + owner.total_bytes, 0);
	const all = [
		...shown.map((owner) => [printable(owner.name), owner.total_bytes, colour_of(owner.path),
			limit(owner.effective_bytes)]),
		...(more.length > 0 ? [[`${more.length} more`, sum(more), '--others', '']] : []),
		[rest, machine.rest_bytes, '--rest', ''],
	];

	say($('left'), `${size(machine.available_bytes)} of ${size(machine.total_bytes)} available` +
		(machine.short && first !== undefined
			? `: ${printable(first.name)} has ${size(first.total_bytes)}` : ''));
	$('left').classList.toggle('bad', machine.short);
	$('owners-bar').setAttribute('aria-label', `A bar of ${size(machine.total_bytes)}: ` +
		all.map(([name, bytes]) => `${name} ${size(bytes)}`).join(', '));
	$('owners-bar').replaceChildren(...all.map(([name, bytes, background]) => {
		const segment = make('span');

		segment.style.width = `${100 * bytes / machine.total_bytes}%`;
		segment.style.background = `var(${background})`;
		segment.title = `${name}: ${size(bytes)}`;
		if (bytes > machine.total_bytes / 12)
			segment.append(make('b', name));
		return segment;
	}));
	$('owners').tBodies[0].replaceChildren(...all.map(([name, bytes, background, bound]) => {
		const row = make('tr');
		const cell = make('td');
		const swatch = make('span', undefined, 'swatch');

		swatch.style.background = `var(${background})`;
		cell.append(swatch, name);
		row.append(cell, make('td', size(bytes), 'n'),
			make('td', percent(bytes / machine.total_bytes), 'n'), make('td', bound, 'n'));
		return row;
	}));
}

function show_summary(summary) {
	show_owners(summary.machine);
	const driver = summary.driver_state === 'absent' ? 'driver not loaded'
		: `driver ${printable(summary.driver_version)} ${summary.driver_state}`;

	say($('state'), `${printable(summary.module_version)}, ${driver}` +
		(summary.driver_memory_bytes === null ? ''
			: `; driver memory ${size(summary.driver_memory_bytes)}`) +
		(summary.reserve_bytes ? `; reserve ${size(summary.reserve_bytes)}` : ''));
	$('state').dataset.bytes = String(summary.driver_memory_bytes);
	$('state').dataset.time = summary.time;
	trouble('warnings', summary.warnings.join('\n'));
}

// --- what is wrong ------------------------------------------------------------------

const troubles = new Map();

function trouble(of, text) {
	if ((troubles.get(of) ?? '') === text)
		return;
	if (text === '')
		troubles.delete(of);
	else
		troubles.set(of, text);
	// The same text is said once, whatever it kept from being shown.
	$('troubles').replaceChildren(
		...[...new Set(troubles.values())].map((each) => make('p', printable_lines(each))));
}

const printable_lines = (text) => text.split('\n').map(printable).join('\n');

function show_trouble(message) {
	const unauthorised = message.status === 401;

	if (unauthorised && $('ask-token').hidden) {
		$('ask-token').hidden = false;
		$('token').focus();
	}
	trouble(message.of, !unauthorised ? message.text
		: message.with_token ? 'That is not the token.' : 'The dashboard takes a token here.');
}

// --- the tree of accounts -------------------------------------------------------------

const shown_rows = new Map(); // the key is the account's id
const spare = []; // rows that show nothing just now
const space = make('div');
let window_first = -1;
let window_count = 0;
let active_id = null;

function new_row() {
	const row = make('div');
	const usage = make('span', undefined, 'n use');
	const bar = make('i');

	row.setAttribute('role', 'row');
	row.tabIndex = -1;
	bar.append(make('b'), make('b'), make('u'));
	usage.append(make('span'), bar);
	for (const cell of [make('span', '', 'name'), usage, make('span', '', 'n'), make('span', '', 'n')]) {
		cell.setAttribute('role', 'gridcell');
		row.append(cell);
	}
	return row;
}

// Sets what differs: most rows of most answers are as they were.
function put(row, key, value, set) {
	row.was ??= {};
	if (row.was[key] !== value) {
		row.was[key] = value;
		set(value);
	}
}

function draw_row(row, data, scale) {
	const [name, usage, limit_cell, current] = row.children;
	const [charged, uncharged, mark] = usage.lastChild.children;
	const attribute = (key) => (value) =>
		(value === null ? row.removeAttribute(key) : row.setAttribute(key, value));
	const style = (element, key) => (value) => element.style.setProperty(key, value);
	const ratio = (bytes) => (Math.min(bytes, scale) / scale).toFixed(4);

	put(row, 'place', data.place, (place) => {
		row.style.transform = `translateY(${place * row_height}px)`;
		row.setAttribute('aria-rowindex', place + 2);
	});
	put(row, 'level', data.depth + 1, attribute('aria-level'));
	put(row, 'at', data.at, attribute('aria-posinset'));
	put(row, 'of', data.of, attribute('aria-setsize'));
	put(row, 'open', data.open === null ? null : String(data.open), attribute('aria-expanded'));
	put(row, 'tab', data.id === active_id ? 0 : -1, (tab) => { row.tabIndex = tab; });
	put(row, 'depth', Math.min(data.depth, 12), style(name, '--depth'));
	put(row, 'name', printable(data.name), (text) => say(name, text));
	put(row, 'path', printable(data.path), (text) => { name.title = text; });
	put(row, 'usage', data.usage, (bytes) => {
		say(usage.firstChild, size(bytes));
		usage.dataset.bytes = String(bytes);
	});
	put(row, 'full', ratio(data.usage), style(charged, '--usage'));
	put(row, 'uncharged', ratio(data.uncharged), style(uncharged, '--uncharged'));
	put(row, 'hard', data.hard === null ? null : ratio(data.hard), (share) => {
		mark.hidden = share === null;
		mark.style.setProperty('--limit', share ?? 0);
	});
	put(row, 'limit', limit(data.limit), (text) => say(limit_cell, text));
	put(row, 'current', known(data.current), (text) => say(current, text));
	limit_cell.dataset.bytes = String(data.limit);
	current.dataset.bytes = String(data.current);
	row.dataset.path = data.path;
	row.dataset.id = String(data.id);
}

function show_rows(message) {
	const wanted = new Set(message.rows.map((row) => row.id));

	active_id = message.active;
	for (const [id, row] of shown_rows) {
		if (wanted.has(id))
			continue;
		shown_rows.delete(id);
		row.remove();
		spare.push(row);
	}
	for (const data of message.rows) {
		let row = shown_rows.get(data.id);

		if (row === undefined) {
			row = spare.pop() ?? new_row();
			shown_rows.set(data.id, row);
			draw_row(row, data, message.scale);
			$('rows').append(row);
		} else
			draw_row(row, data, message.scale);
	}
	space.style.height = `${message.shown * row_height}px`;
	$('rows').style.setProperty('--rows', Math.max(1, message.shown));
	$('tree').setAttribute('aria-rowcount', message.shown + 1);
	say($('count'), message.shown === message.all ? `${message.all} accounts`
		: `${message.shown} of ${message.all} accounts`);
	if (message.focus !== null)
		focus_row(message.focus);
}

function focus_row(place) {
	const top = place * row_height;
	const rows = $('rows');

	if (top < rows.scrollTop)
		rows.scrollTop = top;
	else if (top + row_height > rows.scrollTop + rows.clientHeight)
		rows.scrollTop = top + row_height - rows.clientHeight;
	shown_rows.get(active_id)?.focus({ preventScroll: true });
	ask_rows();
}

function ask_rows() {
	const rows = $('rows');
	const first = Math.max(0, Math.floor(rows.scrollTop / row_height) - spare_rows);
	const count = Math.ceil(rows.clientHeight / row_height) + 2 * spare_rows;

	if (first === window_first && count === window_count)
		return;
	window_first = first;
	window_count = count;
	model.postMessage({ what: 'view', view: { first, count } });
}

function start_tree() {
	const rows = $('rows');
	const page = () => Math.max(1, Math.floor(rows.clientHeight / row_height) - 1);
	const keys = {
		ArrowDown: () => ({ by: 1 }), ArrowUp: () => ({ by: -1 }),
		PageDown: () => ({ by: page() }), PageUp: () => ({ by: -page() }),
		Home: () => ({ end: false }), End: () => ({ end: true }),
		ArrowRight: () => ({ right: true }), ArrowLeft: () => ({ left: true }),
	};
	let asked = false;

	space.id = 'space';
	space.setAttribute('role', 'presentation');
	rows.append(space);
	rows.addEventListener('scroll', () => {
		if (asked)
			return;
		asked = true;
		requestAnimationFrame(() => {
			asked = false;
			ask_rows();
		});
	}, { passive: true });
	rows.addEventListener('keydown', (event) => {
		const to = keys[event.key];

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (to) {
			event.preventDefault();
			model.postMessage({ what: 'move', to: to() });
		} else if (event.key === 'Enter' && active_id !== null) {
			event.preventDefault();
			model.postMessage({ what: 'toggle', id: active_id });
		}
	});
	rows.addEventListener('click', (event) => {
		const row = event.target.closest('[role="row"]');

		if (row === null)
			return;
		const id = Number(row.dataset.id);
		model.postMessage(row.hasAttribute('aria-expanded') ? { what: 'toggle', id }
			: { what: 'move', to: { id } });
	});
	$('filter').addEventListener('input', () =>
		model.postMessage({ what: 'filter', text: $('filter').value.trim() }));
	new ResizeObserver(ask_rows).observe(rows);
	ask_rows();
}

// --- the history ----------------------------------------------------------------------

let boot = 0;
let span = 3600; // seconds before the end; or null where a time was chosen
let chosen = null; // { since, until } in seconds
let history = null;
let plot = null;
let moment = null; // selected moment in ms; null for the last one
let time_shown = null; // the plot's time
let drawn = ''; // key of the drawn plot
let refresh = 0;

function ask_course() {
	const course = { points };

	if (boot !== 0)
		course.boot = boot;
	if (chosen === null)
		course.since = `${span}s`;
	else {
		course.since = `@${chosen.since.toFixed(3)}`;
		course.until = `@${chosen.until.toFixed(3)}`;
	}
	model.postMessage({ what: 'course', course });
	// A time that goes on gets a new moment now and then.
	clearTimeout(refresh);
	if (chosen === null && boot === 0)
		refresh = setTimeout(() => (document.hidden ? ask_later() : ask_course()),
			Math.max(2000, span * 1000 / points));
}

function ask_later() {
	document.addEventListener('visibilitychange', ask_course, { once: true });
}

function choose(since, until) {
	const middle = (since + until) / 2;
	const half = Math.max(5, (until - since) / 2);

	chosen = { since: Math.max(0, middle - half), until: middle + half };
	press(null);
	ask_course();
}

// Returns the shown time, in seconds.
function shown_time() {
	if (chosen !== null)
		return chosen;
	const end = history?.course ? history.course.times_ms.at(-1) / 1000 : Date.now() / 1000;
	return { since: end - span, until: end };
}

function press(button) {
	for (const each of $('spans').children)
		each.setAttribute('aria-pressed', String(each === button));
}

// Each band's variable of the style sheet.
function colours_of(bands) {
	return bands.map((band) => (band.kind === 'account' ? colour_of(band.path) : `--${band.kind}`));
}

const event_kind = (type) =>
	(type.endsWith('_refused') || type.endsWith('failed') || type.startsWith('killed') ? 'bad'
		: type.startsWith('guard') ? 'step' : 'note');

const event_text = (event) => (event.text !== '' ? event.text
	: event.type === 'hard_refused'
		? `refused ${size(event.size_bytes)}: ${size(event.usage_bytes)} used of the hard limit ` +
			limit(event.limit_bytes)
		: event.type === 'reserve_refused'
			? `refused ${size(event.size_bytes)}: ${size(event.usage_bytes)} available, reserve ` +
				limit(event.limit_bytes)
			: `size ${size(event.size_bytes)}, usage ${size(event.usage_bytes)}, limit ` +
				limit(event.limit_bytes));

// The bands as lines, each on top of those before; where nothing was recorded, they break.
function stack(course) {
	const times = [];
	const from = [];
	const lines = course.bands.map(() => []);
	const reserve = [];

	course.times_ms.forEach((time, i) => {
		if (i > 0 && time - course.times_ms[i - 1] > course.gap_ms) {
			times.push((course.times_ms[i - 1] + 1) / 1000);
			from.push(null);
			for (const line of [...lines, reserve])
				line.push(null);
		}
		let sum = 0;
		times.push(time / 1000);
		from.push(i);
		course.bands.forEach((band, n) => {
			sum += band.bytes[i];
			lines[n].push(sum);
		});
		reserve.push(course.reserve_bytes[i] > 0 ? sum - course.reserve_bytes[i] : null);
	});
	return { data: [times, ...lines, reserve], from };
}

function draw_events(u) {
	const context = u.ctx;
	const width = devicePixelRatio;

	context.save();
	context.beginPath();
	context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
	context.clip();
	context.lineWidth = width;
	context.setLineDash([]);
	for (const event of history.events.slice(-most_events)) {
		const x = u.valToPos(Date.parse(event.time) / 1000, 'x', true);

		if (x < u.bbox.left || x > u.bbox.left + u.bbox.width)
			continue;
		context.strokeStyle = context.fillStyle = colour(`--${event_kind(event.type)}`);
		context.beginPath();
		context.moveTo(x, u.bbox.top);
		context.lineTo(x, u.bbox.top + u.bbox.height);
		context.stroke();
		context.beginPath();
		context.moveTo(x - 5 * width, u.bbox.top);
		context.lineTo(x + 5 * width, u.bbox.top);
		context.lineTo(x, u.bbox.top + 8 * width);
		context.fill();
	}
	context.restore();
}

function plot_size() {
	const width = $('plot').clientWidth;

	return { width, height: width < 600 ? 240 : 320 };
}

let from_plot = []; // the moment of each place in the plot

function draw_plot() {
	const course = history.course;
	const names = colours_of(course.bands);
	const { data, from } = stack(course);
	const wanted = JSON.stringify([names, course.total_bytes, document.documentElement.dataset.theme]);

	from_plot = from;
	time_shown = shown_time();
	// Updated in place, so that the part under the pointer stays.
	if (plot !== null && drawn === wanted) {
		plot.setData(data);
		return;
	}
	drawn = wanted;
	const ink = colour('--ink');
	const axis = { stroke: ink, grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line') } };
	const gib = 2 ** 30;
	let step = 2 ** 20;

	while (course.total_bytes / step > 6)
		step *= 2;
	const options = {
		...plot_size(),
		padding: [8, 28, 0, 0], // half of a time is beside the last mark
		legend: { show: false },
		cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
		scales: {
			x: { range: () => [time_shown.since, time_shown.until] },
			y: { range: () => [0, Math.max(1, course.total_bytes)] },
		},
		axes: [{
			...axis,
			values: (_, times, _axis, _space, step) => times.map((time) => {
				const text = stamp(time * 1000);

				return step >= 86400 ? text.slice(0, 10) : text.slice(11, step < 60 ? 19 : 16);
			}),
		}, {
			...axis, size: 70,
			splits: () => Array.from({ length: Math.floor(course.total_bytes / step) + 1 }, (_, i) => i * step),
			values: (_, values) => values.map((v) => (v === 0 ? '0'
				: step >= gib ? `${v / gib} GiB` : `${v / 2 ** 20} MiB`)),
		}],
		series: [{}, ...names.map((name) => ({
			stroke: colour(name), width: 1, fill: colour(name), points: { show: false },
		})), { stroke: colour('--bad'), width: 1.5, dash: [6, 4], points: { show: false } }],
		// A band ends at the one below.
		bands: course.bands.slice(1).map((_, n) => ({ series: [n + 2, n + 1] })),
		hooks: {
			draw: [draw_events],
			setCursor: [(u) => {
				if (u.cursor.idx !== null && u.cursor.idx !== undefined && u.cursor.left >= 0)
					show_moment(from_plot[u.cursor.idx] ?? null);
				else if (document.activeElement !== $('moment'))
					show_moment(null);
			}],
			setSelect: [(u) => {
				if (u.select.width < 4)
					return;
				choose(u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x'));
			}],
		},
	};
	plot?.destroy();
	plot = new uPlot(options, data, $('plot'));
}

// Shows the moment at the pointer or the slider; null: the last one.
function show_moment(at) {
	const course = history.course;
	const last = course.times_ms.length - 1;
	const index = Math.min(at ?? last, last);
	const names = colours_of(course.bands);
	const time = course.times_ms[index];
	const near = Math.max(1000, (shown_time().until - shown_time().since) * 1000 / 150);
	const events = history.events.filter((event) => Math.abs(Date.parse(event.time) - time) <= near);
	const items = $('legend').children;
	const said = [clock(time)];

	moment = at === null ? null : time;
	while (items.length < course.bands.length) {
		const item = make('li');

		item.append(make('span', undefined, 'swatch'), make('span'));
		$('legend').append(item);
	}
	while (items.length > course.bands.length)
		items[items.length - 1].remove();
	// The topmost first, as the plot has them.
	course.bands.forEach((band, n) => {
		const item = items[course.bands.length - 1 - n];
		const text = `${printable(band.name)} ${size(band.bytes[index])}`;

		item.firstChild.style.background = `var(${names[n]})`;
		item.dataset.bytes = String(band.bytes[index]);
		item.dataset.name = band.name;
		item.hidden = band.kind === 'account' ? false : band.bytes.every((bytes) => bytes === 0);
		say(item.lastChild, text);
		if (band.bytes[index] > 0)
			said.push(text);
	});
	const beside = events.slice(-3).map((event) => `${event.type} ${printable(event_text(event))}`);
	say($('at'), [`At ${clock(time)}${at === null ? ', the last' : ''}`, ...beside].join(' · '));
	$('at').dataset.time = String(time);
	$('moment').value = String(index);
	$('moment').setAttribute('aria-valuetext', [...said, ...beside].join(', '));
}

function name_of(account) {
	return printable(account.owner_name ?? account.path);
}

function show_tables() {
	const refused = new Map();

	for (const event of history.events) {
		if (event.type.endsWith('_refused') && event.path !== null)
			refused.set(event.path, (refused.get(event.path) ?? 0) + event.count);
	}
	$('held').tBodies[0].replaceChildren(
		...history.accounts.slice(0, most_rows_of_table).map((account) => {
			const row = make('tr');

			row.append(make('td', name_of(account)));
			for (const text of [size(account.total_bytes),
				(account.total_grown_bytes < 0 ? '' : '+') + size(account.total_grown_bytes),
				size(account.total_most_bytes), size(account.usage_bytes), limit(account.hard_bytes),
				String(refused.get(account.path) ?? 0)])
				row.append(make('td', text, 'n'));
			return row;
		}));
	$('events').tBodies[0].replaceChildren(...history.events.slice(-most_events).reverse().map((event) => {
		const row = make('tr');

		row.append(make('td', clock(Date.parse(event.time))),
			make('td', printable(event.type).replaceAll('_', ' '), event_kind(event.type)),
			make('td', printable(event.owner_name ?? event.path ?? 'the machine')),
			make('td', printable(event_text(event)) +
				(event.pid === 0 ? '' : `, pid ${event.pid} (${printable(event.comm)})`) +
				(event.count > 1 ? `, the last of ${event.count}` : '')));
		return row;
	}));
	$('no-events').hidden = history.events.length > 0;
	$('events').parentElement.hidden = history.events.length === 0;
}

function show_boots() {
	const options = $('boot').options;
	const boots = history.boots;
	// Counted from this start of the machine, of which umacctd may have recorded nothing.
	const has_current = boots.at(-1)?.boot_id === history.boot_id;

	while (options.length > boots.length)
		options[options.length - 1].remove();
	boots.slice().reverse().forEach((each, back) => {
		const option = options[back] ?? $('boot').appendChild(make('option'));
		const text = back === 0 && has_current ? 'current'
			: `until ${clock(Date.parse(each.last))}${each.ended === null ? ', no clean end' : ''}`;

		option.value = String(back === 0 || has_current ? back : back + 1);
		say(option, text);
	});
	$('boot').value = String(boot);
}

function show_history(document_of) {
	const course = document_of.course;

	history = document_of;
	trouble('history', '');
	show_boots();
	show_tables();
	const told = [history.end?.text, ...history.leaks.map((leak) =>
		`${name_of(leak)} grows and does not fall: ${size(leak.grown_bytes)} since ` +
		`${clock(Date.parse(leak.since))}, ${size(Math.round(leak.bytes_per_hour))}/h.`)]
		.filter(Boolean).map(printable_lines).join('\n');
	$('told').hidden = told === '';
	say($('told'), told);
	$('plot').hidden = course === null;
	$('moment').disabled = course === null;
	if (course === null) {
		say($('range'), 'There are no samples of that time.');
		say($('at'), '');
		$('legend').replaceChildren();
		plot?.destroy();
		plot = null;
		drawn = '';
		return;
	}
	say($('range'), `From ${clock(course.times_ms[0])} to ${clock(course.times_ms.at(-1))}, ` +
		`${course.times_ms.length} moments. Drag to zoom; a double click goes back.`);
	$('moment').max = String(course.times_ms.length - 1);
	draw_plot();
	// New ones have come; the one that was chosen is where it was, or near.
	const at = moment === null ? -1 : course.times_ms.findIndex((time) => time >= moment);
	show_moment(at < 0 ? null : at);
}

function start_history() {
	const by = (factor, shift) => () => {
		const { since, until } = shown_time();
		const half = (until - since) / 2 * factor;
		const middle = (since + until) / 2 + (until - since) * shift;

		choose(middle - half, middle + half);
	};

	$('spans').addEventListener('click', (event) => {
		if (event.target.dataset.span === undefined)
			return;
		span = Number(event.target.dataset.span);
		chosen = null;
		press(event.target);
		ask_course();
	});
	$('boot').addEventListener('change', () => {
		boot = Number($('boot').value);
		chosen = null;
		moment = null;
		press([...$('spans').children].find((each) => Number(each.dataset.span) === span));
		ask_course();
	});
	$('earlier').addEventListener('click', by(1, -0.5));
	$('later').addEventListener('click', by(1, 0.5));
	$('closer').addEventListener('click', by(0.5, 0));
	$('wider').addEventListener('click', by(2, 0));
	$('plot').addEventListener('dblclick', () => {
		chosen = null;
		press([...$('spans').children].find((each) => Number(each.dataset.span) === span));
		ask_course();
	});
	$('moment').addEventListener('input', () => {
		const index = Number($('moment').value);
		const last = history.course.times_ms.length - 1;

		show_moment(index === last ? null : index);
		plot.setCursor({
			left: plot.valToPos(history.course.times_ms[index] / 1000, 'x'), top: 0,
		}, false);
	});
	new ResizeObserver(() => {
		if (plot !== null && plot.width !== $('plot').clientWidth)
			plot.setSize(plot_size());
	}).observe($('plot'));
	ask_course();
}

// --- colours and the token ---------------------------------------------------------------

const themes = { system: 'system', light: 'light', dark: 'dark' };
const prefers_dark = matchMedia('(prefers-color-scheme: dark)');
let theme = 'system';

// A browser may keep nothing for this page.
function keep(storage, key, value) {
	try {
		storage().setItem(key, value);
	} catch { /* it is asked for again */ }
}

function kept(storage, key) {
	try {
		return storage().getItem(key);
	} catch {
		return null;
	}
}

function show_theme() {
	const dark = theme === 'dark' || (theme === 'system' && prefers_dark.matches);

	document.documentElement.dataset.theme = dark ? 'dark' : 'light';
	say($('theme'), `Colours: ${themes[theme]}`);
	if (history?.course)
		show_history(history);
}

function start_theme() {
	const names = Object.keys(themes);
	const before = kept(() => localStorage, 'theme');

	if (names.includes(before))
		theme = before;
	$('theme').addEventListener('click', () => {
		theme = names[(names.indexOf(theme) + 1) % names.length];
		keep(() => localStorage, 'theme', theme);
		show_theme();
	});
	prefers_dark.addEventListener('change', show_theme);
	show_theme();
}

// Takes the token from the address, in a part that browsers don't send:
// http://127.0.0.1:9752/#token=...
function take_token() {
	const given = new URLSearchParams(location.hash.slice(1)).get('token');

	if (given !== null) {
		keep(() => sessionStorage, 'token', given);
		window.history.replaceState(null, '', location.pathname);
		return given;
	}
	return kept(() => sessionStorage, 'token') ?? '';
}

function start_token() {
	$('ask-token').addEventListener('submit', (event) => {
		const given = $('token').value.trim();

		event.preventDefault();
		keep(() => sessionStorage, 'token', given);
		$('ask-token').hidden = true;
		troubles.clear(); // they were about the one before
		$('troubles').replaceChildren();
		model.postMessage({ what: 'token', token: given });
	});
}

model.onmessage = ({ data }) => {
	switch (data.what) {
	case 'summary': show_summary(data.summary); break;
	case 'audit': show_audit(data.audit); break;
	case 'rows': show_rows(data); break;
	case 'history': show_history(data.history); break;
	case 'trouble': show_trouble(data); break;
	case 'well': trouble(data.of, ''); break;
	}
};
document.addEventListener('visibilitychange', () =>
	model.postMessage({ what: 'pause', on: document.hidden }));

start_theme();
make_parts();
start_token();
model.postMessage({ what: 'start', token: take_token() });
start_tree();
start_history();
})();
