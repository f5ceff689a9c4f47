// @module-tag campaign-docs
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandsOf } from './support/markdown.js';
import { Sandbox } from './support/sandbox.js';
import { patient } from './support/up.js';

/* Leader and follower of the guide, which stand at other addresses here. Its program is run by docs-code.test.ts. */

let sandbox: Sandbox;
const addresses: Record<string, string> = {};
beforeAll(async () => {
  sandbox = await Sandbox.make();
});
afterAll(() => sandbox.end());

function here(command: string): string {
  return Object.entries(addresses).reduce((text, [from, to]) => text.replaceAll(from, to), command);
}

/** Starts a server that the page knows by this address, on any port of this machine. */
async function serve(address: string, command: string): Promise<void> {
  const anywhere = command.replace(`--grpc ${address}`, '--grpc 127.0.0.1:0');
  expect(anywhere).not.toBe(command);
  const out = await sandbox.serve(address, here(anywhere), /"socket"/);
  addresses[address] = /grpc:\/\/([\d.]+:\d+)/.exec(out)?.[1] ?? '';
}

const ctl = (line: string) => run(`millrace ${line}`);

async function run(command: string): Promise<string> {
  const { code, out } = await sandbox.runHere(here(command));
  expect(code, out).toBe(0);
  return out;
}

/** Reads what the node has on its own disk, as soon as it has it. */
function untilHas(address: string, key: string): Promise<unknown> {
  return vi.waitFor(() => ctl(`db get parts ${key} --url grpc://${address}`), patient);
}

const steps: Readonly<Record<string, (command: string) => Promise<unknown>>> = {
  'millrace db serve --data ./data --grpc 10.0.0.1:5433': (command) =>
    serve('10.0.0.1:5433', command),
  'mkdir -m 700 copy': (command) => run(command),
  'cp data/db.key copy/': (command) => run(command),
  'millrace db serve --data ./copy --grpc 10.0.0.2:5433 --follow grpc://10.0.0.1:5433': async (
    command,
  ) => {
    await ctl(`db put parts wheel '{"teeth":48}' --url grpc://10.0.0.1:5433`);
    await serve('10.0.0.2:5433', command);
    await untilHas('10.0.0.2:5433', 'wheel');
  },
  'millrace db promote --url grpc://10.0.0.2:5433': async (command) => {
    await ctl(command.replace('millrace ', ''));
    await ctl(`db put parts pinion '{"teeth":12}' --url grpc://10.0.0.2:5433`);
  },
  'millrace db serve --data ./data --grpc 10.0.0.1:5433 --follow grpc://10.0.0.2:5433': async (
    command,
  ) => {
    await serve('10.0.0.1:5433', command);
    await untilHas('10.0.0.1:5433', 'pinion');
  },
};

test.each(commandsOf('docs/how-to/run-database-followers.md'))('%s', async (command) => {
  const step = steps[command];
  if (!step) throw new Error('Say here what there must be before this command, and after it.');
  await step(command);
});
