/**
 * Where the built command line is. `npm run build` gathers it into a bundle, for Node takes longer
 * to find and read a thousand small files than to run them; `tsc --build` alone does not. So the
 * bundle carries a note of what it was made from, and counts only as long as that is unchanged.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';

const home = new URL('../', import.meta.url);

/** Rebuilt whenever a file of its package was compiled. */
const compilerNote = 'tsconfig.tsbuildinfo';

/** What a bundle made now would be made from: the packages, their libraries, the way to make it. */
export function sourcesOf(root = home) {
  const packages = readdirSync(new URL('packages/', root)).sort();
  const files = packages.map((name) => `packages/${name}/${compilerNote}`);
  const traces = [...files, 'scripts/bundle.mjs'].map((file) => `${file} ${traceOf(root, file)}\n`);
  // Its time means nothing: npm writes it again as it was.
  const { size } = statSync(new URL('package-lock.json', root));
  return `${traces.join('')}package-lock.json ${size}\n`;
}

/** The module to run: of the bundle, or of the packages where there is none that is up to date. */
export function builtCtl(root = home) {
  const note = noteOf(root);
  if (note === undefined || note.sources !== sourcesOf(root)) {
    return new URL('packages/ctl/dist/main.js', root);
  }
  return new URL(`dist/ctl/${note.folder}/main.js`, root);
}

/** The newest bundle: its folder, and what it was made from. */
export function noteOf(root = home) {
  try {
    return JSON.parse(readFileSync(new URL('dist/ctl/newest.json', root), 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function traceOf(root, file) {
  const found = statSync(new URL(file, root), { throwIfNoEntry: false });
  // Whole seconds: images and archives keep no more of it.
  return found ? `${found.size} ${Math.floor(found.mtimeMs / 1_000)}` : 'absent';
}
