/**
 * Assembles packages/millrace/dist: the command line and all servers as one bundle, and the files
 * that they read at run time. `npm pack -w millrace` runs it. Needs a build (`npm run build`).
 */
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ownPlaces, writeBundle } from './bundle.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const home = join(root, 'packages', 'millrace');
const dist = join(home, 'dist');

/** Read at run time from the directory of their package. */
const files = [
  'packages/ctl/package.json',
  'packages/daemon/package.json',
  'packages/db/package.json',
  'packages/queue/package.json',
  'packages/contract/queue.openapi.yaml',
  'packages/contract/daemon.openapi.yaml',
  'packages/contract/src/generated/db.openapi.yaml',
  'packages/contract/src/generated/db.binpb',
  ...['queue', 'daemon', 'db'].map(
    (name) => `packages/contract/src/generated/${name}.openapi.json`,
  ),
  'packages/dashboard/dist/site',
  'packages/kit/dist/assets',
  'packaging',
  // Its name leads to the package with the binary of the platform.
  'node_modules/lmdb/package.json',
];

/** npm leaves directories of this name out of a package. */
const withoutModules = (path) => path.replace('node_modules/', 'lib/');

/** Paths that packages resolve through node_modules, which the published package does not have. */
const replacements = [
  [
    "dirname(resolve('@millrace/dashboard/package.json')), 'dist', 'site'",
    "dirname(createRequire(import.meta.filename).resolve('../packages/dashboard/dist/site/index.html'))",
  ],
  [
    "fileURLToPath(new URL('./main.js', import.meta.url))",
    '`${import.meta.dirname}/fake-agent.js`',
  ],
  [
    "fileURLToPath(new URL('./acp-main.js', import.meta.url))",
    '`${import.meta.dirname}/acp-host.js`',
  ],
  [
    "fileURLToPath(new URL('./permission-main.js', import.meta.url))",
    '`${import.meta.dirname}/permission-tool.js`',
  ],
];

/** Applies each replacement once; a source that changed must not go unnoticed. */
function replacePaths() {
  const open = new Set(replacements);
  return {
    name: 'replace-paths',
    transform(code) {
      const found = replacements.find(([from]) => code.includes(from));
      if (!found) return undefined;
      open.delete(found);
      return { code: code.replace(...found), map: null };
    },
    buildEnd() {
      for (const [from] of open) throw new Error(`assemble: no module contains ${from}`);
    },
  };
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
for (const file of files) {
  cpSync(join(root, file), join(dist, withoutModules(file)), { recursive: true });
}
cpSync(join(root, 'LICENSE'), join(home, 'LICENSE'));
await writeBundle({
  input: {
    main: join(root, 'packages', 'ctl', 'dist', 'main.js'),
    'fake-agent': join(root, 'packages', 'daemon', 'dist', 'fake-agent', 'main.js'),
    'acp-host': join(root, 'packages', 'daemon', 'dist', 'acp-host', 'acp-main.js'),
    'permission-tool': join(
      root,
      'packages',
      'daemon',
      'dist',
      'permission-tool',
      'permission-main.js',
    ),
  },
  folder: join(dist, 'ctl'),
  // Chunks in dist/ctl find dist/packages as modules find packages/ from a folder in the root.
  plugins: [replacePaths(), ownPlaces(join(root, 'ctl'), withoutModules)],
  sourcemap: false,
});
