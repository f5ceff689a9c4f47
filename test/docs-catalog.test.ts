import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandsOf } from './support/markdown.js';
import { Sandbox } from './support/sandbox.js';

/* The guides to schemas, indexes, imports and exports, on one server. */

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await Sandbox.make();
  await sandbox.serve('server', 'bin/ctl db serve --data ./data', /"socket"/);
});
afterAll(() => sandbox.end());

const shown: Readonly<Record<string, RegExp>> = {
  'bin/ctl db schema set people person.json': /Schema of "people" set/,
  'bin/ctl db schema list': /people +strict/,
  'bin/ctl db index create people city age': /created, ready/,
  'bin/ctl db index list people': /people +city, age/,
  'bin/ctl db index advise': /No advice/,
  'bin/ctl db collection rename people persons': /with 1 record/,
  'bin/ctl db collection list': /persons +1/,
  'bin/ctl db collection drop persons --yes': /with 1 record/,
  'bin/ctl db import users users.ndjson --key-field email': /2 new/,
  'bin/ctl db count users': /^2$/m,
  'bin/ctl db import users users.ndjson --key-field email --start-line 2': /1 replaced/,
  'bin/ctl db export users name=Ada --documents': /"name":"Ada"/,
};
const pages = ['docs/how-to/model-index-validate.md', 'docs/how-to/import-and-export.md'];

test.each(pages.flatMap((page) => commandsOf(page)))('%s', async (command) => {
  const { code, out } = await sandbox.run(command);
  expect(code, out).toBe(0);
  expect(out).toMatch(shown[command] ?? /^/);
});
