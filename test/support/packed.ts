import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { demandInstalled } from './installed.js';
import { root } from './markdown.js';

interface Manifest {
  name: string;
  version: string;
  private?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

export function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** The folders of the packages that are published, by name of the package. */
export function publishedPackages(): Map<string, string> {
  const folders = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name));
  return new Map(
    folders.flatMap((folder) => {
      const manifest = manifestIn(folder);
      return manifest.private === true ? [] : [[manifest.name, folder]];
    }),
  );
}

/** Packs the published packages by a release dry run and returns the tarball of each. */
export function packAll(destination: string): Map<string, string> {
  demandInstalled();
  const args = ['scripts/release.mjs', '--dry-run', '--out', destination];
  execFileSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
  return new Map(
    Array.from(publishedPackages(), ([name, folder]) => {
      const { version } = manifestIn(folder);
      const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
      return [name, join(destination, file)];
    }),
  );
}
