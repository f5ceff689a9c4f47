import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/* As much of the image and the service as can be tried without an engine that runs them. */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (file: string) => readFileSync(join(root, 'packaging', file), 'utf8');

const instructions = read('Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => {
    const [, name = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    return { name, rest };
  });
const all = (name: string) =>
  instructions.filter((one) => one.name === name).map(({ rest }) => rest);

/** A command of the image as it runs here: on this Node, at this root. */
function asHere(words: readonly string[]): string[] {
  return words.map((word) => word.replace('/opt/millrace', root));
}

test('everything that the image copies is there', () => {
  const sources = all('COPY')
    .filter((rest) => !rest.startsWith('--from='))
    .flatMap((rest) => rest.split(/\s+/).slice(0, -1));
  expect(sources.length).toBeGreaterThan(3);
  expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([]);
});

test('the scripts that the image runs are there', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const wanted = all('RUN').flatMap((rest) => /npm run (\S+)/.exec(rest)?.[1] ?? []);
  expect(wanted).toEqual(['build']);
  for (const script of wanted) expect(Object.keys(scripts)).toContain(script);
});

test.each(['CMD', 'HEALTHCHECK'])('ctl takes the words of %s', (name) => {
  const entry = JSON.parse(all('ENTRYPOINT')[0]!) as string[];
  const words = JSON.parse(/\[.*\]/.exec(all(name)[0]!)![0]) as string[];
  const [, program, ...args] = name === 'CMD' ? [...entry, ...words] : words;
  const run = spawnSync(process.execPath, [...asHere([program!]), ...args, '--help'], {
    encoding: 'utf8',
  });
  expect(run.status, run.stderr).toBe(0);
});

test('the service runs a command that ctl takes', () => {
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(read('millrace.service')) ?? [];
  const [, program, ...args] = command.split(' ');
  const run = spawnSync(process.execPath, [...asHere([program!]), ...args, '--help'], {
    encoding: 'utf8',
  });
  expect(run.status, run.stderr).toBe(0);
});
