import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exceptionOf } from './support/exceptions.js';
import { demandInstalled } from './support/installed.js';
import { commandsOf, pagesWithCommands, root } from './support/markdown.js';
import { isOfRepository, pagesReadFirst } from './support/pages.js';
import { Sandbox } from './support/sandbox.js';

/* Every `npm`, `npx` and `node` command of every page, once, at the root of the repository. */

let sandbox: Sandbox;
beforeAll(async () => {
  demandInstalled();
  sandbox = await Sandbox.make();
});
afterAll(() => sandbox.end());

/** `npm test` runs those of the pages read first, and itself. */
const isReadFirst = (command: string) =>
  command === 'npm test' || pagesReadFirst.some((page) => commandsOf(page).includes(command));
const commands = [...new Set(pagesWithCommands.flatMap((file) => commandsOf(file)))]
  .filter(isOfRepository)
  .map((command) => exceptionOf(command) ?? { command, instead: command })
  .flatMap(({ command, instead }) => (instead ? [{ command, instead }] : []))
  // It formats all there is, so it gets a place of its own.
  .filter(({ command }) => command !== 'npm run format');

for (const { command, instead } of commands) {
  test(command, isReadFirst(command) ? {} : { tags: 'campaign-docs' }, async () => {
    const at = instead.startsWith('node ') ? aside() : root;
    const { code, out } = await sandbox.run(instead, { at });
    expect(code, out).toBe(0);
  });
}

test('npm run format', { tags: 'campaign-docs' }, async () => {
  const folder = join(sandbox.home, 'unformatted');
  mkdirSync(folder);
  for (const name of ['package.json', '.prettierrc.json', '.prettierignore']) {
    copyFileSync(join(root, name), join(folder, name));
  }
  // A folder of its own, which holds the cache of what is formatted.
  mkdirSync(join(folder, 'node_modules'));
  for (const name of ['.bin', 'prettier']) {
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  }
  writeFileSync(join(folder, 'ugly.ts'), 'const a="b"');
  const { code, out } = await sandbox.run('npm run format', { at: folder });
  expect(code, out).toBe(0);
  expect(readFileSync(join(folder, 'ugly.ts'), 'utf8')).toBe("const a = 'b';\n");
});

/** Where a program may leave data behind. */
function aside(): string {
  const folder = mkdtempSync(join(sandbox.home, 'aside-'));
  symlinkSync(join(root, 'examples'), join(folder, 'examples'));
  return folder;
}
