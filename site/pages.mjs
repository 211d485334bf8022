// pages.mjs lists the pages of the site: which document of the repository each one shows, under which title, in which group of the
// side bar. The first page is the home page. A document that does not stand here fails TestSite_HasEveryDocument in proof/reference.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('..', import.meta.url));
export const repositoryAddress = 'https://github.com/ordered-dispatcher/ordered-dispatcher';

const groups = [
	['Start', [
		['docs/README.md', 'Overview'],
		['docs/tutorial.md', 'Ten-minute tutorial'],
		['docs/install.md', 'Install'],
		['docs/quickstart.md', 'Quickstart for each sink'],
		['docs/choose-a-source.md', 'Choose a source'],
	]],
	['Concepts', [
		['docs/concepts.md', 'How it works'],
		['docs/guarantees.md', 'Guarantees'],
		['docs/architecture.md', 'Architecture'],
	]],
	['How to', [
		['docs/producers.md', 'Write records'],
		['docs/read-models.md', 'Read models'],
		['docs/tenants.md', 'Tenants'],
		['docs/deploys.md', 'Rolling deployments'],
		['docs/retention.md', 'Retention'],
		['docs/moving.md', 'Move from another tool'],
		['docs/upgrading.md', 'Upgrade'],
	]],
	['Operate', [
		['docs/runbook.md', 'Runbook'],
		['docs/operations.md', 'Operations'],
		['docs/notify.md', 'Notifications'],
		['docs/console.md', 'Console'],
		['docs/recovery.md', 'Failover and recovery'],
		['docs/failures.md', 'Failures'],
	]],
	['Sinks', [
		['docs/sinks/webhook.md', 'webhook'],
		['docs/sinks/rabbitmq.md', 'rabbitmq'],
		['docs/sinks/kafka.md', 'kafka'],
		['docs/sinks/nats.md', 'nats'],
		['docs/sinks/pubsub.md', 'pubsub'],
		['docs/sinks/redis.md', 'redis'],
		['docs/sinks/sql.md', 'sql'],
		['docs/sinks/exec.md', 'exec'],
		['docs/sinks/stdout.md', 'stdout'],
		['docs/sinks/watermill.md', 'watermill'],
	]],
	['Reference', [
		['docs/configuration.md', 'Configuration'],
		['docs/commands.md', 'Commands'],
		['docs/wire.md', 'On the wire'],
		['docs/reliability.md', 'Reliability'],
		['docs/benchmarks.md', 'Benchmarks'],
	]],
];

const known = groups.flatMap(([, pages]) => pages);

/** missing lists the files that stand above and do not exist. */
export const missing = known.map(([file]) => file).filter((file) => !existsSync(join(repository, file)));

/** pages lists what the site shows, by the file in the repository. */
export const pages = new Map(
	known
		.filter(([file]) => !missing.includes(file))
		.map(([file, title]) => [file, { file, title, slug: slugOf(file) }]),
);

/** sidebar is the list of groups as Starlight wants it. */
export const sidebar = groups.map(([label, of]) => ({
	label,
	items: of
		.filter(([file]) => pages.has(file))
		.map(([file, title]) => (slugOf(file) === 'index' ? { label: title, link: '/' } : { label: title, slug: slugOf(file) })),
}));

function slugOf(file) {
	const path = file.replace(/^docs\//, '').replace(/\.md$/, '');
	return path === 'README' ? 'index' : path;
}

/** read returns the heading of a document, its first paragraph as plain text, and its Markdown without the heading. */
export function read(file) {
	const text = readFileSync(join(repository, file), 'utf8');
	const [, title, body] = /^# (.*)\n([^]*)$/.exec(text) ?? fail(`${file} does not begin with a heading "# …"`);
	const first = body.trim().split(/\n\s*\n/)[0];
	const description = first.replace(/\s+/g, ' ').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
	return { title: title.replaceAll('`', ''), description, body: body.replace(/^<!-- .* -->$/gm, '') };
}

/**
 * address returns where a link of a document leads on the site: to another page, to a picture, or to the repository.
 * Links with a scheme and absolute paths stay as they are.
 */
export function address(file, link) {
	if (/^[a-z]+:/.test(link) || link.startsWith('/')) return link;
	const [path, anchor] = link.split('#');
	const target = path === '' ? file : posix.normalize(posix.join(dirname(file), path)).replace(/\/$/, '');
	const page = pages.get(target);
	if (page) {
		const top = anchor && anchor === anchorOf(read(target).title); // the heading of a page is above its text
		return (path === '' ? '' : page.slug === 'index' ? '/' : `/${page.slug}/`) + (top ? '#_top' : anchor ? `#${anchor}` : '');
	}
	if (target.startsWith('docs/images/')) return target.replace('docs/', '/');
	if (!existsSync(join(repository, target))) fail(`${file}: the link ${link} leads to no file`);
	const kind = /\.[a-z]+$/.test(target) ? 'blob' : 'tree';
	return `${repositoryAddress}/${kind}/main/${target}${anchor ? `#${anchor}` : ''}`;
}

function anchorOf(heading) {
	return heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-');
}

function fail(message) {
	throw new Error(message);
}
