// The tests of the built site: npm run build, then npm test. See make docs.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { faults, requests, siteOf } from './links.mjs';
import { pages, repository } from './pages.mjs';

const dist = fileURLToPath(new URL('./dist', import.meta.url));
const site = siteOf(dist);

test('every link and every anchor of the site leads somewhere', () => {
	assert.deepEqual(faults(site, (process.env.SITE_BASE ?? '').replace(/\/$/, '')), []);
	assert.ok(site.size > pages.size);
});

test('the pages load nothing from other hosts', () => {
	assert.deepEqual(requests(site), []);
});

test('every document of the list is a page with its text', () => {
	for (const { file, slug } of pages.values()) {
		const page = site.get(slug === 'index' ? '/index.html' : `/${slug}/index.html`);
		assert.ok(page, `${file} has no page`);
		const headings = readFileSync(join(repository, file), 'utf8').replace(/```[^]*?```/g, '').match(/^## .*$/gm) ?? [];
		assert.equal((page.match(/<h2 id="(?!starlight__)/g) ?? []).length, headings.length, `${file}: not every heading is on its page`);
	}
});

test('the search has every page', () => {
	const entry = JSON.parse(readFileSync(join(dist, 'pagefind/pagefind-entry.json'), 'utf8'));
	assert.equal(entry.languages.en.page_count, pages.size);
	assert.ok(readdirSync(join(dist, 'pagefind/fragment')).length >= pages.size);
});

test('a link that leads nowhere is found', () => {
	const broken = new Map([
		['/index.html', '<a href="/a/#there">x</a> <a href="/a/#gone">x</a> <a href="b.html">x</a> <img src="/no.svg"> <a href="https://example.org/">x</a>'],
		['/a/index.html', '<h2 id="there">x</h2> <a href="../#top">x</a>'],
	]);
	assert.deepEqual(faults(broken), [
		'/index.html: /a/#gone leads to no anchor of /a/index.html',
		'/index.html: b.html leads to no file',
		'/index.html: /no.svg leads to no file',
		'/a/index.html: ../#top leads to no anchor of /index.html',
	]);
});

test('a request to another host is found', () => {
	const talking = new Map([
		['/index.html', '<link rel="stylesheet" href="https://fonts.example/a.css"><a href="https://fine.example/">x</a><script src="//cdn.example/x.js"></script>'],
		['/a.css', '@import "https://b.example/b.css"; a { background: url(https://c.example/c.png) } b { background: url(data:x) }'],
		['/a.js', 'import("https://d.example/d.js"); import("./e.js")'],
	]);
	assert.deepEqual(requests(talking), [
		'/index.html loads https://fonts.example/a.css',
		'/index.html loads //cdn.example/x.js',
		'/a.css loads https://b.example/b.css',
		'/a.css loads https://c.example/c.png',
		'/a.js loads https://d.example/d.js',
	]);
});
