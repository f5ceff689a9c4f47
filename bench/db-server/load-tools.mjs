/** h2load and wrk: written in C, so that the server is what is measured. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * One gRPC call over and over, by so many clients with one call under way each. A refusal is a
 * status of 200 with a trailer, which h2load cannot tell from an answer, but it has no data: the
 * share of answers follows from their bytes.
 */
export async function h2load(home, url, call, how) {
  const one = await h2loadOnce(home, url, call, { clients: 1, requests: 1 });
  if (one.dataBytes === 0) throw new Error(`${call.path} is refused`);
  if (how.requests === 1) return one;
  const all = await h2loadOnce(home, url, call, how);
  const answered = Math.min(1, all.dataBytes / (one.dataBytes * all.requests));
  return { perSecond: all.perSecond * (answered > 0.99 ? 1 : answered), seconds: all.seconds };
}

async function h2loadOnce(home, url, { path, body }, { clients, seconds, requests }) {
  const file = join(home, 'body.bin');
  writeFileSync(file, body);
  const amount = requests
    ? ['-n', String(requests)]
    : ['--duration', `${Math.round(seconds * 1_000)}ms`];
  const { stdout } = await run(
    'h2load',
    [...amount, '-c', String(clients), '-m', '1', '-t', '1', '-d', file]
      .concat(['-w', '24', '-W', '26'])
      .concat(['-H', 'content-type: application/grpc', '-H', 'te: trailers'])
      .concat(`${url}${path}`),
    { maxBuffer: 2 ** 24 },
  );
  const [, perSecond] = /finished in .*?, ([\d.]+) req\/s/.exec(stdout) ?? [];
  const [, total, failed, errored] =
    /requests: (\d+) total.*?(\d+) failed, (\d+) errored/.exec(stdout) ?? [];
  const [, bytes] = /\((\d+)\) data/.exec(stdout) ?? [];
  const [, seconds2] = /finished in ([\d.]+)(m?s)/.exec(stdout) ?? [];
  if (Number(failed) > 0 || Number(errored) > 0 || perSecond === undefined) {
    throw new Error(`h2load ${path}: ${stdout}`);
  }
  return {
    perSecond: Number(perSecond),
    requests: Number(total),
    dataBytes: Number(bytes),
    seconds: Number(seconds2) * (/finished in [\d.]+ms/.test(stdout) ? 1e-3 : 1),
  };
}

/** One REST call over and over, by so many connections. */
export async function wrk(home, url, { method = 'GET', path, body }, { clients, seconds }) {
  const script = join(home, 'request.lua');
  writeFileSync(
    script,
    `wrk.method = ${JSON.stringify(method)}\n` +
      (body
        ? `wrk.headers["content-type"] = "application/json"\nwrk.body = [==[${body}]==]\n`
        : ''),
  );
  const args = ['-t', '1', '-c', String(clients), '-d', wholeSeconds(seconds), '-s', script];
  const { stdout } = await run('wrk', [...args, '--timeout', '20s', `${url}${path}`]);
  if (/Socket errors/.test(stdout)) throw new Error(`wrk ${path}: ${stdout}`);
  const [, total] = /(\d+) requests in/.exec(stdout) ?? [];
  const [, refused = '0'] = /Non-2xx or 3xx responses: (\d+)/.exec(stdout) ?? [];
  const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(stdout) ?? [];
  return { perSecond: Number(perSecond) * (1 - Number(refused) / Number(total)) };
}

/** The duration of a run of wrk, which takes no fractions of a second. */
export function wholeSeconds(seconds) {
  return `${Math.ceil(seconds)}s`;
}
