import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { systemClock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import { client, methods, ndJsonStream, RequestError } from '@agentclientprotocol/sdk';
import { Control } from './control.js';
import { messageLines, type HostEvent } from './host-events.js';
import { AcpHost } from './host.js';
import { readLaunch, writeState } from './state.js';
import { Terminals } from './terminals.js';
import { Workspace } from './workspace.js';

/**
 * Runs one agent over the Agent Client Protocol in its own process, which outlives the daemon:
 * events go to stdout, the state to a file, and commands come through a Unix socket.
 */
const directory = process.argv[2]!;
const launch = readLaunch(directory);
const startLimitMs = 120_000;

const emit = (event: HostEvent) => void process.stdout.write(`${JSON.stringify(event)}\n`);
const workspace = await Workspace.at(launch.cwd);
const terminals = new Terminals(workspace);
const child = spawn(launch.file, launch.args, {
  cwd: launch.cwd,
  env: process.env,
  stdio: ['pipe', 'pipe', 'pipe'],
});
const exited = new Promise<number>((resolve) => {
  child.once('error', (error) => {
    emit({ type: 'error', text: `it could not be started: ${messageOf(error)}` });
    resolve(127);
  });
  child.once('close', (code) => resolve(code ?? 1));
});
child.stderr.setEncoding('utf8').on('data', (text: string) => {
  for (const line of text.split('\n')) if (line.trim() !== '') emit({ type: 'log', text: line });
});
// Writing to an agent that has ended is no fault of the host.
child.stdin.on('error', () => undefined);

let control: Control | undefined;
const host = new AcpHost({
  launch,
  clock: systemClock,
  emit,
  onState: (state) => {
    writeState(directory, state);
    control?.changed();
  },
});
control = new Control((command) => host.handle(command));
await control.listen(launch.socket);

/** The response to a file or terminal request; errors are returned to the agent. */
async function served<Result>(run: () => Promise<Result> | Result): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw RequestError.invalidParams(undefined, messageOf(error));
  }
}

const app = client({ name: 'millrace' })
  .onNotification(methods.client.session.update, ({ params }) => host.update(params.update))
  .onRequest(methods.client.session.requestPermission, ({ params, signal }) =>
    host.requestPermission(params, signal),
  )
  .onRequest(methods.client.fs.readTextFile, ({ params }) =>
    served(async () => ({ content: await workspace.read(params.path, params) })),
  )
  .onRequest(methods.client.fs.writeTextFile, ({ params }) =>
    served(() => workspace.write(params.path, params.content)),
  )
  .onRequest(methods.client.terminal.create, ({ params }) =>
    served(async () => ({ terminalId: await terminals.create(params) })),
  )
  .onRequest(methods.client.terminal.output, ({ params }) =>
    served(() => terminals.output(params.terminalId)),
  )
  .onRequest(methods.client.terminal.waitForExit, ({ params }) =>
    served(() => terminals.waitForExit(params.terminalId)),
  )
  .onRequest(methods.client.terminal.kill, ({ params }) =>
    served(() => terminals.kill(params.terminalId)),
  )
  .onRequest(methods.client.terminal.release, ({ params }) =>
    served(() => terminals.release(params.terminalId)),
  );

const input = Writable.toWeb(child.stdin) as WritableStream<Uint8Array>;
const output = Readable.toWeb(child.stdout.pipe(messageLines(emit))) as ReadableStream<Uint8Array>;
const connection = app.connect(ndJsonStream(input, output));

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.on(signal, () => child.kill('SIGTERM'));
}

const limit = systemClock.after(startLimitMs, () => {
  host.fail(new Error('it did not open a session within 2 minutes'));
  child.kill('SIGKILL');
});
let hasFailed = false;
try {
  await Promise.race([host.begin(connection.agent), exited]);
} catch (error) {
  hasFailed = true;
  host.fail(error);
  child.kill('SIGTERM');
} finally {
  limit.cancel();
}
const code = await exited;
host.flush();
terminals.killAll();
connection.close();
control.close();
process.exit(hasFailed && code === 0 ? 1 : code);
