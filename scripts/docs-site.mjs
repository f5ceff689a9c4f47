/**
 * `npm run site`: docs/ as a site in dist/docs, with a search of its own. What it needs is in site/,
 * which is installed the first time. `npm run site -- dev` serves it and follows changes of site/.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const site = join(root, 'site');
const pages = join(site, 'pages');

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: site, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(join(site, 'node_modules'))) run('npm', ['ci']);
// Vue must be found from where the pages are.
rmSync(pages, { recursive: true, force: true });
cpSync(join(root, 'docs'), pages, { recursive: true });
run('npx', ['vitepress', process.argv[2] ?? 'build', '.']);
