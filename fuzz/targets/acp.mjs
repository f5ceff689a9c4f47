import { Readable, Writable } from 'node:stream';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { AcpHost } from '../../packages/daemon/dist/acp-host/host.js';
import { messageLines } from '../../packages/daemon/dist/acp-host/host-events.js';
import { systemClock } from '../../packages/kit/dist/base/clock-and-random.js';

/* What an agent writes to stdout: messages of the Agent Client Protocol, or anything else. */

const launch = {
  file: 'agent',
  args: [],
  cwd: '/',
  socket: '',
  resume: null,
  prompt: 'go',
  resumePrompt: null,
  model: null,
  mode: null,
};
// The library reports messages that it does not take.
console.error = () => undefined;
const noTimer = { cancel: () => undefined };

export async function run(input) {
  const host = new AcpHost({
    launch,
    clock: { ...systemClock, after: () => noTimer },
    emit: (event) => JSON.stringify(event),
    onState: (state) => JSON.stringify(state),
  });
  const app = client({ name: 'millrace' })
    .onNotification(methods.client.session.update, ({ params }) => host.update(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) =>
      host.requestPermission(params, signal),
    );
  const lines = messageLines(() => undefined, 32_768);
  const output = Readable.toWeb(lines);
  const sent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const connection = app.connect(ndJsonStream(Writable.toWeb(sent), output));
  // The answers to what the host asks come from the input, or never.
  const begun = host.begin(connection.agent).catch(() => undefined);
  lines.end(input);
  await Promise.race([begun, connection.closed]);
  await new Promise(setImmediate);
  host.flush();
  connection.close();
}

export const dictionary = [
  '{"jsonrpc":"2.0","method":"session/update","params":',
  '"sessionUpdate":"tool_call"',
  '\n',
  '"content":{"type":"text","text":"x"}',
  '"toolCallId":"1"',
  '"id":0,"result":',
  '"status":',
];
