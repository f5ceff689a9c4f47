import { openApiDocument } from '@millrace/contract/documents';
import type { QueueSchema } from '@millrace/contract/queue';
import { expect, test } from 'vitest';
import { rowsOf } from '@millrace/contract/lists';
import * as queueLists from '@millrace/contract/lists/queue';
import { factsText, listText, shownText } from '../src/base/list-text.js';
import { taskSheet } from '../src/queue/task-view.js';
import { watchScreen, type Watched } from '../src/queue/watching.js';
import { plain } from '../src/render/paint.js';

const now = Date.parse('2026-03-02T10:30:00Z');
const narrow = { columns: 80, paint: plain };
const wide = { columns: 140, paint: plain };

/** What the contract shows as an example. */
function example<Name extends 'Task' | 'DlqPage'>(_kind: Name, name: string): QueueSchema<Name> {
  const { examples } = openApiDocument('queue').components as {
    examples?: Record<string, { value: unknown }>;
  };
  return structuredClone(examples?.[name]?.value) as QueueSchema<Name>;
}

function deadTable({ tasks, next_cursor: next }: QueueSchema<'DlqPage'>, sheet: typeof narrow) {
  return shownText(rowsOf(queueLists.deadTasks, tasks, queueLists.moreText(next)), now, sheet);
}

test('list', () => {
  const summary = {
    paused: false,
    pending: 120,
    in_flight: 64,
    dlq_depth: 3,
    oldest_pending_age_ms: 5200,
    callback_url: 'https://handlers.example.org/v1/payments/capture/and/settle',
    version: 3,
    updated_at: '2026-03-01T16:40:00.000Z',
  };
  const queues = [
    { name: 'mail', summary: { ...summary, paused: true, pending: 0, oldest_pending_age_ms: 0 } },
    { name: 'payments.capture', summary },
  ];
  expect(listText(queueLists.queues, queues, now, narrow)).toBe(
    `
QUEUE          STATE    PENDING  DELAYED  IN FLIGHT  DLQ  OLDEST  CALLBACK
mail           paused         0        0         64    3  -       https://handl…
payments.cap…  running      120        0         64    3  5.2s    https://handl…
`.slice(1),
  );
  expect(listText(queueLists.queues, queues, now, wide)).toBe(
    `
QUEUE             STATE    PENDING  DELAYED  IN FLIGHT  DLQ  OLDEST  CALLBACK
mail              paused         0        0         64    3  -       https://handlers.example.org/v1/payments/capture/and/settle
payments.capture  running      120        0         64    3  5.2s    https://handlers.example.org/v1/payments/capture/and/settle
`.slice(1),
  );
});

test('get', () => {
  const dead = example('Task', 'TaskDead');
  expect(taskSheet(dead, now, narrow)).toBe(
    `
task        01JD3Z8Q4M7X2N5V9RTBKWCH6E
queue       payments.capture
handler     mail.send
status      DEAD (PERMANENT)
attempts    1 of 15
payload     24 B of application/json: {"to":"ada@example.org"}
header      X-Tenant: acme
priority    4
submitted   2026-03-02T09:15:00.000Z (1h ago) by shop-backend
died        2026-03-02T09:15:00.412Z (1h ago)
last error  HTTP_4XX 404: The callback answered 404: no such payment

ATTEMPT  STARTED              DURATION  OUTCOME  REASON
1        2026-03-02 09:15:00  402ms     FAILED   HTTP_4XX 404: The callback
                                                 answered 404: no such payment
`.slice(1),
  );
  expect(taskSheet(dead, now, wide)).toBe(
    `
task        01JD3Z8Q4M7X2N5V9RTBKWCH6E
queue       payments.capture
handler     mail.send
status      DEAD (PERMANENT)
attempts    1 of 15
payload     24 B of application/json: {"to":"ada@example.org"}
header      X-Tenant: acme
priority    4
submitted   2026-03-02T09:15:00.000Z (1h ago) by shop-backend
died        2026-03-02T09:15:00.412Z (1h ago)
last error  HTTP_4XX 404: The callback answered 404: no such payment

ATTEMPT  STARTED              DURATION  OUTCOME  REASON
1        2026-03-02 09:15:00  402ms     FAILED   HTTP_4XX 404: The callback answered 404: no such payment
`.slice(1),
  );
  const pending = example('Task', 'TaskPending');
  expect(taskSheet(pending, now, narrow)).toBe(
    `
task        01JD3Z8Q4M7X2N5V9RTBKWCH6E
queue       payments.capture
handler     mail.send
status      PENDING: it is not due yet
attempts    1 of 15
payload     24 B of application/json: {"to":"ada@example.org"}
header      X-Tenant: acme
priority    4
submitted   2026-03-02T09:15:00.000Z (1h ago) by shop-backend
due         2026-03-02T09:15:30.412Z (1h ago)
last error  UNAVAILABLE 503: The callback answered 503: try later

ATTEMPT  STARTED              DURATION  OUTCOME  REASON
1        2026-03-02 09:15:00  402ms     FAILED   UNAVAILABLE 503: The callback
                                                 answered 503: try later
`.slice(1),
  );
});

test('get: shows the progress and the result', () => {
  const task = example('Task', 'TaskPending');
  const at = new Date(now - 3_000).toISOString();
  const text = (more: object) => taskSheet({ ...task, ...more }, now, wide);
  const progress = { percent: 40, message: '4 of 10', at };
  expect(text({ progress })).toMatch(/^progress +40 %: 4 of 10 \(3s ago\)$/m);
  expect(text({ progress: { percent: null, message: 'waits', at } })).toMatch(
    /^progress +waits \(3s ago\)$/m,
  );
  expect(text({ result: { sent: true } })).toMatch(/^result +\{"sent":true\}$/m);
  expect(text({ result: 'x'.repeat(300) })).toContain('… (all of it with --json)');
  expect(text({ result: null, result_dropped: true })).toMatch(/^result +too large, not kept$/m);
  expect(text({ result: null })).not.toMatch(/^result/m);
});

test('dlq list', () => {
  const page = example('DlqPage', 'DlqMore');
  const [task] = page.tasks;
  page.tasks.push({
    ...task!,
    handler_ref: 'billing/invoice.render-and-send@v2',
    last_error: {
      error_type: 'QUOTA_EXCEEDED',
      http_status: null,
      message: 'The mailbox provider is over its daily quota, which is renewed at midnight',
      at: task!.dead_at!,
    },
  });
  expect(deadTable(page, narrow)).toBe(
    `
TASK                        DIED    ATTEMPTS  ERROR           HANDLER
01JD3Z8Q4M7X2N5V9RTBKWCH6E  1h ago         1  HTTP_4XX 404    mail.send
01JD3Z8Q4M7X2N5V9RTBKWCH6E  1h ago         1  QUOTA_EXCEEDED  billing/invoice.r…
There are more. Continue with --cursor c1.AZWq0Lk3.h7Rk2v9Q
`.slice(1),
  );
  expect(deadTable(page, wide)).toBe(
    `
TASK                        DIED    ATTEMPTS  ERROR           HANDLER                             MESSAGE
01JD3Z8Q4M7X2N5V9RTBKWCH6E  1h ago         1  HTTP_4XX 404    mail.send                           The callback answered 404
01JD3Z8Q4M7X2N5V9RTBKWCH6E  1h ago         1  QUOTA_EXCEEDED  billing/invoice.render-and-send@v2  The mailbox provider is over its daily qu…
There are more. Continue with --cursor c1.AZWq0Lk3.h7Rk2v9Q
`.slice(1),
  );
});

test('dlq groups', () => {
  const group = {
    error_type: 'HTTP_5XX',
    handler_ref: 'mail.send',
    http_status: 500,
    count: 412,
    first_seen: '2026-03-02T09:20:11.204Z',
    last_seen: '2026-03-02T10:02:54.871Z',
    sample_id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
  };
  const long = { ...group, handler_ref: 'billing/invoice.render-and-send@v2', count: 1 };
  const timeouts = { ...group, error_type: 'TIMEOUT', http_status: null, count: 3 };
  expect(listText(queueLists.deadGroups, [group, timeouts, long], now, narrow)).toBe(
    `
TASKS  ERROR     HTTP  HANDLER       FIRST   LAST     EXAMPLE
  412  HTTP_5XX  500   mail.send     1h ago  27m ago  01JD3Z8Q4M7X2N5V9RTBKWCH6E
    3  TIMEOUT   -     mail.send     1h ago  27m ago  01JD3Z8Q4M7X2N5V9RTBKWCH6E
    1  HTTP_5XX  500   billing/inv…  1h ago  27m ago  01JD3Z8Q4M7X2N5V9RTBKWCH6E
416 tasks in 3 groups.
`.slice(1),
  );
  expect(listText(queueLists.deadGroups, [group, timeouts, long], now, wide)).toBe(
    `
TASKS  ERROR     HTTP  HANDLER                             FIRST   LAST     EXAMPLE
  412  HTTP_5XX  500   mail.send                           1h ago  27m ago  01JD3Z8Q4M7X2N5V9RTBKWCH6E
    3  TIMEOUT   -     mail.send                           1h ago  27m ago  01JD3Z8Q4M7X2N5V9RTBKWCH6E
    1  HTTP_5XX  500   billing/invoice.render-and-send@v2  1h ago  27m ago  01JD3Z8Q4M7X2N5V9RTBKWCH6E
416 tasks in 3 groups.
`.slice(1),
  );
  expect(listText(queueLists.deadGroups, [], now, narrow)).toBe('No dead tasks.\n');
});

test('audit list', () => {
  const hashes = { prev_hash: '0'.repeat(64), hash: 'a'.repeat(64) };
  const records: QueueSchema<'AuditRecord'>[] = [
    {
      seq: 12,
      at: '2026-03-02T10:05:00.000Z',
      principal: 'ops-anna',
      action: 'redrive',
      queue: 'payments.capture',
      selector: { filter: { error_type: 'HTTP_5XX' }, rate_per_second: 50 },
      count: 412,
      ...hashes,
    },
    {
      seq: 11,
      at: '2026-03-02T10:00:00.000Z',
      principal: 'ops-anna',
      action: 'pause',
      queue: 'payments.capture',
      selector: null,
      count: null,
      ...hashes,
    },
  ];
  expect(listText(queueLists.audit, records, now, narrow)).toBe(
    `
SEQ  TIME     PRINCIPAL  ACTION   QUEUE             TASKS  SELECTION
 12  25m ago  ops-anna   redrive  payments.capture  412    error_type=HTTP_5XX
                                                           rate_per_second=50
 11  30m ago  ops-anna   pause    payments.capture
`.slice(1),
  );
  expect(listText(queueLists.audit, records, now, wide)).toBe(
    `
SEQ  TIME                 PRINCIPAL  ACTION   QUEUE             TASKS  SELECTION
 12  2026-03-02 10:05:00  ops-anna   redrive  payments.capture  412    error_type=HTTP_5XX rate_per_second=50
 11  2026-03-02 10:00:00  ops-anna   pause    payments.capture
`.slice(1),
  );
});

test('test', () => {
  const refused = {
    delivered: false,
    http_status: null,
    duration_ms: 3,
    error_type: 'CONNECTION_REFUSED',
    message: '203.0.113.7 refused the connection on port 443',
  };
  expect(factsText(queueLists.probeFacts(refused), now, narrow)).toBe(
    `
delivered  no
status     no response
took       3ms
error      CONNECTION_REFUSED
message    203.0.113.7 refused the connection on port 443
`.slice(1),
  );
});

test('watch', () => {
  const queue: Watched = {
    name: 'payments.capture',
    pending: 1204,
    inFlight: 64,
    dead: 3,
    oldestMs: 5200,
    paused: false,
    callbacks: 90_000,
    rate: 1432.4,
    course: Array.from({ length: 50 }, (_, at) => at),
  };
  const empty = { name: 'mail', pending: 0, inFlight: 0, dead: 0, oldestMs: 0 };
  const quiet: Watched = { ...queue, ...empty, paused: true, rate: 0, course: [0, 0, 0] };
  expect(watchScreen([quiet, queue], narrow, 20)).toBe(
    `
QUEUE             STATE    PENDING  IN FLIGHT  DLQ  OLDEST  CALLS/S  CALLS
mail              paused         0          0    0  -       0        ▁▁▁
payments.capture  running     1204         64    3  5.2s    1.4k     ▇▇▇▇████
`.slice(1),
  );
  expect(watchScreen([quiet, queue], wide, 20)).toBe(
    `
QUEUE             STATE    PENDING  IN FLIGHT  DLQ  OLDEST  CALLS/S  CALLS
mail              paused         0          0    0  -       0        ▁▁▁
payments.capture  running     1204         64    3  5.2s    1.4k     ▂▃▃▃▃▃▃▃▄▄▄▄▄▄▄▅▅▅▅▅▅▅▆▆▆▆▆▆▆▇▇▇▇▇▇▇████
`.slice(1),
  );
  const unmeasured = [quiet, queue].map((each) => ({ ...each, callbacks: undefined, rate: 12.34 }));
  expect(watchScreen(unmeasured, narrow, 1)).toBe(
    `
QUEUE  STATE   PENDING  IN FLIGHT  DLQ  OLDEST  Δ PENDING/S  BACKLOG
mail   paused        0          0    0  -       +12          ▁▁▁
and 1 more: name the queues you want to see
`.slice(1),
  );
});
