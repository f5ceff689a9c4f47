import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandsOf } from './support/markdown.js';
import { Sandbox } from './support/sandbox.js';

/* The guides to schemas, indexes, imports and exports, on one server. */

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await Sandbox.make();
  await sandbox.serve('server', 'millrace db serve --data ./data', /"socket"/);
});
afterAll(() => sandbox.end());

const shown: Readonly<Record<string, RegExp>> = {
  'millrace db schema set people person.json': /Schema of "people" set/,
  'millrace db schema list': /people +strict/,
  'millrace db index create people city age': /created, ready/,
  'millrace db index list people': /people +city, age/,
  'millrace db index advise': /No advice/,
  'millrace db collection rename people persons': /with 1 record/,
  'millrace db collection list': /persons +1/,
  'millrace db collection drop persons --yes': /with 1 record/,
  'millrace db import users users.ndjson --key-field email': /2 new/,
  'millrace db count users': /^2$/m,
  'millrace db import users users.ndjson --key-field email --start-line 2': /1 replaced/,
  'millrace db export users name=Ada --documents': /"name":"Ada"/,
};
const pages = ['model-and-validate-records', 'write-many-records', 'import-and-export'];

test.each(pages.flatMap((page) => commandsOf(`docs/how-to/${page}.md`)))('%s', async (command) => {
  const { code, out } = await sandbox.runHere(command);
  expect(code, out).toBe(0);
  expect(out).toMatch(shown[command] ?? /^/);
});
