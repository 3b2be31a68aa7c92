// SPDX-License-Identifier: GPL-2.0-or-later
//
// page.js PLAYWRIGHT AXE SERVER PICTURES [IMAGES]: what selftests/run page says. With IMAGES only the
// README's pictures are taken, into that folder.
'use strict';

const { execFileSync, spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const readline = require('node:readline');

const [playwright, axe_file, server_file, pictures, images] = process.argv.slice(2);
const { chromium } = require(playwright);
const axe = fs.readFileSync(axe_file, 'utf8');
const token = 'a-token-of-the-test-0123456789abcdef';
const patience = 20000;
const most_ms_of_frame = 50;

let number = 0;
let failed = 0;

function check(what, ok, because = '') {
	++number;
	console.log(`${ok ? 'ok' : 'not ok'} ${number} - ${what}`);
	if (!ok) {
		++failed;
		if (because !== '')
			console.log(`# ${String(because).replaceAll('\n', '\n# ')}`);
	}
}

function same(what, is, wanted) {
	const [a, b] = [JSON.stringify(is), JSON.stringify(wanted)];

	check(what, a === b, `is     ${a}\nwanted ${b}`);
}

// Waits until it is so; what it is at the end.
async function eventually(test, ms = patience) {
	const end = Date.now() + ms;

	for (;;) {
		const is = await test();

		if (is || Date.now() > end)
			return is;
		await new Promise((wake) => setTimeout(wake, 50));
	}
}

class Server {
	static async start(accounts, origin) {
		const server = new Server();

		server.process = spawn(server_file, [String(accounts), token, origin],
			{ stdio: ['pipe', 'pipe', 'inherit'] });
		server.lines = readline.createInterface({ input: server.process.stdout })[Symbol.asyncIterator]();
		server.port = Number((await server.lines.next()).value);
		server.address = `http://127.0.0.1:${server.port}/`;
		return server;
	}

	async say(line) {
		this.process.stdin.write(`${line}\n`);
		return (await this.lines.next()).value;
	}

	async tool(words) {
		return JSON.parse(await this.say(`tool ${words}`));
	}

	async end() {
		this.process.stdin.end();
		await new Promise((done) => this.process.once('exit', done));
	}
}

// What the page shows, read from what is on the screen.
const shown_parts = (page) => page.$$eval('#parts tbody tr', (rows) => Object.fromEntries(
	rows.map((row) => [row.dataset.part, {
		bytes: row.dataset.bytes, text: row.cells[1].textContent, hidden: row.hidden,
	}])));

const shown_rows = (page) => page.$$eval('#rows [role="row"]', (rows) => rows
	.map((row) => ({
		place: Number(row.getAttribute('aria-rowindex')), path: row.dataset.path,
		cells: [...row.children].slice(1).map((cell) => cell.dataset.bytes),
		text: row.children[1].textContent, level: Number(row.getAttribute('aria-level')),
	}))
	.sort((a, b) => a.place - b.place));

// Has the page show what is so now, and nothing older.
async function tick(server, page) {
	await server.say('tick');
	const { time } = await server.tool('audit --machine --json');

	await eventually(async () => await page.getAttribute('#bar', 'data-time') > time);
	const total = (await server.tool('ls --json')).accounts[0].usage_bytes;
	await eventually(async () => (await shown_rows(page))[0]?.cells[0] === String(total));
	await eventually(async () => await page.getAttribute('#state', 'data-time') > time);
}

// As umacct prints sizes; written by itself, so that it can differ.
function size(bytes) {
	for (const [unit, power] of [['TiB', 40n], ['GiB', 30n], ['MiB', 20n], ['KiB', 10n]]) {
		const hundredths = (BigInt(Math.abs(bytes)) * 100n + (1n << power) / 2n) >> power;

		if (hundredths >= 100n)
			return `${bytes < 0 ? '-' : ''}${hundredths / 100n}.` +
				`${String(hundredths % 100n).padStart(2, '0')} ${unit}`;
	}
	return `${bytes} B`;
}

async function figures(server, page) {
	for (let round = 0; round < 3; ++round) {
		await tick(server, page);
		const audit = await server.tool('audit --machine --json');
		const accounts = (await server.tool('ls --json')).accounts;
		const summary = await server.tool('--json');
		const parts = await shown_parts(page);
		const { total_bytes, ...wanted } = audit.machine;
		const sum = Object.values(parts).reduce((all, part) => all + Number(part.bytes), 0);

		same(`round ${round}: each part is the audit's`,
			Object.fromEntries(Object.entries(parts).map(([key, part]) => [`${key}_bytes`, part.bytes])),
			Object.fromEntries(Object.entries(wanted).map(([key, bytes]) => [key, String(bytes)])));
		same(`round ${round}: and reads as umacct prints it`,
			Object.values(parts).map((part) => part.text),
			Object.values(wanted).map((bytes) => (bytes === null ? 'unknown' : size(bytes))));
		same(`round ${round}: the parts add up to MemTotal`, [sum, await page.textContent('#total')],
			[total_bytes, size(total_bytes)]);
		same(`round ${round}: accounts are those of umacct ls`,
			(await shown_rows(page)).map((row) => [row.path, row.level, ...row.cells, row.text]),
			accounts.map((account) => [account.path, account.level + 1,
				...['usage_bytes', 'effective_bytes', 'memory_current_bytes'].map((key) => String(account[key])),
				size(account.usage_bytes)]));
		same(`round ${round}: the driver's memory is the summary's`,
			await page.getAttribute('#state', 'data-bytes'), String(summary.driver_memory_bytes));
	}
	const widths = await page.$$eval('#bar > span', (all) => [
		all.reduce((sum, each) => sum + each.getBoundingClientRect().width, 0),
		document.getElementById('bar').clientWidth]);
	check('the bar is full', Math.abs(widths[0] - widths[1]) < 2, widths);
}

async function history(server, page) {
	const time = Number(await page.getAttribute('#at', 'data-time'));
	const document = await server.tool('history --json --course 400 --since 3600s');
	const at = document.course.times_ms.indexOf(time);
	const legend = await page.$$eval('#legend li', (items) => items.map((item) =>
		[item.dataset.name, item.dataset.bytes, item.lastChild.textContent]));

	check('the last moment is one of umacct history', at >= 0, time);
	same('what was held then is what umacct history says', legend.reverse(),
		document.course.bands.map((band) =>
			[band.name, String(band.bytes[at]), `${band.name} ${size(band.bytes[at])}`]));
	same('and adds up to the machine',
		legend.reduce((sum, [, bytes]) => sum + Number(bytes), 0), document.course.total_bytes);
	same('events are those of umacct history',
		(await page.$$eval('#events tbody tr', (rows) => rows.map((row) => row.cells[1].textContent))).reverse(),
		document.events.map((event) => event.type.replaceAll('_', ' ')));
	same('the table has its accounts', await page.$$eval('#held tbody tr', (rows) =>
		rows.map((row) => [row.cells[0].textContent, row.cells[1].textContent])),
	document.accounts.map((account) => [account.path, size(account.total_bytes)]));

	// The slider, by keys.
	await page.focus('#moment');
	await page.keyboard.press('Home');
	await eventually(async () => Number(await page.getAttribute('#at', 'data-time')) < time - 3000000);
	const said = await page.getAttribute('#moment', 'aria-valuetext');
	check('a screen reader is told what was held at a moment',
		/\d\d:\d\d:\d\d, .*\/models\/vllm \d+\.00 GiB.*free \d+\.\d\d GiB/.test(said), said);
	await page.keyboard.press('End');

	// A drag across the plot, then back.
	const from_to = () => page.textContent('#range');
	const before = await from_to();
	const box = await page.locator('#plot .u-over').boundingBox();
	await page.mouse.move(box.x + box.width * 0.4, box.y + 50);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
	await page.mouse.up();
	const zoomed = await eventually(async () => await from_to() !== before && await from_to());
	const moments = Number(await page.getAttribute('#moment', 'max')) + 1;
	check('a drag zooms', zoomed && moments > 300, `${before}\n${zoomed}\n${moments}`);
	await page.mouse.move(0, 0);
	await eventually(async () => (await page.textContent('#at')).includes('the last'));
	const within = Number(await page.getAttribute('#at', 'data-time'));
	check('to the time that was chosen', within < time - 900000 && within > time - 2000000, within - time);
	let places = 0;
	check('hovering tells of that moment', await eventually(async () => {
		// A pointer moves.
		await page.mouse.move(box.x + box.width * 0.5 + places++ % 3, box.y + 80);
		const hovered = Number(await page.getAttribute('#at', 'data-time'));

		return Math.abs(hovered - (within - 360000)) < 30000;
	}), `${within} ${await page.evaluate(() => document.getElementById('at').textContent)} ${await from_to()}`);
	await page.mouse.dblclick(box.x + box.width * 0.5, box.y + 80);
	// It is hovered over again then.
	check('a double click goes back', await eventually(async () => {
		const hovered = Number(await page.getAttribute('#at', 'data-time'));

		return await page.getAttribute('[data-span="3600"]', 'aria-pressed') === 'true' &&
			hovered > time - 1900000 && hovered < time - 1700000 && await from_to() !== zoomed;
	}), await from_to());
	await page.mouse.move(0, 0);
	await page.click('#wider');
	check('a button zooms out', await eventually(async () => {
		const told = await from_to();

		return told !== before && told !== zoomed;
	}));

	await page.selectOption('#boot', '1');
	const told = await eventually(async () => await page.isVisible('#told') && page.textContent('#told'));
	const wanted = await server.tool('history --json --boot -1');
	check('of a start that ended it says what happened', told && told.startsWith(wanted.end.text), told);
	await page.selectOption('#boot', '0');
	await page.click('text="1 h"');
	await eventually(async () => !await page.isVisible('#told'));
}

async function keyboard(page) {
	const active = () => page.evaluate(() => {
		const row = document.activeElement;

		return [row.getAttribute('role'), row.dataset.path, row.getAttribute('aria-expanded')];
	});
	const press = async (key, path, open) => {
		await page.keyboard.press(key);
		await eventually(async () => {
			const is = await active();

			return is[1] === path && is[2] === open;
		}, 3000);
		same(`${key} leads to ${path}`, await active(), ['row', path, open]);
	};
	const rows = () => page.$$eval('#rows [role="row"]', (all) => all.length);

	await page.focus('#filter');
	await page.keyboard.press('Tab');
	same('Tab leads to the tree', (await active()).slice(0, 2), ['row', '/']);
	await press('ArrowDown', '/models', 'true');
	await press('ArrowLeft', '/models', 'false');
	check('which closes it', await eventually(async () => await rows() === 4), await rows());
	await press('ArrowRight', '/models', 'true');
	await press('ArrowRight', '/models/vllm', null);
	await press('ArrowLeft', '/models', 'true');
	await press('End', '/system.slice/ollama.service', null);
	await press('Home', '/', 'true');
	await press('Enter', '/', 'false');
	await press('Enter', '/', 'true');
	await page.fill('#filter', 'OLLA');
	check('the filter leaves what fits, and what is above it',
		await eventually(async () => await rows() === 3), await rows());
	await page.fill('#filter', '');
	await eventually(async () => await rows() === 6);
	check('focus is seen', await page.evaluate(() => {
		document.getElementById('theme').focus();
		return document.activeElement.matches(':focus-visible') &&
			getComputedStyle(document.activeElement).outlineStyle === 'solid';
	}));
}

async function accessible(page, what) {
	const run = await page.evaluate(`${axe}; axe.run(document, {
		runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })`);

	check(`axe finds nothing: ${what}`, run.violations.length === 0 && run.passes.length > 20,
		JSON.stringify(run.violations.map((each) => [each.id, each.help,
			each.nodes.map((node) => [node.html.slice(0, 200), node.failureSummary])]), null, 1));
}

async function looks(page) {
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		for (const width of [1400, 700, 360]) {
			await page.setViewportSize({ width, height: 900 });
			await eventually(async () => await page.evaluate(() => {
				const canvas = document.querySelector('#plot canvas');

				return canvas && canvas.getBoundingClientRect().width <= document.documentElement.clientWidth;
			}));
			same(`${scheme}, ${width} px: nothing is wider`,
				await page.evaluate(() => document.documentElement.scrollWidth), width);
			await page.screenshot({ path: `${pictures}/${scheme}-${width}.png`, fullPage: true });
			await accessible(page, `${scheme}, ${width} px`);
		}
		same(`${scheme}: the colours are the system's`,
			await page.getAttribute('html', 'data-theme'), scheme);
	}
	await page.setViewportSize({ width: 1400, height: 900 });
	await page.emulateMedia({ colorScheme: 'light' });
	await page.click('#theme');
	await page.click('#theme');
	same('the switch makes it dark', await page.getAttribute('html', 'data-theme'), 'dark');
	await page.reload();
	same('and it stays so', await page.getAttribute('html', 'data-theme'), 'dark');
	await page.click('#theme');
}

async function troubles(server, page) {
	await server.say('break');
	check('it says where the module is gone', await eventually(async () =>
		(await page.textContent('#troubles')).includes('module is not loaded (load it)')));
	await server.say('mend');
	check('and no more when it is back', await eventually(async () =>
		await page.textContent('#troubles') === ''), await page.textContent('#troubles'));
}

async function tokens(server, browser) {
	const page = await browser.newPage();

	await page.goto(`${server.address}#token=wrong-wrong-wrong-wrong-wrong-wrong`);
	check('with a wrong token it asks for one', await eventually(() => page.isVisible('#ask-token')));
	same('and says that it is wrong', await page.textContent('#troubles'), 'That is not the token.');
	check('and shows nothing', await page.textContent('#total') === '' &&
		(await shown_rows(page)).length === 0);
	await page.fill('#token', token);
	await page.keyboard.press('Enter');
	check('with the right one it shows all', await eventually(async () =>
		await page.textContent('#total') !== '' && await page.textContent('#troubles') === '' &&
		!await page.isVisible('#ask-token')));
	await page.close();
}

// What a page of another origin gets, in a browser.
async function strangers(server, browser, own, allowed) {
	const outcome = async (origin, path, headers) => {
		const page = await browser.newPage();

		await page.goto(origin);
		const is = await page.evaluate(async ([address, sent]) => {
			try {
				const answer = await fetch(address, { headers: sent });
				return [answer.status, (await answer.json()).schema];
			} catch (error) {
				return String(error);
			}
		}, [server.address + path, headers]);
		await page.close();
		return is;
	};
	const right = { Authorization: `Bearer ${token}` };

	same('an origin of the list reads figures', await outcome(allowed, 'api/summary', right), [200, 1]);
	same('another does not', await outcome(own, 'api/summary', right), 'TypeError: Failed to fetch');

	const page = await browser.newPage();
	await page.goto(own);
	const framed = await page.evaluate((address) => new Promise((done) => {
		const frame = document.createElement('iframe');

		frame.src = address;
		frame.onload = () => {
			try {
				done(frame.contentDocument === null ? 'foreign' : 'own');
			} catch {
				done('foreign');
			}
		};
		document.body.append(frame);
	}), server.address);
	const inside = page.frames()[1];
	check('nor has it the page in a frame', framed === 'foreign' &&
		await inside.$('#bar').catch(() => null) === null);
	await page.close();

	// A name of somebody else's that leads here.
	const answer = await new Promise((done) => http.get(
		{ port: server.port, host: '127.0.0.1', path: '/api/summary',
			headers: { ...right, Host: 'rebound.example' } },
		(got) => { got.resume(); done(got.statusCode); }));
	same('nor a name that was made to lead here', answer, 421);
}

// With many accounts the page's thread is never long at work. Its processor's time counts, so that
// it does not depend on what else runs here.
async function fluid(browser) {
	const accounts = 10000;
	const server = await Server.start(accounts, 'http://127.0.0.1:1');
	const page = await browser.newPage();

	await page.goto(`${server.address}#token=${token}`);
	check(`${accounts} accounts are there`, await eventually(async () =>
		await page.textContent('#count') === `${accounts} accounts`, 60000),
	await page.textContent('#count'));
	const elements = await page.$$eval('#rows [role="row"]', (rows) => rows.length);
	check('of which few are drawn', elements > 10 && elements < 60, elements);

	const session = await page.context().newCDPSession(page);
	const events = [];
	session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
	await session.send('Tracing.start', {
		transferMode: 'ReportEvents',
		traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline', '__metadata'] },
	});
	await page.locator('#rows').scrollIntoViewIfNeeded();
	const box = await page.locator('#rows').boundingBox();
	const tops = new Set();
	await page.mouse.move(box.x + 200, box.y + 100);
	for (let i = 0; i < 60; ++i) {
		if (i % 10 === 0)
			await server.say('tick');
		await page.mouse.wheel(0, i < 40 ? 4000 : -6000);
		tops.add(await page.evaluate(() => new Promise((done) => requestAnimationFrame(() =>
			done(document.getElementById('rows').scrollTop)))));
	}
	const { accounts: [root] } = await server.tool('ls --json');
	check('and its figures went on', await eventually(async () =>
		await page.getAttribute('#rows [aria-rowindex="2"] .use', 'data-bytes') === String(root.usage_bytes), 60000));
	await page.fill('#filter', 'job-7');
	await eventually(async () => (await page.textContent('#count')).includes(' of '));
	await page.fill('#filter', '');
	await page.focus('#rows [tabindex="0"]');
	for (const key of ['End', 'PageUp', 'PageUp', 'Home', 'ArrowDown'])
		await page.keyboard.press(key);
	await eventually(async () => await page.evaluate(() =>
		document.activeElement.getAttribute('aria-rowindex')) === '3');
	const done = new Promise((finish) => session.once('Tracing.tracingComplete', finish));
	await session.send('Tracing.end');
	await done;

	check('it was scrolled', tops.size > 30, tops.size);
	const main = events.filter((event) => event.name === 'thread_name' &&
		event.args.name === 'CrRendererMain').map((event) => event.tid);
	// Which of them is the page's: it is the one with its scrolling.
	const tasks = events.filter((event) => event.name.endsWith('RunTask') && main.includes(event.tid) &&
		event.tdur !== undefined);
	const longest = tasks.reduce((most, task) => Math.max(most, task.tdur / 1000), 0);
	check(`a frame takes ${most_ms_of_frame} ms at the most: ${longest.toFixed(1)} ms in ${tasks.length} tasks`,
		tasks.length > 500 && longest <= most_ms_of_frame, events.length);
	await page.close();
	await server.end();
}

// --- pictures for the README -----------------------------------------------------------

const terminal_colours = ['#1b1b1b', '#e0655b', '#7bb66b', '#e8a860', '#6f9fd8', '#c58bc5', '#6fb8b8', '#d8d8d8',
	'#8a8a8a', '#ff8a80', '#a5d995', '#ffcb80', '#9cc3f5', '#e3b1e3', '#97d8d8', '#ffffff'];

// Of 256, as terminals have them.
function terminal_colour(number) {
	const level = (n) => (n === 0 ? 0 : 55 + 40 * n);

	if (number < 16)
		return terminal_colours[number];
	if (number >= 232)
		return `rgb(${[0, 0, 0].fill(8 + 10 * (number - 232))})`;
	number -= 16;
	return `rgb(${[Math.floor(number / 36), Math.floor(number / 6) % 6, number % 6].map(level)})`;
}

// What tmux captured, with its escapes, as HTML.
function terminal_html(text) {
	const escaped = (part) => part.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
	let look = {};
	let html = '';

	const obey = (codes) => {
		for (let i = 0; i < codes.length; ++i) {
			const code = codes[i];

			if (code === 0)
				look = {};
			else if (code === 1)
				look.bold = true;
			else if (code === 2)
				look.dim = true;
			else if (code === 22)
				look.bold = look.dim = false;
			else if (code === 4 || code === 24)
				look.underline = code === 4;
			else if (code === 7 || code === 27)
				look.reverse = code === 7;
			else if (code === 39 || code === 49)
				delete look[code === 39 ? 'ink' : 'ground'];
			else if ((code === 38 || code === 48) && codes[i + 1] === 5) {
				look[code === 38 ? 'ink' : 'ground'] = terminal_colour(codes[i + 2]);
				i += 2;
			} else if (code >= 30 && code <= 47)
				look[code < 40 ? 'ink' : 'ground'] = terminal_colour(code % 10);
			else if (code >= 90 && code <= 107)
				look[code < 100 ? 'ink' : 'ground'] = terminal_colour(8 + code % 10);
		}
	};
	for (const part of text.split(/(\x1b\[[0-9;]*m)/)) {
		if (part.startsWith('\x1b')) {
			obey(part.slice(2, -1).split(';').map(Number));
			continue;
		}
		let [ink, ground] = [look.ink ?? '#d8d8d8', look.ground ?? '#1b1b1b'];
		if (look.reverse)
			[ink, ground] = [ground, ink];
		html += `<span style="color:${ink};background:${ground};${look.bold ? 'font-weight:bold;' : ''}` +
			`${look.underline ? 'text-decoration:underline;' : ''}${look.dim ? 'opacity:.6' : ''}">${escaped(part)}</span>`;
	}
	return '<!doctype html><style>body{margin:0;background:#1b1b1b}pre{margin:0;padding:12px;' +
		`display:inline-block;font:14px/18px "DejaVu Sans Mono",monospace}</style><pre>${html}</pre>`;
}

/// Takes a picture of a terminal in which the tool runs, once it shows all of the words.
async function picture_of_terminal(browser, command, rows, words, file) {
	const tmux = (...words) => execFileSync('tmux', ['-L', `umacct-${process.pid}`, '-f', '/dev/null', ...words],
		{ encoding: 'utf8', env: { ...process.env, LC_ALL: 'C.UTF-8' } });
	const page = await browser.newPage({ viewport: { width: 1000, height: 400 } });

	tmux('new-session', '-d', '-x', '104', '-y', `${rows}`, `${server_file} ${command}; sleep 100`);
	try {
		for (const each of words) {
			if (!await eventually(() => tmux('capture-pane', '-p').includes(each)))
				throw new Error(`${command} shows nothing:\n${tmux('capture-pane', '-p')}`);
		}
		await page.setContent(terminal_html(tmux('capture-pane', '-e', '-p').trimEnd()));
		await page.locator('pre').screenshot({ path: file });
	} finally {
		tmux('kill-server');
		await page.close();
	}
}

async function pictures_of_page(page) {
	for (const scheme of ['dark', 'light']) {
		await page.emulateMedia({ colorScheme: scheme });
		for (const width of [360, 1100]) {
			await page.setViewportSize({ width, height: 800 });
			await eventually(async () => await page.evaluate((most) =>
				document.querySelector('#plot canvas').getBoundingClientRect().width < most, width));
			await page.screenshot({ path: `${pictures}/${scheme}-${width}.png`, fullPage: true });
		}
	}
	await page.screenshot({ path: `${images}/page.png`, fullPage: true });
}

function stranger() {
	return new Promise((done) => {
		const server = http.createServer((_, answer) => {
			answer.setHeader('Content-Type', 'text/html');
			answer.end('<!doctype html><title>another</title><body></body>');
		});

		server.listen(0, '127.0.0.1', () => done(server));
	});
}

async function main() {
	const friend = await stranger();
	const other = await stranger();
	const origin = (server) => `http://127.0.0.1:${server.address().port}`;
	const server = await Server.start(6, origin(friend));
	const browser = await chromium.launch({
		executablePath: process.env.UMACCT_CHROMIUM ?? '/usr/bin/chromium',
		// Its sandbox takes user namespaces, which not every machine gives; all pages are ours.
		args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
	});
	const context = await browser.newContext({
		viewport: { width: 1400, height: 900 }, timezoneId: 'UTC', colorScheme: 'light',
	});
	const page = await context.newPage();
	const asked = new Set();
	const said = [];
	page.on('request', (request) => asked.add(new URL(request.url()).origin));
	page.on('console', (message) => said.push(message.text()));
	page.on('pageerror', (error) => said.push(error.stack));

	try {
		await page.goto(`${server.address}#token=${token}`);
		await eventually(async () => await page.textContent('#total') !== '' &&
			await page.getAttribute('#at', 'data-time') !== null);
		if (images) {
			await pictures_of_page(page);
			// The second refresh has rates.
			await picture_of_terminal(browser, 'top', 16, ['vllm', '/s'], `${images}/top.png`);
			await picture_of_terminal(browser, 'summary', 44, ['vllm', 'Charging'],
				`${pictures}/umacct.png`);
			return;
		}
		same('the address no longer has the token', page.url(), server.address);
		await figures(server, page);
		await history(server, page);
		await keyboard(page);
		await looks(page);
		await troubles(server, page);
		same('nobody else was asked for anything', [...asked], [server.address.slice(0, -1)]);
		// What it was told while the module was gone is in the console, too.
		same('the console has no complaint', said.filter((text) => !text.includes('503')), []);
		await tokens(server, browser);
		await strangers(server, browser, origin(other), origin(friend));
		await fluid(browser);
	} finally {
		await browser.close();
		await server.end();
		friend.close();
		other.close();
	}
	console.log(`${number - failed} passed, ${failed} failed`);
	process.exitCode = failed === 0 ? 0 : 1;
}

main().catch((error) => {
	console.log(`not ok ${number + 1} - ${error.stack.replaceAll('\n', '\n# ')}`);
	console.log(`${number - failed} passed, ${failed + 1} failed`);
	process.exitCode = 1;
});
