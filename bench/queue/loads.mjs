/** The loads. Each returns tasks per second, and the CPU time of the server for each task. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { wholeSeconds } from '../db-server/load-tools.mjs';

const run = promisify(execFile);
const clients = 64;
const batch = 500;
const drainPatienceMs = 120_000;

/** 300 bytes, with the send time if latency is measured. */
export function payload(at = 0) {
  const text = `{"at":${at.toFixed(3).padStart(18, ' ')},"note":"`;
  return Buffer.from(`${text.padEnd(298, 'x')}"}`).toString('base64');
}

/** Submits at full speed while workers run; ends at the last callback. */
export async function endToEnd(queue, handler, { home, seconds }) {
  await queue.resume();
  await handler.reset();
  const cpu = queue.cpuUs?.();
  const started = now();
  const accepted = await submitFor(queue, { home, seconds });
  const { count, lastAt } = await drained(handler, accepted);
  if (count < accepted) throw new Error(`${queue.name}: ${count} of ${accepted} were delivered`);
  const cpuUs = (queue.cpuUs?.() - cpu) / accepted;
  await queue.pause();
  return { perSecond: (accepted / (lastAt - started)) * 1_000, cpuUs };
}

/** Submits while workers are paused; clearing the tasks is not measured. */
export async function submitOnly(queue, handler, { home, seconds }, inBatches) {
  await queue.pause();
  await handler.reset();
  const cpu = queue.cpuUs?.();
  const started = now();
  const accepted = await submitFor(queue, { home, seconds }, inBatches);
  const perSecond = (accepted / (now() - started)) * 1_000;
  const cpuUs = (queue.cpuUs?.() - cpu) / accepted;
  if (queue.clear) await queue.clear();
  else {
    await queue.resume();
    await drained(handler, accepted);
    await queue.pause();
  }
  return { perSecond, cpuUs };
}

/** Low steady load: latency from submit to handler. */
export async function latency(queue, handler, { seconds }) {
  const perSecond = 200;
  await queue.resume();
  await sleep(500);
  await handler.reset();
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const started = now();
  let sent = 0;
  const answers = [];
  while (now() - started < seconds * 1_000) {
    for (; sent < ((now() - started) / 1_000) * perSecond; sent++) {
      answers.push(submitOne(agent, queue, payload(now())));
    }
    await sleep(1);
  }
  await Promise.all(answers);
  const { p50, p99 } = await drained(handler, sent);
  agent.destroy();
  await queue.pause();
  return { p50, p99 };
}

/** Adds a backlog in large batches; not measured. */
export async function fill(queue, count) {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  let left = count;
  const worker = async () => {
    while (left > 0) {
      const size = Math.min(1_000, left);
      left -= size;
      const body = Array.from({ length: size }, () => queue.bodyOf(payload()));
      await send(agent, queue, queue.batchPath, JSON.stringify(body));
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  agent.destroy();
}

/** Throughput of working off a backlog, for some time or until it is empty. */
export async function workOff(queue, handler, { seconds }) {
  await handler.reset();
  const started = now();
  await queue.resume();
  await sleep(seconds * 1_000);
  const { count, lastAt } = await handler.report();
  await queue.pause();
  return (count / (lastAt - started)) * 1_000;
}

async function submitOne(agent, queue, text) {
  await send(agent, queue, queue.submitPath, JSON.stringify(queue.bodyOf(text)));
}

function send(agent, queue, path, body) {
  const { headers } = queue;
  return new Promise((resolve, reject) => {
    const sent = request(`${queue.url}${path}`, { agent, method: 'POST', headers }, (answer) => {
      let said = '';
      answer.setEncoding('utf8').on('data', (part) => (said += part));
      answer.on('end', () => {
        if (answer.statusCode < 300) resolve();
        else reject(new Error(`${queue.name}: ${answer.statusCode} ${said}`));
      });
      answer.on('error', reject);
    });
    sent.on('error', reject).end(body);
  });
}

/** Submits with wrk, so that the client is not the bottleneck. Returns the accepted count. */
async function submitFor(queue, { home, seconds }, inBatches = false) {
  const one = queue.bodyOf(payload());
  const body = JSON.stringify(inBatches ? Array.from({ length: batch }, () => one) : one);
  const headers = Object.entries(queue.headers).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}\n`,
  );
  const script = join(home, 'submit.lua');
  writeFileSync(script, `wrk.method = "POST"\n${headers.join('')}wrk.body = [==[${body}]==]\n`);
  const path = inBatches ? queue.batchPath : queue.submitPath;
  const connections = inBatches ? 8 : clients;
  const args = [
    '-t',
    '1',
    '-c',
    String(connections),
    '-d',
    wholeSeconds(seconds),
    '--timeout',
    '30s',
  ];
  const { stdout } = await run('wrk', [...args, '-s', script, `${queue.url}${path}`]);
  if (/Socket errors/.test(stdout)) throw new Error(`${queue.name}: ${stdout}`);
  const [, total] = /(\d+) requests in/.exec(stdout);
  const [, refused = '0'] = /Non-2xx or 3xx responses: (\d+)/.exec(stdout) ?? [];
  return (Number(total) - Number(refused)) * (inBatches ? batch : 1);
}

/** Waits until the handler has received all tasks, or receives no more. */
async function drained(handler, wanted) {
  let last = await handler.report();
  let quietSince = now();
  while (last.count < wanted && now() - quietSince < drainPatienceMs) {
    await sleep(20);
    const next = await handler.report();
    if (next.count !== last.count) quietSince = now();
    last = next;
  }
  // wrk may end with open requests: a few more tasks than it counted may be stored.
  await sleep(300);
  return handler.report();
}

function now() {
  return performance.timeOrigin + performance.now();
}
