import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'astro/config';
import starlight from '@astrojs/starlight';
import { missing, repository, repositoryAddress, sidebar } from './pages.mjs';

// pictures makes the pictures of the documents files of the site. public/images is ignored by git.
const pictures = {
	name: 'pictures',
	hooks: {
		'astro:config:setup': ({ logger }) => {
			const from = join(repository, 'docs/images');
			const to = join(repository, 'site/public/images');
			rmSync(to, { recursive: true, force: true });
			if (existsSync(from)) cpSync(from, to, { recursive: true });
			for (const file of missing) logger.warn(`${file} stands in pages.mjs and does not exist`);
		},
	},
};

export default defineConfig({
	base: process.env.SITE_BASE ?? '/',
	integrations: [
		pictures,
		starlight({
			title: 'ordered-dispatcher',
			description: 'Sends the rows of a PostgreSQL table to another system: strictly in order, with none missing.',
			favicon: '/favicon.svg',
			social: [{ icon: 'github', label: 'GitHub', href: repositoryAddress }],
			sidebar,
			customCss: ['./src/site.css'],
			markdown: { processedDirs: ['../docs'] },
			lastUpdated: false,
			credits: false,
		}),
	],
});
