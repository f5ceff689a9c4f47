/** How long an agent waits for a permission that is answered over REST at once. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { callDaemon } from './call.mjs';

const requestCount = 20;

/** An agent over ACP that requests permissions one after the other, and writes down each wait. */
const agent = `#!${process.execPath}
if (process.argv.includes('--help')) { console.log('  --acp  Speak ACP'); process.exit(); }
const { writeFileSync } = require('node:fs');
const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
const waits = [];
let sentAt = 0;
let promptId;
const options = [{ optionId: 'yes', name: 'Allow', kind: 'allow_once' }];
function next() {
  if (waits.length === ${requestCount}) {
    writeFileSync(process.env.HOME + '/waits.json', JSON.stringify(waits));
    return send({ id: promptId, result: { stopReason: 'end_turn' } });
  }
  const id = 'p' + waits.length;
  const toolCall = { toolCallId: id, title: 'make', kind: 'execute', rawInput: { command: 'make' } };
  sentAt = performance.now();
  send({ id, method: 'session/request_permission', params: { sessionId: 's', toolCall, options } });
}
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (method === undefined) { waits.push(performance.now() - sentAt); next(); }
  else if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  else if (method === 'session/new') send({ id, result: { sessionId: 's' } });
  else if (method === 'session/prompt') { promptId = id; next(); }
});
`;

/** Puts the agent on the daemon's search path; returns that path. */
export function installAgent(home) {
  const bin = join(home, 'bin');
  mkdirSync(bin, { recursive: true });
  const file = join(bin, 'gemini');
  writeFileSync(file, agent);
  chmodSync(file, 0o755);
  return `${bin}:${process.env.PATH}`;
}

/** The waits of the agent in milliseconds. */
export async function permissionWaits(url, home) {
  const call = (method, path, body) => callDaemon(url, method, path, body);
  await call('POST', '/api/v1/backends/rescan?acp=true');
  const events = Readable.fromWeb((await fetch(`${url}/api/v1/events`)).body);
  const request = { prompt: 'begin', backend: 'gemini', driver: 'acp', cwd: home, worktree: false };
  const { id } = await call('POST', '/api/v1/spawn', request);
  let answeredCount = 0;
  // An interface made before the spawn would drop the lines that come until this loop reads.
  for await (const line of createInterface({ input: events })) {
    if (!line.startsWith('data:')) continue;
    const { type, data } = JSON.parse(line.slice(5));
    if (type !== 'question.changed' || data.status !== 'open') continue;
    await call('POST', `/api/v1/questions/${data.id}:answer`, { option_id: 'yes' });
    if (++answeredCount === requestCount) break;
  }
  events.destroy();
  let session;
  do session = await call('GET', `/api/v1/sessions/${id}`);
  while (session.status !== 'idle');
  const waits = JSON.parse(readFileSync(join(home, 'waits.json'), 'utf8'));
  await call('DELETE', `/api/v1/sessions/${id}`);
  return waits;
}
