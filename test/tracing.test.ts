import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { installFakeAgent } from '../packages/daemon/test/support/fake-agent.js';
import { anyPorts, patient, Up } from './support/up.js';

/* One task through all servers, as a fake collector of OpenTelemetry sees it. */

interface Exported {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code: number };
}

const spans: Exported[] = [];
const collector = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8').on('data', (part: string) => (text += part));
  request.on('end', () => {
    for (const { resource, scopeSpans } of JSON.parse(text).resourceSpans) {
      const service = resource.attributes[0].value.stringValue;
      for (const { spans: some } of scopeSpans) {
        for (const span of some) spans.push({ service, ...span });
      }
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
});

let home = '';
let up: Up | undefined;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'millrace-tracing-'));
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
});
afterEach(async () => {
  // Ends the agent if the test failed before.
  writeFileSync(join(home, 'work', 'go.txt'), '');
  up?.kill('SIGKILL');
  await up?.ended;
  collector.closeAllConnections();
  await new Promise((resolve) => collector.close(resolve));
  rmSync(home, { recursive: true, force: true });
});

test('tracing: one task is one trace of five spans, submit to tool', async () => {
  const bin = join(home, 'bin');
  const work = join(home, 'work');
  for (const folder of [bin, work]) mkdirSync(folder);
  await installFakeAgent(bin);
  const { port } = collector.address() as AddressInfo;
  up = await new Up(join(home, 'data'), anyPorts, false, {
    PATH: `${bin}:${process.env['PATH']}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
  }).ready();
  const running = up;
  const json = async (response: Promise<Response>) => (await response).json() as Promise<any>;

  const request = { prompt: 'write notes.txt, wait go.txt', backend: 'claude', cwd: work };
  const { id } = await json(
    running.queue('/v1/queues/agents/tasks', 'POST', {
      handler_ref: 'agent',
      payload: Buffer.from(JSON.stringify(request)).toString('base64'),
      payload_content_type: 'application/json',
    }),
  );
  // The last report of the agent stays the tool until the file is there.
  const reasons = async () => {
    const { sessions } = await json(running.daemon('/api/v1/sessions'));
    return (sessions as { status_reason: string }[]).map((one) => one.status_reason);
  };
  await expect.poll(reasons, patient).toEqual([expect.stringContaining('it uses the tool')]);
  writeFileSync(join(work, 'go.txt'), '');
  const status = async () => (await json(running.queue(`/v1/tasks/${id}`))).status;
  await expect.poll(status, patient).toBe('SUCCEEDED');
  const kinds = () => spans.map(({ name }) => name.split(' ')[0]!).toSorted();
  await expect.poll(kinds, patient).toEqual(['agent', 'callback', 'submit', 'task', 'tool']);

  const named = (kind: string) => spans.find(({ name }) => name.startsWith(`${kind} `))!;
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect('parentSpanId' in named('submit')).toBe(false);
  for (const [child, parent] of [
    ['task', 'submit'],
    ['callback', 'task'],
    ['agent', 'callback'],
    ['tool', 'agent'],
  ] as const) {
    expect(named(child).parentSpanId, child).toBe(named(parent).spanId);
  }
  expect(named('task').service).toBe('millrace-queue');
  expect(named('tool').service).toBe('millrace-daemon');
  for (const { status: end, startTimeUnixNano, endTimeUnixNano } of spans) {
    expect(end.code).toBe(1);
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
  }
});
