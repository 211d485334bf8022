// links.mjs reads a built site, and finds what leads nowhere or out of the site.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';

/** siteOf returns the files of a directory: a map of paths, which begin with /, to texts. Files that are no text are empty. */
export function siteOf(directory) {
	const files = new Map();
	for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
		if (!entry.isFile()) continue;
		const path = join(entry.parentPath, entry.name);
		const text = /\.(html|css|js|svg|xml|txt|json)$/.test(entry.name) ? readFileSync(path, 'utf8') : '';
		files.set('/' + relative(directory, path).replaceAll('\\', '/'), text);
	}
	return files;
}

/** faults lists every link of the pages to a file or an anchor that the site does not have. The site is below the path base. */
export function faults(files, base = '') {
	const anchors = new Map();
	for (const [path, text] of files) {
		if (!path.endsWith('.html')) continue;
		anchors.set(path, new Set([...text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => decode(id))));
	}
	const found = [];
	for (const [path, text] of files) {
		for (const link of linksOf(path, text)) {
			if (outside(link)) continue;
			if (link.startsWith('/') && !link.startsWith(base + '/')) {
				found.push(`${path}: ${link} leads out of the site`);
				continue;
			}
			const [before, anchor] = (link.startsWith('/') ? link.slice(base.length) : link).split('#');
			const target = before === '' ? path : fileOf(files, posix.dirname(path), before);
			if (target === undefined) found.push(`${path}: ${link} leads to no file`);
			else if (anchor && anchor !== '_top' && !anchors.get(target)?.has(decodeURIComponent(anchor))) {
				found.push(`${path}: ${link} leads to no anchor of ${target}`);
			}
		}
	}
	return found;
}

/** requests lists what a browser would load from other hosts while it shows the pages. */
export function requests(files) {
	const found = [];
	for (const [path, text] of files) {
		const loads = path.endsWith('.html')
			? [...text.matchAll(/<(?:script|img|iframe|source|video|audio|link|object|embed)\s[^>]*?(?:src|href|srcset|data)="([^"]*)"/g)]
			: [];
		const styles = /\.(css|html|svg)$/.test(path) ? [...text.matchAll(/(?:@import\s+|url\()\s*["']?([^"')\s]+)/g)] : [];
		const scripts = path.endsWith('.js') ? [...text.matchAll(/(?:\bimport|\bfetch|\bfrom|importScripts|\bsrc\s*=)\s*\(?\s*["'`]([^"'`]+)/g)] : [];
		for (const [, address] of [...loads, ...styles, ...scripts]) {
			if (outside(address) && !/^(data|blob):/.test(address)) found.push(`${path} loads ${address}`);
		}
	}
	return found;
}

function linksOf(path, text) {
	if (!path.endsWith('.html')) return [];
	return [...text.matchAll(/<(?:a|link|script|img|source)\s[^>]*?(?:href|src)="([^"]*)"/g)].map(([, link]) => decode(link));
}

function outside(link) {
	return /^([a-z]+:|\/\/)/i.test(link);
}

// fileOf returns the path of the file that a server would answer with.
function fileOf(files, from, link) {
	const path = posix.join('/', link.startsWith('/') ? link : posix.join(from, link));
	return [path, posix.join(path, 'index.html'), `${path}.html`].find((one) => files.has(one));
}

function decode(text) {
	return text.replace(/&#(\d+);/g, (_, n) => String.fromCodePoint(n)).replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}
