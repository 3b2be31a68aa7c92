// SPDX-License-Identifier: GPL-2.0-or-later
// Asks for the figures and keeps them, beside the thread that draws: what that gets is only what
// is on the screen, so that it never has much to do at a time.
'use strict';

const poll_ms = 1000; // how often, where an answer takes no time
const most_share = 5; // share of the time for requests, at most a fifth
const patience_ms = 15000;

let token = '';
let paused = false;
let accounts = []; // tree in the order of the answer, parents first
let nodes = []; // each is { account, depth, parent, children, at, of }
let visible = []; // indices of those that are shown
let places = new Map(); // visible nodes, by id
const closed = new Set();
let filter = '';
let scale = 1;
let view = { first: 0, count: 0 };
let active = null; // the id of the row that has the focus, or would
let course = null; // the shown history: { boot, since, until, points }
let courses = 0; // number of requests

class Refused extends Error {
	constructor(answer, message) {
		super(message);
		this.status = answer.status;
		this.wait_ms = 1000 * Number(answer.headers.get('Retry-After'));
	}
}

async function ask(path) {
	const headers = token === '' ? {} : { Authorization: `Bearer ${token}` };
	const answer = await fetch(path, {
		headers, cache: 'no-store', credentials: 'omit', redirect: 'error',
		signal: AbortSignal.timeout(patience_ms),
	});
	const text = await answer.text();
	let json = null;

	try {
		json = JSON.parse(text);
	} catch {
		throw new Refused(answer, text.trim() || `answered with ${answer.status}`);
	}
	if (!answer.ok)
		throw new Refused(answer, json.hint ? `${json.error} (${json.hint})` : json.error);
	return json;
}

// --- the tree of accounts ---------------------------------------------------------

function name_of(account, depth) {
	const owner = account.owner;

	if (owner !== null && owner.name !== null && owner.kind !== 'unit')
		return owner.name;
	return depth === 0 ? account.path : account.path.slice(account.path.lastIndexOf('/') + 1);
}

function take_accounts(list) {
	const by_id = new Map();

	accounts = list;
	scale = 1;
	nodes = list.map((account, at) => {
		const parent = account.parent_id === null ? undefined : by_id.get(account.parent_id);
		const node = { account, parent, depth: 0, children: [], at: 0, shown: true };

		if (parent !== undefined) {
			node.depth = parent.depth + 1;
			parent.children.push(node);
		}
		node.name = name_of(account, node.depth);
		by_id.set(account.id, node);
		scale = Math.max(scale, account.usage_bytes, account.hard_bytes ?? 0);
		node.index = at;
		return node;
	});
	for (const id of closed) {
		if (!by_id.has(id))
			closed.delete(id);
	}
	lay_out();
}

// Selects the visible nodes: those that match the filter, and their ancestors; without a filter,
// all except those below a closed one.
function lay_out() {
	const wanted = filter.toLowerCase();

	if (wanted !== '') {
		for (const node of nodes)
			node.shown = false;
		for (const node of nodes) {
			if (!node.name.toLowerCase().includes(wanted) &&
				!node.account.path.toLowerCase().includes(wanted))
				continue;
			for (let each = node; each !== undefined && !each.shown; each = each.parent)
				each.shown = true;
		}
	}
	visible = [];
	places = new Map();
	const put = (siblings) => {
		const shown = wanted === '' ? siblings : siblings.filter((node) => node.shown);

		shown.forEach((node, i) => {
			node.at = i + 1;
			node.of = shown.length;
			places.set(node.account.id, visible.length);
			visible.push(node);
			if (wanted !== '' || !closed.has(node.account.id))
				put(node.children);
		});
	};
	put(nodes.filter((node) => node.parent === undefined));
	if (active === null || !places.has(active))
		active = visible.length > 0 ? visible[0].account.id : null;
}

function row_of(place) {
	const node = visible[place];
	const account = node.account;

	return {
		id: account.id, place, name: node.name, path: account.path, depth: node.depth,
		at: node.at, of: node.of,
		open: node.children.length === 0 ? null : filter !== '' || !closed.has(account.id),
		usage: account.usage_bytes, uncharged: account.uncharged_bytes, hard: account.hard_bytes,
		limit: account.effective_bytes, current: account.memory_current_bytes,
		refusals: account.refusals,
	};
}

function tell_rows(focus) {
	const end = Math.min(visible.length, view.first + view.count);
	const at = active === null ? -1 : places.get(active);
	const rows = [];

	for (let place = Math.max(0, view.first); place < end; ++place)
		rows.push(row_of(place));
	// The one with the focus is there wherever it was scrolled to.
	if (at >= 0 && (at < view.first || at >= end))
		rows.push(row_of(at));
	postMessage({
		what: 'rows', rows, scale, active, focus: focus === true ? at : null,
		shown: visible.length, all: accounts.length,
	});
}

function move(to) {
	const here = active === null ? undefined : places.get(active);
	let place = here ?? 0;

	if (visible.length === 0)
		return;
	const node = visible[place];
	if (to.by !== undefined)
		place = here === undefined ? 0 : here + to.by;
	else if (to.end !== undefined)
		place = to.end ? visible.length - 1 : 0;
	else if (to.id !== undefined)
		place = places.get(to.id) ?? place;
	else if (to.right && node.children.length > 0 && closed.has(node.account.id)) {
		closed.delete(node.account.id);
		lay_out();
	} else if (to.right && node.children.length > 0)
		place += 1;
	else if (to.left && node.children.length > 0 && !closed.has(node.account.id) && filter === '') {
		closed.add(node.account.id);
		lay_out();
	} else if (to.left && node.parent !== undefined)
		place = places.get(node.parent.account.id);
	place = Math.max(0, Math.min(visible.length - 1, place));
	active = visible[place].account.id;
	tell_rows(true);
}

function toggle(id) {
	if (!closed.delete(id))
		closed.add(id);
	active = id;
	lay_out();
	tell_rows(true);
}

// --- the history ------------------------------------------------------------------

async function ask_course() {
	if (course === null)
		return;
	const number = ++courses;
	const query = new URLSearchParams();

	for (const [key, value] of Object.entries(course))
		query.set(key, value);
	try {
		const history = await ask(`api/history?${query}`);

		// Another time was chosen meanwhile, perhaps.
		if (number === courses)
			postMessage({ what: 'history', history });
	} catch (error) {
		if (number !== courses)
			return;
		tell_trouble('history', error);
		// The exporter has had much to do. A chosen time is asked for once only.
		if (error.wait_ms > 0)
			setTimeout(() => number === courses && ask_course(), error.wait_ms);
	}
}

// --- again and again ----------------------------------------------------------------

function tell_trouble(of, error) {
	postMessage({ what: 'trouble', of, status: error.status ?? 0, text: error.message,
		with_token: token !== '' });
}

async function repeat(of, each) {
	for (;;) {
		const begin = performance.now();

		if (!paused) {
			try {
				await each();
				postMessage({ what: 'well', of });
			} catch (error) {
				tell_trouble(of, error);
			}
		}
		const took = performance.now() - begin;
		await new Promise((wake) => setTimeout(wake, Math.max(poll_ms - took, most_share * took)));
	}
}

const tasks = {
	start(message) {
		token = message.token;
		repeat('summary', async () =>
			postMessage({ what: 'summary', summary: await ask('api/summary') }));
		repeat('audit', async () => postMessage({ what: 'audit', audit: await ask('api/audit') }));
		repeat('accounts', async () => {
			take_accounts((await ask('api/accounts')).accounts);
			tell_rows();
		});
	},
	token(message) {
		token = message.token;
		ask_course();
	},
	pause(message) {
		paused = message.on;
	},
	view(message) {
		view = message.view;
		tell_rows();
	},
	filter(message) {
		filter = message.text;
		lay_out();
		tell_rows();
	},
	move(message) {
		move(message.to);
	},
	toggle(message) {
		toggle(message.id);
	},
	course(message) {
		course = message.course;
		ask_course();
	},
};

onmessage = (event) => tasks[event.data.what](event.data);
