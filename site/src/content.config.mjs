import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineCollection } from 'astro:content';
import { docsSchema } from '@astrojs/starlight/schema';
import { address, pages, read, repository } from '../pages.mjs';

// documents loads the documents of the repository where they stand. There is no copy of them.
const documents = {
	name: 'documents',
	load: async ({ store, parseData, renderMarkdown, generateDigest, watcher }) => {
		const load = async ({ file, slug }) => {
			const { title, description, body } = read(file);
			const rendered = await renderMarkdown(pictures(file, body), { fileURL: pathToFileURL(join(repository, file)) });
			rendered.html = links(file, rendered.html);
			const data = await parseData({ id: slug, data: { title, description } });
			store.set({ id: slug, data, body, filePath: `../${file}`, digest: generateDigest(body), rendered });
		};
		store.clear();
		for (const page of pages.values()) await load(page);
		watcher?.add([...pages.keys()].map((file) => join(repository, file)));
		watcher?.on('change', (path) => {
			const page = [...pages.values()].find(({ file }) => join(repository, file) === path);
			if (page) return load(page);
		});
	},
};

const base = import.meta.env.BASE_URL.replace(/\/$/, '');

// pictures come from site/public. A path that begins with / is left alone by Astro.
function pictures(file, text) {
	return text.replace(/(!\[[^\]]*\]\()((?:\.\.\/)?images\/[^)\s]*)\)/g, (_, begin, link) => `${begin}${base}${address(file, link)})`);
}

function links(file, html) {
	return html.replace(/(<a\s[^>]*?href=")([^"]*)"/g, (_, begin, link) => {
		const to = address(file, link);
		return `${begin}${to.startsWith('/') ? base : ''}${to}"`;
	});
}

export const collections = { docs: defineCollection({ loader: documents, schema: docsSchema() }) };
