import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './markdown.js';

interface Manifest {
  name: string;
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

/** Packs the published packages and returns the tarball of each. */
export function packAll(destination: string): Map<string, string> {
  const names = [...publishedPackages().keys()];
  const output = execFileSync(
    'npm',
    [
      'pack',
      '--json',
      '--silent',
      ...names.flatMap((name) => ['-w', name]),
      '--pack-destination',
      destination,
    ],
    { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 },
  );
  const packed = JSON.parse(output) as { name: string; filename: string }[] | PackedByName;
  const list = Array.isArray(packed) ? packed : Object.values(packed);
  return new Map(list.map(({ name, filename }) => [name, join(destination, filename)]));
}

type PackedByName = Record<string, { name: string; filename: string }>;
