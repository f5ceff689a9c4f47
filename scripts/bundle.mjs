/**
 * Gathers the compiled command line, servers included, into dist/ctl: a file for each part that is
 * loaded on its own, instead of one for each module. Does nothing when nothing was compiled since.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { noteOf, sourcesOf } from './built-ctl.mjs';

/**
 * Not bundled: packages with a binary, packages that read files beside them or evaluate code that
 * names their own variables, and what ink loads only for a developer of ink.
 */
const apart = [
  'msgpackr-extract',
  'ordered-binary',
  'pino-pretty',
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'react-devtools-core',
];

/** The newest, and those before it: a server that runs loads some of its parts late. */
const keptBundles = 3;

/** Resolves when dist/ctl is what the packages are. */
export async function bundleCtl(root) {
  const home = join(root, 'dist', 'ctl');
  const rootUrl = pathToFileURL(`${root}/`);
  const sources = sourcesOf(rootUrl);
  const libraries = hashOf(readFileSync(join(root, 'package-lock.json')));
  const folder = hashOf(sources + libraries).slice(0, 12);
  if (noteOf(rootUrl)?.folder === folder && existsSync(join(home, folder, 'main.js'))) return false;
  const place = join(home, folder);
  if (!existsSync(join(place, 'main.js'))) rmSync(place, { recursive: true, force: true });
  // Apart first: two builds at a time must not mix, and whoever reads sees a whole one.
  const fresh = `${place}.${process.pid}`;
  const input = { main: join(root, 'packages', 'ctl', 'dist', 'main.js') };
  await writeBundle({ input, folder: fresh, plugins: [ownPlaces(place)], sourcemap: true });
  putInPlace(fresh, place);
  const note = join(home, 'newest.json');
  writeFileSync(`${note}.${process.pid}`, JSON.stringify({ folder, sources }));
  renameSync(`${note}.${process.pid}`, note);
  forgetOldest(home);
  return true;
}

function hashOf(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

function putInPlace(fresh, place) {
  try {
    renameSync(fresh, place);
  } catch (error) {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    // Made from the same, so it is the same; and a server may be running from it.
    rmSync(fresh, { recursive: true });
  }
}

/** Bundles the entries of `input` into `folder`. */
export async function writeBundle({ input, folder, plugins, sourcemap }) {
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    input,
    platform: 'node',
    external: [...apart, /^node:/],
    plugins: [...plugins, productionReact()],
    onwarn: (warning) => process.stderr.write(`${warning.message}\n`),
  });
  mkdirSync(folder, { recursive: true });
  await bundle.write({
    dir: folder,
    format: 'esm',
    sourcemap,
    sourcemapExcludeSources: true,
  });
  await bundle.close();
}

/** React's development build is slower, larger, and fills Node's performance timeline. */
function productionReact() {
  return {
    name: 'production-react',
    transform(code, id) {
      if (!/node_modules\/(react|react-reconciler|scheduler|ink)\//.test(id)) return undefined;
      if (!code.includes('process.env.NODE_ENV')) return undefined;
      return { code: code.replaceAll('process.env.NODE_ENV', '"production"'), map: null };
    },
  };
}

/**
 * Modules that look for a file beside them get their original location, relative to `place`;
 * `rename` changes that relative path.
 */
export function ownPlaces(place, rename = (path) => path) {
  return {
    name: 'own-places',
    transform(code, id) {
      // A module of the bundler itself has no place.
      if (id.startsWith('\0') || !code.includes('import.meta.url')) return undefined;
      const path = JSON.stringify(rename(relative(place, id).replaceAll('\\', '/')));
      const own = `new URL(${path}, import.meta.url).href`;
      // No line moves, so the map that is there stays right.
      return { code: code.replaceAll('import.meta.url', own), map: null };
    },
  };
}

function forgetOldest(home) {
  const folders = readdirSync(home, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ name, at: statSync(join(home, name)).mtimeMs }))
    .sort((a, b) => b.at - a.at);
  for (const { name } of folders.slice(keptBundles)) {
    rmSync(join(home, name), { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const isNew = await bundleCtl(fileURLToPath(new URL('..', import.meta.url)));
  process.stderr.write(isNew ? 'Bundled the command line.\n' : '');
}
